// The tensors of one rank on the device: TensorStore's rules (real/host/tensor_store.h) about how long each
// lives, and about what a parameter starts from. It holds references; whoever executes an op creates the
// tensors.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "real/cuda/device_memory.h"
#include "real/host/tensor_store.h"
#include "workloads/schedule/fragment.h"

namespace moebius::cuda {

// The format in which a tensor of this type is kept; run_error "cuda does not store X yet" where there is
// none.
Storage storage_of(DType dtype);
// Weights of 8 bits have a scale per block of rows and columns, as on the host (real/host/tensor_store.cpp).
Storage storage_of(const Tensor& tensor);

class DeviceStore {
 public:
  explicit DeviceStore(const StoreOptions& options) : options_(options) {}

  // From begin() to end(), tensor ids are those of the submission's fragment.
  void begin(const Submission& submission);
  void release(std::int32_t op);
  void end();

  TensorRef find(std::int32_t tensor) const;  // null: not written yet
  void put(std::int32_t tensor, TensorRef value);
  const Tensor& describe(std::int32_t tensor) const { return fragment_->tensors[tensor]; }
  // Starting values of a parameter, before rounding: of the options, or what set_initial() said.
  std::vector<float> initial(const Tensor& tensor) const;
  std::vector<float> initial_held(const Tensor& tensor) const;  // of it, what this rank holds
  // Whether they are drawn from the seed, so that the device can make them.
  bool drawn(const Tensor& tensor) const;
  std::uint64_t seed() const { return options_.seed; }
  StackedRows stacked(const Tensor& tensor) const {
    return options_.stacked ? options_.stacked(tensor) : StackedRows{};
  }
  int shard_of(const Tensor& tensor) const { return shard_index(tensor, options_); }
  bool restores_states() const { return static_cast<bool>(options_.states); }

  // Between submissions: tensors of the whole run, by key.
  TensorRef kept(std::uint32_t key) const;
  // Calls visit(tensor, value) for each of this memory kind.
  template <class Visit>
  void for_each(MemoryKind memory, const Visit& visit) const {
    for (const auto& [key, kept] : kept_) {
      if (kept.tensor.memory == memory) visit(kept.tensor, kept.value);
    }
  }
  std::vector<std::uint32_t> keys(MemoryKind memory, Role role, int layer) const;
  void set_initial(std::uint32_t key, std::vector<float> values);
  std::size_t num_microbatch_tensors() const { return microbatch_.size(); }

 private:
  struct Kept {
    Tensor tensor;
    TensorRef value;
  };
  using MicrobatchKey = std::pair<std::int32_t, std::uint32_t>;
  MicrobatchKey microbatch_key(const Tensor& tensor) const {
    return {microbatches_[tensor.second ? 1 : 0], tensor.key};
  }

  StoreOptions options_;
  FragmentPtr fragment_;
  std::int32_t microbatches_[2] = {0, -1};  // of the submission: the first, the second
  std::vector<std::int32_t> last_use_;      // op, by tensor of the fragment
  std::vector<TensorRef> local_;            // by tensor of the fragment
  std::map<MicrobatchKey, TensorRef> microbatch_;
  std::map<std::uint32_t, TensorRef> step_;  // kStep, by key
  std::map<std::uint32_t, Kept> kept_;
  std::map<std::uint32_t, std::vector<float>> initial_;
};

}  // namespace moebius::cuda
