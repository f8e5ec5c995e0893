#include "workloads/serving/separation/encoder_timer.h"

#include <algorithm>
#include <numeric>

namespace moebius {

Layout encoder_layout(int tp) {
  Layout layout;
  layout.ranks = tp;
  layout.class_of_rank.assign(tp, 0);
  layout.device_of_rank.resize(tp);
  std::iota(layout.device_of_rank.begin(), layout.device_of_rank.end(), 0);
  RankClass& all = layout.classes.emplace_back();
  all.ranks = layout.device_of_rank;
  all.groups[static_cast<int>(GroupRole::kTensor)].ranks = all.ranks;
  return layout;
}

double EncoderTimer::iteration(int images) {
  if (known_.size() <= static_cast<std::size_t>(images)) known_.resize(images + 1, -1);
  if (known_[images] >= 0) return known_[images];
  const FragmentPtr fragment = lower_encoder(work_, images);
  const double before = recorder_.busy_so_far().joules;
  known_[images] = timer_.seconds([&](Executor& executor) {
    const Submission submission{.fragment = fragment, .sequence = sequence_++, .after = {}};
    recorder_.submitted(submission);
    executor.submit(submission);
    images_ += images;
  });
  joules_ += recorder_.busy_so_far().joules - before;
  return known_[images];
}

double EncoderTimer::seconds(std::int64_t images) {
  const std::int64_t most = work_.plan.max_batch;
  const auto rest = static_cast<int>(images % most);
  const std::int64_t full = images / most;  // iterations
  const double whole = full == 0 ? 0 : static_cast<double>(full) * iteration(static_cast<int>(most));
  return whole + (rest > 0 ? iteration(rest) : 0);
}

// Replicas that share experts wait for the one with the most images.
double EncodingCost::encode(std::span<const StepShape> replicas, std::int64_t& images) {
  std::int64_t most = 0;
  for (const StepShape& shape : replicas) {
    images += shape.images;
    most = std::max<std::int64_t>(most, shape.images);
  }
  return most > 0 ? encoder_.seconds(most) : 0;
}

double EncodingCost::seconds(std::span<const StepShape> replicas) {
  last_ = encode(replicas, totals_.images);
  totals_.seconds += last_;
  model_.begin(now_ + time_from_seconds(last_), gives_tokens_);
  return last_ + model_.seconds(replicas);
}

double EncodingCost::forecast(std::span<const StepShape> replicas) {
  std::int64_t images = 0;
  return encode(replicas, images) + model_.forecast(replicas);
}

}  // namespace moebius
