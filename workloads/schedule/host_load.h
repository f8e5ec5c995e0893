// How the ops of Lane::kLoader say what no other lane knows of.
#pragma once

#include <cstdint>

namespace moebius {

// Shape::kv of a kInput of the loader: the first of a run, for which no worker has begun before.
inline constexpr std::int64_t kFirstLoad = 1;

}  // namespace moebius
