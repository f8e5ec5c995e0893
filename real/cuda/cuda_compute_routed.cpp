// Compute ops of routed experts on a device.
#include <fmt/format.h>

#include "hw/error.h"
#include "real/cuda/device_op.h"

namespace moebius::cuda {
namespace {

// Calls visit(expert, first row, rows) for each local expert that has rows.
template <class Visit>
void for_each_expert(const RoutePlan& plan, const Visit& visit) {
  std::int64_t first = 0;
  for (std::size_t expert = 0; expert < plan.expert_rows.size(); ++expert) {
    const std::int64_t rows = plan.expert_rows[expert];
    if (rows > 0) visit(static_cast<std::int64_t>(expert), first, rows);
    first += rows;
  }
}

void check_rows(const DeviceRoute& route, const Operand& x) {
  CHECK(x.rows == route.copies(), fmt::format("{} rows, the route brings {}", x.rows, route.copies()));
}

// 8 bits by warpgroups, where they take the product with operands that are transposed before.
bool multiply_turned(DeviceOp& c, GroupedGemm all) {
  const Gemm& g = all.product;
  if (const auto turned = turned_form(all)) {
    const Operand w = g.b, &like = turned->product.b;
    all = *turned;
    all.product.b = c.make(like.rows, like.columns, like.storage, like.period)->operand;
    turn_experts(c.stream(), w, all.product.b);
    grouped_gemm(c.stream(), all);
    return true;
  }
  if (!warpgroups_take_turned_rows(all)) return false;
  const auto turn = [&](const Operand& x) {
    auto* codes = static_cast<std::uint8_t*>(c.scratch((turned_bytes(all, x) + 3) / 4, 1).data);
    turn_rows(c.stream(), all, x, codes);
    return codes;
  };
  const std::uint8_t* a = turn(g.a);
  grouped_gemm_of_turned_rows(c.stream(), all, {a, turn(g.b)});
  return true;
}

// Of experts with many rows each the library's products share operands between multiprocessors, and their
// launches no longer show: on an H200, 8 experts of 2,048 rows by 1,024 x 2,048 take 127 us one by one and
// 151 us in one launch, 16 of 128 rows 118 and 38 us.
bool library_is_faster(DeviceOp& c, const Gemm& product) {
  constexpr std::int64_t kRows = 1024;
  return c.rank().library != nullptr && !is_scaled(product.a.storage) &&
         c.route().copies() >= kRows * c.route().num_experts();
}

// All experts in one launch, where that is the way: what was asked for, else where warpgroups take it.
bool multiply_grouped(DeviceOp& c, const Gemm& product) {
  if (!c.options().tensor_cores || !tensor_cores_take(product)) return false;
  const bool grouped = grouped_path(c.options(), product) == GroupedPath::kGrouped;
  if (c.options().grouped && !grouped) return false;
  const DeviceRoute& route = c.route();
  const GroupedGemm all{.product = product,
                        .groups = route.num_experts(),
                        .first_row = route.expert_row(),
                        .first_tile = route.expert_tile(),
                        .row_tiles = route.num_tiles()};
  if (multiply_turned(c, all)) return true;
  if (!grouped && (!warpgroups_take(all) || library_is_faster(c, product))) return false;
  grouped_gemm(c.stream(), all);
  return true;
}

// One product after the other, perhaps as one graph.
template <class Product>
void multiply_each(DeviceOp& c, const Gemm& all, const Product& product_of) {
  const bool graph = grouped_path(c.options(), all) == GroupedPath::kGraph && !is_scaled(all.a.storage) &&
                     c.route().copies() > 0;
  reserve_workspace(c);
  if (graph) begin_capture(c.stream());
  for_each_expert(c.route().plan(), [&](std::int64_t expert, std::int64_t first, std::int64_t rows) {
    multiply(c, product_of(expert, first, rows));
  });
  const Op& op = c.op();
  if (graph)
    launch_captured(c.stream(),
                    c.rank().graphs[{static_cast<int>(op.kind), op.layer, static_cast<int>(op.role)}]);
}

// y = x W^T (forward) or x W (gradient), a product for each expert.
void grouped_gemm(DeviceOp& c, bool transposed) {
  const Operand x = c.in(0), w = c.in(1);
  const RoutePlan& plan = c.route().plan();
  check_rows(c.route(), x);
  const std::int64_t weight_rows = w.rows / static_cast<std::int64_t>(plan.expert_rows.size());
  const Operand y = c.out(0, x.rows, transposed ? weight_rows : w.columns);
  const Gemm all{.a = x, .b = w, .c = y, .b_transposed = transposed};
  if (multiply_grouped(c, all)) return;
  multiply_each(c, all, [&](std::int64_t expert, std::int64_t first, std::int64_t rows) {
    return Gemm{.a = x.some_rows(first, rows),
                .b = w.some_rows(expert * weight_rows, weight_rows),
                .c = y.some_rows(first, rows),
                .b_transposed = transposed};
  });
}

void grouped_wgrad(DeviceOp& c) {
  const Operand dy = c.in(0), x = c.in(1), dw = c.edit(0);
  check_rows(c.route(), x);
  const Gemm all{.a = dy, .b = x, .c = dw, .a_transposed = true, .accumulate = true};
  if (multiply_grouped(c, all)) return;
  multiply_each(c, all, [&](std::int64_t expert, std::int64_t first, std::int64_t rows) {
    return Gemm{.a = dy.some_rows(first, rows),
                .b = x.some_rows(first, rows),
                .c = dw.some_rows(expert * dy.columns, dy.columns),
                .a_transposed = true,
                .accumulate = true};
  });
}

Gate gate_of(DeviceOp& c, const Operand& logits) {
  return {.logits = logits,
          .choices = c.route().choices(),
          .active = c.shape().k,
          .sigmoid = c.shape().groups == 1,
          .scale = c.op().scale};
}

void gate_experts(DeviceOp& c) {
  const Operand logits = c.in(0);
  gate(c.stream(), gate_of(c, logits), c.out(0, logits.rows, c.shape().k));
}

void gate_back(DeviceOp& c) {
  const Operand dweights = c.in(0), logits = c.in(1);
  gate_grad(c.stream(), gate_of(c, logits), dweights, c.out(0, logits));
}

// Copy i of a received row, in its format where the output has the same: rows by expert.
void copy_rows(DeviceOp& c) {
  const Operand x = c.in(0);
  const bool same = storage_of(c.output_tensor(0).dtype) == x.storage;
  const std::int64_t copies = c.route().copies();
  gather_rows(c.stream(), x, c.route().copy_row(),
              same ? c.out_stored(0, copies, x.columns, x.storage) : c.out(0, copies, x.columns));
}

void sum_copies(DeviceOp& c) {
  const Operand x = c.in(0);
  const RoutePlan& plan = c.route().plan();
  check_rows(c.route(), x);
  sum_rows(c.stream(), x, c.route().row_copies(), plan.active, c.out(0, plan.received, x.columns));
}

void permute(DeviceOp& c) {
  copy_rows(c);
  if (c.op().num_outputs < 2) return;
  const DeviceRoute& route = c.route();
  gather_slots(c.stream(), c.in(1), route.copy_row(), route.copy_slot(), c.out(1, route.copies(), 1));
}

void permute_back(DeviceOp& c) {
  sum_copies(c);
  if (c.op().num_outputs < 2) return;
  const RoutePlan& plan = c.route().plan();
  scatter_slots(c.stream(), c.in(1), c.route().slot_copy(), c.out(1, plan.received, plan.active));
}

}  // namespace

void compute_routed(DeviceOp& c) {
  const OpKind kind = c.op().kind;
  if (kind == OpKind::kGroupedGemm) return grouped_gemm(c, true);
  if (kind == OpKind::kGroupedGemmDgrad) return grouped_gemm(c, false);
  if (kind == OpKind::kGroupedGemmWgrad) return grouped_wgrad(c);
  if (kind == OpKind::kGate) return gate_experts(c);
  if (kind == OpKind::kGateGrad) return gate_back(c);
  if (kind == OpKind::kPermute) return permute(c);
  if (kind == OpKind::kPermuteGrad) return permute_back(c);
  if (kind == OpKind::kUnpermute) return sum_copies(c);
  CHECK(kind == OpKind::kUnpermuteGrad, fmt::format("{} is not routed", to_string(kind)));
  copy_rows(c);
}

}  // namespace moebius::cuda
