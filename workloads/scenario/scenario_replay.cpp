// A replay of requests against one cache: the keys of its scenario.
#include <array>

#include <fmt/format.h>

#include "workloads/scenario/scenario_parts.h"
#include "workloads/scenario/traffic_keys.h"

namespace moebius {
namespace {

std::optional<std::int64_t> read_capacity(Section& section) {
  const DescriptionPtr form = description_of("", "blocks that the cache holds; null, or no key: endless");
  set_keyword(form->keywords, "type", array_value({text_value("integer"), text_value("null")}));
  const Value* value = section.value("capacity_blocks", false, form);
  if (value == nullptr || value->kind == Value::Kind::kNull) return std::nullopt;
  const bool whole = value->kind == Value::Kind::kInteger;
  if (!whole || value->integer < 0 || value->integer > kv::BlockIndex::kUnbounded)
    section.place_of("capacity_blocks")
        .fail(fmt::format("expected null or a number of blocks from 0 to {}, found {}",
                          kv::BlockIndex::kUnbounded, value->excerpt()));
  return value->integer;
}

constexpr std::array kStructures{
    Named<kv::IndexStructure>{"hash", kv::IndexStructure::kHash, "each block by its hash"},
    Named<kv::IndexStructure>{"trie", kv::IndexStructure::kTrie, "a tree of runs that no branch divides"},
    Named<kv::IndexStructure>{"hybrid", kv::IndexStructure::kHybrid,
                              "leading blocks by hash, what long inputs have behind them in a tree"},
};

// Hits are the same, so that only what goes has to be one order.
void read_structure(Section& cache, kv::ReplayCache& of) {
  constexpr std::int64_t kLongFrom = 16384, kMost = 1 << 30;
  of.structure = cache.choice<kv::IndexStructure>("structure", kStructures, kv::IndexStructure::kHash,
                                                  "how the index finds blocks; hits are the same");
  of.long_from = cache.integer("long_from", {0, kMost}, kLongFrom,
                               "structure hybrid: tokens of an input whose blocks are found by hash");
  cache.allow_only("long_from", of.structure == kv::IndexStructure::kHybrid, "structure \"hybrid\"");
  if (of.structure != kv::IndexStructure::kHash && of.eviction != kv::EvictionKind::kLru)
    cache.place_of("structure")
        .fail("a tree of runs keeps them by last use: expected eviction \"lru\", or structure \"hash\"");
}

}  // namespace

void read_replay(Section& top, Scenario& scenario) {
  KvReplayWorkload& replay = scenario.replay.emplace();
  Section workload = top.object("workload", true, "what is asked");
  replay.traffic = read_traffic(workload.object("trace", true, "the requests"), scenario.seed);
  workload.finish();
  Section cache = top.object("cache", false, "one cache for all requests");
  replay.cache.capacity_blocks = read_capacity(cache);
  std::vector<Named<kv::EvictionKind>> evictions;
  for (const kv::EvictionRow& row : kv::eviction_table()) evictions.push_back({row.name, row.kind, row.help});
  replay.cache.eviction = cache.choice<kv::EvictionKind>("eviction", evictions, kv::EvictionKind::kLru,
                                                         "which block goes when room is needed");
  read_structure(cache, replay.cache);
  replay.cache.service_time =
      cache.time("service_time", Time{}, "from a request's arrival until its blocks are in the cache");
  cache.finish();
}

}  // namespace moebius
