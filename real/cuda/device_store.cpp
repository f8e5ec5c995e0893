#include "real/cuda/device_store.h"

#include <algorithm>

#include <fmt/format.h>

#include "hw/error.h"

namespace moebius::cuda {

Storage storage_of(DType dtype) {
  switch (dtype) {
    case DType::kFp32:
    case DType::kInt32:
      return Storage::kFp32;
    case DType::kBf16:
      return Storage::kBf16;
    case DType::kFp8:
      return Storage::kFp8Rows;
    case DType::kTf32:
    case DType::kFp16:
    case DType::kInt8:
    case DType::kFp4:
    case DType::kInt4:
      break;
  }
  throw run_error(fmt::format("cuda does not store {} yet", to_string(dtype)));
}

Storage storage_of(const Tensor& tensor) {
  if (has_one_scale(tensor.scaling)) throw run_error("cuda does not store fp8 with one scale per tensor yet");
  if (tensor.scaling == Scaling::kMicro)
    throw run_error("cuda does not store fp8 with scales of 32 elements yet");
  const bool blocks =
      tensor.dtype == DType::kFp8 && tensor.memory == MemoryKind::kWeights && tensor.shards == 0;
  return blocks ? Storage::kFp8Blocks : storage_of(tensor.dtype);
}

void DeviceStore::begin(const Submission& submission) {
  fragment_ = submission.fragment;
  microbatches_[0] = submission.microbatch;
  microbatches_[1] = submission.second_microbatch;
  local_.assign(fragment_->tensors.size(), nullptr);
  last_use_.assign(fragment_->tensors.size(), -1);
  for (std::size_t i = 0; i < fragment_->ops.size(); ++i) {
    const Op& op = fragment_->ops[i];
    for (int j = 0; j < op.num_inputs + op.num_outputs; ++j)
      last_use_[fragment_->operands[op.first_tensor + j]] = static_cast<std::int32_t>(i);
  }
}

void DeviceStore::release(std::int32_t op_index) {
  const Op& op = fragment_->ops[op_index];
  for (int j = 0; j < op.num_inputs + op.num_outputs; ++j) {
    const std::int32_t tensor = fragment_->operands[op.first_tensor + j];
    if (last_use_[tensor] == op_index) local_[tensor].reset();
  }
}

void DeviceStore::end() {
  for (const std::int32_t tensor : released(*fragment_)) microbatch_.erase(microbatch_key(describe(tensor)));
  for (const Tensor& tensor : fragment_->tensors)
    if (tensor.freed) step_.erase(tensor.key);
  local_.clear();
  fragment_.reset();
}

TensorRef DeviceStore::find(std::int32_t tensor) const {
  const Tensor& description = describe(tensor);
  switch (description.scope) {
    case Scope::kFragment:
      return local_[tensor];
    case Scope::kMicrobatch: {
      const auto found = microbatch_.find(microbatch_key(description));
      return found == microbatch_.end() ? nullptr : found->second;
    }
    case Scope::kRank:
      return kept(description.key);
    case Scope::kStep: {
      const auto found = step_.find(description.key);
      return found == step_.end() ? nullptr : found->second;
    }
  }
  CHECK(false, fmt::format("scope {}", static_cast<int>(description.scope)));
}

void DeviceStore::put(std::int32_t tensor, TensorRef value) {
  const Tensor& description = describe(tensor);
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

std::vector<float> DeviceStore::initial(const Tensor& tensor) const {
  const auto set = initial_.find(tensor.key);
  if (set == initial_.end()) {
    const std::vector<double> values = starting_values(tensor, options_);
    return {values.begin(), values.end()};
  }
  CHECK(static_cast<std::int64_t>(set->second.size()) == tensor.elements(),
        fmt::format("{} initial values for {} elements", set->second.size(), tensor.elements()));
  return set->second;
}

std::vector<float> DeviceStore::initial_held(const Tensor& tensor) const {
  return tensor.shards == 0 ? initial(tensor)
                            : cut_shard(initial(tensor), tensor, shard_index(tensor, options_));
}

bool DeviceStore::drawn(const Tensor& tensor) const {
  const bool given = initial_.count(tensor.key) > 0 ||
                     (options_.weights && tensor.memory == MemoryKind::kWeights) ||
                     (options_.states && tensor.memory == MemoryKind::kOptimizer);
  return !given && !(tensor.slots && tensor.shards > 0);
}

TensorRef DeviceStore::kept(std::uint32_t key) const {
  const auto found = kept_.find(key);
  return found == kept_.end() ? nullptr : found->second.value;
}

std::vector<std::uint32_t> DeviceStore::keys(MemoryKind memory, Role role, int layer) const {
  std::vector<std::uint32_t> found;
  for (const auto& [key, kept] : kept_) {
    if (kept.tensor.memory == memory && kept.tensor.role == role && kept.tensor.layer == layer)
      found.push_back(key);
  }
  return found;
}

void DeviceStore::set_initial(std::uint32_t key, std::vector<float> values) {
  CHECK(kept_.count(key) == 0, fmt::format("tensor {} is in use", key));
  initial_[key] = std::move(values);
}

}  // namespace moebius::cuda
