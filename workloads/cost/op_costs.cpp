#include "workloads/cost/op_costs.h"

#include <algorithm>

#include <fmt/format.h>

#include "hw/error.h"
#include "models/layer_math.h"
#include "workloads/cost/batch_cost.h"
#include "workloads/cost/roofline.h"
#include "workloads/cost/separate_kernels.h"
#include "workloads/cost/unfused_attention.h"
#include "workloads/schedule/host_load.h"
#include "workloads/schedule/op_formats.h"
#include "workloads/schedule/work.h"

namespace moebius {
namespace {

// The op whose kernel a fused one is part of.
const Op& joined_op(const Fragment& fragment, const Op& op) {
  if (const Op* reduction = reduction_read(fragment, op)) return *reduction;
  const Op* before = &op - 1;
  const Op* first = fragment.ops.data();
  while (before >= first && (before->lane != op.lane || is_communication(before->kind))) --before;
  CHECK(before >= first, std::string("a fused op comes first in its lane"));
  return *before;
}

bool is_read_by_others(const Fragment& fragment, std::int32_t tensor, const Op& reader) {
  if (fragment.tensors[tensor].scope != Scope::kFragment) return true;
  return std::any_of(fragment.ops.begin(), fragment.ops.end(), [&](const Op& op) {
    bool reads = false;
    for (int i = 0; i < op.num_inputs; ++i) reads = reads || fragment.input(op, i) == tensor;
    return reads && &op != &reader;
  });
}

// Of a fused op, what does not pass the memory between it and the op before: results that it reads, and their
// writing where nothing else reads them (which is no part of what a collective takes).
double bytes_within(const Fragment& fragment, const Op& op) {
  const Op& before = joined_op(fragment, op);
  double bytes = 0;
  for (int i = 0; i < before.num_outputs; ++i) {
    const std::int32_t tensor = fragment.output(before, i);
    for (int j = 0; j < op.num_inputs; ++j) {
      if (fragment.input(op, j) != tensor) continue;
      const bool written = is_read_by_others(fragment, tensor, op) || is_communication(before.kind);
      bytes += fragment.tensors[tensor].bytes().value * (written ? 1 : 2);
    }
  }
  return bytes;
}

// A product or sum of some rows (workloads/schedule/row_window.h) costs what any of so many rows does.
Shape shape_in_one(OpKind kind, Shape shape) {
  const bool cut = kind == OpKind::kGemm || kind == OpKind::kGemmDgrad || kind == OpKind::kQuantise ||
                   kind == OpKind::kAdd || kind == OpKind::kAbsorbQueries || kind == OpKind::kAbsorbedValues;
  if (cut) shape.groups = 0, shape.kv = 0;
  return shape;
}

}  // namespace

CostQuery query_of(const Fragment& fragment, const Op& op, int cores) {
  return {.kind = op.kind,
          .shape = shape_by_formats(fragment, op),
          .dtype = op.dtype,
          .cores = cores,
          .stored = kept_format(fragment, op),
          .summed = summed_format(fragment, op),
          .for_whole_chip = op.units == 0,
          .promoted_sums = promotes_sums(fragment, op)};
}

const OpCost& OpCosts::find(std::int32_t op, int cores) {
  const auto same = [cores](const AtCores& known) { return known.cores == cores; };
  auto known = std::find_if(costs_.begin(), costs_.end(), same);
  if (known == costs_.end())
    known = costs_.insert(costs_.end(), {cores, std::vector<const OpCost*>(fragment_.ops.size(), nullptr)});
  const Op& asked = fragment_.ops[op];
  OpCost cost = evaluate(asked, cores);
  if (!has_member_rows(asked))
    cost.energy = energy(asked, op_flops(asked, fragment_).value, cost.seconds, cost.memory_bytes);
  known->of_op[op] = &distinct_.the_one_like(cost);
  return *known->of_op[op];
}

OpEnergy OpCosts::energy(const Op& op, double flops, double seconds, double memory_bytes) const {
  if (power_ == nullptr || power_->most() <= 0 || op.lane == Lane::kLoader) return {};
  const DType type = product_dtype(accelerator_, query_of(fragment_, op, 0));
  return energy_of(*power_, {op.kind, type, flops, memory_bytes, seconds});
}

OpCost OpCosts::evaluate(const Op& op, int cores) {
  if (op.lane == Lane::kLoader) {
    const double tokens = static_cast<double>(op.shape.m);
    return {
        loader_ ? loader_->seconds(tokens, op.shape.kv == kFirstLoad) : 0, 0, 1, 1, Origin::kNetwork, 0, 0};
  }
  if (has_member_rows(op)) return slowest_member(op, cores);
  if (op.fused && op.kind == OpKind::kGemm) return further_columns(op, cores);
  CostQuery query = query_of(fragment_, op, cores);
  query.shape = shape_in_one(op.kind, query.shape);
  const Cost cost = depends_on_lengths(op)        ? batch_cost(source_, query, fragment_, op)
                    : is_unfused_attention(query) ? unfused_attention_cost(source_, query)
                    : has_separate_kernels(query) ? separate_kernels_cost(source_, query)
                                                  : source_.cost(query);
  const OpCost alone{cost.seconds, cost.memory_bytes, 1, 1, cost.origin, cost.error, 0};
  return op.fused ? joined(op, alone) : alone;
}

// What an op adds to the kernel of the one before it: no start and end of its own, nothing read that the
// other has in registers, nor written for it alone.
OpCost OpCosts::joined(const Op& op, OpCost cost) const {
  const double saved = bytes_within(fragment_, op);
  const double rate = accelerator_.memory_rate.value * accelerator_.memory_efficiency;
  cost.seconds = std::max(0.0, cost.seconds - accelerator_.kernel_floor.seconds() - saved / rate);
  cost.memory_bytes = std::max(0.0, cost.memory_bytes - saved);
  return cost;
}

// Of a product of two matrices what the second adds to the first.
OpCost OpCosts::further_columns(const Op& op, int cores) const {
  const CostQuery first = query_of(fragment_, joined_op(fragment_, op), cores);
  CostQuery both = first;
  both.shape.n += op.shape.n;
  const Cost alone = source_.cost(first), cost = source_.cost(both);
  return {.seconds = std::max(0.0, cost.seconds - alone.seconds),
          .memory_bytes = std::max(0.0, cost.memory_bytes - alone.memory_bytes),
          .origin = cost.origin,
          .error = cost.error};
}

// A member that received no token still launches its kernel.
Cost OpCosts::member_cost(const Op& op, int member, CostQuery query) const {
  if (fragment_.routes[op.route]->rows_of_rank(member) == 0 && !is_within_exchange(query))
    return {accelerator_.kernel_floor.seconds(), Origin::kRoofline, 0, 0};
  query.shape = member_shape(op, fragment_, member);
  return has_separate_kernels(query) ? separate_kernels_cost(source_, query) : source_.cost(query);
}

OpCost OpCosts::slowest_member(const Op& op, int cores) {
  const OfMembers asked{op.kind,
                        op.shape,
                        op.dtype,
                        kept_format(fragment_, op),
                        summed_format(fragment_, op),
                        fragment_.routes[op.route].get(),
                        cores,
                        op.units == 0};
  for (const auto& [known, cost] : of_members_)
    if (known == asked) return cost;
  return of_members_.emplace_back(asked, find_slowest(op, cores)).second;
}

// The slowest sets the pace, but each draws for its own rows: a product of half of them takes more than half
// as long, for it reads the same weights.
OpCost OpCosts::find_slowest(const Op& op, int cores) const {
  const Route& route = *fragment_.routes[op.route];
  CHECK(!members_.empty(), "an op with a route in a class without an expert group");
  OpCost slowest;
  double least = 0, sum = 0;
  Cost cost;
  OpEnergy drawn, of_all;
  std::vector<std::int32_t> rows, last_rows;
  for (const std::int32_t member : members_) {
    rows.clear();
    for (int expert = 0; expert < route.experts_per_rank(); ++expert)
      rows.push_back(route.rows(member, expert));
    if (rows != last_rows) {
      CostQuery query = query_of(fragment_, op, cores);
      if (is_grouped(op.kind)) query.rows = rows;
      cost = member_cost(op, member, query);
      const double flops = op_flops(op.kind, member_shape(op, fragment_, member)).value;
      drawn = energy(op, flops, cost.seconds, cost.memory_bytes);
      last_rows = rows;
    }
    const bool is_first = member == members_.front();
    if (is_first || cost.seconds > slowest.seconds) {
      slowest = {
          cost.seconds, cost.memory_bytes, 1, 1, cost.origin, cost.error, static_cast<std::int16_t>(member)};
      of_all.follows_clock = drawn.follows_clock;
    }
    of_all.clocked += drawn.clocked;
    of_all.steady += drawn.steady;
    least = is_first ? cost.seconds : std::min(least, cost.seconds);
    sum += cost.seconds;
  }
  if (least == slowest.seconds) {
    slowest.slowest = 0;
  } else {
    slowest.first = least / slowest.seconds;
    slowest.mean = sum / static_cast<double>(members_.size()) / slowest.seconds;
  }
  const auto number = static_cast<double>(members_.size());
  slowest.energy = {of_all.clocked / number, of_all.steady / number, of_all.follows_clock};
  return slowest;
}

}  // namespace moebius
