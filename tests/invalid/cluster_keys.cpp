// What a collective, the joins between pools, and faults may not be; each refused with one exact sentence.
#include <fmt/format.h>

#include "tests/invalid/refusals.h"

using namespace moebius;

TEST_CASE("flows that go nowhere are refused at their key") {
  check(
      "validate/flows-incast-16.json",
      {
          {"/workload/fan_in", "128",
           "/workload/fan_in: 128 senders and a receiver are more than the 128 ranks"},
          {"/workload/receiver", "128", "/workload/receiver: device 128 is none of the 128 ranks"},
          {"/workload/algorithm", "ring",
           R"(/workload/algorithm: "algorithm" counts only with a collective operation)"},
          {"/workload/pattern", "ring",
           R"(/workload/pattern: expected one of "permutation", "incast", "all-to-all", "list", found "ring")"},
      });
  check("validate/flows-two-to-one.json",
        {
            {"/workload/flows/1/to", "128", "/workload/flows/1/to: device 128 is none of the 128 ranks"},
            {"/workload/flows/1/to", "32", "/workload/flows/1/to: device 32 sends to itself"},
            {"/workload/flows", "[]", "/workload/flows: expected at least one flow, found none"},
            {"/workload/flows/0/bytes", "1e30 B",
             "/workload/flows/0/bytes: expected at most 1.15 EB, found 1e+06 YB"},
            {"/workload/flows/0/bytes", "0.2 B",
             "/workload/flows/0/bytes: expected a byte at least, found 0.2 B"},
            {"/workload/bytes", "1 MB", R"(/workload/bytes: unknown key "bytes"; known are "algorithm", "channels", "dtype", "fan_in", "flows", "fold", "groups", "operation", "pattern", "ranks", "receiver", "tenants")"},
        });
  Document incast = base("validate/flows-incast-16.json");
  set_at_pointer(incast, "/workload/pattern", "permutation");
  CHECK(refusal(incast) == R"(s.json:10: /workload/fan_in: "fan_in" counts only with pattern "incast")");
}

TEST_CASE("tenants that do not fit beside each other are refused at the tenant and key") {
  check("baige/tenants-one-queue.json",
        {
            {"/workload/tenants", "[]", "/workload/tenants: expected at least one tenant, found none"},
            {"/workload/tenants/1/first", "0",
             R"(/workload/tenants/1/first: device 0 holds a rank of "experts" already)"},
            {"/workload/tenants/1/ranks", "136",
             "/workload/tenants/1/ranks: rank 128 would stand on device 264 of 256"},
            {"/workload/tenants/1/name", "experts", R"(/workload/tenants/1/name: two are named "experts")"},
            {"/workload/tenants/1/stride", "4",
             "/workload/tenants/1/stride: expected at least the block of 8, found 4"},
            {"/workload/tenants/0/algorithm", "tree",
             R"(/workload/tenants/0/algorithm: all_to_all has no algorithm "tree": expected auto, ring, direct, hierarchical, rail-local)"},
            {"/workload/tenants/1/queue", "8",
             "/workload/tenants/1/queue: expected an integer from 0 to 7, found 8"},
            {"/workload/ranks", "8", R"(/workload/ranks: unknown key "ranks"; known are "dtype", "fold", "tenants")"},
        });
}

TEST_CASE("the matrix of an all-to-all is complete and says how much") {
  check("smoke/alltoall-256.json",
        {
            {"/workload/matrix", R"([["1 MiB"]])",
             R"(/workload/matrix: rows say how much everyone sends: expected no bytes beside them)"},
            {"/workload/matrix", R"({"zipf": -1})",
             R"(/workload/matrix/zipf: expected a number from 0 to 10, found -1)"},
            {"/workload/matrix", R"({"zipf": 1, "seed": 2})", R"(/workload/matrix/seed: unknown key "seed"; known are "zipf")"},
        });
  const auto of_two = [](const char* matrix) {
    Document document = base("smoke/alltoall-256.json");
    set_at_pointer(document, "/workload",
                   std::string(R"({"operation": "all-to-all", "ranks": 2, "matrix": )") + matrix + "}");
    return refusal(document);
  };
  CHECK(of_two(R"([["0 B", "1 MiB"], ["2 MiB", "0 B"]])") == "");
  CHECK(of_two(R"([["0 B", "1 MiB"]])") ==
        "s.json: --set /workload/matrix: expected 2 rows, one for each rank, found 1");
  CHECK(of_two(R"([["0 B", "1 MiB"], ["0 B"]])") ==
        "s.json: --set /workload/matrix/1: expected 2 quantities, one for each rank, found 1");
  CHECK(of_two(R"([["0 B", "1 MiB"], ["0 B", 5]])") ==
        R"(s.json: --set /workload/matrix/1/1: expected bytes such as "1 MiB", found 5)");
  CHECK(of_two(R"([["1 MiB", "0 B"], ["0 B", "1 MiB"]])") ==
        "s.json: --set /workload/matrix: no rank sends anything to another");
  CHECK(of_two(R"({"zipf": 1})") ==
        R"(s.json: --set /workload/matrix: {"zipf": ...} shares out bytes: expected /workload/bytes)");
}

TEST_CASE("channels need a chip whose channels have a known rate") {
  Document document = base(kCollective);
  set_at_pointer(document, "/cluster/pools/0/accelerator", "mi300x");
  set_at_pointer(document, "/workload/channels", "4");
  CHECK(
      refusal(document) ==
      R"(s.json: --set /workload/channels: the rate of one channel of mi300x is not known: expected no channels, or an accelerator with "channel_rate")");
}

// 128 nodes on 4 x 8 leaves of 32 NICs and 32 uplinks.
TEST_CASE("broken parts that the network does not have are refused with those that it has") {
  check(
      kCollective,
      {{"/cluster/failed", R"([{"leaf": 32}])", "/cluster/failed/0: leaf 32: expected 0 to 31"},
       {"/cluster/failed", R"([{"leaf": 3, "uplink": 32}])",
        "/cluster/failed/0: uplink 32: expected 0 to 31"},
       {"/cluster/failed", R"([{"nic": 1024}])",
        "/cluster/failed/0: the NIC of device 1024: expected 0 to 1023"},
       {"/cluster/failed", R"([{"spine": 16}])", "/cluster/failed/0: spine 16: expected 0 to 15"},
       {"/cluster/failed", R"([{"spine": 0, "uplink": 0}])",
        "/cluster/failed/0: uplink 0: the spines of two tiers have none"},
       {"/cluster/failed", R"([{"leaf": 3}, {"nic": 1}, {"leaf": 3, "capacity": 1}])",
        "/cluster/failed/2: this part is named already: see /cluster/failed/0"},
       {"/cluster/failed",
        R"([{"leaf": 0}, {"leaf": 1}, {"leaf": 2}, {"leaf": 3}, {"leaf": 4}, {"leaf": 5}, {"leaf": 6}, {"leaf": 7}])",
        "/cluster/failed: node 0 has ranks, but no NIC is left to it: nothing reaches it"},
       {"/workload/channels", "133",
        "/workload/channels: each channel holds a core, and h100-sxm has 132 for communication: expected at "
        "most as many channels, found 133"},
       {"/cluster/failed", R"([{"nic": 1, "spine": 1}])",
        R"(/cluster/failed/0: expected one of "leaf", "spine" and "nic")"},
       {"/cluster/failed", R"([{"nic": 1, "uplink": 1}])", "/cluster/failed/0/uplink: a NIC has no uplinks"},
       {"/workload/groups", "3",
        "/workload/groups: 1024 ranks on nodes of 8 do not make 3 groups of equally many whole nodes"}});
}

TEST_CASE("how messages between pools travel is said by name, once for each pair") {
  check(
      kCollective,
      {{"/cluster/forwarding", "tcp", R"(/cluster/forwarding: expected one of "rdma", "cpu", found "tcp")"},
       {"/cluster/forwarding_chunk", "0 B",
        R"(/cluster/forwarding_chunk: expected a size such as "16 GiB", more than 0 B, found "0 B")"},
       {"/cluster/forwarding_pairs", R"([{"from": "al", "to": "all", "forwarding": "cpu"}])",
        R"(/cluster/forwarding_pairs/0/from: no pool "al" (did you mean "all"?))"},
       {"/cluster/forwarding_pairs",
        R"([{"from": "all", "to": "all", "forwarding": "cpu"}, {"from": "all", "to": "all", "forwarding": "rdma"}])",
        R"(/cluster/forwarding_pairs/1/from: pools "all" and "all" are named twice)"}});
}

TEST_CASE("what pools of different kinds cannot train together is refused") {
  const auto mixed = [](const char* node) {
    Document document = base(kTraining);
    set_at_pointer(document, "/cluster/pools",
                   fmt::format(R"([{{"name": "a", "accelerator": "h800-sxm", "node": "hgx-8", "nodes": 128}},
                                   {{"name": "b", "accelerator": "{}}}])",
                               node));
    return document;
  };
  CHECK(refusal(mixed(R"(ascend-910b2", "node": "ascend-910b-8", "nodes": 128)")) ==
        "s.json:18: /plan/precision/gemm: ascend-910b2 has no native fp8 arithmetic");
  CHECK(
      refusal(mixed(R"(h800-sxm", "node": {"base": "hgx-8", "accelerators": 4, "nics": 4}, "nodes": 256)")) ==
      "s.json:15: /plan/ep/degree: expert parallelism over pools of different nodes needs equally many "
      "accelerators in each: \"a\" has 8, \"b\" 4");
}

// 128 nodes on 4 x 8 leaves of 32 NICs and 32 uplinks.
TEST_CASE("faults that cannot happen are refused with what is there") {
  check(
      "baige/link-failure-alltoall.json",
      {{"/faults/0/where", R"({"leaf": 16, "uplink": 3})", "/faults/0/where: leaf 16: expected 0 to 15"},
       {"/faults/0/where", R"({"leaf": 0, "uplink": 16})", "/faults/0/where: uplink 16: expected 0 to 15"},
       {"/faults/0/where", R"({"leaf": 1})",
        R"(/faults/0/where: link-down: expected "leaf" or "spine", with "uplink")"},
       {"/faults/0/where", R"({"leef": 1})",
        R"(/faults/0/where/leef: unknown key "leef" (did you mean "leaf"?))"},
       {"/faults/1/where", R"({"nic": 256})", "/faults/1/where: the NIC of device 256: expected 0 to 255"},
       {"/faults/1/where", R"({"nic": 9, "node": 1})", R"(/faults/1/where: nic-down: expected "nic" alone)"},
       {"/faults/0/share", "0.5", "/faults/0/share: a link-down has none"},
       {"/faults/0", R"({"at": "1 ms", "kind": "link-degraded", "where": {"nic": 3}})",
        "/faults/0/share: a link-degraded needs it"},
       {"/faults/0", R"({"at": "1 ms", "kind": "link-flap", "where": {"nic": 3}, "for": "1 ms"})",
        "/faults/0/every: a link-flap needs it"},
       {"/faults/0/for", "0 s", "/faults/0/for: expected more than 0 s"},
       {"/faults/0/at", "200000000 s", "/faults/0/at: expected at most 1157 d, found 2315 d"},
       {"/faults/1", R"({"at": "5 ms", "kind": "link-down", "where": {"leaf": 0, "uplink": 3}})",
        "/faults/1/at: leaf 0 uplink 3 is not whole then: see /faults/0"},
       {"/faults/1", R"({"at": "1 ms", "kind": "slow-node", "where": {"node": 32}, "share": 0.5})",
        "/faults/1/where: node 32: expected 0 to 31"},
       {"/failover/mitigate", "1 ms",
        "/failover/mitigate: expected at least the 1 s of /failover/detect, found 1 ms"}});
  Document broken = base("baige/link-failure-alltoall.json");
  set_at_pointer(broken, "/cluster/failed", R"([{"leaf": 0, "uplink": 3}])");
  CHECK(refusal(broken) ==
        "s.json:12: /faults/0/where: leaf 0 uplink 3 is broken from the start (/cluster/failed)");
}
