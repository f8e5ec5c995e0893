// Prompts as caches see them.
#pragma once

#include <vector>

#include "workloads/serving/system/tiers/tiered_cache.h"

namespace moebius {

// Blocks of consecutive names.
inline std::vector<kv::BlockHash> chain_of(kv::BlockHash first, std::int64_t blocks) {
  std::vector<kv::BlockHash> chain;
  for (std::int64_t i = 0; i < blocks; ++i) chain.push_back(first + static_cast<kv::BlockHash>(i));
  return chain;
}

}  // namespace moebius
