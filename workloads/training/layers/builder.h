// Builds one fragment op by op. The builder finds the dependencies itself: an op depends on the last writer
// of each of its operands, unless both are on one lane, whose order already says so.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "workloads/schedule/fragment.h"
#include "workloads/schedule/key_table.h"
#include "workloads/training/layers/captured.h"
#include "workloads/training/layers/fusion.h"

namespace moebius {

using TensorId = std::int32_t;
inline constexpr TensorId kNoTensor = -1;

// Which copy of a parameter a kRank tensor is.
enum class Part : std::uint8_t {
  kWeight,
  kGradient,
  kMaster,
  kFirstMoment,
  kSecondMoment,
  kGradientShard,
  kHalfWeight,
  kPartWeight  // what a few neighbours keep of a weight between two passes
};

// The identity of kMicrobatch tensors: of the forward fragment, of what a backward pass leaves for the
// weights' gradients, of what goes on to a stage on the same rank.
std::uint32_t microbatch_key(int chunk, TensorId forward_tensor);
std::uint32_t left_key(int chunk, TensorId backward_tensor);
std::uint32_t handed_key(int stage, Phase phase);

// The identity of a kRank tensor across fragments.
std::uint32_t parameter_key(Role role, int layer, Part part);
// The same of the bias of the matrix of that role, which has no role of its own: roles number all keys.
std::uint32_t bias_key(Role role, int layer, Part part);
bool is_bias(const Tensor& of_rank);  // a bias, its gradient or a state of it
// The same of the two matrices of its adapter, A on the side of the input and B on that of the output.
enum class AdapterSide : std::uint8_t { kA, kB };
std::uint32_t adapter_key(Role role, int layer, AdapterSide side, Part part);
bool is_adapter(const Tensor& of_rank);  // one of the two, its gradient or a state of it

// Rendezvous keys of ops that meet across pipeline stages, whose fragments differ. Inside a stage
// FragmentBuilder counts.
enum class StageMatch : std::uint32_t { kForward = 0xf0000000u, kBackward, kTiedEmbedding, kGradientNorm };
// Between stages that `rounds` whole pipelines of ranks precede.
std::uint32_t stage_match(StageMatch match, int rounds);

class FragmentBuilder {
 public:
  // `meetings`: a number below 64 for each of the stages of a rank; their matches differ.
  FragmentBuilder(std::string name, Phase phase, int meetings = 0);

  // Attributes that the next ops get: they change slowly while a layer is written down.
  Phase phase;
  std::int16_t layer = -1;
  std::int16_t compute_units = 0;
  Scaling scaling = Scaling::kBlock;        // of the FP8 tensors that are added
  LaunchMode launch = LaunchMode::kHidden;  // of the whole fragment
  bool one_expert_call = false;             // likewise
  int tensor_chunks = 0;                    // see overlap_tensor_parallel()
  std::vector<Fusion> fusions;              // of its ops
  std::vector<GraphModule> captured;        // of its layers, where ops are launched one by one
  PairBytesPtr pair_bytes;                  // of its all-to-alls; null: all parts are alike
  ExpertTransferPtr transfer;               // of the experts that it moves

  TensorId add(const Tensor& given);  // kRank tensors of the same key are the same tensor
  TensorId transient(std::int64_t rows, std::int64_t columns, DType dtype, Role role = Role::kNone);
  std::int32_t add_route(const RoutePtr& route);  // equal pointers give equal indices

  std::int32_t add_batch(const BatchPtr& batch);  // for Op::batch; equal pointers give equal indices

  // Routes and batches of a fragment that is written anew: its ops go on naming them as they do.
  void add_named_by_ops(const Fragment& whole);

  // Appends an op; `op` carries kind, dtype, lane, role, group, shape, payload ...; layer, phase and
  // (compute) units come from the builder. Returns its index. `after`: earlier ops that it waits for beside
  // those that its operands say.
  std::int32_t emit(Op op, const std::vector<TensorId>& inputs, const std::vector<TensorId>& outputs,
                    const std::vector<std::int32_t>& after = {});

  // A fresh rendezvous key; ranks of a group build the same fragments, so theirs are equal.
  std::uint32_t next_match() { return next_match_++; }

  void begin_matches(std::uint32_t first) { next_match_ = first; }  // of a fragment that is written anew

  // Adds a further output to the last op (a fused quantised copy of its result). Only right after emitting
  // it.
  void extend_last(TensorId output);
  void extend_last_by_columns(TensorId output);  // after that: the copy with scales along columns

  const Tensor& tensor(TensorId id) const { return fragment_.tensors[id]; }
  Tensor& tensor(TensorId id) { return fragment_.tensors[id]; }
  const Fragment& fragment() const { return fragment_; }
  void reserve(const Fragment& like);  // room for as much
  void cut_for_overlap();              // tensor-parallel communication in `tensor_chunks` pieces, once
  FragmentPtr freeze_it();

 private:
  // Of an op whose operands are the last ones.
  void set_dependencies(Op& op, const std::vector<std::int32_t>& after);

  Fragment fragment_;
  KeyTable by_key_;                        // tensors, by scope and key
  std::vector<std::int32_t> last_writer_;  // op index per tensor, -1: none here
  std::map<const Route*, std::int32_t> routes_;
  std::uint32_t next_match_ = 0;  // starts at the phase, so that fragments of one microbatch differ
};

}  // namespace moebius
