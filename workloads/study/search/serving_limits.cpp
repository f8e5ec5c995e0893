// How many sequences and prompt tokens the pools of a space's plans take.
#include <algorithm>
#include <charconv>

#include "workloads/study/search/serving_space.h"

namespace moebius {
namespace {

std::int64_t number_of(const std::string& text) {
  std::int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

}  // namespace

SeatLimits ServingSpace::limits(const ServingGroup& group, std::size_t seat, std::int32_t bundle) const {
  const ServingVariant& variant = variants_[group.variant];
  const bool row = !scenario_.service.pools.empty();
  const PoolKeys* keys = row ? &scenario_.service.pools[seat] : nullptr;
  const SeatPointers own = pointers(group, seat);
  SeatLimits limits{row ? keys->max_batch : scenario_.serving.max_batch,
                    row ? keys->token_budget : scenario_.serving.token_budget,
                    (row ? keys->batching : scenario_.service.batching) == BatchPolicy::kMixed};
  for (std::size_t a = 0; a < variant.axes.size(); ++a) {
    const StudyAxis& axis = variant.axes[a];
    std::vector<std::string> values = axis.values;
    if (bundle != kAllBundles) values = {value_of(variant, a, bundle)};
    const auto largest = [&] {
      std::int64_t most = 0;
      for (const std::string& value : values) most = std::max(most, number_of(value));
      return most;
    };
    if (axis.pointer == own.batch) limits.max_batch = largest();
    if (axis.pointer == own.budget) limits.token_budget = largest();
    if (axis.pointer == own.batching)
      limits.mixed = std::find(values.begin(), values.end(), "\"mixed\"") != values.end();
  }
  return limits;
}

std::int64_t ServingSpace::least_batch(const ServingGroup& group, std::size_t seat) const {
  std::int64_t least = limits(group, seat, kAllBundles).max_batch;
  const std::string batch = pointers(group, seat).batch;
  for (const StudyAxis& axis : variants_[group.variant].axes)
    if (axis.pointer == batch)
      for (const std::string& value : axis.values) least = std::min(least, number_of(value));
  return least;
}

ServingSpace::SeatPointers ServingSpace::pointers(const ServingGroup& group, std::size_t seat) const {
  if (scenario_.service.pools.empty())
    return {"/plan/decode/max_batch", "/plan/prefill/token_budget", kBatching};
  const std::string& own = variants_[group.variant].layout.seats[seat].pointer;
  return {own + "/max_batch", own + "/token_budget", own + "/batching"};
}

}  // namespace moebius
