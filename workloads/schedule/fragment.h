// A frozen stretch of work of one rank: flat arrays of ops, their operands and dependencies. The same fragment is
// submitted many times, for other microbatches and for all ranks that do the same work.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "workloads/routing.h"
#include "workloads/schedule/op.h"

namespace moebius {

// How long a tensor lives and who shares it.
enum class Scope : std::uint8_t {
  kFragment,    // born and gone inside one submission
  kMicrobatch,  // written in one fragment, read in a later one of the same rank and microbatch (activations for backward)
  kRank,        // for the whole run: weights, gradients, optimizer states
};

enum class MemoryKind : std::uint8_t { kWeights, kGradients, kOptimizer, kActivations, kTransient };
inline constexpr int kNumMemoryKinds = static_cast<int>(MemoryKind::kTransient) + 1;
std::string_view to_string(MemoryKind kind);

struct Tensor {
  Scope scope = Scope::kFragment;
  MemoryKind memory = MemoryKind::kTransient;
  DType dtype = DType::kBf16;
  Role role = Role::kNone;
  std::int16_t layer = -1;
  std::uint32_t key = 0;          // kMicrobatch, kRank: the identity across fragments, unique for its rank
  std::int64_t rows = 0, columns = 0;  // rows of routed tensors: the largest over the ranks of the group
  // Parameters (kRank): where this shard stands in the whole matrix, so that every sharding starts from the same numbers.
  std::int32_t first_expert = 0, experts = 0;  // experts > 0: rows are those of one expert, times `experts`
  std::int64_t first_row = 0, first_column = 0;
  double init = 0;                // standard deviation of the initial value; negative: the constant -init

  Bytes bytes() const { return {static_cast<double>(rows * columns) * element_bytes(dtype) * (experts > 0 ? experts : 1)}; }
};

struct Fragment {
  std::string name;                         // "forward stage 3"
  Phase phase = Phase::kForward;
  std::vector<Op> ops;                      // topological order; lanes execute their ops in this order
  std::vector<Tensor> tensors;
  std::vector<std::int32_t> operands;       // tensor indices
  std::vector<std::int32_t> dependencies;   // op indices
  std::vector<RoutePtr> routes;
  std::uint64_t hash = 0;                   // of everything above, set by freeze()

  std::int32_t input(const Op& op, int i) const { return operands[op.first_tensor + i]; }
  std::int32_t output(const Op& op, int i) const { return operands[op.first_tensor + op.num_inputs + i]; }
};

using FragmentPtr = std::shared_ptr<const Fragment>;

// Checks every rule above (dependencies point backwards, operands exist, communication names a group, shapes are
// positive, a tensor is written before it is read or outlives the fragment) with CHECK, and sets the hash. From here
// the fragment is frozen.
FragmentPtr freeze(Fragment fragment);

// One issue of a fragment. `sequence` numbers the submissions of a run from 0, in the order of the workload; with the
// op's index and the member's rank it is the join key between executors.
struct Submission {
  FragmentPtr fragment;
  std::int32_t sequence = 0;
  std::int32_t rank_class = 0;
  std::int32_t step = 0;
  std::int32_t microbatch = 0;
  std::vector<std::int32_t> after;  // sequences that must have completed before any op of this one starts
};

// Text form, one line per op; equal for equal schedules. write_dump prints each distinct fragment once, then its submissions.
std::string dump(const Fragment& fragment);
std::string dump(const Submission& submission);

}  // namespace moebius
