// Writes the ops of a transformer layer into a forward pass: the pieces that attention and MLP share.
#pragma once

#include <vector>

#include "workloads/training/layers/lowering.h"

namespace moebius {

// How a weight matrix is cut over the tensor-parallel group.
enum class Cut : std::uint8_t { kNone, kColumns, kRows };  // of the output, of the input

struct Linear {
  Role role = Role::kNone;
  std::int64_t out = 0, in = 0;  // of the whole matrix
  Cut cut = Cut::kNone;
  bool high_precision = false;  // BF16 even in an FP8 plan: router, head
  bool dense_mlp = false;       // cut over the ranks that share dense MLPs, else those that share attention
};

class LayerWriter {
 public:
  LayerWriter(const LoweringInput& input, const StageSpec& stage, ForwardPass& pass);

  void begin_block(int layer, bool recompute_all);  // ops from here on belong to a new block
  void end_recompute();                             // the next ops are kept whatever the block says

  // Pieces; each returns its result. `x` is [rows, columns] as its tensor says.
  TensorId norm(TensorId x, Role role, int heads = 1);  // heads: each by itself, all with one head's weight
  TensorId linear(TensorId x, const Linear& linear);
  TensorId rotary(TensorId x, int heads, int rotated);
  TensorId add(TensorId a, TensorId b);
  TensorId add_block(TensorId stream, TensorId result);  // with dropout, where there is one
  TensorId activation(TensorId x, std::int64_t width, TensorId row_weights = kNoTensor);
  std::vector<TensorId> split(TensorId x, const std::vector<std::int64_t>& columns, Role role);
  TensorId quantised(TensorId x, DType dtype);  // x itself for 16 and 32-bit formats
  TensorId enter_tensor_parallel(TensorId x);   // whole rows on every member
  TensorId leave_tensor_parallel(TensorId x);   // sum over members, cut by rows with sequence parallelism
  TensorId enter_dense_mlp(TensorId x);         // the same among the ranks that share dense MLPs, where those
  TensorId leave_dense_mlp(TensorId x);         // have a degree of their own: each brings rows of its own
  int degree_of(const Linear& linear) const { return linear.dense_mlp ? plan().dense_degree() : plan().tp; }
  TensorId gather_context(TensorId x);
  TensorId weight(const Linear& linear, std::int64_t rows, std::int64_t columns);
  TensorId expert_weight(Role role, std::int64_t rows, std::int64_t columns, int experts);

  std::int32_t emit(Op op, const std::vector<TensorId>& inputs, const std::vector<TensorId>& outputs);
  TensorId collective(OpKind kind, GroupRole group, Lane lane, TensorId x, std::int64_t rows);

  FragmentBuilder& builder() const { return pass_.builder; }
  ForwardPass& pass() { return pass_; }
  BatchPtr packed() const {  // null: each row is one sequence
    return pass_.batch < 0 ? nullptr : pass_.builder.fragment().batches[pass_.batch];
  }
  const Model& model() const { return *input_.model; }
  const TrainingPlan& plan() const { return *input_.plan; }
  const TrainingWorkload& workload() const { return *input_.workload; }
  const LoweringInput& input() const { return input_; }
  const ShardPosition& shard() const { return shard_; }
  std::int64_t rows(TensorId x) const { return pass_.builder.tensor(x).rows; }
  std::int64_t columns(TensorId x) const { return pass_.builder.tensor(x).columns; }

 private:
  bool recomputes(OpKind kind, Role role) const;

  LoweringInput input_;
  ShardPosition shard_;
  const RecomputeChoice* choice_;  // hybrid; null: the plan says it for all layers
  ForwardPass& pass_;
  int block_ = -1;
  bool recompute_all_ = false;
};

// Attention of one layer: x -> x + attention(norm(x)).
TensorId write_attention(LayerWriter& writer, TensorId x);

// Feed-forward part of one layer: x -> x + mlp(norm(x)), dense or mixture of experts.
TensorId write_dense_mlp(LayerWriter& writer, TensorId x);
TensorId write_moe(LayerWriter& writer, TensorId x, const RoutePtr& route);

}  // namespace moebius
