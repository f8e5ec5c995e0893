#include "workloads/serving/kv/eviction/eviction.h"

#include <array>

#include <fmt/format.h>

#include "hw/error.h"
#include "workloads/serving/kv/eviction/policies.h"

namespace moebius::kv {
namespace {

constexpr std::array kTable{
    EvictionRow{"lru", EvictionKind::kLru, "what was not used for longest", make_lru},
    EvictionRow{"lfu", EvictionKind::kLfu, "what was used least often, uses of long ago counting less",
                make_lfu},
    EvictionRow{"arc", EvictionKind::kArc,
                "what was used once before what was used again, in a proportion that misses correct",
                make_arc},
    EvictionRow{"leaf-first", EvictionKind::kLeafFirst,
                "of blocks that no other one there follows, what was not used for longest", make_leaf_first},
    EvictionRow{"cost-aware", EvictionKind::kCostAware,
                "of blocks that no other one there follows, what is cheapest to compute again for how often "
                "it is used",
                make_cost_aware},
    EvictionRow{"belady", EvictionKind::kBelady,
                "what is used again last: needs the future, a bound for the others", make_belady},
};

}  // namespace

std::span<const EvictionRow> eviction_table() {
  return kTable;
}

std::unique_ptr<Eviction> make_eviction(EvictionKind kind, const EvictionOptions& options) {
  for (const EvictionRow& row : kTable)
    if (row.kind == kind) return row.make(options);
  CHECK(false, fmt::format("policy {} is not in the table", static_cast<int>(kind)));
  return nullptr;
}

}  // namespace moebius::kv
