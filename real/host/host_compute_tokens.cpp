// Compute ops on the CPU where tokens enter and leave a model, and the optimizer.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "hw/error.h"
#include "real/host/adam_operands.h"
#include "real/host/context_rows.h"
#include "real/host/host_kernels_tokens.h"
#include "real/host/op_context.h"
#include "real/token_stream.h"

namespace moebius {
namespace {

// The sequences of a step are dealt out microbatch by microbatch to the data-parallel replicas, so that
// another number of replicas reads the same batch. Context-parallel ranks read chunks of the same sequences;
// the data group counts them fastest (workloads/training/plan.h). Members of a tensor group and all pipeline
// stages read the same.
template <class Real>
void input(OpContext<Real>& c) {
  if (c.op().batch >= 0) return c.op().num_inputs > 0 ? input_of_batch(c) : packed_input(c);
  const Shape& s = c.shape();
  const int context = c.size_of(GroupRole::kContext);
  const GroupRole dealt = c.group(GroupRole::kBatch).ranks.empty() ? GroupRole::kData : GroupRole::kBatch;
  const std::int64_t replicas = c.size_of(dealt) / context;
  const std::int64_t replica = c.index_in(dealt) / context;
  const std::int64_t sequences = std::max(s.groups, 1), rows = s.m / sequences;
  std::vector<Matrix<Real>> streams(c.op().num_outputs, Matrix<Real>(s.m, 1));
  for (std::int64_t i = 0; i < sequences; ++i) {
    const std::int64_t sequence = c.submission().part_of_batch(c.op(), replicas, replica) * sequences + i;
    const auto tokens = token_sequence({c.options().seed, c.submission().step, sequence},
                                       context * rows + c.op().num_outputs, s.n);
    for (const ContextRows::Run& run : ContextRows(c, rows).runs()) {
      for (std::size_t shift = 0; shift < streams.size(); ++shift)
        std::copy_n(tokens.begin() + run.position + shift, run.count,
                    streams[shift].values.begin() + i * rows + run.row);
    }
  }
  for (int i = 0; i < c.op().num_outputs; ++i) c.out(i, std::move(streams[i]));
}

// Vocabularies are cut into equal shards over the tensor group.
template <class Real>
VocabularyShard vocabulary_shard(const OpContext<Real>& c) {
  return {c.index_in(GroupRole::kTensor) * c.shape().n, c.shape().n};
}

template <class Real>
void look_up(OpContext<Real>& c) {
  const Matrix<Real>&tokens = c.in(0), &table = c.in(1);
  Matrix<Real> x(tokens.rows, table.columns);
  embed<Real>(vocabulary_shard(c), tokens.view(), table.view(), x.view());
  c.out(0, std::move(x));
}

template <class Real>
void look_up_back(OpContext<Real>& c) {
  const Matrix<Real>&tokens = c.in(0), &dx = c.in(1);
  c.accumulate(0, [&](Matrix<Real>& dtable) {
    embed_grad<Real>(vocabulary_shard(c), tokens.view(), dx.view(), dtable.view());
  });
}

template <class Real>
void loss_stats(OpContext<Real>& c) {
  const Matrix<Real>&logits = c.in(0), &labels = c.in(1);
  Matrix<Real> stats(labels.rows, 3);
  cross_entropy_stats<Real>(vocabulary_shard(c), logits.view(), labels.view(), stats.view());
  c.out(0, std::move(stats));
}

template <class Real>
double loss(OpContext<Real>& c) {
  const Matrix<Real>&logits = c.in(0), &labels = c.in(1), &stats = c.in(2);
  Matrix<Real> dlogits(logits.rows, logits.columns);
  const std::vector<bool> counted = c.op().batch < 0 ? std::vector<bool>{} : counted_rows(c);
  const double value = cross_entropy<Real>(
      vocabulary_shard(c), {logits.view(), labels.view(), stats.view(), c.op().scale, counted},
      dlogits.view());
  if (!std::isfinite(value)) {
    throw run_error(fmt::format("the loss of step {}, microbatch {} is not finite: lower the learning rate",
                                c.submission().step, c.submission().microbatch_of(c.op())));
  }
  c.accumulate(0, [&](Matrix<Real>& sum) { sum.values[0] += static_cast<Real>(value); });
  c.out(1, std::move(dlogits));
  return value;
}

// The member's own elements of what it holds whole, or holds only its shard of.
template <class Real>
std::span<Real> own_part(const Tensor& tensor, Matrix<Real>& held, const FlatShard& shard) {
  return held.view().subspan(tensor.shards > 0 ? 0 : shard.first, shard.count());
}

template <class Real>
void update_parameter(OpContext<Real>& c, const AdamSettings& settings, const AdamIds& id,
                      const FlatShard& shard) {
  TensorStore<Real>& store = c.store();
  Matrix<Real>&gradient = store.change(id.gradient), &weight = store.change(id.weight);
  const Tensor &of_weight = store.describe(id.weight), &of_gradient = store.describe(id.gradient);
  const bool has_master = id.master != id.weight;
  if (has_master && !store.holds(id.master) && !store.restores_states()) {
    const std::int32_t home = home_of(*c.submission().fragment, id.weight);
    const std::vector<Real> initial = store.initial(store.describe(home));
    std::copy_n(initial.begin() + shard.first, shard.count(), store.change(id.master).values.begin());
  }
  const auto state = [&](std::int32_t tensor) { return store.change(tensor).view().first(shard.count()); };
  const std::span<Real> own = own_part(of_weight, weight, shard);
  const std::span<Real> master = has_master ? state(id.master) : own;
  adam<Real>(settings, c.submission().step + 1, own_part(of_gradient, gradient, shard),
             {master, state(id.first), state(id.second)});
  if (has_master) std::copy(master.begin(), master.end(), own.begin());
  std::fill(gradient.values.begin(), gradient.values.end(), Real(0));
  for (const std::int32_t tensor : {id.weight, id.master, id.first, id.second}) store.written(tensor);
}

}  // namespace

template <class Real>
double compute_tokens(OpContext<Real>& c) {
  const OpKind kind = c.op().kind;
  if (kind == OpKind::kCrossEntropy) return loss(c);
  if (kind == OpKind::kInput) {
    input(c);
  } else if (kind == OpKind::kEmbedding) {
    look_up(c);
  } else if (kind == OpKind::kEmbeddingGrad) {
    look_up_back(c);
  } else {
    CHECK(kind == OpKind::kCrossEntropyStats, fmt::format("{} has no tokens", to_string(kind)));
    loss_stats(c);
  }
  return 0;
}

template <class Real>
void compute_adam(OpContext<Real>& c) {
  const AdamInputs inputs(c);
  AdamSettings settings = c.options().adam;
  if (inputs.clipped()) settings.gradient_scale = clip_factor(c.op().scale, c.in(inputs.squares()).values[0]);
  for (int i = 0; i < inputs.parameters(); ++i) {
    const AdamIds id = inputs.parameter(i);
    update_parameter(c, settings, id, own_shard(c, c.store().describe(id.weight).elements()));
  }
}

template <class Real>
void compute_sum_squares(OpContext<Real>& c) {
  double sum = 0;
  for (int i = 0; i < c.op().num_inputs; ++i) {
    const Tensor& tensor = c.input_tensor(i);
    Matrix<Real>& gradient = c.store().change(c.input_id(i));
    for (const Real g : own_part(tensor, gradient, own_shard(c, tensor.elements())))
      sum += static_cast<double>(g) * g;
  }
  c.accumulate(0, [&](Matrix<Real>& squares) { squares.values[0] += static_cast<Real>(sum * c.op().scale); });
}

template double compute_tokens(OpContext<float>&);
template double compute_tokens(OpContext<double>&);
template void compute_adam(OpContext<float>&);
template void compute_adam(OpContext<double>&);
template void compute_sum_squares(OpContext<float>&);
template void compute_sum_squares(OpContext<double>&);

}  // namespace moebius
