// The memory of one rank: tensors of the running submission, of its microbatches, of the whole run. Values
// are rounded to the tensor's format when they are written.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "real/host/matrix.h"
#include "real/initial_values.h"
#include "real/rounding.h"
#include "workloads/schedule/fragment.h"
#include "workloads/schedule/layout.h"
#include "workloads/schedule/row_window.h"

namespace moebius {

// The values that a parameter starts from, row-major, experts one after the other; called by all ranks at
// once.
using StartingValues = std::function<std::vector<double>(const Tensor& parameter)>;

// The same for optimizer states, which differ by rank.
using StartingStates = std::function<std::vector<double>(std::int32_t rank, const Tensor& state)>;

// A tensor of the whole run as a rank holds it, row-major.
struct HeldValues {
  Tensor tensor;
  std::vector<float> values;
};

struct StoreOptions {
  std::uint64_t seed = 1;
  bool exact = false;           // nothing is rounded
  StartingValues weights = {};  // empty: drawn from the seed
  StackedRowsOf stacked = {};   // of those; empty: each is one matrix
  StartingValues states = {};  // of a run that goes on; empty: masters start from the weights, moments from 0
  const RankClass* place =
      nullptr;  // of the rank: which shard it holds of what is cut over a group; null: the first
};

// The flat shard of `all`, the values of the whole tensor, that member `index` holds; zeros after the last
// element.
template <class Real>
std::vector<Real> cut_shard(const std::vector<Real>& all, const Tensor& tensor, int index) {
  std::vector<Real> shard(tensor.held_rows(), Real(0));
  const auto first = std::min<std::int64_t>(tensor.held_rows() * index, tensor.elements());
  const auto last = std::min<std::int64_t>(first + tensor.held_rows(), tensor.elements());
  std::copy(all.begin() + first, all.begin() + last, shard.begin());
  return shard;
}

// The index of the rank in a group that cuts a tensor.
int shard_index(const Tensor& tensor, const StoreOptions& options);

// The values that a tensor of the whole run starts from, before rounding.
std::vector<double> starting_values(const Tensor& tensor, const StoreOptions& options);

// Of kBlock and kMicro.
ScaleFormat scale_format(Scaling scaling);

// The rows of a window, one after the other.
template <class Real>
Matrix<Real> rows_of(const Matrix<Real>& whole, const RowWindow& window);

template <class Real>
class TensorStore {
 public:
  explicit TensorStore(const StoreOptions& options) : options_(options) {}

  // From begin() to end(), tensor ids are those of the submission's fragment.
  void begin(const Submission& submission);
  void release(std::int32_t op);  // frees the fragment's own tensors that no op after `op` touches
  // Frees what is left of the fragment, the microbatch tensors that it has released(), and those of the step
  // that are `freed` in it.
  void end();

  // What the tensor holds. Parameters appear with their initial values when first touched, sums of a step as
  // zeros; anything else unwritten is a CHECK.
  const Matrix<Real>& read(std::int32_t tensor);
  // For kinds that add or update in place: what it holds, or zeros. Call written() when done.
  Matrix<Real>& change(std::int32_t tensor);
  void written(std::int32_t tensor);
  void write(std::int32_t tensor, Matrix<Real> value);
  void write_unrounded(std::int32_t tensor,
                       Matrix<Real> value);  // the value is already of the tensor's format
  // Some rows of it; the others stay, or are zeros.
  void write_rows(std::int32_t tensor, const RowWindow& window, Matrix<Real> rows);
  void write_rounded_rows(std::int32_t tensor, const RowWindow& window, const Matrix<Real>& rows);
  bool holds(std::int32_t tensor) const;

  const Tensor& describe(std::int32_t tensor) const { return fragment_->tensors[tensor]; }
  // Starting values of a parameter, before rounding: of StoreOptions::weights, generated, or what
  // set_initial() said.
  std::vector<Real> initial(const Tensor& tensor) const;
  std::vector<Real> initial_held(const Tensor& tensor) const;  // of it, what this rank holds
  bool restores_states() const { return static_cast<bool>(options_.states); }

  // Between submissions. Tensors of the whole run, by key.
  const Matrix<Real>* find(std::uint32_t key) const;
  void set_initial(std::uint32_t key,
                   std::vector<Real> values);  // replaces the generated values; before the first touch
  // That wait for a fragment to come: of microbatches, of the step.
  std::size_t num_microbatch_tensors() const { return microbatch_.size() + step_.size(); }
  // Calls visit(tensor, value) for every kRank tensor of this memory kind.
  template <class Visit>
  void for_each(MemoryKind memory, const Visit& visit) const {
    for (const auto& [key, kept] : kept_) {
      if (kept.tensor.memory == memory) visit(kept.tensor, kept.value);
    }
  }
  // Keys of kRank tensors of this memory kind, role and layer that exist, ascending.
  std::vector<std::uint32_t> keys(MemoryKind memory, Role role, int layer) const;

 private:
  struct Kept {
    Tensor tensor;
    Matrix<Real> value;
  };
  using MicrobatchKey = std::pair<std::int32_t, std::uint32_t>;

  Matrix<Real>* locate(std::int32_t tensor);
  MicrobatchKey microbatch_key(const Tensor& tensor) const {
    return {microbatches_[tensor.second ? 1 : 0], tensor.key};
  }
  void round(const Tensor& tensor, Matrix<Real>& value) const;
  void mark_last_uses();

  StoreOptions options_;
  FragmentPtr fragment_;
  std::int32_t microbatches_[2] = {0, -1};          // of the submission: the first, the second
  std::vector<std::int32_t> last_use_;              // op, by tensor of the fragment
  std::vector<std::optional<Matrix<Real>>> local_;  // by tensor of the fragment
  std::map<MicrobatchKey, Matrix<Real>> microbatch_;
  std::map<std::uint32_t, Matrix<Real>> step_;  // kStep, by key
  std::map<std::uint32_t, Kept> kept_;
  std::map<std::uint32_t, std::vector<Real>> initial_;
};

}  // namespace moebius
