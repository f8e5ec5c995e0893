// The eviction policies, one factory each; what they are stands in eviction_table().
#pragma once

#include "workloads/serving/kv/eviction/eviction.h"

namespace moebius::kv {

std::unique_ptr<Eviction> make_lru(const EvictionOptions& options);
std::unique_ptr<Eviction> make_lfu(const EvictionOptions& options);
std::unique_ptr<Eviction> make_arc(const EvictionOptions& options);
std::unique_ptr<Eviction> make_leaf_first(const EvictionOptions& options);
std::unique_ptr<Eviction> make_cost_aware(const EvictionOptions& options);
std::unique_ptr<Eviction> make_belady(const EvictionOptions& options);

}  // namespace moebius::kv
