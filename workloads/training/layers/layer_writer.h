// Writes the ops of a transformer layer into a forward pass: the pieces that attention and MLP share.
#pragma once

#include <functional>
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
  bool bias = false;            // one for each output, cut as those are
};

// What a matrix product computes in, and what its weights are kept in.
struct WeightFormat {
  DType arithmetic = DType::kBf16, stored = DType::kBf16;
};
// Weights kept as the products compute, but in BF16 where those compute in 16 bits or more.
WeightFormat format_of(DType arithmetic);

class LayerWriter {
 public:
  LayerWriter(const LoweringInput& input, const StageSpec& stage, ForwardPass& pass);

  // Of maps that are not in high precision, and of experts; those of the plan until then.
  void use_formats(WeightFormat dense, WeightFormat experts) { dense_ = dense, experts_ = experts; }
  const WeightFormat& expert_format() const { return experts_; }
  // How many rows the ranks of a tensor group share with sequence parallelism, where these are no multiple of
  // the ranks: each then has as many as the first.
  void share_rows(std::int64_t whole) { shared_rows_ = whole; }
  // What each slot of a member of the expert group starts as, where experts stand in slots.
  using SlotsOfMember = std::function<SlotListPtr(int layer, int member)>;
  void use_slots(SlotsOfMember slots) { slots_ = std::move(slots); }

  void begin_block(int layer, bool recompute_all);  // ops from here on belong to a new block
  void next_block() { ++block_; }                   // of the same layer, recomputed as the one before
  void end_recompute();                             // the next ops are kept whatever the block says

  // Pieces; each returns its result. `x` is [rows, columns] as its tensor says.
  TensorId norm(TensorId x, Role role, int heads = 1);  // heads: each by itself, all with one head's weight
  // Of queries or keys before positions turn them, in the model's way. What a norm of all heads needs of the
  // other ranks' heads: means of both, kNoTensor where it needs none.
  TensorId query_key_means(TensorId q, TensorId k);
  TensorId query_key_norm(TensorId x, Role role, int heads, TensorId means);
  TensorId gated_norm(TensorId x, TensorId gate, Role role, int heads);  // the same times silu(gate)
  TensorId linear(TensorId x, const Linear& linear);
  TensorId rotary(TensorId x, int heads, int rotated);
  TensorId add(TensorId a, TensorId b);
  TensorId add_block(TensorId stream, TensorId result);  // with dropout, where there is one
  TensorId gate(TensorId x, TensorId by);  // x times sigmoid(by): of each element, or one number a row
  TensorId activation(TensorId x, std::int64_t width, TensorId row_weights = kNoTensor);
  std::vector<TensorId> split(TensorId x, const std::vector<std::int64_t>& columns, Role role);
  // x itself for 16 and 32-bit formats. What a product reads is made with what its weight gradient reads;
  // what travels is not.
  TensorId quantised(TensorId x, DType dtype, bool for_product = true);
  TensorId largest(TensorId x, const Op& quantise);  // magnitude, that this op will scale by
  TensorId enter_tensor_parallel(TensorId x);        // whole rows on every member
  TensorId leave_tensor_parallel(TensorId x);  // sum over members, cut by rows with sequence parallelism
  TensorId enter_dense_mlp(TensorId x);        // the same among the ranks that share dense MLPs, where those
  TensorId leave_dense_mlp(TensorId x);        // have a degree of their own: each brings rows of its own
  // As enter_tensor_parallel(), of what shared experts read: beside the exchanges of a layer, or behind the
  // last op where those stand in line (overlap_dispatch_combine).
  TensorId enter_shared_experts(TensorId x);
  int degree_of(const Linear& linear) const { return linear.dense_mlp ? plan().dense_degree() : plan().tp; }
  // Of what travels to experts and back. Copies of tokens that stay where they are have no lane beside
  // products.
  Lane expert_lane() const {
    const bool travels = plan().expert_ranks() > 1;
    return travels && plan().overlap_dispatch_combine ? Lane::kExpertComm : Lane::kCompute;
  }
  TensorId gather_context(TensorId x);
  TensorId weight(const Linear& linear, std::int64_t rows, std::int64_t columns);
  TensorId bias(TensorId weight);  // [rows of the matrix, 1]
  const Adapters& adapters() const { return workload().adapters; }
  // What the adapters beside the matrix of experts add to `y`, of these rows.
  TensorId with_expert_adapter(TensorId y, TensorId x, const Linear& linear, const Op& product);
  TensorId expert_weight(const Linear& linear,
                         int experts);        // of each expert; cut over the ranks that share it
  // What came to all ranks that share the same experts, and sums over them of what came to this one; of each
  // token as many rows travel.
  TensorId enter_experts(TensorId received, double rows_of_token);
  TensorId leave_experts(TensorId x, double rows_of_token);

  std::int32_t emit(Op op, const std::vector<TensorId>& inputs, const std::vector<TensorId>& outputs,
                    const std::vector<std::int32_t>& after = {});
  bool recomputes(OpKind kind, Role role) const;  // an op that is written now
  // `after`: as FragmentBuilder::emit() has it.
  TensorId collective(OpKind kind, GroupRole group, Lane lane, TensorId x, std::int64_t rows,
                      double rows_of_token = 1, const std::vector<std::int32_t>& after = {});

  FragmentBuilder& builder() const { return pass_.builder; }
  ForwardPass& pass() { return pass_; }
  const Model& model() const { return *input_.model; }
  const TrainingPlan& plan() const { return *input_.plan; }
  const TrainingWorkload& workload() const { return *input_.workload; }
  const LoweringInput& input() const { return input_; }
  const ShardPosition& shard() const { return shard_; }
  std::int64_t rows(TensorId x) const { return pass_.builder.tensor(x).rows; }
  std::int64_t columns(TensorId x) const { return pass_.builder.tensor(x).columns; }

 private:
  TensorId in_order(TensorId x);
  TensorId norm_weight(Role role, std::int64_t columns);
  int norm_kernels() const;  // Shape::heads of a norm
  TensorId add_weight(Tensor weight);
  TensorId product(TensorId x, const Linear& linear);
  TensorId adapter(const Linear& linear, AdapterSide side);
  TensorId expert_adapter(const Linear& linear, AdapterSide side, int experts);
  TensorId adapter_product(TensorId x, TensorId weight, const Linear& linear);
  TensorId add_adapter(TensorId y, TensorId low, const Linear& linear);
  TensorId leave_with_adapters(TensorId sum);
  TensorId add_result(TensorId stream, TensorId result);

  LoweringInput input_;
  ShardPosition shard_;
  const RecomputeChoice* choice_;  // hybrid; null: the plan says it for all layers
  ForwardPass& pass_;
  WeightFormat dense_, experts_;
  SlotsOfMember slots_;
  std::int64_t shared_rows_ = 0;  // 0: a multiple of the ranks
  // x A' of products cut by their inputs, whose sum over the tensor-parallel group comes next.
  struct CutAdapter {
    TensorId low = kNoTensor;
    Linear linear;
  };
  std::vector<CutAdapter> cut_adapters_;
  int block_ = -1;
  bool recompute_all_ = false;
};

// The core of attention: which keys the queries of a rank see, and on how many heads it works.
struct CoreHeads {
  int query = 0, kv = 0;  // on this rank
  int head_dim = 0, v_dim = 0;
};
struct CoreReach {
  std::int32_t sequences = 0;  // runs of consecutive queries that see nothing of each other
  std::int64_t keys = 0;       // of each
  std::int32_t window = 0;
  std::int32_t batch = -1;  // of packed sequences, in the fragment
};
struct CoreOperands {
  TensorId q = kNoTensor, k = kNoTensor, v = kNoTensor;
};
// Returns o and lse, last of the ring the merged ones.
std::pair<TensorId, TensorId> emit_core(LayerWriter& writer, const CoreHeads& heads, const CoreReach& reach,
                                        const CoreOperands& operands, std::uint32_t part);
// Where ranks share sequences and keys are not gathered (ContextKind).
TensorId write_ring_core(LayerWriter& writer, const CoreHeads& heads, const CoreOperands& operands);
TensorId write_ulysses_core(LayerWriter& writer, const CoreHeads& heads, const CoreOperands& operands);

// Attention of one layer: x -> x + attention(norm(x)).
TensorId write_attention(LayerWriter& writer, TensorId x);
// Up to the output map, of mha and gqa: normed rows, whole on every tensor-parallel rank -> those of its
// heads.
TensorId write_grouped_query(LayerWriter& writer, TensorId whole);

// Up (and gate), activation, down; without the way into and out of tensor parallelism.
TensorId write_gated(LayerWriter& writer, TensorId x, std::int64_t width, Role up_role, Role down_role,
                     Cut up_cut);
// The shared experts, times the sigmoid of one number a token where the model has that gate. Of columns that
// ranks share, each has a part of the sum, to which the gate applies as to the whole. write_moe() has sums of
// its own.
TensorId write_shared_experts(LayerWriter& writer, TensorId x, Cut cut);
// The matrices of an expert, up (and gate) and down.
struct ExpertLinears {
  Linear up, down;
};
ExpertLinears expert_linears(const LayerWriter& writer);
// The routing weights of rows: what the router makes of them, for the experts that a route gives.
TensorId write_gate(LayerWriter& writer, TensorId x, std::int32_t route);

// ExpertBuffers::kOneHot. Masks [tokens, places]: of a token's group `places` rows of the buffers.
struct OneHotMasks {
  TensorId places = kNoTensor, weights = kNoTensor;
};
// `weights`: the routing weights of each token, [tokens, k].
OneHotMasks write_masks(LayerWriter& writer, TensorId weights, std::int64_t places);
// Rows of tokens into so many `results` of buffers, or those of buffers into one for each token: 2 x tokens x
// places x columns FLOPs.
TensorId write_masked(LayerWriter& writer, TensorId mask, TensorId rows, std::int64_t results);

// Feed-forward part of one layer: x -> x + mlp(norm(x)), dense or mixture of experts.
TensorId write_dense_mlp(LayerWriter& writer, TensorId x);
// Both of the same x, with a dense MLP: x -> x + attention(norm(x)) + mlp(norm(x)), of one norm or two
// (ParallelBlock). `attention` writes what write_grouped_query() does. Where attention and MLP are cut over
// the same ranks, their parts of the sum are added up first: one sum over the ranks forward. Backward one for
// each norm, whose gradients are the sums; with sequence parallelism as many gathers forward.
using AttentionOfRows = std::function<TensorId(LayerWriter& writer, TensorId whole)>;
TensorId write_parallel_block(LayerWriter& writer, TensorId x, const AttentionOfRows& attention);
// `gathered`: the route with the tokens of all ranks that share an expert; null: no expert is shared.
// `whole_shared`: ranks that share attention have shared experts whole, each for its own rows.
TensorId write_moe(LayerWriter& writer, TensorId x, const RoutePtr& route, const RoutePtr& gathered = {},
                   bool whole_shared = false);

// Its parts, for ranks that do one of them. Rows that came to a rank, with their routing weights: through its
// experts to one row for each. The two exchanges, of `rows` tokens of this rank.
TensorId write_received(LayerWriter& writer, TensorId tokens, TensorId weights, const RoutePtr& route);
Op dispatch_op(const LayerWriter& writer, std::int64_t rows, std::int32_t route);
Op combine_op(const LayerWriter& writer, std::int64_t rows, std::int32_t route);

}  // namespace moebius
