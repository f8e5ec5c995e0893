// Compute ops on the CPU: operands in the order of the table in models/op_kind.h, kernels from
// host_kernels_*.
#include <algorithm>

#include <fmt/format.h>

#include "hw/error.h"
#include "real/host/context_rows.h"
#include "real/host/gemm.h"
#include "real/host/host_kernels_mlp.h"
#include "real/host/host_kernels_norm.h"
#include "real/host/op_context.h"
#include "real/rounding.h"

namespace moebius {
namespace {

template <class Real>
MatrixView<Real> view(const Matrix<Real>& m) {
  return row_major<Real>(m.view(), m.rows, m.columns);
}

// A bias, that the product is added to.
template <class Real>
void put_in_rows(const Matrix<Real>& bias, Matrix<Real>& y) {
  CHECK(std::ssize(bias.values) == y.columns,
        fmt::format("a bias of {} for {} columns", bias.values.size(), y.columns));
  for (std::int64_t row = 0; row < y.rows; ++row)
    std::copy(bias.values.begin(), bias.values.end(), y.row(row));
}

template <class Real>
void add_column_sums(const Matrix<Real>& x, Matrix<Real>& sums) {
  for (std::int64_t row = 0; row < x.rows; ++row)
    for (std::int64_t column = 0; column < x.columns; ++column) sums.values[column] += x.row(row)[column];
}

template <class Real>
void gemm(OpContext<Real>& c) {
  const Matrix<Real>&x = c.in(0), &w = c.in(1);
  Matrix<Real> y(x.rows, w.rows);
  if (c.op().num_inputs > 2) put_in_rows(c.in(2), y);
  add_product(view(x), view(w).transposed(), y.view());
  c.out(0, std::move(y));
}

template <class Real>
void gemm_dgrad(OpContext<Real>& c) {
  const Matrix<Real>&dy = c.in(0), &w = c.in(1);
  Matrix<Real> dx(dy.rows, w.columns);
  add_product(view(dy), view(w), dx.view());
  c.out(0, std::move(dx));
}

template <class Real>
void gemm_wgrad(OpContext<Real>& c) {
  const Matrix<Real>&dy = c.in(0), &x = c.in(1);
  c.accumulate(0, [&](Matrix<Real>& dw) { add_product(view(dy).transposed(), view(x), dw.view()); });
  if (c.op().num_outputs > 1) c.accumulate(1, [&](Matrix<Real>& db) { add_column_sums(dy, db); });
}

// With scales along the columns.
template <class Real>
void write_by_columns(OpContext<Real>& c, int output, Matrix<Real> x) {
  const Tensor& copy = c.output_tensor(output);
  if (copy.scaling == Scaling::kTensor)
    return c.out(output, std::move(x));  // one scale, whatever the direction
  if (!c.options().exact)
    round_matrix_by_columns<Real>(x.values, x.rows, x.columns, copy.dtype, scale_format(copy.scaling));
  // Of a piece the rows are those of the first copy.
  if (const auto window = row_window(*c.submission().fragment, c.op(), c.op().num_inputs))
    return c.store().write_rounded_rows(c.output_id(output), *window, x);
  c.store().write_unrounded(c.output_id(output), std::move(x));
}

// Of a result in 8 bits, where the schedule asks for them.
template <class Real>
void write_copies(OpContext<Real>& c, const Matrix<Real>& y) {
  if (c.op().num_outputs > 1) c.out(1, y);
  if (c.op().num_outputs > 2) write_by_columns(c, 2, y);
}

// Of queries or keys, of a tensor with both.
template <class Real>
std::vector<double> known_means(OpContext<Real>& c, int input) {
  const Matrix<Real>& both = c.in(input);
  std::vector<double> means;
  for (std::int64_t row = 0; row < both.rows; ++row) means.push_back(both.row(row)[c.shape().kv_heads]);
  return means;
}

template <class Real>
void norm(OpContext<Real>& c) {
  const Matrix<Real>& x = c.in(0);
  const double epsilon = c.options().constants.norm_epsilon;
  Matrix<Real> y(x.rows, x.columns);
  if (c.shape().k == kOfSharedRows) {
    rms_norm<Real>(x.view(), c.in(1).view(), known_means(c, 2), y.view(), epsilon);
  } else {
    rms_norm<Real>(x.view(), c.in(1).view(), y.view(), epsilon);
  }
  if (c.shape().k == 1) gate_by_silu<Real>(c.in(2).view(), y.view());
  write_copies(c, y);
  c.out(0, std::move(y));
}

template <class Real>
void norm_grad(OpContext<Real>& c) {
  const Matrix<Real>&dy = c.in(0), &x = c.in(1);
  Matrix<Real> dx(x.rows, x.columns);
  const auto add_to = [&](Matrix<Real>& dw) {
    const NormGradient<Real> gradient{dx.view(), dw.view()};
    const double epsilon = c.options().constants.norm_epsilon;
    if (c.shape().k != kOfSharedRows)
      return rms_norm_grad<Real>(dy.view(), x.view(), c.in(2).view(), gradient, epsilon);
    const std::vector<double> squares = known_means(c, 3), projections = known_means(c, 4);
    rms_norm_grad<Real>(dy.view(), x.view(), c.in(2).view(), KnownMeans{squares, projections}, gradient,
                        epsilon);
  };
  if (c.op().num_outputs > 1) {
    c.accumulate(1, add_to);
  } else {  // of a norm whose weights are frozen
    Matrix<Real> unread(1, c.in(2).columns);
    add_to(unread);
  }
  c.out(0, std::move(dx));
}

template <class Real>
void row_means(OpContext<Real>& c) {
  const int step = c.shape().k == 1 ? 3 : 1, count = c.op().num_inputs / step;
  Matrix<Real> means(c.in(0).rows, count);
  for (int i = 0; i < count; ++i) {
    const Matrix<Real>& first = c.in(step * i);
    const std::vector<double> found =
        step == 1
            ? mean_squares<Real>(first.view(), first.columns)
            : mean_projections<Real>(first.view(), c.in(step * i + 1).view(), c.in(step * i + 2).view());
    for (std::int64_t row = 0; row < means.rows; ++row)
      means.row(row)[i] = static_cast<Real>(found[row] * c.op().scale);
  }
  c.out(0, std::move(means));
}

template <class Real>
ActivationShape activation_shape(const OpContext<Real>& c) {
  return {c.shape().n, c.shape().k == 2 ? ActivationForm::kGated : ActivationForm::kPlain};
}

template <class Real>
void activate(OpContext<Real>& c) {
  const Matrix<Real>& x = c.in(0);
  if (c.shape().k == 3 || c.shape().k == kGateOfRows) {
    Matrix<Real> gated = x;
    gate_by_sigmoid<Real>(c.in(1).view(), gated.view());
    return c.out(0, std::move(gated));
  }
  const std::span<const Real> weight = c.op().num_inputs > 1 ? c.in(1).view() : std::span<const Real>();
  Matrix<Real> y(x.rows, c.shape().n);
  activation<Real>(activation_shape(c), x.view(), weight, y.view());
  write_copies(c, y);
  c.out(0, std::move(y));
}

template <class Real>
void gate_rows_back(OpContext<Real>& c) {
  const Matrix<Real>&x = c.in(1), &z = c.in(2);
  Matrix<Real> dx(x.rows, x.columns), dz(z.rows, z.columns);
  gate_by_sigmoid_grad<Real>({c.in(0).view(), x.view(), z.view()}, dx.view(), dz.view());
  c.out(0, std::move(dx));
  c.out(1, std::move(dz));
}

template <class Real>
void activate_back(OpContext<Real>& c) {
  if (c.shape().k == kGateOfRows) return gate_rows_back(c);
  const Matrix<Real>&dy = c.in(0), &x = c.in(1);
  const bool weighted = c.op().num_inputs > 2;
  const std::span<const Real> weight = weighted ? c.in(2).view() : std::span<const Real>();
  Matrix<Real> dx(x.rows, x.columns), dweight(weighted ? x.rows : 0, 1);
  activation_grad<Real>(activation_shape(c), {dy.view(), x.view(), weight}, dx.view(), dweight.view());
  c.out(0, std::move(dx));
  if (c.op().num_outputs > 1) c.out(1, std::move(dweight));
}

template <class Real>
void add(OpContext<Real>& c) {
  if (c.shape().k == kMergeAttention) return merge_attention(c);
  Matrix<Real> sum = c.in(0);
  const Matrix<Real>& b = c.in(1);
  CHECK(sum.values.size() == b.values.size(), fmt::format("{} + {}", sum.values.size(), b.values.size()));
  for (std::size_t i = 0; i < b.values.size(); ++i) sum.values[i] += b.values[i];
  c.out(0, std::move(sum));
}

template <class Real>
void split(OpContext<Real>& c) {
  const Matrix<Real>& x = c.in(0);
  if (const Tensor& shard = c.output_tensor(0); shard.shards > 0) {
    Matrix<Real> own(shard.held_rows(), 1);
    own.values = cut_shard(x.values, shard, c.index_in(shard.cut));
    return c.out(0, std::move(own));
  }
  std::int64_t first = 0;
  for (int i = 0; i < c.op().num_outputs; ++i) {
    Matrix<Real> part(x.rows, c.output_tensor(i).columns);
    for (std::int64_t r = 0; r < x.rows; ++r) std::copy_n(x.row(r) + first, part.columns, part.row(r));
    first += part.columns;
    c.out(i, std::move(part));
  }
  CHECK(first == x.columns, fmt::format("{} of {} columns", first, x.columns));
}

template <class Real>
void concat(OpContext<Real>& c) {
  Matrix<Real> x(c.in(0).rows, c.output_tensor(0).columns);
  std::int64_t first = 0;
  for (int i = 0; i < c.op().num_inputs; ++i) {
    const Matrix<Real>& part = c.in(i);
    CHECK(first + part.columns <= x.columns, fmt::format("{} columns", x.columns));
    for (std::int64_t r = 0; r < x.rows; ++r) std::copy_n(part.row(r), part.columns, x.row(r) + first);
    first += part.columns;
  }
  c.out(0, std::move(x));
}

// Some rows of a tensor with one scale, whose largest magnitudes all members have found of their own rows.
template <class Real>
bool is_piece_of_scaled(OpContext<Real>& c) {
  return c.shape().groups > 0 && c.op().num_inputs == 2;
}

template <class Real>
void quantise_piece(OpContext<Real>& c) {
  Matrix<Real> x = c.in(0);
  Real most = 0;
  for (const Real largest : c.in(1).values) most = std::max(most, largest);
  if (!c.options().exact) round_by<Real>(x.values, most, c.output_tensor(0).dtype);
  const auto window = row_window(*c.submission().fragment, c.op(), c.op().num_inputs);
  for (int i = 0; i < c.op().num_outputs; ++i)
    c.store().write_rounded_rows(c.output_id(i), *window, x);  // either way the same values
}

// Of what stores with one scale for the tensor find by themselves.
template <class Real>
void largest(OpContext<Real>& c) {
  Matrix<Real> number(1, 1);
  for (const Real value : c.in(0).values)
    number.values[0] = std::max(number.values[0], static_cast<Real>(std::abs(value)));
  c.out(0, std::move(number));
}

}  // namespace

FlatShard flat_shard(std::int64_t elements, int size, int index) {
  const std::int64_t shard = (elements + size - 1) / size;
  return {std::min(elements, index * shard), std::min(elements, (index + 1) * shard)};
}

const RoutePlan& RoutePlans::get(const RoutePtr& route, int member) {
  constexpr std::size_t kKept =
      256;  // more than the layers of a stage; popularity that changes would pile them up
  const auto found = plans_.find(route.get());
  if (found != plans_.end()) return found->second.second;
  if (plans_.size() >= kKept) plans_.clear();
  return plans_.emplace(route.get(), std::pair{route, plan_route(*route, member)}).first->second.second;
}

void RoutePlans::put(const RoutePtr& route, RoutePlan plan) {
  plans_[route.get()] = {route, std::move(plan)};
}

template <class Real>
double compute(OpContext<Real>& c) {
  switch (c.op().kind) {
    case OpKind::kGemm:
      gemm(c);
      return 0;
    case OpKind::kGemmDgrad:
      gemm_dgrad(c);
      return 0;
    case OpKind::kGemmWgrad:
      gemm_wgrad(c);
      return 0;
    case OpKind::kNorm:
      norm(c);
      return 0;
    case OpKind::kNormGrad:
      norm_grad(c);
      return 0;
    case OpKind::kRowMeans:
      row_means(c);
      return 0;
    case OpKind::kActivation:
      activate(c);
      return 0;
    case OpKind::kActivationGrad:
      activate_back(c);
      return 0;
    case OpKind::kAdd:
      add(c);
      return 0;
    case OpKind::kSplit:
      split(c);
      return 0;
    case OpKind::kConcat:
      concat(c);
      return 0;
    case OpKind::kLargest:
      largest(c);
      return 0;
    case OpKind::kQuantise:
      if (is_piece_of_scaled(c)) return quantise_piece(c), 0;
      c.out(0, c.in(0));  // rounded as it is stored
      if (c.op().num_outputs == 2) write_by_columns(c, 1, c.in(0));
      return 0;
    case OpKind::kTransposeQuantise:
      write_by_columns(c, 0, c.in(0));
      return 0;
    case OpKind::kAdam:
      compute_adam(c);
      return 0;
    case OpKind::kSumSquares:
      compute_sum_squares(c);
      return 0;
    case OpKind::kRotary:
    case OpKind::kRotaryGrad:
    case OpKind::kAttention:
    case OpKind::kAttentionGrad:
    case OpKind::kMlaKeys:
    case OpKind::kMlaKeysGrad:
      compute_attention(c);
      return 0;
    case OpKind::kGroupedGemm:
    case OpKind::kGroupedGemmDgrad:
    case OpKind::kGroupedGemmWgrad:
    case OpKind::kGate:
    case OpKind::kGateGrad:
    case OpKind::kPermute:
    case OpKind::kPermuteGrad:
    case OpKind::kUnpermute:
    case OpKind::kUnpermuteGrad:
      compute_routed(c);
      return 0;
    case OpKind::kInput:
    case OpKind::kEmbedding:
    case OpKind::kEmbeddingGrad:
    case OpKind::kCrossEntropyStats:
    case OpKind::kCrossEntropy:
      return compute_tokens(c);
    case OpKind::kCacheAppend:
    case OpKind::kPagedAttention:
    case OpKind::kIndexScores:
    case OpKind::kTopKeys:
    case OpKind::kAbsorbQueries:
    case OpKind::kAbsorbedValues:
    case OpKind::kConvolution:
    case OpKind::kDeltaRule:
    case OpKind::kLastRows:
    case OpKind::kGreedySample:
    case OpKind::kNextToken:
    case OpKind::kPlaceExperts:
      compute_batch(c);
      return 0;
    case OpKind::kDispatch:
    case OpKind::kCombine:
    case OpKind::kAllReduce:
    case OpKind::kReduceScatter:
    case OpKind::kAllGather:
    case OpKind::kBroadcast:
    case OpKind::kAllToAll:
    case OpKind::kSend:
    case OpKind::kRecv:
    case OpKind::kCopyToHost:
    case OpKind::kCopyFromHost:
      break;
  }
  CHECK(false, fmt::format("{} does not compute", to_string(c.op().kind)));
}

template double compute(OpContext<float>&);
template double compute(OpContext<double>&);

}  // namespace moebius
