#include "workloads/training/pipeline.h"

#include <algorithm>

namespace moebius {
namespace {

// All forward passes, then all backward passes.
std::vector<Pass> gpipe(int microbatches) {
  std::vector<Pass> passes;
  for (int i = 0; i < microbatches; ++i) passes.push_back({PassKind::kForward, i});
  for (int i = 0; i < microbatches; ++i) passes.push_back({PassKind::kBackward, i});
  return passes;
}

// Narayanan et al., SC'21, section 2.2: a stage runs ahead by as many forward passes as stages follow it,
// then alternates, so that at most (stages - stage) microbatches are alive.
std::vector<Pass> one_forward_one_backward(int stage, int stages, int microbatches) {
  const int ahead = std::min(stages - stage - 1, microbatches);
  std::vector<Pass> passes;
  for (int i = 0; i < ahead; ++i) passes.push_back({PassKind::kForward, i});
  for (int i = ahead; i < microbatches; ++i) {
    passes.push_back({PassKind::kForward, i});
    passes.push_back({PassKind::kBackward, i - ahead});
  }
  for (int i = microbatches - ahead; i < microbatches; ++i) passes.push_back({PassKind::kBackward, i});
  return passes;
}

}  // namespace

std::vector<Pass> pipeline_passes(PipelineKind kind, int stage, int stages, int microbatches) {
  std::vector<Pass> passes;
  switch (kind) {
    case PipelineKind::kGpipe:
      passes = gpipe(microbatches);
      break;
    case PipelineKind::k1F1B:
      passes = one_forward_one_backward(stage, stages, microbatches);
      break;
  }
  passes.back().kind = PassKind::kLastBackward;
  passes.push_back({PassKind::kOptimizer, microbatches - 1});
  return passes;
}

std::vector<Pass> forward_passes(int microbatches) {
  std::vector<Pass> passes;
  for (int i = 0; i < microbatches; ++i) passes.push_back({PassKind::kForward, i});
  return passes;
}

}  // namespace moebius
