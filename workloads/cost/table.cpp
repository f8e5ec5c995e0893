#include "workloads/cost/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "hw/error.h"
#include "workloads/cost/fused_quantise.h"
#include "workloads/cost/measured_table.h"
#include "workloads/cost/roofline.h"
#include "workloads/cost/uneven_experts.h"
#include "workloads/cost/windowed_attention.h"

namespace moebius {
namespace {

constexpr double kReach = 2.7725887222397811;  // ln 16: beyond it the model alone is better advised
constexpr double kNear =
    0.69314718055994529;           // ln 2: a table whose axes begin farther away gives way to another
constexpr double kAnywhere = 1e9;  // however far behind a question the axes begin
constexpr float kRepeat = 0.02F;   // two measurements of the same kernel differ by so much

// One question to one table.
class LookUp {
 public:
  LookUp(const MeasuredTable& table, const Position& position, const AnalyticModel& chip,
         const CostQuery& query, Clocks clocks)
      : table_(table), position_(position), chip_(chip), clocks_(clocks), even_(query) {
    even_.fused_quantise = table.passes() > 0;
    here_ = model(even_.shape);
  }

  double model_seconds() const { return here_; }  // of the question, as table.model_seconds() says it

  // Between grid points the model is stretched so that it meets the (transferred) measurements at both ends.
  double seconds() {
    std::array<double, kMostProfileAxes> high_weight{};
    open_ = 0;
    for (std::size_t i = 0; i < axes().size(); ++i) high_weight[i] = weight(i);
    double sum = 0;
    for (std::size_t corner = 0; corner < std::size_t{1} << axes().size(); ++corner) {
      double share = 1;
      for (std::size_t i = 0; i < axes().size(); ++i)
        share *= (corner >> i & 1) != 0 ? high_weight[i] : 1 - high_weight[i];
      if (share > 0) sum += share * corner_seconds(corner);
    }
    return sum;
  }

 private:
  const std::vector<ProfileAxis>& axes() const { return table_.data().axes; }

  double model(const Shape& shape) const {
    CostQuery query = even_;
    query.shape = shape;
    return table_.model_seconds(chip_, query, clocks_);
  }

  Shape moved(const Shape& shape, std::size_t axis, std::size_t point) const {
    return with_profile_key(axes()[axis].key, even_.kind, shape, axes()[axis].points[point],
                            table_.kv_follows());
  }

  // Of the upper point of an axis: where the model's time stands between those of both points.
  double weight(std::size_t axis) {
    const Cell& cell = position_.cells[axis];
    if (cell.low == cell.high) return 0;
    ++open_;
    const double low = ends_[0] = model(moved(even_.shape, axis, cell.low));
    const double high = ends_[1] = model(moved(even_.shape, axis, cell.high));
    if (high > low * (1 + 1e-9)) return std::clamp((here_ - low) / (high - low), 0.0, 1.0);
    const double value = profile_key(axes()[axis].key, even_.kind, even_.shape);
    const std::vector<double>& points = axes()[axis].points;
    return std::log(value / points[cell.low]) / std::log(points[cell.high] / points[cell.low]);
  }

  // The model at a corner of the cell, corrected by what was measured there. Off the grid the question's own
  // value stays.
  double corner_seconds(std::size_t corner) const {
    Shape shape = even_.shape;
    std::size_t grid_point = 0, end = 0;
    for (std::size_t i = 0; i < axes().size(); ++i) {
      const Cell& cell = position_.cells[i];
      const std::size_t side = corner >> i & 1, point = side != 0 ? cell.high : cell.low;
      grid_point = grid_point * axes()[i].points.size() + point;
      if (cell.low == cell.high) continue;
      end = side;
      if (open_ > 1) shape = moved(shape, i, point);
    }
    const double there = open_ == 0 ? here_ : open_ == 1 ? ends_[end] : model(shape);
    return there * table_.correction(position_, grid_point);
  }

  const MeasuredTable& table_;
  const Position& position_;
  const AnalyticModel& chip_;
  Clocks clocks_;
  CostQuery even_;
  double here_ = 0;                  // the model's, of the question itself
  int open_ = 0;                     // axes on which it stands between two points
  std::array<double, 2> ends_ = {};  // the model's at both, where that is one axis
};

// What the rows kept out say of a table; few rows prove little, so they are joined by as many as five of the
// model's own.
float table_error(const HeldOut& held_out, float model_error) {
  constexpr float kPriorRows = 5;
  const auto rows = static_cast<float>(held_out.rows);
  return (rows * static_cast<float>(held_out.mean) + kPriorRows * model_error) / (rows + kPriorRows);
}

// A grid point under the conditions of the measurement is that measurement; beyond the table trust is halved.
void judge(Cost& cost, const MeasuredTable& table, const Position& position, const CostQuery& query,
           Clocks clocks, float model_error) {
  const float error = std::max(kRepeat, table_error(table.data().held_out, model_error));
  const bool same = query.cores == table.data().cores && clocks == table.clocks() && query.rows.empty() &&
                    query.fused_quantise == (table.passes() > 0) && query.hot == table.data().hot;
  if (position.exact && same) {
    cost.origin = Origin::kMeasured;
    cost.error = kRepeat;
  } else {
    cost.origin = position.inside ? Origin::kInterpolated : Origin::kExtrapolated;
    cost.error = position.inside ? error : 2 * error;
  }
}

// One question with evenly loaded experts, or without experts: what a table tells of it and what the model.
struct Told {
  double seconds, model;
};

// Queries that see keys before their own, of a table of whole sequences.
bool sees_earlier_keys(const MeasuredTable& table, const CostQuery& query) {
  const Shape& s = query.shape;
  return is_attention(query.kind) && table.kv_follows() && s.kv > s.m / std::max(1, s.groups);
}

Told told_of_even(const MeasuredTable& table, const AnalyticModel& chip, const CostQuery& query,
                  Clocks clocks);

// What a short sequence takes beside the model's time is its start and its end, which earlier keys do not
// lengthen: the passes over those take what they take in a sequence of as many keys.
Told told_of_chunk(const MeasuredTable& table, const AnalyticModel& chip, const CostQuery& query,
                   Clocks clocks) {
  const std::int64_t sequences = std::max(1, query.shape.groups);
  CostQuery own = query, as_long = query;
  own.shape.kv = query.shape.m / sequences;
  as_long.shape.m = query.shape.kv * sequences;
  const Told first = told_of_even(table, chip, own, clocks), all = told_of_even(table, chip, as_long, clocks);
  const double model = whole_estimate(chip, query, table.passes(), clocks).seconds;
  return {first.seconds + std::max(0.0, model - first.model) * all.seconds / all.model, model};
}

Told told_of_even(const MeasuredTable& table, const AnalyticModel& chip, const CostQuery& query,
                  Clocks clocks) {
  if (sees_earlier_keys(table, query)) return told_of_chunk(table, chip, query, clocks);
  const Position position = table.locate(query.kind, query.shape);
  LookUp look_up(table, position, chip, query, clocks);
  const double model = table.follows_law() ? whole_estimate(chip, query, table.passes(), clocks).seconds
                                           : look_up.model_seconds();
  return {look_up.seconds(), model};
}

// The table tells what uneven experts take one after the other, the model how much longer they take because
// the tiles of few do not fill the cores.
double uneven_seconds(const MeasuredTable& table, const AnalyticModel& chip, const CostQuery& query,
                      Clocks clocks, double model) {
  CostQuery even = query;
  even.shape = loaded_shape(query);
  even.rows = {};
  const auto set_rows = [&](std::int64_t rows) {
    (even.kind == OpKind::kGroupedGemmWgrad ? even.shape.k : even.shape.m) = rows;
  };
  double told = 0, alike = 0;
  for (const EvenLoad& load : EvenLoads(query.rows)) {
    set_rows(load.rows);
    const Told one = told_of_even(table, chip, even, clocks);
    told += load.weight * one.seconds;
    alike += load.weight * one.model;
  }
  return told * std::max(1.0, model / alike);
}

// A batch of uneven sequences: the table's even batch of as many keys, by what the model says of both.
double uneven_sequences_seconds(const MeasuredTable& table, const AnalyticModel& chip, const CostQuery& query,
                                Clocks clocks, double model) {
  CostQuery even = query;
  even.shape = loaded_shape(query);
  even.rows = {};
  const Told told = told_of_even(table, chip, even, clocks);
  return told.seconds * (model / told.model);
}

double seconds_told(const MeasuredTable& table, const Position& position, const AnalyticModel& chip,
                    const CostQuery& query, Clocks clocks, double model) {
  if (query.rows.empty())
    return sees_earlier_keys(table, query) ? told_of_even(table, chip, query, clocks).seconds
                                           : LookUp(table, position, chip, query, clocks).seconds();
  return is_attention(query.kind) ? uneven_sequences_seconds(table, chip, query, clocks, model)
                                  : uneven_seconds(table, chip, query, clocks, model);
}

// Of an op that does not find in L2 what the table's kernels found there: as measured there, and longer by no
// more than the model says. The ratio of the model's times would stretch what is bound by neither memory.
double told_from_memory(const MeasuredTable& table, const Position& position, const AnalyticModel& chip,
                        const CostQuery& query, Clocks clocks, double model) {
  const double stretched = seconds_told(table, position, chip, query, clocks, model);
  CostQuery hot = query;
  hot.hot = true;
  if (!table.data().hot || query.hot || !is_found_in_l2(chip.engine().chip, hot)) return stretched;
  const double found = whole_estimate(chip, hot, table.passes(), clocks).seconds;
  const double as_measured = seconds_told(table, position, chip, hot, clocks, found);
  return std::min(stretched, as_measured + std::max(0.0, model - found));
}

// The shape at the beginning of the axes before which it stands, which has no less of anything.
std::optional<Shape> no_smaller_shape(const MeasuredTable& table, const Position& position, OpKind kind,
                                      const Shape& shape) {
  Shape larger = shape;
  bool moved = false;
  for (std::size_t i = 0; i < table.data().axes.size(); ++i) {
    const ProfileAxis& axis = table.data().axes[i];
    const bool before = position.cells[i].outside > 0 && position.cells[i].low == 0;
    if (!before || profile_key(axis.key, kind, shape) >= axis.points.front()) continue;
    larger = with_profile_key(axis.key, kind, larger, axis.points.front(), table.kv_follows());
    moved = true;
  }
  if (!moved) return {};
  return larger;
}

// Before the first rows of a table its corrections say how much longer kernels took than the model thinks,
// which of far smaller ones is not known: they take no longer than the smallest that were measured.
double capped(const MeasuredTable& table, const Position& position, const AnalyticModel& chip,
              const CostQuery& query, Clocks clocks, double seconds) {
  if (position.inside || !query.rows.empty()) return seconds;
  const auto larger = no_smaller_shape(table, position, query.kind, query.shape);
  if (!larger) return seconds;
  CostQuery at_edge = query;
  at_edge.shape = *larger;
  const Position edge = table.locate(query.kind, *larger);
  const double model = whole_estimate(chip, at_edge, table.passes(), clocks).seconds;
  return std::min(seconds, told_from_memory(table, edge, chip, at_edge, clocks, model));
}

// All that a table's kernels do, where its axes begin no farther behind them than `reach`.
std::optional<Cost> whole_cost(const MeasuredTable& table, const AnalyticModel& chip, const CostQuery& query,
                               Clocks clocks, double reach = kAnywhere) {
  const Shape shape = loaded_shape(query);
  if (!table.speaks_of(query, shape)) return {};
  const bool nothing = profile_key(ProfileKey::kRows, query.kind, shape) <= 0;
  if (!query.rows.empty() && nothing) return {};  // that is not measured
  const Position position = table.locate(query.kind, shape);
  if (position.distance > kReach || position.before > reach) return {};
  CostQuery whole = query;
  whole.fused_quantise = table.passes() > 0;
  const Estimate estimate = whole_estimate(chip, whole, table.passes(), clocks);
  Cost cost{.memory_bytes = estimate.memory_bytes};
  cost.seconds = told_from_memory(table, position, chip, whole, clocks, estimate.seconds);
  cost.seconds = capped(table, position, chip, whole, clocks, cost.seconds);
  // Replays of batched products found in L2 what fits there; the model, which does not, is then slower.
  const bool by_heads = query.kind == OpKind::kGroupedGemm && query.shape.heads > 0;
  if (by_heads) cost.seconds = std::max(cost.seconds, estimate.seconds);
  judge(cost, table, position, query, clocks, chip.error(query));
  return cost;
}

// A row that beats the chip by more than repetitions differ was not measured on it: the bound is told as
// such.
void hold_to_roofline(Cost& cost, double bound, float model_error) {
  if (cost.origin == Origin::kMeasured && bound > (1 + kRepeat) * cost.seconds) {
    cost.origin = Origin::kRoofline;
    cost.error = std::max(cost.error, model_error);
  }
  cost.seconds = std::max(cost.seconds, bound);
}

// Also one that a scenario makes of it, which keeps its name.
bool is_measured_chip(const Accelerator& chip, const Accelerator& measured) {
  return chip.is(measured.id);
}

bool has_more_of_nothing(const Accelerator& chip, const Accelerator& measured, const CostQuery& query) {
  return chip.peak_of(query.dtype).value <= measured.peak_of(query.dtype).value &&
         chip.memory_rate.value <= measured.memory_rate.value && chip.cores <= measured.cores &&
         chip.clock.value <= measured.clock.value && chip.l2.value <= measured.l2.value &&
         chip.memory_efficiency <= measured.memory_efficiency;
}

}  // namespace

Estimate MeasuredTables::quantise(const AnalyticModel& chip, const CostQuery& gemm, Clocks clocks,
                                  const MeasuredTable* table) const {
  const auto pass = quantise_of(gemm);
  if (!pass) return {};
  const int passes = table != nullptr && table->passes() > 0 ? table->passes() : 1;
  const Estimate model = chip.estimate(*pass, clocks);
  for (const MeasuredTable& own : quantise_)
    if (table != nullptr && own.data().stack == table->data().stack)
      if (const auto cost = whole_cost(own, chip, *pass, clocks))
        return {cost->seconds, passes * model.memory_bytes};  // all its passes together
  for (const MeasuredTable& other : quantise_)
    if (const auto cost = whole_cost(other, chip, *pass, clocks))
      return {passes * cost->seconds, passes * model.memory_bytes};
  return {passes * model.seconds, passes * model.memory_bytes};
}

// Of a time that contains the quantisation of the activations: the GEMM's share.
void MeasuredTables::take_out_quantise(Cost& cost, const MeasuredTable& table, const AnalyticModel& chip,
                                       const CostQuery& query, Clocks clocks) const {
  const Estimate gemm = chip.estimate(query, clocks), pass = quantise(chip, query, clocks, &table);
  cost.seconds *= gemm.seconds / (gemm.seconds + pass.seconds);
  cost.memory_bytes = gemm.memory_bytes;
}

std::optional<Cost> MeasuredTables::cost(const AnalyticModel& chip, const CostQuery& query,
                                         Clocks clocks) const {
  return is_attention(query.kind) && query.shape.window > 0 ? of_window(chip, query, clocks)
                                                            : of_any_storage(chip, query, clocks);
}

std::optional<Cost> MeasuredTables::of_any_storage(const AnalyticModel& chip, const CostQuery& query,
                                                   Clocks clocks) const {
  if (const auto cost = told(chip, query, clocks)) return cost;
  if (stored_dtype(query) == query.dtype || is_grouped(query.kind)) return {};
  return carried_to_storage(chip, query, clocks);
}

std::optional<Cost> MeasuredTables::told(const AnalyticModel& chip, const CostQuery& query,
                                         Clocks clocks) const {
  if (const auto cost = told_within(kNear, own_, chip, query, clocks)) return cost;
  return told_within(kAnywhere, tables_.size(), chip, query, clocks);
}

std::optional<Cost> MeasuredTables::told_within(double reach, std::size_t first, const AnalyticModel& chip,
                                                const CostQuery& query, Clocks clocks) const {
  for (const int index : by_kind_[static_cast<std::size_t>(query.kind)]) {
    if (static_cast<std::size_t>(index) >= first) break;
    const MeasuredTable& table = tables_[static_cast<std::size_t>(index)];
    auto cost = told_by(table, chip, query, clocks, reach);
    if (!cost) continue;
    if (is_measured_chip(chip.engine().chip, table.reference().engine().chip)) return cost;
    // Kernels of a neighbour are as far off here as the model alone (hw/profiles/errors.md), and a chip that
    // has more of nothing is not faster.
    cost->error = std::max(2 * cost->error, chip.error(query));
    if (has_more_of_nothing(chip.engine().chip, table.reference().engine().chip, query))
      if (const auto there = told_by(table, table.reference(), query, clocks, reach))
        cost->seconds = std::max(cost->seconds, there->seconds);
    return cost;
  }
  return {};
}

std::optional<Cost> MeasuredTables::told_by(const MeasuredTable& table, const AnalyticModel& chip,
                                            const CostQuery& query, Clocks clocks, double reach) const {
  auto cost = whole_cost(table, chip, query, clocks, reach);
  if (!cost) return {};
  const bool contained = table.passes() > 0;
  if (contained && !query.fused_quantise) take_out_quantise(*cost, table, chip, query, clocks);
  hold_to_roofline(*cost, roofline(chip.engine().chip, query).seconds(), chip.error(query));
  if (!contained && query.fused_quantise) {
    const Estimate pass = quantise(chip, query, clocks);
    cost->seconds += pass.seconds;
    cost->memory_bytes += pass.memory_bytes;
  }
  return cost;
}

// Of a storage that no table has: the kernels that keep the operand in the type of the arithmetic, by what
// the model says of both. Held against the tables that have one (2026-11-26, medians of their rows):
// attention over FP8 caches 3 to 34% instead of the model's 12 to 67 in most, INT8 and INT4 weights of A100
// 28 and 34 instead of 30 and 35; experts 42 to 223 instead of 21 to 60, which is why those are left to the
// model.
std::optional<Cost> MeasuredTables::carried_to_storage(const AnalyticModel& chip, const CostQuery& query,
                                                       Clocks clocks) const {
  CostQuery same = query;
  same.stored.reset();
  auto cost = told(chip, same, clocks);
  if (!cost) return {};
  const Estimate here = chip.estimate(query, clocks);
  cost->seconds *= here.seconds / chip.estimate(same, clocks).seconds;
  cost->seconds = std::max(cost->seconds, roofline(chip.engine().chip, query).seconds());
  cost->memory_bytes = here.memory_bytes;
  cost->origin = Origin::kExtrapolated;
  cost->error = std::max(2 * cost->error, chip.error(query));
  return cost;
}

}  // namespace moebius
