// What is published of the cache of the conversation trace: Qin et al., Mooncake, FAST 2025, sections 5.2 to
// 5.5: 3 million tokens (a node's host memory) hit under half of what an endless cache hits, 50 million come
// near it.
#include <filesystem>

#include <catch2/catch.hpp>

#include "workloads/serving/kv/kv_replay.h"
#include "workloads/serving/traffic/trace_file.h"

namespace moebius::kv {

TEST_CASE("hits grow with capacity as published") {
  const std::string path = std::string(MOEBIUS_SOURCE_DIR) + "/../shared/traces/conversation_trace.jsonl.gz";
  if (!std::filesystem::exists(path)) {
    WARN("skipped: the trace is not beside the project (../shared/traces)");
    return;
  }
  const auto hits = [&](double tokens) {
    ReplayCache cache;
    if (tokens > 0) cache.capacity_blocks = static_cast<std::int64_t>(tokens) / 512;
    return static_cast<double>(replay(*open_trace({path}), cache).hit_blocks);
  };
  const double most = hits(0), node = hits(3e6), pool = hits(50e6);
  CHECK(most == 105'710);
  CHECK(node < 0.5 * most);
  CHECK(pool > 0.95 * most);
  CHECK(hits(1e6) < node);
}

}  // namespace moebius::kv
