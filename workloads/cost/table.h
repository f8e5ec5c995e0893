// Measured kernels. A table is not read off but used to correct the analytic model: what was measured, over
// what the model says of the same kernel on the chip and under the conditions of the measurement, is
// interpolated, and the model carries it to the cores held, the clocks and the (perhaps changed) chip of the
// question. So grid points come out as measured, the steps of tiles and waves stay between them, and a
// what-if on the chip is not answered by the old chip.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hw/profile.h"
#include "workloads/cost/analytic.h"
#include "workloads/cost/cost_source.h"

namespace moebius {

// What a key means for an op. rows: rows of one expert, m / groups, or k / groups for a weight gradient
// (groups = 1 where the kind has none); queries: m / groups of attention; the others are the fields of Shape.
double profile_key(ProfileKey key, OpKind kind, const Shape& shape);

// The shape with that key changed. Groups keep their rows and queries; kv follows the queries when `follow`
// is set.
Shape with_profile_key(ProfileKey key, OpKind kind, const Shape& shape, double value, bool kv_follows);

class MeasuredTable;

class MeasuredTables {
 public:
  // The profiles' tables in their order; those of `stack` alone when it is not empty; of "a+b" those of
  // "a+b" and then those of "a", of which it is a variant. input_error for op
  // kinds that do not exist and for a stack that no table has.
  explicit MeasuredTables(const std::vector<Profile>& profiles, std::string_view stack = "");
  ~MeasuredTables();
  MeasuredTables(MeasuredTables&&) noexcept;

  // The first table that has this kind, type and stored type and stands near (a factor of 16 over all its
  // keys together; rather one whose axes begin no farther away than a factor of 2), or nothing; of a stored
  // type that no table has (experts apart), the one that stores the type of the arithmetic, by what the model
  // says of both. Where the table's kernels quantise their activations and the question's does not, the
  // GEMM's share of the time: gemm / (gemm + quantise), the first as the model, the second as quantise()
  // says; where it is the other way round, the sum. No allocation.
  std::optional<Cost> cost(const AnalyticModel& chip, const CostQuery& query, Clocks clocks) const;

  // What quantising the activations of a GEMM of 8 or 4 bits costs, as the kernels of `table` do it: by the
  // table of its stack, or the first table of a quantise op, or the model. Nothing for other ops.
  Estimate quantise(const AnalyticModel& chip, const CostQuery& gemm, Clocks clocks,
                    const MeasuredTable* table = nullptr) const;

  const std::vector<std::string>& stacks() const { return stacks_; }  // of all tables, each once, in order

 private:
  std::optional<Cost> told(const AnalyticModel& chip, const CostQuery& query, Clocks clocks) const;
  // Of the first so many tables.
  std::optional<Cost> told_within(double reach, std::size_t first, const AnalyticModel& chip,
                                  const CostQuery& query, Clocks clocks) const;
  // Of one table, on the chip that is asked for.
  std::optional<Cost> told_by(const MeasuredTable& table, const AnalyticModel& chip, const CostQuery& query,
                              Clocks clocks, double reach) const;
  std::optional<Cost> of_any_storage(const AnalyticModel& chip, const CostQuery& query, Clocks clocks) const;
  std::optional<Cost> of_window(const AnalyticModel& chip, const CostQuery& query, Clocks clocks) const;
  std::optional<Cost> carried_to_storage(const AnalyticModel& chip, const CostQuery& query,
                                         Clocks clocks) const;
  void take_out_quantise(Cost& cost, const MeasuredTable& table, const AnalyticModel& chip,
                         const CostQuery& query, Clocks clocks) const;

  std::vector<std::unique_ptr<AnalyticModel>> references_;  // the chips that were measured, one per profile
  std::vector<MeasuredTable> tables_;
  std::size_t own_ = 0;  // of them: before those of stacks whose variants were asked for
  std::array<std::vector<int>, kNumOpKinds> by_kind_;  // tables of each op kind, best first
  std::vector<MeasuredTable> quantise_;                // of all stacks: they say what other tables contain
  std::vector<std::int32_t> windows_;                  // that tables were measured with, each once
  std::vector<std::string> stacks_;
};

}  // namespace moebius
