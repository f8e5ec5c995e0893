#include "workloads/serving/separation/lower_separated.h"

#include <algorithm>

#include <fmt/format.h>

#include "workloads/schedule/local_batch.h"
#include "workloads/serving/attention.h"

namespace moebius {
namespace {

// Of the exchanges of a microbatch at a layer: equal on both sides.
enum class Way : std::uint32_t { kToExperts, kBack };
std::uint32_t match_of(const SeparatedPass& pass, int layer, int microbatch, Way way) {
  return (static_cast<std::uint32_t>(layer) * static_cast<std::uint32_t>(pass.microbatches) +
          static_cast<std::uint32_t>(microbatch)) *
             2 +
         static_cast<std::uint32_t>(way);
}

// What both sides know of an exchange. Results come back on another lane than tokens go.
class Exchanges {
 public:
  Exchanges(LayerWriter& writer, const SeparatedPass& pass) : writer_(writer), pass_(pass) {}

  std::int32_t route(int layer, int microbatch) const {
    return writer_.builder().add_route(pass_.route(layer, microbatch));
  }
  bool has_experts(int layer) const { return writer_.model().is_moe_layer(layer); }

  Op to_experts(int layer, int microbatch, std::int64_t rows) const {
    Op op = dispatch_op(writer_, rows, route(layer, microbatch));
    // A token of a dense layer goes to one rank, and needs no weight.
    if (!has_experts(layer)) op.payload = {writer_.model().hidden * element_bytes(op.dtype)};
    op.match = match_of(pass_, layer, microbatch, Way::kToExperts);
    return op;
  }
  Op back(int layer, int microbatch, std::int64_t rows) const {
    Op op = combine_op(writer_, rows, route(layer, microbatch));
    op.lane = Lane::kRecvForward;
    op.match = match_of(pass_, layer, microbatch, Way::kBack);
    return op;
  }

 private:
  LayerWriter& writer_;
  const SeparatedPass& pass_;
};

class AttentionRank {
 public:
  AttentionRank(const SeparatedPass& pass, const std::vector<BatchPtr>& batches, ForwardPass& forward)
      : pass_(pass),
        batches_(batches),
        input_(pass.shape.input(pass.decodes)),
        writer_(input_, {}, forward),
        exchanges_(writer_, pass) {
    set_formats(pass.shape.job.plan, writer_);
    for (const BatchPtr& batch : batches) indices_.push_back(builder().add_batch(batch));
    const ServingPlan& plan = pass.shape.job.plan;
    const LatentRule rule{plan.absorbed_below, plan.drafts, pass.absorbed};
    for (const BatchPtr& batch : batches)
      streams_.push_back({.latents = latent_parts(model(), *batch, rule),
                          .local = local_batch(batch, model().attention_chunk)});
  }

  void write() {
    for (int j = 0; j < pass_.microbatches; ++j) {
      writer_.begin_block(-1, false);
      streams_[j].x = write_entry(writer_, pass_.shape.job, indices_[j]);
      attend_and_send(0, j);
    }
    for (int layer = 0; layer < model().layers; ++layer)
      for (int j = 0; j < pass_.microbatches; ++j) {
        take_back(layer, j);
        layer + 1 < model().layers ? attend_and_send(layer + 1, j) : leave(j);
      }
  }

 private:
  struct Stream {
    LatentParts latents = {};
    BatchPtr local = {};          // of layers that attend in chunks
    TensorId x = kNoTensor;       // after attention, what the results are added to
    TensorId shared = kNoTensor;  // of the shared experts, while tokens are away
  };

  const Model& model() const { return pass_.shape.job.model; }
  FragmentBuilder& builder() const { return writer_.builder(); }

  void attend_and_send(int layer, int j) {
    Stream& stream = streams_[j];
    writer_.begin_block(layer, false);
    stream.x = write_batch_attention(writer_,
                                     {batches_[j],
                                      indices_[j],
                                      pass_.shape.cache_rows,
                                      pass_.shape.job.plan.kv,
                                      pass_.shape.job.plan.attention,
                                      stream.latents,
                                      stream.local,
                                      {},
                                      pass_.shape.states},
                                     stream.x);
    writer_.begin_block(layer, false);
    const TensorId normed = writer_.norm(stream.x, Role::kMlpNorm);
    std::vector<TensorId> sent = {writer_.quantised(normed, writer_.plan().dispatch)};
    const bool experts = exchanges_.has_experts(layer);
    if (experts) sent.push_back(write_gate(writer_, normed, exchanges_.route(layer, j)));
    writer_.emit(exchanges_.to_experts(layer, j, writer_.rows(normed)), sent, {});
    stream.shared = kNoTensor;
    if (experts && model().experts.shared_width > 0)
      stream.shared = write_shared_experts(writer_, normed, Cut::kNone);
  }

  void take_back(int layer, int j) {
    Stream& stream = streams_[j];
    writer_.begin_block(layer, false);
    const std::int64_t rows = writer_.rows(stream.x);
    TensorId result = builder().transient(rows, model().hidden, DType::kBf16, Role::kExperts);
    writer_.emit(exchanges_.back(layer, j, rows), {}, {result});
    if (stream.shared != kNoTensor) result = writer_.add(result, stream.shared);
    stream.x = writer_.add(stream.x, result);
  }

  void leave(int j) {
    writer_.begin_block(-1, false);
    write_exit(writer_, pass_.shape.job, indices_[j], streams_[j].x);
  }

  const SeparatedPass& pass_;
  const std::vector<BatchPtr>& batches_;
  LoweringInput input_;
  mutable LayerWriter writer_;
  Exchanges exchanges_;
  std::vector<std::int32_t> indices_;  // of the batches in the fragment
  std::vector<Stream> streams_;        // by microbatch
};

class ExpertRank {
 public:
  ExpertRank(const SeparatedPass& pass, int member, ForwardPass& forward)
      : pass_(pass),
        input_(pass.shape.input(pass.decodes)),
        writer_(input_, {.slice = {}, .shard = {.expert = member}}, forward),
        exchanges_(writer_, pass),
        received_(pass.microbatches) {
    set_formats(pass.shape.job.plan, writer_);
  }

  void write() {
    for (int j = 0; j < pass_.microbatches; ++j) take(0, j);
    for (int layer = 0; layer < model().layers; ++layer)
      for (int j = 0; j < pass_.microbatches; ++j) {
        give_back(layer, j);
        if (layer + 1 < model().layers) take(layer + 1, j);
      }
  }

 private:
  struct Received {
    TensorId tokens = kNoTensor, weights = kNoTensor;
  };

  const Model& model() const { return pass_.shape.job.model; }
  FragmentBuilder& builder() { return writer_.builder(); }

  void take(int layer, int j) {
    writer_.begin_block(layer, false);
    const std::int64_t rows = std::max(1, pass_.route(layer, j)->max_received_tokens());
    const DType format = writer_.plan().dispatch;
    Received& received = received_[j];
    received = {builder().transient(rows, model().hidden, format, Role::kExperts), kNoTensor};
    std::vector<TensorId> parts = {received.tokens};
    if (exchanges_.has_experts(layer)) {
      received.weights = builder().transient(rows, model().experts.active, DType::kFp32, Role::kExperts);
      parts.push_back(received.weights);
    }
    writer_.emit(exchanges_.to_experts(layer, j, rows), {}, parts);
  }

  void give_back(int layer, int j) {
    writer_.begin_block(layer, false);
    const Received& received = received_[j];
    const RoutePtr route = pass_.route(layer, j);
    const TensorId result = exchanges_.has_experts(layer)
                                ? write_received(writer_, received.tokens, received.weights, route)
                                : dense(received.tokens, builder().add_route(route));
    writer_.emit(exchanges_.back(layer, j, writer_.rows(received.tokens)), {result}, {});
  }

  // The MLP of a dense layer on the rows that came here.
  TensorId dense(TensorId x, std::int32_t route) {
    const std::int64_t matrices = model().gated ? 2 : 1;
    const TensorId up = product(x, {Role::kGateUp, matrices * model().dense_width, model().hidden}, route);
    return product(writer_.activation(up, model().dense_width),
                   {Role::kDown, model().hidden, model().dense_width}, route);
  }

  TensorId product(TensorId x, const Linear& linear, std::int32_t route) {
    const TensorId operand = writer_.quantised(x, writer_.plan().gemm);
    const TensorId y = builder().transient(writer_.rows(x), linear.out, DType::kBf16, linear.role);
    writer_.emit({.kind = OpKind::kGemm,
                  .dtype = writer_.plan().gemm,
                  .role = linear.role,
                  .route = route,
                  .shape = {.m = writer_.rows(x), .n = linear.out, .k = linear.in}},
                 {operand, writer_.weight(linear, linear.out, linear.in)}, {y});
    return y;
  }

  const SeparatedPass& pass_;
  LoweringInput input_;
  LayerWriter writer_;
  Exchanges exchanges_;
  std::vector<Received> received_;  // by microbatch
};

std::string name_of(const SeparatedPass& pass, const char* side) {
  return fmt::format("{}, {}", pass.decodes ? "decode" : "prefill", side);
}

}  // namespace

FragmentPtr lower_attention_rank(const SeparatedPass& pass, const std::vector<BatchPtr>& batches) {
  ForwardPass forward(name_of(pass, "attention"));
  set_kernels(pass.shape.job.plan, pass.launch, forward.builder);
  AttentionRank(pass, batches, forward).write();
  return forward.builder.freeze_it();
}

FragmentPtr lower_expert_rank(const SeparatedPass& pass, int member) {
  ForwardPass forward(name_of(pass, "experts"));
  set_kernels(pass.shape.job.plan, pass.launch, forward.builder);
  ExpertRank(pass, member, forward).write();
  return forward.builder.freeze_it();
}

}  // namespace moebius
