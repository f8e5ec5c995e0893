#include "real/host/tensor_store.h"

#include <algorithm>

#include <fmt/format.h>

#include "hw/error.h"
#include "real/initial_values.h"
#include "real/rounding.h"

namespace moebius {
namespace {

// Slot by slot the values of its expert.
std::vector<double> values_of_slots(const Tensor& tensor, const StoreOptions& options) {
  std::vector<double> values;
  values.reserve(static_cast<std::size_t>(tensor.elements()));
  Tensor one = tensor;
  one.slots = nullptr;
  one.experts = 1;
  for (const std::int32_t expert : *tensor.slots) {
    one.first_expert = expert;
    const std::vector<double> of_expert = starting_values(one, options);
    values.insert(values.end(), of_expert.begin(), of_expert.end());
  }
  return values;
}

}  // namespace

ScaleFormat scale_format(Scaling scaling) {
  constexpr int kMicroBlock = 32;
  return scaling == Scaling::kMicro ? ScaleFormat{kMicroBlock, true} : ScaleFormat{};
}

int shard_index(const Tensor& tensor, const StoreOptions& options) {
  return options.place == nullptr ? 0 : options.place->group(tensor.cut).my_index;
}

std::vector<double> starting_values(const Tensor& tensor, const StoreOptions& options) {
  if (tensor.slots) return values_of_slots(tensor, options);
  if (options.weights && tensor.memory == MemoryKind::kWeights) return options.weights(tensor);
  if (options.states && tensor.memory == MemoryKind::kOptimizer) return options.states(tensor);
  return initial_values(tensor, options.seed, options.stacked ? options.stacked(tensor) : StackedRows{});
}

template <class Real>
void TensorStore<Real>::begin(const Submission& submission) {
  fragment_ = submission.fragment;
  microbatches_[0] = submission.microbatch;
  microbatches_[1] = submission.second_microbatch;
  local_.assign(fragment_->tensors.size(), std::nullopt);
  mark_last_uses();
}

template <class Real>
void TensorStore<Real>::mark_last_uses() {
  last_use_.assign(fragment_->tensors.size(), -1);
  for (std::size_t i = 0; i < fragment_->ops.size(); ++i) {
    const Op& op = fragment_->ops[i];
    for (int j = 0; j < op.num_inputs + op.num_outputs; ++j) {
      last_use_[fragment_->operands[op.first_tensor + j]] = static_cast<std::int32_t>(i);
    }
  }
}

template <class Real>
void TensorStore<Real>::release(std::int32_t op_index) {
  const Op& op = fragment_->ops[op_index];
  for (int j = 0; j < op.num_inputs + op.num_outputs; ++j) {
    const std::int32_t tensor = fragment_->operands[op.first_tensor + j];
    if (last_use_[tensor] == op_index) local_[tensor].reset();
  }
}

template <class Real>
void TensorStore<Real>::end() {
  for (const std::int32_t tensor : released(*fragment_)) microbatch_.erase(microbatch_key(describe(tensor)));
  for (const Tensor& tensor : fragment_->tensors)
    if (tensor.freed) step_.erase(tensor.key);
  local_.clear();
  fragment_.reset();
}

template <class Real>
Matrix<Real>* TensorStore<Real>::locate(std::int32_t tensor) {
  const Tensor& description = describe(tensor);
  switch (description.scope) {
    case Scope::kFragment:
      return local_[tensor] ? &*local_[tensor] : nullptr;
    case Scope::kMicrobatch: {
      const auto found = microbatch_.find(microbatch_key(description));
      return found == microbatch_.end() ? nullptr : &found->second;
    }
    case Scope::kRank: {
      const auto found = kept_.find(description.key);
      return found == kept_.end() ? nullptr : &found->second.value;
    }
    case Scope::kStep: {
      const auto found = step_.find(description.key);
      return found == step_.end() ? nullptr : &found->second;
    }
  }
  CHECK(false, fmt::format("scope {}", static_cast<int>(description.scope)));
}

template <class Real>
bool TensorStore<Real>::holds(std::int32_t tensor) const {
  return const_cast<TensorStore*>(this)->locate(tensor) != nullptr;
}

template <class Real>
const Matrix<Real>& TensorStore<Real>::read(std::int32_t tensor) {
  if (const Matrix<Real>* value = locate(tensor)) return *value;
  const Tensor& description = describe(tensor);
  const bool sum = description.scope == Scope::kStep && description.memory == MemoryKind::kGradients;
  CHECK(description.scope == Scope::kRank || sum,
        fmt::format("{}: tensor {} ({}, layer {}) is read before it is written", fragment_->name, tensor,
                    to_string(description.role), description.layer));
  return change(tensor);
}

template <class Real>
Matrix<Real>& TensorStore<Real>::change(std::int32_t tensor) {
  if (Matrix<Real>* value = locate(tensor)) return *value;
  const Tensor& description = describe(tensor);
  Matrix<Real> value(description.held_rows(), description.held_columns());
  if (description.scope == Scope::kRank) value.values = initial_held(description);
  write(tensor, std::move(value));
  return *locate(tensor);
}

template <class Real>
void TensorStore<Real>::write(std::int32_t tensor, Matrix<Real> value) {
  round(describe(tensor), value);
  write_unrounded(tensor, std::move(value));
}

template <class Real>
void TensorStore<Real>::write_rows(std::int32_t tensor, const RowWindow& window, Matrix<Real> rows) {
  round(describe(tensor), rows);
  write_rounded_rows(tensor, window, rows);
}

template <class Real>
void TensorStore<Real>::write_rounded_rows(std::int32_t tensor, const RowWindow& window,
                                           const Matrix<Real>& rows) {
  Matrix<Real>& whole = change(tensor);
  const std::int64_t run = window.rows * whole.columns;
  CHECK(static_cast<std::int64_t>(rows.values.size()) == window.blocks * run,
        fmt::format("{} values for {} blocks of {}", rows.values.size(), window.blocks, run));
  for (std::int64_t block = 0; block < window.blocks; ++block)
    std::copy_n(rows.values.begin() + block * run, run, whole.row(window.row(block)));
}

template <class Real>
void TensorStore<Real>::written(std::int32_t tensor) {
  round(describe(tensor), *locate(tensor));
}

template <class Real>
void TensorStore<Real>::write_unrounded(std::int32_t tensor, Matrix<Real> value) {
  const Tensor& description = describe(tensor);
  CHECK(static_cast<std::int64_t>(value.values.size()) == value.rows * value.columns &&
            value.columns == description.held_columns(),
        fmt::format("{}: {} values as {} x {} for {} x {} ({})", fragment_->name, value.values.size(),
                    value.rows, value.columns, description.held_rows(), description.held_columns(),
                    to_string(description.role)));
  switch (description.scope) {
    case Scope::kFragment:
      local_[tensor] = std::move(value);
      return;
    case Scope::kMicrobatch:
      microbatch_[microbatch_key(description)] = std::move(value);
      return;
    case Scope::kRank:
      kept_[description.key] = {description, std::move(value)};
      return;
    case Scope::kStep:
      step_[description.key] = std::move(value);
      return;
  }
}

template <class Real>
void TensorStore<Real>::round(const Tensor& tensor, Matrix<Real>& value) const {
  if (options_.exact) return;
  if (tensor.scaling == Scaling::kTensor) {
    const bool experts = tensor.experts > 0;
    const std::int64_t part = experts ? tensor.rows * tensor.columns : value.rows * value.columns;
    return round_parts<Real>(value.values, part, tensor.dtype);
  }
  if (tensor.memory == MemoryKind::kWeights && tensor.shards == 0)
    return round_weights<Real>(value.values, value.columns, tensor.rows, tensor.dtype,
                               scale_format(tensor.scaling));
  round_matrix<Real>(value.values, value.rows, value.columns, tensor.dtype, scale_format(tensor.scaling));
}

template <class Real>
std::vector<Real> TensorStore<Real>::initial(const Tensor& tensor) const {
  const auto set = initial_.find(tensor.key);
  if (set != initial_.end()) {
    CHECK(static_cast<std::int64_t>(set->second.size()) == tensor.elements(),
          fmt::format("{} initial values for {} elements", set->second.size(), tensor.elements()));
    return set->second;
  }
  const std::vector<double> values = starting_values(tensor, options_);
  return std::vector<Real>(values.begin(), values.end());
}

template <class Real>
std::vector<Real> TensorStore<Real>::initial_held(const Tensor& tensor) const {
  if (tensor.shards == 0) return initial(tensor);
  return cut_shard(initial(tensor), tensor, shard_index(tensor, options_));
}

template <class Real>
const Matrix<Real>* TensorStore<Real>::find(std::uint32_t key) const {
  const auto found = kept_.find(key);
  return found == kept_.end() ? nullptr : &found->second.value;
}

template <class Real>
void TensorStore<Real>::set_initial(std::uint32_t key, std::vector<Real> values) {
  CHECK(kept_.count(key) == 0, fmt::format("tensor {} is in use", key));
  initial_[key] = std::move(values);
}

template <class Real>
std::vector<std::uint32_t> TensorStore<Real>::keys(MemoryKind memory, Role role, int layer) const {
  std::vector<std::uint32_t> found;
  for (const auto& [key, kept] : kept_) {
    if (kept.tensor.memory == memory && kept.tensor.role == role && kept.tensor.layer == layer)
      found.push_back(key);
  }
  return found;
}

template <class Real>
Matrix<Real> rows_of(const Matrix<Real>& whole, const RowWindow& window) {
  Matrix<Real> rows(window.blocks * window.rows, whole.columns);
  const std::int64_t run = window.rows * whole.columns;
  for (std::int64_t block = 0; block < window.blocks; ++block)
    std::copy_n(whole.row(window.row(block)), run, rows.values.begin() + block * run);
  return rows;
}

template Matrix<float> rows_of(const Matrix<float>&, const RowWindow&);
template Matrix<double> rows_of(const Matrix<double>&, const RowWindow&);
template class TensorStore<float>;
template class TensorStore<double>;

}  // namespace moebius
