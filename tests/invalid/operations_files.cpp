// Scenarios of a cluster over weeks that are not right, and what is said of them.
#include "hw/error.h"
#include "tests/catch.h"
#include "tests/process.h"
#include "workloads/scenario/scenario.h"

namespace {

using namespace moebius;

std::string refusal(const std::string& operations, const std::string& job) {
  const std::string text = R"({"moebius": 1, "kind": "cluster", "name": "c",
"cluster": {"pools": [{"name": "a", "accelerator": "h100-sxm", "node": "hgx-8", "nodes": 10}],
  "fabric": {"type": "rail-optimised-clos", "nic": "400 Gb/s"}},
"operations": {)" + operations +
                           R"(},
"jobs": [{)" + job + "}]}";
  try {
    read_scenario(parse_document(text, "c.json"), Catalog(), ModelCatalog());
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

const std::string kTime = R"("duration": "10 d")", kJob = R"("name": "j", "nodes": 8, "state": "1 TB")";

}  // namespace

TEST_CASE("a cluster over weeks that is right is taken") {
  CHECK(refusal(kTime, kJob) == "");
}

TEST_CASE("jobs and spares have to fit on the nodes") {
  CHECK(refusal(kTime + R"(, "spares": 3)", kJob) ==
        "c.json:5: /jobs/0/nodes: 8 nodes and 3 spares, but the cluster has 10");
}

TEST_CASE("a job whose state is saved says how large it is") {
  CHECK(
      refusal(kTime, R"("name": "j", "nodes": 8)") ==
      R"(c.json:5: /jobs/0: expected "model", "state" or "scenario", that checkpoints have a size, found none)");
}

TEST_CASE("an interval is a time or a formula") {
  CHECK(
      refusal(kTime + R"(, "checkpoint": {"interval": "often"})", kJob) ==
      R"(c.json:4: /operations/checkpoint/interval: expected "young", "daly" or a time such as "30 min", found "often")");
}

TEST_CASE("a fault of a trace is of a known kind on a node that is there") {
  const auto trace = [](const std::string& row) {
    return kTime + R"(, "failures": {"trace": [{)" + row + "}]}";
  };
  CHECK(
      refusal(trace(R"("time": "1 h", "node": 0, "kind": "GPUs")"), kJob) ==
      R"(c.json:4: /operations/failures/trace/0/kind: expected a kind of fault, found "GPUs" (did you mean "GPU"?))");
  CHECK(refusal(trace(R"("time": "1 h", "node": 10, "kind": "GPU")"), kJob) ==
        "c.json:4: /operations/failures/trace/0/node: expected a node from 0 to 9, found 10");
}

TEST_CASE("what breaks, and who is broken, has a name of its own") {
  const std::string kind = R"({"name": "code", "mtbf": "9 h"})";
  CHECK(refusal(kTime + R"(, "failures": {"kinds": [)" + kind + ", " + kind + "]}", kJob) ==
        R"(c.json:4: /operations/failures/kinds/1/name: two kinds of failures named "code")");
  CHECK(
      refusal(kTime + R"(, "failures": {"kinds": [{"name": "GPU", "mtbf": "9 h"}]})", kJob) ==
      R"(c.json:4: /operations/failures/kinds/0/name: two kinds of failures named "GPU")");  // the mix has it
  CHECK(refusal(kTime, kJob + "}, {" + kJob) == R"(c.json:5: /jobs/1/name: two jobs named "j")");
}

TEST_CASE("who saves nothing saves nothing on a signal") {
  CHECK(refusal(kTime + R"(, "checkpoint": {"policy": "none", "triggered": 0})", kJob) == "");
  CHECK(refusal(kTime + R"(, "checkpoint": {"policy": "none", "triggered": 0.5})", kJob) ==
        R"(c.json:4: /operations/checkpoint/triggered: expected 0 with policy "none", which saves nothing, )"
        "found 0.5");
}

TEST_CASE("what would count for nothing is refused") {
  CHECK(refusal(kTime + R"(, "failures": {"trace": [{"time": "11 d", "node": 0, "kind": "GPU"}]})", kJob) ==
        "c.json:4: /operations/failures/trace/0/time: expected a time before the end after 10 d, found 11 d");
  CHECK(refusal(kTime, kJob + R"(, "model": "qwen3-8b")") ==
        R"(c.json:5: /jobs/0/state: expected "model" or "state", found both)");
}

TEST_CASE("names that go to terminals are one line") {
  CHECK(refusal(kTime, R"("name": "a\u001b[1m", "nodes": 8, "state": "1 TB")") ==
        R"(c.json:5: /jobs/0/name: expected one line without control characters, found "a\u001b[1m")");
}

TEST_CASE("weeks take some time") {
  CHECK(refusal(R"("duration": "0 s")", kJob) ==
        "c.json:4: /operations/duration: expected more than no time, found none");
}

TEST_CASE("rates of a mix count only with one") {
  CHECK(
      refusal(kTime + R"(, "failures": {"mix": "none", "per_node_day": 1})", kJob) ==
      R"(c.json:4: /operations/failures/per_node_day: "per_node_day" counts only with a mix other than "none")");
  CHECK(refusal(kTime + R"(, "failures": {"mix": "none", "factor": 5})", kJob) ==
        R"(c.json:4: /operations/failures/factor: "factor" counts only with a mix other than "none")");
}

// 4,600 W of the node and a fifth of 8 x 700 W.
TEST_CASE("a node does not draw less than nothing") {
  CHECK(refusal(kTime + R"(, "cooling": {"saved_watts": 5720})", kJob) == "");
  CHECK(
      refusal(kTime + R"(, "cooling": {"saved_watts": 20000})", kJob) ==
      R"(c.json:4: /operations/cooling/saved_watts: expected at most the 5720 that an idle node of pool "a" )"
      "draws, found 20000");
}

TEST_CASE("times are bounded in a unit that is read") {
  const auto kind = [](const std::string& mtbf) {
    return kTime + R"(, "failures": {"kinds": [{"name": "code", "mtbf": ")" + mtbf + R"("}]})";
  };
  CHECK(refusal(kind("11574 d"), kJob) == "");
  CHECK(refusal(kind("100000 d"), kJob) ==
        "c.json:4: /operations/failures/kinds/0/mtbf: expected at most 11574 d, found 100000 d");
  CHECK(refusal(kTime + R"(, "checkpoint": {"interval": "100000 d"})", kJob) ==
        "c.json:4: /operations/checkpoint/interval: expected at most 11574 d, found 100000 d");
}

TEST_CASE("what never breaks is no kind of fault, and only slow ones have a factor") {
  const auto kind = [](const std::string& keys) {
    return kTime + R"(, "failures": {"kinds": [{"name": "code", )" + keys + "}]}";
  };
  CHECK(refusal(kind(R"("mtbf": "0 s")"), kJob) ==
        "c.json:4: /operations/failures/kinds/0/mtbf: expected more than 0 s, found 0 s");
  CHECK(
      refusal(kind(R"("mtbf": "9 h", "slow_factor": 2)"), kJob) ==
      R"(c.json:4: /operations/failures/kinds/0/slow_factor: "slow_factor" counts only with effect "slow")");
  CHECK(refusal(kind(R"("mtbf": "9 h", "effect": "slow", "slow_factor": 2)"), kJob) == "");
}

TEST_CASE("what a fault breaks is what it says, and only broken nodes are repaired") {
  const auto kind = [](const std::string& keys) {
    return kTime + R"(, "failures": {"kinds": [{"name": "code", "mtbf": "9 h", )" + keys + "}]}";
  };
  const std::string place = "c.json:4: /operations/failures/kinds/0/";
  CHECK(refusal(kind(R"("per": "job")"), kJob) == "");
  CHECK(refusal(kind(R"("nodes": 4)"), kJob) == "");
  CHECK(refusal(kind(R"("per": "job", "nodes": 1)"), kJob) ==
        place + R"(nodes: expected 0 with per "job", whose software breaks no node, found 1)");
  CHECK(refusal(kind(R"("effect": "slow", "nodes": 4)"), kJob) ==
        place + "nodes: expected at most 1, the node that is slow or wrong, found 4");
  CHECK(refusal(kind(R"("nodes": 0, "repair": "1 h")"), kJob) ==
        place + R"(repair: "repair" counts only with nodes above 0)");
}

TEST_CASE("rates of copies that are not made, and a node that rests harder than it works, are refused") {
  CHECK(
      refusal(kTime + R"(, "checkpoint": {"policy": "sync", "host_copy": "1 GB/s"})", kJob) ==
      R"(c.json:4: /operations/checkpoint/host_copy: "host_copy" counts only with policy "async" or "memory")");
  CHECK(refusal(kTime + R"(, "checkpoint": {"peer_copy": "1 GB/s"})", kJob) ==
        R"(c.json:4: /operations/checkpoint/peer_copy: "peer_copy" counts only with policy "memory")");
  CHECK(refusal(kTime + R"(, "power": {"busy": 0.1, "idle": 0.9})", kJob) ==
        "c.json:4: /operations/power/idle: expected a busy share of at least the idle one, found 0.1 and "
        "0.9");
}

TEST_CASE("what steps of jobs would need of the cluster is said in their own scenarios") {
  const std::string text = R"({"moebius": 1, "kind": "cluster", "name": "c",
"cluster": {"pools": [{"name": "a", "accelerator": "h100-sxm", "node": "hgx-8", "nodes": 10}],
  "fabric": {"type": "rail-optimised-clos", "nic": "400 Gb/s"}, "launch": "10 us"},
"operations": {)" + kTime + R"(}, "jobs": [{)" +
                           kJob + "}]}";
  CHECK_THROWS_WITH(read_scenario(parse_document(text, "c.json"), Catalog(), ModelCatalog()),
                    Catch::EndsWith(R"(/cluster/launch: "launch" counts only with queueing)"));
}

// One of 10 nodes in a millisecond: 10 d are 8.64e8 of them.
TEST_CASE("more faults than a run can go through are refused") {
  CHECK(refusal(kTime + R"(, "failures": {"kinds": [{"name": "code", "mtbf": "1 ms"}]})", kJob) ==
        "c.json:4: /operations/failures: expected at most 1e+07 faults in 10 d, found rates that make "
        "8.64e+09");
}

// A millionth of 10 d.
TEST_CASE("storage keeps no more checkpoints than a run can go through") {
  CHECK(refusal(kTime + R"(, "checkpoint": {"keep_every": "0 s"})", kJob) ==
        "c.json:4: /operations/checkpoint/keep_every: expected more than 864 ms, a millionth of the "
        "duration, found 0 ns");
  CHECK(refusal(kTime + R"(, "checkpoint": {"keep_every": "1 s"})", kJob) == "");
}

TEST_CASE("what is never saved has no interval") {
  CHECK(refusal(kTime + R"(, "checkpoint": {"policy": "none"})", kJob) == "");
  CHECK(refusal(kTime + R"(, "checkpoint": {"policy": "none", "interval": "1 h"})", kJob) ==
        R"(c.json:4: /operations/checkpoint/interval: "interval" counts only with a policy that saves)");
}

TEST_CASE("what another key says already is not said twice") {
  CHECK_THAT(refusal(kTime, kJob + R"(, "bytes_per_parameter": 2)"),
             Catch::EndsWith(R"(/jobs/0/bytes_per_parameter: "bytes_per_parameter" counts only with model)"));
}
