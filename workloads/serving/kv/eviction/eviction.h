// Which block of a full store goes. A policy sees blocks come, be used and leave, by the slots they stand in;
// the store keeps everything else. Blocks in use are never named as victims. Deterministic: of equals, the
// one whose last use ended first.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string_view>

#include "workloads/serving/kv/block_table.h"

namespace moebius::kv {

enum class EvictionKind : std::uint8_t { kLru, kLfu, kArc, kLeafFirst, kCostAware, kBelady };

// What a policy may know of a block that comes in or whose use has ended.
struct BlockUse {
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

  BlockHash hash = 0;
  BlockHash parent = 0;        // of the block before it; its own where it is the first
  std::int32_t depth = 0;      // blocks before it
  std::int64_t next = kNever;  // when it is used again, in requests: of who knows the future
};

class Eviction {
 public:
  virtual ~Eviction() = default;
  virtual void enter(std::int32_t slot, const BlockUse& block) = 0;  // it is in use at first
  virtual void hold(std::int32_t slot) = 0;                          // in use from now on
  virtual void free(std::int32_t slot, const BlockUse& block) = 0;   // that use has ended
  virtual void leave(std::int32_t slot) = 0;                         // it was not in use
  // Of blocks not in use; -1: there is none.
  virtual std::int32_t victim() = 0;
  // Whether a newcomer should have a victim's place.
  virtual bool prefers(const BlockUse& newcomer, std::int32_t victim) const = 0;
};

struct EvictionOptions {
  std::int64_t capacity = 0;  // blocks of the store
  // Cost-aware: what computing a block takes more for each block before it, over what one without any takes.
  double depth_cost = 0;
};

struct EvictionRow {
  std::string_view name;
  EvictionKind kind;
  std::string_view help;
  std::unique_ptr<Eviction> (*make)(const EvictionOptions& options);
};

std::span<const EvictionRow> eviction_table();
std::unique_ptr<Eviction> make_eviction(EvictionKind kind, const EvictionOptions& options);

}  // namespace moebius::kv
