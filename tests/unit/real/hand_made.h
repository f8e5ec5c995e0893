// Small layouts and fragments, written down by hand, and their execution.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "real/host/host_executor.h"
#include "workloads/schedule/executor.h"
#include "workloads/training/layers/builder.h"

namespace moebius {

// `ranks` ranks, each a class of its own, all in one group of the given role.
inline Layout one_group(int ranks, GroupRole role) {
  Layout layout;
  layout.ranks = ranks;
  std::vector<std::int32_t> all;
  for (int rank = 0; rank < ranks; ++rank) all.push_back(rank);
  for (int rank = 0; rank < ranks; ++rank) {
    RankClass place;
    place.ranks = {rank};
    place.groups[static_cast<int>(role)] = {.ranks = all, .my_index = rank, .num_classes = ranks};
    layout.classes.push_back(place);
    layout.class_of_rank.push_back(rank);
    layout.device_of_rank.push_back(rank);
  }
  return layout;
}

// A tensor of the whole run, exact, by key.
inline Tensor kept(std::uint32_t key, std::int64_t rows, std::int64_t columns) {
  return {.scope = Scope::kRank, .dtype = DType::kFp32, .key = key, .rows = rows, .columns = columns};
}

// A communication op; its payload is checked by the schedule's own tests.
inline Op meeting(OpKind kind, GroupRole group, std::uint32_t match) {
  Op op{.kind = kind, .dtype = DType::kFp32, .lane = Lane::kTensorComm, .group = group, .match = match};
  op.payload = {4};
  return op;
}

// Runs fragments on the ranks of a layout, in the order of submit().
class HandMade {
 public:
  explicit HandMade(const Layout& layout, const HostOptions& options = {})
      : layout_(layout), recorder_(layout_, RecorderOptions{}), executor_(layout_, recorder_, options) {}

  std::int32_t submit(int rank, const FragmentPtr& fragment, int microbatch = 0,
                      std::vector<std::int32_t> after = {}) {
    const Submission submission{.fragment = fragment,
                                .sequence = sequence_,
                                .rank_class = rank,
                                .step = 0,
                                .microbatch = microbatch,
                                .after = std::move(after)};
    recorder_.submitted(submission);
    executor_.submit(submission);
    return sequence_++;
  }
  // The same fragment on all ranks.
  void run_everywhere(const FragmentPtr& fragment) {
    for (int rank = 0; rank < layout_.ranks; ++rank) submit(rank, fragment);
    executor_.finish();
  }

  HostExecutor<float>& executor() { return executor_; }
  Recorder& recorder() { return recorder_; }

 private:
  Layout layout_;
  Recorder recorder_;
  HostExecutor<float> executor_;
  std::int32_t sequence_ = 0;
};

}  // namespace moebius
