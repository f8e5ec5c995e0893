// What the implementation of one op sees: its operands in the store of its rank, its route, its place in the
// groups.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "models/constants.h"
#include "real/host/host_kernels_optimizer.h"
#include "real/host/matrix.h"
#include "real/host/tensor_store.h"
#include "real/route_plan.h"
#include "workloads/schedule/layout.h"
#include "workloads/schedule/row_window.h"

namespace moebius {

// An op that a rank has computed, while its operands are still there.
struct ComputedOp {
  std::int32_t rank = 0;
  const Submission& submission;
  const Op& op;
  const std::function<std::vector<float>(std::int32_t tensor)>& read;  // row-major values of an operand
};

class Processes;
class PromptBook;

using OpObserver = std::function<void(const ComputedOp&)>;

struct HostOptions {
  std::uint64_t seed = 1;          // of parameters and data
  bool exact = false;              // nothing is rounded to storage formats
  bool one_at_a_time = false;      // ranks take turns, so that none disturbs another, and ops are timed
  Processes* processes = nullptr;  // that share the run, each with a block of its ranks; null: this one alone
  AdamSettings adam = {};
  Constants constants = {};
  const PromptBook* prompts = nullptr;  // serving: which prompts begin alike; null: none do
  StartingValues weights = {};          // of parameters; empty: drawn from the seed
  StackedRowsOf stacked = {};           // of parameters that are drawn; empty: each is one matrix
  StartingStates states = {};           // of a run that goes on
  OpObserver observer = {};             // hears of every op, in the threads of the ranks
};

// The plans of the routes that a rank has met, made once.
class RoutePlans {
 public:
  const RoutePlan& get(const RoutePtr& route, int member);
  void put(const RoutePtr& route, RoutePlan plan);  // one made by hand, instead of the route's own

 private:
  std::map<const Route*, std::pair<RoutePtr, RoutePlan>>
      plans_;  // holds the route, so that its address stays its name
};

template <class Real>
class OpContext {
 public:
  struct Rank {
    std::int32_t rank = 0;
    const RankClass* place = nullptr;
    const HostOptions* options = nullptr;
    TensorStore<Real>* store = nullptr;
    RoutePlans* routes = nullptr;
  };

  OpContext(const Rank& rank, const Submission& submission, std::int32_t index)
      : rank_(rank), submission_(submission), op_(submission.fragment->ops[index]) {}

  const Op& op() const { return op_; }
  const Shape& shape() const { return op_.shape; }
  const Submission& submission() const { return submission_; }
  const Batch& batch() const { return *submission_.fragment->batches[op_.batch]; }  // of an op that has one
  const HostOptions& options() const { return *rank_.options; }
  std::int32_t rank() const { return rank_.rank; }
  TensorStore<Real>& store() { return *rank_.store; }

  // An absent group is the rank alone.
  int index_in(GroupRole role) const { return rank_.place->group(role).my_index; }
  int size_of(GroupRole role) const {
    return std::max<int>(1, static_cast<int>(rank_.place->group(role).ranks.size()));
  }
  const Group& group(GroupRole role) const { return rank_.place->group(role); }

  std::int32_t input_id(int i) const { return submission_.fragment->input(op_, i); }
  std::int32_t output_id(int i) const { return submission_.fragment->output(op_, i); }
  // Of an op in pieces, its rows only.
  const Matrix<Real>& in(int i) {
    const auto window = row_window(*submission_.fragment, op_, i);
    if (!window) return store().read(input_id(i));
    return pieces_[i] = rows_of(store().read(input_id(i)), *window);
  }
  void out(int i, Matrix<Real> value) {
    const auto window = row_window(*submission_.fragment, op_, op_.num_inputs + i);
    if (window) return store().write_rows(output_id(i), *window, std::move(value));
    store().write(output_id(i), std::move(value));
  }
  const Tensor& input_tensor(int i) { return store().describe(input_id(i)); }
  const Tensor& output_tensor(int i) { return store().describe(output_id(i)); }

  // The output's present contents, to add to; rounded when `add` returns.
  template <class Add>
  void accumulate(int i, const Add& add) {
    add(store().change(output_id(i)));
    store().written(output_id(i));
  }

  // The route of a routed op, as this member of the expert group executes it.
  const RoutePlan& route() {
    return rank_.routes->get(submission_.fragment->routes[op_.route], index_in(GroupRole::kExpert));
  }

 private:
  Rank rank_;
  const Submission& submission_;
  const Op& op_;
  std::map<int, Matrix<Real>> pieces_;  // of inputs
};

// Executes a compute op. Returns what it adds to the loss (kCrossEntropy), else 0.
template <class Real>
double compute(OpContext<Real>& context);

// Kinds of attention, of routed experts, the optimizer, of serving and where tokens enter and leave;
// compute() calls them.
template <class Real>
void compute_attention(OpContext<Real>& context);
template <class Real>
void compute_routed(OpContext<Real>& context);
template <class Real>
double compute_tokens(OpContext<Real>& context);
template <class Real>
void compute_adam(OpContext<Real>& context);
template <class Real>
void compute_sum_squares(OpContext<Real>& context);

template <class Real>
void compute_batch(OpContext<Real>& context);
// kInput and kAttention of a batch.
template <class Real>
void input_of_batch(OpContext<Real>& context);
template <class Real>
void attend_in_batch(OpContext<Real>& context);
// kConvolution and kDeltaRule.
template <class Real>
void convolve_batch(OpContext<Real>& context);
template <class Real>
void delta_rule_of_batch(OpContext<Real>& context);
// Of packed sequences: kInput, kAttentionGrad; which rows of kCrossEntropy count.
template <class Real>
void packed_input(OpContext<Real>& context);
template <class Real>
void attend_back_in_batch(OpContext<Real>& context);
template <class Real>
std::vector<bool> counted_rows(const OpContext<Real>& context);

// The flat shard of member `index` of `size`: shards of ceil(elements/size), the last one perhaps shorter or
// empty.
struct FlatShard {
  std::int64_t first = 0, last = 0;
  std::int64_t count() const { return last - first; }
};
FlatShard flat_shard(std::int64_t elements, int size, int index);

}  // namespace moebius
