// The feed-forward half of a layer: dense, or a mixture of experts with dispatch and combine.
#include <fmt/format.h>

#include "hw/error.h"
#include "workloads/cost/separate_kernels.h"
#include "workloads/training/layers/layer_writer.h"

namespace moebius {
namespace {

struct MoeContext {
  std::int32_t route_index = 0;    // of dispatch and combine
  std::int32_t experts_route = 0;  // of what experts see: the same, unless ranks share experts
  std::int64_t received = 0;       // token rows that are dispatched to the busiest rank
  std::int64_t copies = 0;         // and what those are by expert
  std::int64_t gathered = 0;       // and those that came to all who share its experts
  std::int64_t rows = 0;           // copies by expert of the busiest rank
  int local_experts = 0;
  std::int64_t places = 0;  // one-hot: rows of the buffers that a token's group fills, for all experts
  std::int64_t filled = 0;  // and those of all groups of this rank
};

MoeContext context_of(FragmentBuilder& builder, const RoutePtr& route, const RoutePtr& gathered) {
  const RoutePtr& experts = gathered ? gathered : route;
  MoeContext moe{.route_index = builder.add_route(route), .received = route->max_received_tokens()};
  moe.experts_route = builder.add_route(experts);
  moe.copies = route->max_rows_of_rank();
  moe.gathered = experts->max_received_tokens();
  moe.rows = experts->max_rows_of_rank();
  moe.local_experts = experts->experts_per_rank();
  moe.places = std::int64_t{route->spec().capacity} * route->spec().experts;
  moe.filled = moe.places * route->spec().capacity_groups;
  return moe;
}

bool uses_masks(const TrainingPlan& plan) {
  return plan.expert_buffers == ExpertBuffers::kOneHot;
}

// Rows of several experts that travel one by one are sorted twice: for their ranks before they travel, and
// there by expert. Low-latency kernels put each row where its expert reads it, and sum up what comes back
// (DeepEP, internode_ll.cu). What masks put into buffers is sorted where it arrives alone.
int routing_kernels(const LayerWriter& writer, const MoeContext& moe) {
  const TrainingPlan& plan = writer.plan();
  if (uses_masks(plan)) return moe.local_experts > 1 ? 0 : kWithinExchange;
  if (plan.exchange == Algorithm::kDirect) return kWithinExchange;
  if (plan.separate_routing) return moe.local_experts > 1 ? kSortedTwice : kSeparateKernels;
  return plan.exchange == Algorithm::kLibrary && moe.local_experts > 1 ? kSortedTwiceFused : 0;
}

struct Received {
  TensorId tokens, weights;  // no weights: they stay where the tokens came from
};

// A token's row travels with its routing weights, FP32 each, where it has some.
Received write_dispatch(LayerWriter& writer, TensorId x, TensorId weights, const MoeContext& moe) {
  const TrainingPlan& plan = writer.plan();
  const Model& model = writer.model();
  const TensorId payload = writer.quantised(x, plan.dispatch, false);
  FragmentBuilder& builder = writer.builder();
  const TensorId tokens = builder.transient(moe.received, model.hidden, plan.dispatch, Role::kExperts);
  Op op = dispatch_op(writer, writer.rows(x), moe.route_index);
  op.match = builder.next_match();
  if (weights == kNoTensor) {
    op.payload = {model.hidden * element_bytes(plan.dispatch)};
    writer.emit(op, {payload}, {tokens});
    return {tokens, kNoTensor};
  }
  const Received received{
      tokens, builder.transient(moe.received, model.experts.active, DType::kFp32, Role::kExperts)};
  writer.emit(op, {payload, weights}, {received.tokens, received.weights});
  return received;
}

// The bias of the second product is weighed with the rows, which no product's end does.
bool adds_bias_apart(const LayerWriter& writer, const Linear& linear) {
  return writer.plan().expert_by_expert && linear.role == Role::kExpertDown &&
         writer.model().biases == Biases::kAll;
}

int kernels_of_experts(const LayerWriter& writer, const Linear& linear) {
  const TrainingPlan& plan = writer.plan();
  if (!plan.expert_modules) return plan.expert_by_expert ? kSeparateKernels : 0;
  return linear.role == Role::kExpertDown ? kWritesSlices : kTakesSlices;
}

TensorId write_grouped(LayerWriter& writer, TensorId x, const Linear& linear, const MoeContext& moe) {
  const DType dtype = writer.expert_format().arithmetic;
  const TensorId operand = writer.quantised(x, dtype, !writer.adapters().any());
  const TensorId w = writer.expert_weight(linear, moe.local_experts);
  const std::int64_t out = writer.rows(w), in = writer.columns(w);
  const TensorId y = writer.builder().transient(moe.rows, out, DType::kBf16, linear.role);
  const Op alone{.kind = OpKind::kGroupedGemm,
                 .dtype = dtype,
                 .role = linear.role,
                 .route = moe.experts_route,
                 .shape = {.m = moe.rows,
                           .n = out,
                           .k = in,
                           .groups = moe.local_experts,
                           .heads = kernels_of_experts(writer, linear)}};
  Op op = alone;
  if (adds_bias_apart(writer, linear)) op.shape.heads = kSeparateWithBias;
  writer.emit(op, {operand, w}, {y});
  return writer.with_expert_adapter(y, x, linear, alone);  // which has no bias
}

// What the library's all-to-all brought, a row with one weight for each expert of a token that stands here,
// is put together behind its way back; ranks that share experts gather it and sum it up as it came
// (Megatron-Core, moe/token_dispatcher.py, MoEAlltoAllTokenDispatcher). So are full buffers.
bool sends_copies(const TrainingPlan& plan) {
  return plan.exchange == Algorithm::kLibrary || plan.fills_buffers();
}

double rows_of_token(const LayerWriter& writer, const MoeContext& moe) {
  if (!sends_copies(writer.plan()) || uses_masks(writer.plan())) return 1;
  return share(static_cast<double>(moe.copies), static_cast<double>(moe.received));
}

// Copies by expert, with the weight of each.
Received write_permute(LayerWriter& writer, const Received& received, const MoeContext& moe) {
  const Model& model = writer.model();
  FragmentBuilder& builder = writer.builder();
  const DType dtype = builder.tensor(received.tokens).dtype;
  std::vector<TensorId> inputs{received.tokens},
      outputs{builder.transient(moe.rows, model.hidden, dtype, Role::kExperts)};
  if (received.weights != kNoTensor) {
    inputs.push_back(received.weights);
    outputs.push_back(builder.transient(moe.rows, 1, DType::kFp32, Role::kExperts));
  }
  writer.emit({.kind = OpKind::kPermute,
               .dtype = dtype,
               .role = Role::kExperts,
               .route = moe.experts_route,
               .shape = {.m = moe.rows,
                         .n = model.hidden,
                         .k = model.experts.active,
                         .heads = routing_kernels(writer, moe)}},
              inputs, outputs);
  return {outputs[0], received.weights != kNoTensor ? outputs[1] : kNoTensor};
}

TensorId write_unpermute(LayerWriter& writer, TensorId rows, const MoeContext& moe) {
  const std::int64_t h = writer.model().hidden;
  const TensorId tokens = writer.builder().transient(moe.gathered, h, DType::kBf16, Role::kExperts);
  writer.emit({.kind = OpKind::kUnpermute,
               .role = Role::kExperts,
               .route = moe.experts_route,
               .shape = {.m = moe.rows, .n = h, .heads = routing_kernels(writer, moe)}},
              {rows}, {tokens});
  return tokens;
}

// Buffers that masks filled on the only rank that has experts are already by expert.
TensorId write_experts(LayerWriter& writer, const Received& dispatched, const MoeContext& moe) {
  const Model& model = writer.model();
  const double rows = rows_of_token(writer, moe);
  const double weights = sends_copies(writer.plan()) ? rows / model.experts.active : rows;
  Received received{writer.enter_experts(dispatched.tokens, rows), kNoTensor};
  if (dispatched.weights != kNoTensor)
    received.weights = writer.enter_experts(dispatched.weights, weights);
  const bool sorts = !uses_masks(writer.plan()) || writer.plan().ep > 1;
  const Received copies = sorts ? write_permute(writer, received, moe) : received;
  const ExpertLinears linears = expert_linears(writer);
  const TensorId up = write_grouped(writer, copies.tokens, linears.up, moe);
  const TensorId active =
      writer.activation(up, model.experts.width / writer.plan().expert_tp, copies.weights);
  const TensorId down = write_grouped(writer, active, linears.down, moe);
  return writer.leave_experts(sorts ? write_unpermute(writer, down, moe) : down, rows);
}

TensorId write_combine(LayerWriter& writer, TensorId tokens, std::int64_t m, const MoeContext& moe) {
  const std::int64_t h = writer.model().hidden;
  FragmentBuilder& builder = writer.builder();
  const TensorId combined = builder.transient(m, h, DType::kBf16, Role::kExperts);
  Op op = combine_op(writer, m, moe.route_index);
  op.match = builder.next_match();
  writer.emit(op, {tokens}, {combined});
  return combined;
}

TensorId write_shared_mlp(LayerWriter& writer, TensorId x, Cut cut) {
  return write_gated(writer, x, writer.model().experts.shared_width, Role::kSharedGateUp, Role::kSharedDown,
                     cut);
}

// What the shared experts give for rows x, times what the gate says of them.
TensorId write_weighed(LayerWriter& writer, TensorId shared, TensorId x) {
  const Model& model = writer.model();
  if (!model.experts.shared_gate) return shared;
  const Linear score{.role = Role::kSharedScore, .out = 1, .in = model.hidden, .high_precision = true};
  return writer.gate(shared, writer.linear(x, score));
}

// Cut over the ranks that share attention, by columns and then by rows, between a gather and a sum of their
// own (Megatron-Core, moe/shared_experts.py: an MLP of the group pg_collection.tp; MindSpeed,
// moe_layer_overlap_all2all.py; torchtitan, parallelize.py: "moe.shared_experts.w1" colwise, "w2" rowwise).
// The gate, whole on every rank, weighs the sums of a rank's own rows.
TensorId write_cut_shared_experts(LayerWriter& writer, TensorId x) {
  const Cut cut = writer.plan().tp > 1 ? Cut::kColumns : Cut::kNone;
  const TensorId parts = write_shared_mlp(writer, writer.enter_shared_experts(x), cut);
  return write_weighed(writer, writer.leave_tensor_parallel(parts), x);
}

}  // namespace

ExpertLinears expert_linears(const LayerWriter& writer) {
  const Model& model = writer.model();
  const std::int64_t width = model.experts.width;
  const bool shared = writer.plan().expert_tp > 1;
  return {
      {Role::kExpertGateUp, width * (model.gated ? 2 : 1), model.hidden, shared ? Cut::kColumns : Cut::kNone},
      {Role::kExpertDown, model.hidden, width, shared ? Cut::kRows : Cut::kNone}};
}

Op dispatch_op(const LayerWriter& writer, std::int64_t rows, std::int32_t route) {
  const TrainingPlan& plan = writer.plan();
  const Model& model = writer.model();
  Op op{.kind = OpKind::kDispatch,
        .dtype = plan.dispatch,
        .lane = writer.expert_lane(),
        .role = Role::kExperts,
        .group = GroupRole::kExpert,
        .algorithm = plan.exchange,
        .units = static_cast<std::int16_t>(plan.communication_sms),
        .route = route,
        .shape = {.m = rows, .n = model.hidden, .k = model.experts.active}};
  const int weights = plan.exchange == Algorithm::kLibrary ? 1 : model.experts.active;  // that go with a row
  op.payload = {model.hidden * element_bytes(plan.dispatch) + 4.0 * weights};
  return op;
}

Op combine_op(const LayerWriter& writer, std::int64_t rows, std::int32_t route) {
  const TrainingPlan& plan = writer.plan();
  const std::int64_t h = writer.model().hidden;
  Op op{.kind = OpKind::kCombine,
        .dtype = plan.combine,
        .lane = writer.expert_lane(),
        .role = Role::kExperts,
        .group = GroupRole::kExpert,
        .algorithm = plan.exchange,
        .units = static_cast<std::int16_t>(plan.communication_sms),
        .route = route,
        .shape = {.m = rows, .n = h}};
  op.payload = {h * element_bytes(plan.combine)};
  return op;
}

TensorId write_received(LayerWriter& writer, TensorId tokens, TensorId weights, const RoutePtr& route) {
  return write_experts(writer, {tokens, weights}, context_of(writer.builder(), route, {}));
}

TensorId write_gated(LayerWriter& writer, TensorId x, std::int64_t width, Role up_role, Role down_role,
                     Cut up_cut) {
  const Model& model = writer.model();
  const std::int64_t matrices = model.gated ? 2 : 1;
  const bool cut = up_cut != Cut::kNone;
  Linear up{up_role, matrices * width, model.hidden, up_cut};
  Linear down{down_role, model.hidden, width, cut ? Cut::kRows : Cut::kNone};
  up.dense_mlp = down.dense_mlp = up_role == Role::kGateUp;
  const TensorId active = writer.activation(writer.linear(x, up), width / (cut ? writer.degree_of(up) : 1));
  return writer.linear(active, down);
}

TensorId write_shared_experts(LayerWriter& writer, TensorId x, Cut cut) {
  return write_weighed(writer, write_shared_mlp(writer, x, cut), x);
}

TensorId write_gate(LayerWriter& writer, TensorId x, std::int32_t route) {
  const Model& model = writer.model();
  const Experts& experts = model.experts;
  const TensorId logits = writer.linear(
      x, {.role = Role::kRouter, .out = experts.routed, .in = model.hidden, .high_precision = true});
  const TensorId weights =
      writer.builder().transient(writer.rows(x), experts.active, DType::kFp32, Role::kGate);
  writer.emit({.kind = OpKind::kGate,
               .role = Role::kGate,
               .route = route,
               .scale = static_cast<float>(experts.scale),
               .shape = {.m = writer.rows(x),
                         .n = experts.routed,
                         .k = experts.active,
                         .groups = experts.score == GateScore::kSigmoid ? 1 : 0,
                         .heads = writer.plan().separate_routing ? kSeparateKernels : 0}},
              {logits}, {weights});
  return weights;
}

TensorId write_dense_mlp(LayerWriter& writer, TensorId x) {
  const Model& model = writer.model();
  const TensorId whole = writer.enter_dense_mlp(writer.norm(x, Role::kMlpNorm));
  const Cut cut = writer.plan().dense_degree() > 1 ? Cut::kColumns : Cut::kNone;
  const TensorId down = write_gated(writer, whole, model.dense_width, Role::kGateUp, Role::kDown, cut);
  const TensorId result = writer.leave_dense_mlp(down);
  writer.end_recompute();
  return writer.add_block(x, result);
}

namespace {

// What the routed experts give for this rank's tokens, and what is still to be done with it.
struct Routed {
  TensorId rows;
  OneHotMasks masks;
};

Routed write_routed(LayerWriter& writer, TensorId x, TensorId weights, const MoeContext& moe) {
  if (!uses_masks(writer.plan())) {
    const TensorId tokens = write_experts(writer, write_dispatch(writer, x, weights, moe), moe);
    return {write_combine(writer, tokens, writer.rows(x), moe), {}};
  }
  const OneHotMasks masks = write_masks(writer, weights, moe.places);
  const TensorId buffers = write_masked(writer, masks.places, x, moe.filled);
  if (writer.plan().ep == 1) return {write_experts(writer, {buffers, kNoTensor}, moe), masks};
  const TensorId rows = write_experts(writer, write_dispatch(writer, buffers, kNoTensor, moe), moe);
  return {write_combine(writer, rows, moe.filled, moe), masks};
}

}  // namespace

// The shared experts run while combine is under way, what they read is gathered while dispatch is; in the
// reverse pass they run while combine's gradient is dispatched.
TensorId write_moe(LayerWriter& writer, TensorId x, const RoutePtr& route, const RoutePtr& gathered,
                   bool whole_shared) {
  const Model& model = writer.model();
  const MoeContext moe = context_of(writer.builder(), route, gathered);
  const TensorId normed = writer.norm(x, Role::kMlpNorm);
  const TensorId weights = write_gate(writer, normed, moe.route_index);
  const Routed routed = write_routed(writer, normed, weights, moe);
  TensorId shared = kNoTensor;
  if (model.experts.shared_width > 0)
    shared = whole_shared ? write_shared_experts(writer, normed, Cut::kNone)
                          : write_cut_shared_experts(writer, normed);
  const OneHotMasks& masks = routed.masks;
  TensorId result = routed.rows;
  if (masks.weights != kNoTensor)
    result = write_masked(writer, masks.weights, result, writer.rows(x));
  if (shared != kNoTensor) result = writer.add(result, shared);
  writer.end_recompute();
  return writer.add_block(x, result);
}

}  // namespace moebius
