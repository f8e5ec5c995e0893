// A frozen stretch of work of one rank: flat arrays of ops, their operands and dependencies. The same
// fragment is submitted many times, for other microbatches and for all ranks that do the same work.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "workloads/routing/routing.h"
#include "workloads/schedule/batch.h"
#include "workloads/schedule/expert_transfer.h"
#include "workloads/schedule/op.h"
#include "workloads/schedule/pair_bytes.h"

namespace moebius {

// How long a tensor lives and who shares it.
enum class Scope : std::uint8_t {
  kFragment,    // born and gone inside one submission
  kMicrobatch,  // written in one fragment, read in a later one of the same rank and microbatch (activations
                // for backward)
  kRank,        // for the whole run: weights, gradients, optimizer states
  kStep,        // from the fragment that writes it first to the one in which it is `freed`, whatever their
                // microbatches: whole gradients that several of them add to, weights that stay gathered
};

enum class MemoryKind : std::uint8_t { kWeights, kGradients, kOptimizer, kActivations, kCache, kTransient };
inline constexpr int kNumMemoryKinds = static_cast<int>(MemoryKind::kTransient) + 1;
std::string_view to_string(MemoryKind kind);
std::string_view to_string(Scope scope);

// What shares an FP32 scale in an FP8 tensor; other formats are not concerned.
enum class Scaling : std::uint8_t {
  kBlock,   // 128 elements of a row or column; 128 x 128 of a weight
  kTensor,  // all that this rank holds of the tensor; of the weights of experts, all of one expert
  // 32 elements of a row or column, 32 x 32 of a weight; scales are powers of two, of 8 bits (OCP
  // Microscaling Formats 1.0, MXFP8)
  kMicro,
  kHistory,  // as kTensor, by the largest magnitudes of the steps before: known beforehand, and to all ranks
             // of the tensor
};
std::string_view to_string(Scaling scaling);
constexpr bool has_one_scale(Scaling scaling) {
  return scaling == Scaling::kTensor || scaling == Scaling::kHistory;
}

struct Tensor {
  Scope scope = Scope::kFragment;
  MemoryKind memory = MemoryKind::kTransient;
  DType dtype = DType::kBf16;
  Role role = Role::kNone;
  std::int16_t layer = -1;
  std::uint32_t key = 0;  // of all scopes but kFragment: the identity across fragments, unique for its rank
  std::int64_t rows = 0, columns = 0;  // rows of routed tensors: the largest over the ranks of the group
  // Parameters (kRank): where this shard stands in the whole matrix, so that every sharding starts from the
  // same numbers.
  std::int32_t first_expert = 0, experts = 0;  // experts > 0: rows are those of one expert, times `experts`
  std::int64_t first_row = 0, first_column = 0;
  std::int32_t tensor_copies = 1;  // ranks of a tensor-parallel group that hold the same part
  double init = 0;                 // standard deviation of the initial value; negative: the constant -init
  Scaling scaling = Scaling::kBlock;
  bool on_host = false;  // in the host's memory
  // Parameters (kRank) of which each of `shards` members of the group `cut` holds ceil(elements / shards),
  // flat; rows, columns and experts are those of the whole. 0: not cut.
  std::int32_t shards = 0;
  GroupRole cut = GroupRole::kNone;

  std::int64_t elements() const { return rows * columns * (experts > 0 ? experts : 1); }
  // What one rank holds, as a matrix.
  std::int64_t held_rows() const {
    return shards > 0 ? (elements() + shards - 1) / shards : rows * (experts > 0 ? experts : 1);
  }
  std::int64_t held_columns() const { return shards > 0 ? 1 : columns; }
  bool second = false;  // kMicrobatch: of the submission's second microbatch
  bool kept = false;    // kMicrobatch: a later fragment reads it too, see released()
  bool freed = false;   // kStep: behind its last use in this fragment, or at its end where none uses it
  // Parameters of experts that stand in slots: which expert each starts as; null: first_expert and those that
  // follow.
  SlotListPtr slots = {};

  // Of what one rank holds.
  Bytes bytes() const {
    const auto held = static_cast<double>(held_rows() * held_columns());
    const int scales = experts > 0 ? experts : 1;
    if (has_one_scale(scaling)) return {held + 4.0 * scales};  // FP8; a shard has the scales of its whole
    return {held * element_bytes(dtype)};
  }
  // What it takes in memory: FP8 weights have fewer scales than what is computed with them and sent.
  Bytes kept_bytes() const {
    if (memory != MemoryKind::kWeights || dtype != DType::kFp8 || has_one_scale(scaling)) return bytes();
    const double scales = scaling == Scaling::kMicro ? 1.0 / (32 * 32) : 4.0 / (128 * 128);
    return {static_cast<double>(held_rows() * held_columns()) * (1 + scales)};
  }
};

// How the host gives the fragment's kernels to the device.
enum class LaunchMode : std::uint8_t {
  kHidden,  // far enough ahead that the device never waits for it
  kKernel,  // one by one
  kGraph,   // captured once, then all together
  kEager,   // by a framework, op by op: host_calls.h
};
std::string_view to_string(LaunchMode mode);

// An op as captured in a graph with others, where a framework launches the rest one by one (kKernel, kEager).
struct Captured {
  std::int32_t first = -1;   // the graph's first op, at which the host launches all; -1: in none
  std::int32_t next = -1;    // the graph's op behind this one; -1: none
  std::int32_t kernels = 0;  // of a graph's first op: in all of it
  bool prepared = false;     // in none, dispatch or combine: what stands around its messages is
};
// Sets `next` of all by `first`.
void link_graphs(std::vector<Captured>& ops);

struct Fragment {
  std::string name;  // "forward stage 3"
  Phase phase = Phase::kForward;
  std::vector<Op> ops;  // topological order; lanes execute their ops in this order
  std::vector<Tensor> tensors;
  std::vector<std::int32_t> operands;      // tensor indices
  std::vector<std::int32_t> dependencies;  // op indices
  std::vector<RoutePtr> routes;
  std::vector<BatchPtr> batches;
  LaunchMode launch = LaunchMode::kHidden;
  bool one_expert_call = false;    // kKernel: the kernels of a layer's experts are one call of the host
  std::vector<Captured> captured;  // of each op; empty: no graph but that of kGraph
  PairBytesPtr pair_bytes;         // of its all-to-alls; null: all parts are alike
  ExpertTransferPtr transfer;      // of the experts that it moves; null: none
  std::uint64_t hash = 0;          // of the content of everything above, set by freeze()

  std::int32_t input(const Op& op, int i) const { return operands[op.first_tensor + i]; }
  std::int32_t output(const Op& op, int i) const { return operands[op.first_tensor + op.num_inputs + i]; }
  // The first op of the graph that op `index` is captured in; -1: none.
  std::int32_t graph_of(std::size_t index) const { return captured.empty() ? -1 : captured[index].first; }
  std::int32_t next_in_graph(std::size_t index) const { return captured.empty() ? -1 : captured[index].next; }
};

using FragmentPtr = std::shared_ptr<const Fragment>;

// The first rule that `fragment` breaks, as a sentence with the values; empty when it is sound. The rules:
// - an op depends on earlier ops of the fragment only; its operands, its route and its batch exist;
// - an op that reads what another op of the fragment wrote runs after it: on the same lane, or by
// dependencies;
// - a kFragment tensor is written before it is read; a key names one tensor of its scope;
// - sizes are not negative; tensors have rows and columns, compute ops have rows (m);
// - one scale for a tensor is for FP8, and no communication carries it;
// - copies to and from the host have as many results as operands, on the other side;
// - other communication names a group and a payload, holds no negative number of cores, and no other op of
// the fragment and
//   group has its match; dispatch and combine have a route. Compute has neither group nor payload;
// - what says of ops whether they are captured does so of all, and a graph begins with its first op.
std::string find_fault(const Fragment& fragment);

// The kMicrobatch tensors that end with this fragment: ops of the backward or weight phase, or of tokens and
// labels any op, read them, it has not written them, and they are not `kept`. Ascending.
std::vector<std::int32_t> released(const Fragment& fragment);

// CHECKs that find_fault() finds none and sets the hash. From here the fragment is frozen.
FragmentPtr freeze(Fragment fragment);

// An op of a submission that waits for one of an earlier submission of its rank class.
struct Follow {
  std::int32_t op = 0, sequence = 0, before = 0;
};

// One issue of a fragment. `sequence` numbers the submissions of a run from 0, in the order of the workload;
// with the op's index and the member's rank it is the join key between executors.
struct Submission {
  FragmentPtr fragment;
  std::int32_t sequence = 0;
  std::int32_t rank_class = 0;
  std::int32_t step = 0;
  std::int32_t microbatch = 0;
  std::vector<std::int32_t> after;   // sequences that must have completed before any op of this one starts
  std::vector<Follow> follows = {};  // what single ops wait for besides
  // Of two passes that overlap in one fragment: the microbatch of its ops and tensors that are `second`. -1:
  // none.
  std::int32_t second_microbatch = -1;
  // Which part of the step's batch its (first) microbatch reads, where replicas take unequal numbers of them.
  // -1: parts are dealt out to the replicas in turn.
  std::int32_t batch_part = -1;

  std::int64_t part_of_batch(const Op& op, std::int64_t replicas, std::int64_t replica) const {
    return batch_part >= 0 ? batch_part : microbatch_of(op) * replicas + replica;
  }

  std::int32_t microbatch_of(const Op& op) const { return op.second ? second_microbatch : microbatch; }
  // What tells a meeting from others of the step: gradients meet once a step, whatever microbatch was the
  // last one of each member.
  std::int32_t meeting_microbatch(const Op& op) const {
    return op.phase == Phase::kGradients ? -1 : microbatch_of(op);
  }
  std::int32_t microbatch_of(const Tensor& tensor) const {
    return tensor.second ? second_microbatch : microbatch;
  }
};

bool reads_from(const Fragment& fragment, const Op& reader, const Op& writer);
// The all-reduce that the op waits for and whose result it reads; null: there is none.
const Op* reduction_read(const Fragment& fragment, const Op& op);

// Text form: a line for the fragment, each route, each tensor and each op, with everything that defines it;
// doubles round-trip. Equal schedules give equal text. A submission is one line that names its fragment by
// hash.
std::string dump(const Fragment& fragment);
std::string dump(const Submission& submission);

}  // namespace moebius
