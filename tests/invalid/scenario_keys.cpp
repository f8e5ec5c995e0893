// One key at a time is wrong in a valid scenario; each is refused with one exact sentence.
#include <fmt/format.h>

#include "hw/catalog.h"
#include "hw/error.h"
#include "models/model.h"
#include "tests/process.h"
#include "workloads/scenario/scenario.h"

#undef CHECK  // of hw/error.h: here it is Catch's
#include <catch2/catch.hpp>

namespace {

using namespace moebius;

struct Case {
  const char* pointer;
  const char* json;      // as on the command line: JSON, or else a string
  const char* sentence;  // after "s.json: --set " or "s.json:LINE: "
};

Document base(const std::string& file) {
  return parse_document(test::text_of(std::string(MOEBIUS_SOURCE_DIR) + "/scenarios/" + file), "s.json");
}

// The sentence with which the scenario is refused; empty when it is accepted.
std::string refusal(const Document& document) {
  static const Catalog catalog;
  static const ModelCatalog models;
  try {
    read_scenario(document, catalog, models);
  } catch (const Error& error) {
    CHECK(error.kind() == Error::Kind::kInput);
    return error.what();
  }
  return "";
}

void check(const std::string& file, const std::vector<Case>& cases) {
  REQUIRE(refusal(base(file)) == "");
  for (const Case& c : cases) {
    INFO(c.pointer << " = " << c.json);
    Document document = base(file);
    set_at_pointer(document, c.pointer, c.json);
    CHECK(refusal(document) == std::string("s.json: --set ") + c.sentence);
  }
}

const char* const kTraining = "study/deepseek-v3-train-2048-h800.json";
const char* const kCollective = "smoke/allreduce-1024.json";

}  // namespace

TEST_CASE("keys that nobody knows are named, with the nearest that is known") {
  check(kTraining,
        {
            {"/plan/pp/shedule", "1f1b",
             R"(/plan/pp/shedule: unknown key "shedule" (did you mean "schedule"?))"},
            {"/clusters", "{}", R"(/clusters: unknown key "clusters" (did you mean "cluster"?))"},
            {"/plan/xyzzy", "1", R"(/plan/xyzzy: unknown key "xyzzy")"},
            {"/cluster/pools/0/accelerator", R"({"base": "h800-sxm", "memori": "80 GB"})",
             R"(/cluster/pools/0/accelerator/memori: unknown key "memori" (did you mean "memory"?))"},
            {"/workload/experts/popularity", R"({"zip": 1})",
             R"(/workload/experts/popularity: expected key "zipf", found none (is "zip" meant?))"},
        });
}

TEST_CASE("a value of the wrong type or out of range says what was expected and what was found") {
  check(
      kTraining,
      {
          {"/plan/pp/degree", R"("16")",
           R"(/plan/pp/degree: expected an integer from 1 to 1048576, found "16")"},
          {"/plan/pp/degree", "0", R"(/plan/pp/degree: expected an integer from 1 to 1048576, found 0)"},
          {"/plan/pp/degree", "1.5", R"(/plan/pp/degree: expected an integer from 1 to 1048576, found 1.5)"},
          {"/plan/pp", "[]", R"(/plan/pp: expected an object, found an array)"},
          {"/plan/tp/sequence_parallel", "1",
           R"(/plan/tp/sequence_parallel: expected true or false, found 1)"},
          {"/name", "7", R"(/name: expected a string, found 7)"},
          {"/seed", "-1", R"(/seed: expected an integer from 0 to 9007199254740992, found -1)"},
          {"/moebius", "2", R"(/moebius: expected 1, found 2)"},
          {"/cluster/pools/0/nodes", "0",
           R"(/cluster/pools/0/nodes: expected an integer from 1 to 1048576, found 0)"},
          {"/cluster/pools", "{}", R"(/cluster/pools: expected an array of objects, found an object)"},
          {"/cluster/pools", "[]", R"(/cluster/pools: expected at least one pool, found none)"},
          {"/workload/experts/popularity", R"({"zipf": -1})",
           R"(/workload/experts/popularity/zipf: expected a number from 0 to 8, found -1)"},
          {"/expect/0/tolerance", R"("5%")",
           R"(/expect/0/tolerance: expected a number from 0 to 10, found "5%")"},
          {"/expect/0/value", "0",
           R"(/expect/0/value: expected a figure other than 0: differences are relative)"},
      });
}

TEST_CASE("quantities need their unit, and a physical sign") {
  check(
      kTraining,
      {
          {"/cluster/fabric/nic", "400",
           R"(/cluster/fabric/nic: expected a byte rate such as "400 Gb/s", found 400)"},
          {"/cluster/fabric/nic", R"("-400 Gb/s")",
           R"(/cluster/fabric/nic: expected a byte rate such as "400 Gb/s", more than 0 B/s, found "-400 Gb/s")"},
          {"/cluster/fabric/nic", R"("nan Gb/s")",
           R"(/cluster/fabric/nic: expected a byte rate such as "400 Gb/s", found "nan Gb/s")"},
          {"/cluster/pools/0/accelerator", R"({"base": "h800-sxm", "memory": "80 GBs"})",
           R"(/cluster/pools/0/accelerator/memory: expected a size such as "16 GiB", found "80 GBs")"},
          {"/timeline/max_bytes", "5", R"(/timeline/max_bytes: expected a size such as "16 GiB", found 5)"},
          {"/timeline/window", R"("10 GB")",
           R"(/timeline/window: expected a time such as "2.8 us", found "10 GB")"},
      });
}

TEST_CASE("names that are in no table or catalog suggest the nearest") {
  check(
      kTraining,
      {
          {"/kind", "traning",
           R"(/kind: expected one of "training", "collective", "serving", found "traning" (did you mean "training"?))"},
          {"/model", "deepsek-v3", R"(/model: unknown model "deepsek-v3" (did you mean "deepseek-v3"?))"},
          {"/cluster/pools/0/accelerator", "h801-sxm",
           R"(/cluster/pools/0/accelerator: expected the name of an accelerator, found "h801-sxm" (did you mean "h800-sxm"?))"},
          {"/cluster/pools/0/node", "hgx-9",
           R"(/cluster/pools/0/node: expected the name of a node, found "hgx-9" (did you mean "hgx-8"?))"},
          {"/cluster/fabric/type", "fattree",
           R"(/cluster/fabric/type: expected the name of a fabric, found "fattree" (did you mean "fat-tree"?))"},
          {"/cluster/collectives", "nccl",
           R"(/cluster/collectives: expected one of "structure", "library", "sglang", "trtllm", "vllm", found "nccl")"},
          {"/plan/precision/gemm", "fp4",
           R"(/plan/precision/gemm: expected one of "bf16", "fp8", "fp32", found "fp4" (did you mean "fp8"?))"},
          {"/plan/recompute/ops", R"(["softmax"])",
           R"(/plan/recompute/ops: expected names out of "rmsnorm", "mla_up", "swiglu", found "softmax")"},
          {"/plan/recompute/ops", R"(["rmsnorm", "rmsnorm"])",
           R"(/plan/recompute/ops: expected different names, found "rmsnorm" twice)"},
          {"/workload/experts/popularity", "skewed",
           R"(/workload/experts/popularity: expected "balanced" or {"zipf": EXPONENT}, found "skewed")"},
          {"/timeline/detail", "all",
           R"(/timeline/detail: expected one of "ops", "steps", "none", found "all")"},
      });
}

TEST_CASE("what is not available is refused with what is") {
  check(
      kTraining,
      {
          {"/kind", "kv-replay",
           R"(/kind: expected one of "training", "collective", "serving", found "kv-replay")"},
          {"/plan/pp/schedule", "dualpipe",
           R"(/plan/pp/schedule: expected one of "1f1b", "gpipe", found "dualpipe")"},
          {"/plan/pp/slicing", "uniform", R"(/plan/pp/slicing: expected one of "balanced", found "uniform")"},
          {"/plan/ep/dispatch", "nccl",
           R"(/plan/ep/dispatch: expected one of "auto", "deepep", "deepep-low-latency", found "nccl")"},
          {"/plan/dp/zero", "3", R"(/plan/dp/zero: expected one of 0, 1, found 3)"},
          {"/plan/tp/expert", "2", R"(/plan/tp/expert: expected 1, found 2)"},
          {"/plan/tp/dense", "2", R"(/plan/tp/dense: expected the degree of attention, 1, found 2)"},
          {"/plan/tp/overlap", "true",
           R"(/plan/tp/overlap: overlap of tensor-parallel communication with its GEMM is not available; available: false)"},
          {"/plan/offload/optimizer", "true",
           R"(/plan/offload/optimizer: offloading optimizer states is not available; available: false)"},
          {"/plan/offload/activations", "true",
           R"(/plan/offload/activations: offloading activations is not available; available: false)"},
          {"/model", "deepseek-v3.2",
           R"(/model: model deepseek-v3.2 cannot run: DeepSeek sparse attention: a lightning indexer picks the 2048 keys that each query attends to)"},
      });
}

TEST_CASE("degrees, experts and batches that do not fit each other are refused with their numbers") {
  check(
      kTraining,
      {
          {"/plan/ep/degree", "48",
           R"(/plan/ep/degree: expert-parallel degree 48 does not divide the tp 1 x cp 1 x dp 128 = 128 ranks of a pipeline stage)"},
          {"/plan/pp/degree", "64",
           R"(/plan/pp/degree: the 61 layers of deepseek-v3 cannot fill 64 pipeline stages)"},
          {"/plan/dp/degree", "256",
           R"(/plan/dp/degree: tp 1 x cp 1 x pp 16 x dp 256 = 4096 ranks do not fit on the 2048 devices of pool "train")"},
          {"/workload/global_batch", "15361",
           R"(/workload/global_batch: 15361 sequences are not a multiple of micro_batch 1 x dp 128 = 128)"},
          {"/plan/ep/nodes_per_token", "3",
           R"(/plan/ep/nodes_per_token: 3 nodes per token do not divide the 8 experts that a token of deepseek-v3 uses)"},
          {"/plan/ep/nodes_per_token", "9",
           R"(/plan/ep/nodes_per_token: 9 nodes per token, but an expert-parallel group of 64 ranks stands on 8)"},
          {"/plan/overlap/communication_sms", "132",
           R"(/plan/overlap/communication_sms: 132 cores to hold, but h800-sxm has 132)"},
          {"/plan/tp/sequence_parallel", "true",
           R"(/plan/tp/sequence_parallel: sequence_parallel true needs a tensor-parallel degree above 1, found 1)"},
      });
  check(
      kCollective,
      {
          {"/workload/ranks", "1025",
           R"(/workload/ranks: 1025 ranks do not fit on the 1024 devices of the cluster)"},
          {"/workload/operation", "allreduce",
           R"(/workload/operation: expected one of "all-reduce", "reduce-scatter", "all-gather", "broadcast", "all-to-all", "send-recv", "flows", found "allreduce" (did you mean "all-reduce"?))"},
          {"/workload/ranks", "1", R"(/workload/ranks: expected an integer from 2 to 1048576, found 1)"},
          {"/workload/algorithm", "rail-local",
           R"(/workload/algorithm: all_reduce has no algorithm "rail-local": expected auto, ring, tree, direct, hierarchical, in-switch)"},
          {"/workload/elements", "1000",
           R"(/workload/elements: expected either bytes or elements, found both)"},
          {"/workload/channels", "-1", R"(/workload/channels: expected an integer from 0 to 1024, found -1)"},
          {"/workload/matrix", R"({"zipf": 1})",
           R"(/workload/matrix: only an all-to-all has parts of its own for each rank)"},
          {"/model", "deepseek-v3", R"(/model: unknown key "model")"},
      });
}

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
            {"/workload/bytes", "1 MB", R"(/workload/bytes: unknown key "bytes")"},
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
            {"/workload/tenants/1/queue", "8",
             "/workload/tenants/1/queue: expected an integer from 0 to 7, found 8"},
            {"/workload/ranks", "8", R"(/workload/ranks: unknown key "ranks")"},
        });
}

TEST_CASE(
    "a relation is refused at the key that stands in the file, with its line, when another one was set") {
  struct Changes {
    std::vector<std::pair<const char*, const char*>> sets;
    const char* sentence;
  };
  const std::vector<Changes> cases{
      {{{"/plan/pp/degree", "3"}},
       R"(s.json:12: /plan: tp 1 x cp 1 x pp 3 = 3 ranks a replica do not divide the 2048 devices of pool "train")"},
      {{{"/cluster/pools/0/accelerator", "a800-sxm"}},
       R"(s.json:18: /plan/precision/gemm: a800-sxm has no native fp8 arithmetic)"},
      {{{"/plan/recompute/policy", "none"}},
       R"(s.json:19: /plan/recompute/ops: ops are for policy "selective" only)"},
      {{{"/plan/tp/attention", "2"}, {"/plan/tp/dense", "2"}},
       R"(s.json:13: /plan/tp/sequence_parallel: a model with experts and tensor-parallel degree 2 needs sequence_parallel true, found false)"},
      {{{"/model", R"({"base": "deepseek-v3", "experts": {"routed": 200}})"}},
       R"(s.json:15: /plan/ep/degree: expert-parallel degree 64 does not divide the 200 experts of deepseek-v3 (changed))"},
      {{{"/plan/ep/degree", "128"}, {"/workload/sequence_length", "4097"}, {"/plan/cp", "2"}},
       R"(s.json: --set /workload/sequence_length: 4097 tokens are not a multiple of cp 2 x tp 1 = 2)"},
      {{{"/model", "llama-3.1-8b"}},
       R"(s.json:15: /plan/ep/degree: expert-parallel degree 64 for llama-3.1-8b, which has no experts)"},
      {{{"/model", "llama-3.1-8b"}, {"/plan/tp", R"({"attention": 16, "sequence_parallel": true})"}},
       R"(s.json: --set /plan/tp/attention: tensor-parallel degree 16 does not divide the 8 key-value heads of llama-3.1-8b)"},
      {{{"/plan/precision/scaling", R"("tensor")"}},
       R"(s.json:18: /plan/precision/dispatch: tokens carry no scale of their whole tensor: scaling "tensor" needs dispatch "bf16", found "fp8")"},
      {{{"/plan/precision/scaling", R"("tensor")"}, {"/plan/precision/gemm", R"("bf16")"}},
       R"(s.json: --set /plan/precision/scaling: scaling "tensor" is for gemm "fp8", found gemm "bf16")"},
      {{{"/plan/precision/scaling", R"("tensor")"},
        {"/plan/precision/dispatch", R"("bf16")"},
        {"/plan/precision/combine", R"("fp8")"}},
       R"(s.json: --set /plan/precision/combine: tokens carry no scale of their whole tensor: scaling "tensor" needs combine "bf16", found "fp8")"},
      {{{"/plan/precision/scaling", R"("tensor")"},
        {"/plan/precision/dispatch", R"("bf16")"},
        {"/plan/dp/zero", "1"}},
       R"(s.json: --set /plan/dp/zero: a shard does not know the scale of its whole weight: scaling "tensor" needs zero 0, found 1)"},
  };
  for (const Changes& c : cases) {
    Document document = base(kTraining);
    for (const auto& [pointer, json] : c.sets) set_at_pointer(document, pointer, json);
    CHECK(refusal(document) == c.sentence);
  }
}

TEST_CASE("sizes that cannot be counted are refused before anything is built") {
  check(kCollective,
        {{"/workload/bytes", "1e20 B", "/workload/bytes: expected at most 1.15 EB, found 100 EB"}});
  check(kTraining,
        {{"/workload/steps", "1048576",
          "/workload/steps: 1048576 steps of 120 microbatches on 16 rank classes are more than the "
          "2^31 passes of one run"}});
  Document large = base(kTraining);
  set_at_pointer(large, "/workload/sequence_length", "16777216");
  set_at_pointer(large, "/workload/micro_batch", "1");
  CHECK(refusal(large) ==
        "s.json: --set /workload/micro_batch: 16777216 tokens on each of 64 ranks, to 8 experts each, are "
        "more than "
        "the 2^31 copies of one dispatch");
  set_at_pointer(large, "/workload/micro_batch", "128");
  set_at_pointer(large, "/workload/global_batch", "16384");
  CHECK(refusal(large) ==
        "s.json: --set /workload/micro_batch: 128 sequences of 16777216 tokens are more than the 2^31 that "
        "one rank "
        "can hold");
}

TEST_CASE("the matrix of an all-to-all is complete and says how much") {
  check("smoke/alltoall-256.json",
        {
            {"/workload/matrix", R"([["1 MiB"]])",
             R"(/workload/matrix: rows say how much everyone sends: expected no bytes beside them)"},
            {"/workload/matrix", R"({"zipf": -1})",
             R"(/workload/matrix/zipf: expected a number from 0 to 10, found -1)"},
            {"/workload/matrix", R"({"zipf": 1, "seed": 2})", R"(/workload/matrix/seed: unknown key "seed")"},
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
       {"/cluster/forwarding_chunk", "0 B", "/cluster/forwarding_chunk: expected at least 1 B, found 0 B"},
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
        "s.json: --set /plan/precision/gemm: ascend-910b2 has no native fp8 arithmetic");
  CHECK(
      refusal(mixed(R"(h800-sxm", "node": {"base": "hgx-8", "accelerators": 4, "nics": 4}, "nodes": 256)")) ==
      "s.json: --set /plan/ep/degree: expert parallelism over pools of different nodes needs equally many "
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
