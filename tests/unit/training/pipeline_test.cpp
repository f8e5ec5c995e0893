#include "workloads/training/pipeline.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <map>

using namespace moebius;

namespace {

// The largest number of microbatches whose forward pass has run and whose reverse pass has not.
int most_alive(const std::vector<Pass>& passes) {
  int alive = 0, most = 0;
  for (const Pass& pass : passes) {
    if (pass.kind == PassKind::kForward) ++alive;
    most = std::max(most, alive);
    if (pass.kind == PassKind::kBackward || pass.kind == PassKind::kLastBackward) --alive;
  }
  return most;
}

// Unit-time simulation of passes with dependencies between stages: the number of time slots until all is done.
int slots(PipelineKind kind, int stages, int microbatches) {
  std::map<std::pair<int, int>, int> forward_done, backward_done;  // (stage, microbatch) -> slot
  std::vector<std::vector<Pass>> passes;
  for (int s = 0; s < stages; ++s) passes.push_back(pipeline_passes(kind, s, stages, microbatches));
  std::vector<std::size_t> next(stages, 0);
  int slot = 0;
  for (; slot < 10'000; ++slot) {
    bool left = false;
    for (int s = 0; s < stages; ++s) {
      const Pass& pass = passes[s][next[s]];
      if (pass.kind == PassKind::kOptimizer) continue;
      left = true;
      const bool forward = pass.kind == PassKind::kForward;
      const auto& done = forward ? forward_done : backward_done;
      const int before = forward ? s - 1 : s + 1;
      const bool ready = before < 0 || before == stages ||
                         (done.count({before, pass.microbatch}) > 0 && done.at({before, pass.microbatch}) < slot);
      if (!ready) continue;
      (forward ? forward_done : backward_done)[{s, pass.microbatch}] = slot;
      ++next[s];
    }
    if (!left) break;
  }
  return slot;
}

}  // namespace

TEST_CASE("1F1B keeps at most as many microbatches alive as stages follow, itself included") {
  for (int stage = 0; stage < 4; ++stage) {
    CHECK(most_alive(pipeline_passes(PipelineKind::k1F1B, stage, 4, 16)) == 4 - stage);
  }
}

TEST_CASE("GPipe keeps all microbatches alive") {
  CHECK(most_alive(pipeline_passes(PipelineKind::kGpipe, 0, 4, 16)) == 16);
}

TEST_CASE("every stage runs each microbatch forward and backward once, then the optimizer") {
  for (const PipelineKind kind : {PipelineKind::k1F1B, PipelineKind::kGpipe}) {
    for (int stage = 0; stage < 5; ++stage) {
      const auto passes = pipeline_passes(kind, stage, 5, 7);
      REQUIRE(passes.size() == 15);
      std::vector<int> forward(7), backward(7);
      for (const Pass& pass : passes) {
        if (pass.kind == PassKind::kForward) ++forward[pass.microbatch];
        if (pass.kind == PassKind::kBackward || pass.kind == PassKind::kLastBackward) ++backward[pass.microbatch];
      }
      CHECK(std::count(forward.begin(), forward.end(), 1) == 7);
      CHECK(std::count(backward.begin(), backward.end(), 1) == 7);
      CHECK(passes.back().kind == PassKind::kOptimizer);
      CHECK(passes[13] == Pass{PassKind::kLastBackward, 6});
    }
  }
}

TEST_CASE("with fewer microbatches than stages 1F1B still runs them all") {
  CHECK(pipeline_passes(PipelineKind::k1F1B, 0, 8, 2).size() == 5);
}

// In slots of equal forward and backward time m microbatches on p stages take 2(m + p - 1) slots: the bubble is p - 1 of
// m + p - 1 (Narayanan et al., SC'21).
TEST_CASE("the bubble of equal stages is (p-1)/(m+p-1)") {
  for (const PipelineKind kind : {PipelineKind::k1F1B, PipelineKind::kGpipe}) {
    CHECK(slots(kind, 4, 16) == 2 * (16 + 3));
    CHECK(slots(kind, 8, 8) == 2 * (8 + 7));
    CHECK(slots(kind, 1, 5) == 10);
  }
}

TEST_CASE("pass i of a stage depends on earlier rows of other stages only") {
  constexpr int kStages = 6, kMicrobatches = 11;
  for (const PipelineKind kind : {PipelineKind::k1F1B, PipelineKind::kGpipe}) {
    std::map<std::pair<int, int>, int> forward_row, backward_row;
    for (int s = 0; s < kStages; ++s) {
      const auto passes = pipeline_passes(kind, s, kStages, kMicrobatches);
      for (std::size_t i = 0; i < passes.size(); ++i) {
        if (passes[i].kind == PassKind::kOptimizer) continue;
        (passes[i].kind == PassKind::kForward ? forward_row : backward_row)[{s, passes[i].microbatch}] = int(i);
      }
    }
    for (int m = 0; m < kMicrobatches; ++m) {
      for (int s = 1; s < kStages; ++s) {
        CHECK(forward_row.at({s - 1, m}) <= forward_row.at({s, m}));
        CHECK(backward_row.at({s, m}) <= backward_row.at({s - 1, m}));
      }
    }
  }
}
