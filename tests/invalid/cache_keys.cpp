// Scenarios of tiers below device memory with one key that is wrong.
#include "tests/invalid/refusals.h"

namespace moebius {

TEST_CASE("a cache of several tiers is refused for a wrong key") {
  check("smoke/serve-tiers.json",
        {{"/plan/cache/dram/capacity", "3 TB",
          "/plan/cache/dram/capacity: 3 TB are more than the 2 TB of host memory of hgx-8"},
         {"/plan/cache/ssd/capacity", "80 TB",
          "/plan/cache/ssd/capacity: 80 TB are more than the 61.4 TB of 8 drives nvme-gen5"},
         {"/plan/cache/ssd/device", "nvme-gen7",
          "/plan/cache/ssd/device: expected the name of a storage device, found \"nvme-gen7\" (did you mean "
          "\"nvme-gen4\"?)"},
         {"/plan/cache/ssd/admission", "twice",
          "/plan/cache/ssd/admission: expected one of \"all\", \"second-use\", found \"twice\""},
         {"/plan/cache/index", "{\"staleness\": \"1 ms\"}",
          "/plan/cache/index/staleness: \"staleness\" counts only with scope \"cluster\""},
         {"/plan/cache/prefetch", "{\"policy\": \"wait\", \"limit\": \"1 ms\"}",
          "/plan/cache/prefetch/limit: \"limit\" counts only with policy \"timeout\""},
         {"/plan/cache/prefetch", "{\"budget\": 0.2}",
          "/plan/cache/prefetch/budget: \"budget\" counts only with a policy other than \"none\""},
         {"/plan/cache/prefetch", "{\"ahead\": \"session\"}",
          "/plan/cache/prefetch/ahead: \"ahead\" counts only with a policy other than \"none\""},
         {"/plan/cache/prefetch/ahead", "turns",
          "/plan/cache/prefetch/ahead: expected one of \"none\", \"session\", \"pattern\", \"both\", found "
          "\"turns\""},
         {"/plan/cache/prefetch/limit", "0 s",
          "/plan/cache/prefetch/limit: expected more than 0 s with policy \"timeout\", found 0 s"},
         {"/plan/cache/prefetch/budget", "1",
          "/plan/cache/prefetch/budget: expected a number from 0.01 to 0.95, found 1"},
         {"/plan/cache/eviction", "belady",
          "/plan/cache/eviction: expected one of \"lru\", \"lfu\", \"arc\", \"leaf-first\", \"cost-aware\", "
          "found "
          "\"belady\""},
         {"/plan/cache/inclusion", "exclusive",
          "/plan/cache/inclusion: an exclusive tier has a block when no other one has it: expected write "
          "\"on-eviction\""},
         {"/plan/cache/prefix", "false",
          "/plan/cache/prefix: tiers below device memory keep shared prefixes: expected true, found false"},
         {"/plan/cache/block_tokens", "100",
          "/plan/cache/block_tokens: pages of 100 tokens do not divide the traffic's blocks of 512"}});
}

TEST_CASE("tiers are refused where no prompt is computed") {
  check("smoke/serve-tiers.json", "/plan/phase", "decode",
        "/plan/cache: tiers below device memory keep what prompts leave, and /plan/phase \"decode\" computes "
        "none");
}

TEST_CASE("keys of tiers are refused where there is no tier") {
  check("smoke/serve-apart.json",
        {{"/plan/cache/write", "selective",
          "/plan/cache/write: \"write\" counts only with a tier below device memory"},
         {"/plan/cache/prefetch", "{\"policy\": \"wait\"}",
          "/plan/cache/prefetch: \"prefetch\" counts only with a tier below device memory"},
         {"/plan/cache/ssd", "{\"capacity\": \"1 TB\"}",
          "/plan/cache/ssd/device: expected a name of `moebius list storage`, found none"},
         {"/plan/cache/ssd", "{\"queue_depth\": 8}",
          "/plan/cache/ssd/queue_depth: \"queue_depth\" counts only with \"capacity\""},
         {"/plan/cache/dram", "{\"price\": 1}",
          "/plan/cache/dram/price: \"price\" counts only with \"capacity\""}});
}

TEST_CASE("keys that nothing would read are refused with what they count with") {
  check(
      "smoke/serve-apart.json",
      {{"/plan/decode/experts", "{\"ep\": 4}", "/plan/decode/experts/ep: \"ep\" counts only with \"pool\""},
       {"/cluster/variation", "{\"law\": \"lognormal\"}",
        "/cluster/variation/law: \"law\" counts only with \"sigma\""},
       {"/failover", "{\"detect\": \"2 s\"}", "/failover: \"failover\" counts only with \"faults\""},
       {"/plan/encoder", "{\"tp\": 2}", "/plan/encoder/tp: \"tp\" counts only with \"model\""},
       {"/plan/decode/speculative", "{\"model\": \"qwen3-30b-a3b\"}",
        "/plan/decode/speculative/model: \"model\" counts only with \"mtp\" guesses"},
       {"/plan/scheduler", "{\"host_per_launch\": \"2 us\"}",
        "/plan/scheduler/host_per_launch: \"host_per_launch\" counts only with launch \"kernel\" or "
        "\"graph\""},
       {"/plan/precision", "{\"attention\": \"fp8\"}",
        "/plan/precision/attention: products of 8 bits read a cache of 8 bits: expected kv \"fp8\" with it, "
        "found \"bf16\""}});
}

}  // namespace moebius
