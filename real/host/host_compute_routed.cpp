// Compute ops of routed experts on the CPU.
#include <algorithm>

#include <fmt/format.h>

#include "hw/error.h"
#include "real/host/gemm.h"
#include "real/host/host_kernels_mlp.h"
#include "real/host/op_context.h"

namespace moebius {
namespace {

// Calls visit(expert, first row, rows) for each local expert that has rows.
template <class Visit>
void for_each_expert(const RoutePlan& route, const Visit& visit) {
  std::int64_t first = 0;
  for (std::size_t expert = 0; expert < route.expert_rows.size(); ++expert) {
    const std::int64_t rows = route.expert_rows[expert];
    if (rows > 0) visit(static_cast<std::int64_t>(expert), first, rows);
    first += rows;
  }
}

// Rows [first, first+rows) of a matrix.
template <class Real>
MatrixView<Real> some_rows(const Matrix<Real>& m, std::int64_t first, std::int64_t rows) {
  return {m.row(first), rows, m.columns, m.columns, 1};
}

template <class Real>
void check_rows(const RoutePlan& route, const Matrix<Real>& x) {
  CHECK(x.rows == static_cast<std::int64_t>(route.copy_row.size()),
        fmt::format("{} rows, the route brings {}", x.rows, route.copy_row.size()));
}

// y = x W^T (forward) or x W (gradient), expert by expert.
template <class Real>
void grouped_gemm(OpContext<Real>& c, bool transposed) {
  const Matrix<Real>&x = c.in(0), &w = c.in(1);
  const RoutePlan& route = c.route();
  check_rows(route, x);
  const std::int64_t weight_rows = w.rows / static_cast<std::int64_t>(route.expert_rows.size());
  Matrix<Real> y(x.rows, transposed ? weight_rows : w.columns);
  for_each_expert(route, [&](std::int64_t expert, std::int64_t first, std::int64_t rows) {
    const MatrixView<Real> weight = some_rows(w, expert * weight_rows, weight_rows);
    add_product(some_rows(x, first, rows), transposed ? weight.transposed() : weight,
                y.view().subspan(first * y.columns, rows * y.columns));
  });
  c.out(0, std::move(y));
}

template <class Real>
void grouped_wgrad(OpContext<Real>& c) {
  const Matrix<Real>&dy = c.in(0), &x = c.in(1);
  const RoutePlan& route = c.route();
  check_rows(route, x);
  c.accumulate(0, [&](Matrix<Real>& dw) {
    const std::int64_t size = dy.columns * x.columns;
    for_each_expert(route, [&](std::int64_t expert, std::int64_t first, std::int64_t rows) {
      add_product(some_rows(dy, first, rows).transposed(), some_rows(x, first, rows),
                  dw.view().subspan(expert * size, size));
    });
  });
}

template <class Real>
GateShape gate_shape(const OpContext<Real>& c) {
  return {c.shape().n, c.shape().k, c.shape().groups == 1, c.op().scale};
}

template <class Real>
void gate_experts(OpContext<Real>& c) {
  const Matrix<Real>& logits = c.in(0);
  Matrix<Real> weights(logits.rows, c.shape().k);
  gate<Real>(gate_shape(c), logits.view(), c.route().choices, weights.view());
  c.out(0, std::move(weights));
}

template <class Real>
void gate_back(OpContext<Real>& c) {
  const Matrix<Real>&dweights = c.in(0), &logits = c.in(1);
  Matrix<Real> dlogits(logits.rows, logits.columns);
  gate_grad<Real>(gate_shape(c), {dweights.view(), logits.view(), c.route().choices}, dlogits.view());
  c.out(0, std::move(dlogits));
}

// Copy i of a received row: rows by expert.
template <class Real>
Matrix<Real> copies_of(const RoutePlan& route, const Matrix<Real>& received) {
  Matrix<Real> copies(static_cast<std::int64_t>(route.copy_row.size()), received.columns);
  for (std::int64_t i = 0; i < copies.rows; ++i) {
    std::copy_n(received.row(route.copy_row[i]), received.columns, copies.row(i));
  }
  return copies;
}

template <class Real>
Matrix<Real> sum_of_copies(const RoutePlan& route, const Matrix<Real>& copies) {
  check_rows(route, copies);
  Matrix<Real> received(route.received, copies.columns);
  for (std::int64_t i = 0; i < copies.rows; ++i) {
    Real* row = received.row(route.copy_row[i]);
    for (std::int64_t c = 0; c < copies.columns; ++c) row[c] += copies.row(i)[c];
  }
  return received;
}

template <class Real>
void permute(OpContext<Real>& c) {
  const RoutePlan& route = c.route();
  c.out(0, copies_of(route, c.in(0)));
  if (c.op().num_outputs < 2) return;
  const Matrix<Real>& received = c.in(1);
  Matrix<Real> weights(static_cast<std::int64_t>(route.copy_row.size()), 1);
  for (std::int64_t i = 0; i < weights.rows; ++i)
    weights.values[i] = received.row(route.copy_row[i])[route.copy_slot[i]];
  c.out(1, std::move(weights));
}

template <class Real>
void permute_back(OpContext<Real>& c) {
  const RoutePlan& route = c.route();
  c.out(0, sum_of_copies(route, c.in(0)));
  if (c.op().num_outputs < 2) return;
  const Matrix<Real>& dweights = c.in(1);
  Matrix<Real> received(route.received, route.active);
  for (std::int64_t i = 0; i < dweights.rows; ++i)
    received.row(route.copy_row[i])[route.copy_slot[i]] = dweights.values[i];
  c.out(1, std::move(received));
}

}  // namespace

template <class Real>
void compute_routed(OpContext<Real>& c) {
  const OpKind kind = c.op().kind;
  if (kind == OpKind::kGroupedGemm) return grouped_gemm(c, true);
  if (kind == OpKind::kGroupedGemmDgrad) return grouped_gemm(c, false);
  if (kind == OpKind::kGroupedGemmWgrad) return grouped_wgrad(c);
  if (kind == OpKind::kGate) return gate_experts(c);
  if (kind == OpKind::kGateGrad) return gate_back(c);
  if (kind == OpKind::kPermute) return permute(c);
  if (kind == OpKind::kPermuteGrad) return permute_back(c);
  if (kind == OpKind::kUnpermute) return c.out(0, sum_of_copies(c.route(), c.in(0)));
  CHECK(kind == OpKind::kUnpermuteGrad, fmt::format("{} is not routed", to_string(kind)));
  c.out(0, copies_of(c.route(), c.in(0)));
}

template void compute_routed(OpContext<float>&);
template void compute_routed(OpContext<double>&);

}  // namespace moebius
