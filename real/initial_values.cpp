#include "real/initial_values.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "workloads/routing/routing.h"
#include "workloads/training/layers/builder.h"

namespace moebius {

namespace {

// Where rows of a shard stand in the whole. What does not divide as a shard's is taken for one matrix.
void set_rows(const Tensor& tensor, const StackedRows& stacked, InitialValues& values) {
  const std::int64_t whole = std::accumulate(stacked.begin(), stacked.end(), std::int64_t{0});
  const bool cut = whole > 0 && whole % tensor.rows == 0 && tensor.first_row % tensor.rows == 0;
  const std::int64_t members = cut ? whole / tensor.rows : 1;
  const bool shares =
      std::all_of(stacked.begin(), stacked.end(), [&](std::int64_t rows) { return rows % members == 0; });
  std::fill(std::begin(values.first_row), std::end(values.first_row), tensor.first_row);
  if (!cut || !shares) return;
  const std::int64_t member = tensor.first_row / tensor.rows;
  std::int64_t above = 0;  // in the whole
  for (std::size_t i = 0; i < stacked.size(); ++i) {
    values.first_row[i] = above + member * stacked[i] / members - above / members;
    above += stacked[i];
    if (i < std::size(values.end)) values.end[i] = above / members;
  }
}

}  // namespace

StackedRows stacked_rows(const Tensor& parameter, const Model& model) {
  if (is_adapter(parameter)) return {};  // one matrix beside all that stand together
  const auto gate_and_up = [&](std::int64_t width) {
    return model.gated ? StackedRows{width, width} : StackedRows{};
  };
  if (parameter.role == Role::kQkv) {
    const std::int64_t keys = std::int64_t{model.head_dim} * model.kv_heads;
    return {model.query_dim(), keys, keys};
  }
  if (parameter.role == Role::kGateUp) return gate_and_up(model.dense_width);
  if (parameter.role == Role::kSharedGateUp) return gate_and_up(model.experts.shared_width);
  if (parameter.role == Role::kExpertGateUp) return gate_and_up(model.experts.width);
  return {};
}

InitialValues initial_values_of(const Tensor& tensor, std::uint64_t seed, const StackedRows& stacked) {
  constexpr std::uint64_t kParameterStream = 0x70617261;
  // Of the sum of four whole numbers below 2^16, each with a variance of (2^32 - 1) / 12.
  const double deviation = std::sqrt((0x1p32 - 1) / 3);
  InitialValues values{
      .parameter = random_bits(seed, kParameterStream, static_cast<std::uint64_t>(tensor.role),
                               static_cast<std::uint64_t>(tensor.layer + 1)),
      .constant = std::max(0.0, -tensor.init),
      .scale = std::max(0.0, tensor.init) / deviation,
      .rows = tensor.rows,
      .columns = tensor.columns,
      .first_expert = tensor.first_expert,
      .first_column = tensor.first_column};
  set_rows(tensor, stacked, values);
  return values;
}

std::vector<double> initial_values(const Tensor& tensor, std::uint64_t seed, const StackedRows& stacked) {
  const InitialValues of = initial_values_of(tensor, seed, stacked);
  const std::int64_t experts = std::max(tensor.experts, 1);
  std::vector<double> values(static_cast<std::size_t>(experts * tensor.rows * tensor.columns));
  auto value = values.begin();
  for (std::int64_t expert = 0; expert < experts; ++expert) {
    for (std::int64_t row = 0; row < tensor.rows; ++row) {
      const std::uint64_t key = of.row_key(expert, row);
      for (std::int64_t column = 0; column < tensor.columns; ++column) *value++ = of.value(key, column);
    }
  }
  return values;
}

}  // namespace moebius
