// Scenarios of a replay with one key that is wrong.
#include "tests/invalid/refusals.h"

namespace moebius {

TEST_CASE("a replay is refused for a wrong key") {
  check(
      "smoke/kv-replay.json",
      {{"/cache/capacity_blocks", "-1",
        "/cache/capacity_blocks: expected null or a number of blocks from 0 to 2147483646, found -1"},
       {"/cache/capacity_blocks", "1.5",
        "/cache/capacity_blocks: expected null or a number of blocks from 0 to 2147483646, found 1.5"},
       {"/cache/eviction", "lur",
        "/cache/eviction: expected one of \"lru\", \"lfu\", \"arc\", \"leaf-first\", \"cost-aware\", "
        "\"belady\", found \"lur\" (did you mean \"lru\"?)"},
       {"/workload/trace/generator", "conversations",
        "/workload/trace/generator: expected one of \"independent\", \"conversation\", \"agent\", "
        "\"multimodal\", "
        "found \"conversations\" (did you mean \"conversation\"?)"},
       {"/workload/trace/requests", "0",
        "/workload/trace/requests: expected an integer from 1 to 1000000000, found 0"},
       {"/workload/trace/variation", "2",
        "/workload/trace/variation: \"variation\" counts only with arrivals \"gamma\""},
       {"/workload/trace/period", "2 h",
        "/workload/trace/period: \"period\" counts only with arrivals \"diurnal\""},
       {"/workload/trace/format", "azure", "/workload/trace/format: \"format\" counts only with path"},
       {"/cache/long_from", "4096", "/cache/long_from: \"long_from\" counts only with structure \"hybrid\""},
       {"/cache", "{\"structure\": \"trie\", \"eviction\": \"arc\"}",
        "/cache/structure: a tree of runs keeps them by last use: expected eviction \"lru\", or structure "
        "\"hash\""},
       {"/cache/structure", "tree",
        "/cache/structure: expected one of \"hash\", \"trie\", \"hybrid\", found \"tree\" (did you mean "
        "\"trie\"?)"},
       {"/cluster", "{}",
        R"(/cluster: unknown key "cluster"; known are "$schema", "cache", "expect", "extends", "kind", "moebius", "name", "seed", "workload")"}});
}

TEST_CASE("a path stands in for the generator and null for an endless cache") {
  const std::string file = MOEBIUS_SOURCE_DIR "/README.md";  // rows are read by the run
  CHECK(refusal("smoke/kv-replay.json", "/workload/trace/path", file) == "");
  CHECK(refusal("smoke/kv-replay.json", "/cache/capacity_blocks", "null") == "");
}

}  // namespace moebius
