#include "real/host_executor.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <exception>
#include <map>
#include <optional>
#include <string>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "hw/error.h"
#include "real/host_communication.h"
#include "real/thread_clock.h"

namespace moebius {
namespace {

using Clock = std::chrono::steady_clock;

// What a rank has to show for one submission.
struct Done {
  Completion completion;
  std::vector<Span> spans;
};

template <class Real>
struct RankMemory {
  TensorStore<Real> store;
  RoutePlans routes;
  std::map<int, double> loss;  // by step
  std::vector<Transfer> transfers;
  std::vector<OpTime> times;
};

}  // namespace

template <class Real>
struct HostExecutor<Real>::State {
  State(const Layout& given_layout, Recorder& given_recorder, const HostOptions& given_options)
      : layout(given_layout),
        recorder(given_recorder),
        options(given_options),
        monitor(given_layout.ranks, given_options.one_at_a_time),
        exchange(monitor),
        queues(given_layout.ranks) {
    for (int rank = 0; rank < layout.ranks; ++rank) {
      memory.push_back({TensorStore<Real>(store_options(rank)), {}, {}, {}, {}});
    }
    for (int rank = 0; rank < layout.ranks; ++rank) threads.emplace_back([this, rank] { run_rank(rank); });
  }

  StoreOptions store_options(int rank) const {
    StoreOptions store{options.seed, options.exact, options.weights, {}};
    if (options.states)
      store.states = [&states = options.states, rank](const Tensor& state) { return states(rank, state); };
    return store;
  }

  ~State() {
    {
      Monitor::Lock lock(monitor.mutex());
      monitor.stop();
    }
    for (std::thread& thread : threads) thread.join();
  }

  Time since_start(Clock::time_point moment) const {
    return {std::chrono::duration_cast<std::chrono::nanoseconds>(moment - start).count()};
  }
  Time now() const { return since_start(Clock::now()); }

  // The life of a rank's thread: submissions in order until the run stops.
  void run_rank(int rank) {
    try {
      while (true) execute(rank, next_submission(rank));
    } catch (const Stopped&) {
    } catch (const std::exception& error) {
      fail(run_error(fmt::format("rank {}: {}", rank, error.what())));
    }
  }

  Submission next_submission(int rank) {
    Monitor::Lock lock(monitor.mutex());
    monitor.wait(lock, rank, "", [&] { return !queues[rank].empty() && !monitor.stopped(); });
    Submission submission = std::move(queues[rank].front());
    queues[rank].pop_front();
    const std::string what =
        fmt::format("rank {} before {} (step {}, microbatch {}) for the submissions it comes after", rank,
                    submission.fragment->name, submission.step, submission.microbatch);
    const auto& after = submission.after;
    monitor.wait(lock, rank, what, [&] {
      return std::all_of(after.begin(), after.end(), [&](int s) { return is_complete(s); }) &&
             !monitor.stopped();
    });
    return submission;
  }

  bool is_complete(std::int32_t sequence) const {
    return sequence < static_cast<std::int32_t>(complete.size()) && complete[sequence];
  }

  void execute(int rank, const Submission& submission) {
    RankMemory<Real>& mine = memory[rank];
    const typename OpContext<Real>::Rank place{rank, &layout.classes[layout.class_of_rank[rank]], &options,
                                               &mine.store, &mine.routes};
    Done done{{submission.sequence, {}}, {}};
    mine.store.begin(submission);
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(submission.fragment->ops.size()); ++i) {
      OpContext<Real> context(place, submission, i);
      Span span;
      span.sequence = submission.sequence;
      span.op = i;
      span.rank_class = submission.rank_class;
      span.lane = context.op().lane;
      span.origin = Origin::kExecuted;
      span.start = now();
      span.work_start = options.one_at_a_time ? time_op(context, mine, i) : execute_op(context, mine, i);
      if (options.observer) tell_observer(rank, submission, context.op(), mine.store);
      mine.store.release(i);
      span.end = now();
      done.spans.push_back(span);
    }
    mine.store.end();
    done.completion.time = now();
    complete_submission(std::move(done));
  }

  void tell_observer(int rank, const Submission& submission, const Op& op, TensorStore<Real>& store) const {
    const std::function<std::vector<float>(std::int32_t)> read = [&store](std::int32_t tensor) {
      const std::vector<Real>& values = store.read(tensor).values;
      return std::vector<float>(values.begin(), values.end());
    };
    options.observer({rank, submission, op, read});
  }

  // Parameters and plans of routes appear when they are first touched: that is no part of the op.
  static void touch(OpContext<Real>& context) {
    const Op& op = context.op();
    const Fragment& fragment = *context.submission().fragment;
    for (int i = 0; i < op.num_inputs + op.num_outputs; ++i) {
      const std::int32_t tensor = fragment.operands[op.first_tensor + i];
      if (fragment.tensors[tensor].scope == Scope::kRank) context.store().read(tensor);
    }
    if (op.route >= 0) context.route();
  }

  Time time_op(OpContext<Real>& context, RankMemory<Real>& mine, std::int32_t index) {
    touch(context);
    const auto worked = [&] { return thread_cpu_time() - monitor.cpu_of_waiting(context.rank()); };
    const Time before = worked();
    const Time met = execute_op(context, mine, index);
    mine.times.push_back({context.submission().sequence, index, worked() - before});
    return met;
  }

  // Returns when the transfer of a communication op could begin; zero for compute.
  Time execute_op(OpContext<Real>& context, RankMemory<Real>& mine, std::int32_t index) {
    const Submission& submission = context.submission();
    if (is_communication(context.op().kind)) {
      const Moved moved = communicate(context, exchange);
      mine.transfers.push_back({submission.sequence, index, context.rank(), moved.sent_bytes});
      return since_start(moved.met);
    }
    const double loss = compute(context);
    const bool counts =
        context.op().kind == OpKind::kCrossEntropy && context.index_in(GroupRole::kTensor) == 0;
    if (counts) mine.loss[submission.step] += loss;
    return {};
  }

  void complete_submission(Done done) {
    Monitor::Lock lock(monitor.mutex());
    const auto sequence = static_cast<std::size_t>(done.completion.sequence);
    if (complete.size() <= sequence) complete.resize(sequence + 1);
    complete[sequence] = true;
    finished.push_back(std::move(done));
    monitor.changed();
  }

  // The first failure is the one that counts.
  void fail(const Error& error) {
    Monitor::Lock lock(monitor.mutex());
    if (!failure) failure = error;
    monitor.stop();
  }

  // Hands finished submissions to the recorder and returns their completions, by time, then sequence.
  std::vector<Completion> take_finished() {
    std::vector<Completion> completions;
    for (const Done& done : finished) {
      for (const Span& span : done.spans) recorder.span(span);
      completions.push_back(done.completion);
      last_end = std::max(last_end, done.completion.time);
    }
    outstanding -= static_cast<std::int64_t>(finished.size());
    finished.clear();
    std::sort(completions.begin(), completions.end(), [](const Completion& a, const Completion& b) {
      return std::pair(a.time, a.sequence) < std::pair(b.time, b.sequence);
    });
    return completions;
  }

  std::vector<Completion> wait(Time until) {
    Monitor::Lock lock(monitor.mutex());
    const auto deadline = start + std::chrono::nanoseconds(until == kForever ? 0 : until.ns);
    while (true) {
      if (failure) throw *failure;
      if (!finished.empty()) return take_finished();
      if (outstanding == 0 || (until != kForever && Clock::now() >= deadline)) return {};
      if (until == kForever) check_progress();
      monitor.wait_for_change(lock, until == kForever ? nullptr : &deadline);
    }
  }

  void check_progress() const {
    const std::vector<std::string> stuck = monitor.stuck();
    if (!stuck.empty()) throw run_error(fmt::format("deadlock: {}", fmt::join(stuck, "; ")));
  }

  const Layout layout;
  Recorder& recorder;
  const HostOptions options;
  const Clock::time_point start = Clock::now();
  Monitor monitor;  // its mutex guards everything from here to `last_end`
  Exchange<Real> exchange;
  std::vector<std::deque<Submission>> queues;  // by rank
  std::vector<bool> complete;                  // by sequence
  std::vector<Done> finished;                  // not yet reported
  std::int64_t outstanding = 0;
  std::optional<Error> failure;
  Time last_end;
  std::vector<RankMemory<Real>> memory;  // each touched by its own thread only, until all is complete
  std::vector<std::thread> threads;
};

template <class Real>
HostExecutor<Real>::HostExecutor(const Layout& layout, Recorder& recorder, const HostOptions& options) {
  for (const RankClass& rank_class : layout.classes) {
    if (rank_class.size() != 1) throw run_error("the host executes every rank: set /plan/fold to false");
  }
  state_ = std::make_unique<State>(layout, recorder, options);
}

template <class Real>
HostExecutor<Real>::~HostExecutor() = default;

template <class Real>
Time HostExecutor<Real>::now() const {
  return state_->now();
}

template <class Real>
void HostExecutor<Real>::submit(const Submission& submission) {
  Monitor::Lock lock(state_->monitor.mutex());
  state_->queues[state_->layout.classes[submission.rank_class].representative()].push_back(submission);
  ++state_->outstanding;
  state_->monitor.changed();
}

template <class Real>
std::vector<Completion> HostExecutor<Real>::wait(Time until) {
  return state_->wait(until);
}

template <class Real>
Time HostExecutor<Real>::finish() {
  while (!state_->wait(kForever).empty()) {
  }
  return state_->last_end;
}

template <class Real>
double HostExecutor<Real>::loss(int step) const {
  double sum = 0;
  for (const RankMemory<Real>& memory : state_->memory) {
    const auto found = memory.loss.find(step);
    if (found != memory.loss.end()) sum += found->second;
  }
  return sum;
}

template <class Real>
int HostExecutor<Real>::num_steps() const {
  int steps = 0;
  for (const RankMemory<Real>& memory : state_->memory) {
    if (!memory.loss.empty()) steps = std::max(steps, memory.loss.rbegin()->first + 1);
  }
  return steps;
}

template <class Real>
std::vector<Transfer> HostExecutor<Real>::transfers() const {
  std::vector<Transfer> all;
  for (const RankMemory<Real>& memory : state_->memory) {
    all.insert(all.end(), memory.transfers.begin(), memory.transfers.end());
  }
  std::sort(all.begin(), all.end(), [](const Transfer& a, const Transfer& b) {
    return std::pair(a.sequence, a.op) < std::pair(b.sequence, b.op);
  });
  return all;
}

template <class Real>
std::vector<OpTime> HostExecutor<Real>::op_times() const {
  std::vector<OpTime> all;
  for (const RankMemory<Real>& memory : state_->memory)
    all.insert(all.end(), memory.times.begin(), memory.times.end());
  return all;
}

template <class Real>
std::vector<Real> HostExecutor<Real>::tensor(int rank, std::uint32_t key) const {
  const Matrix<Real>* found = state_->memory[rank].store.find(key);
  return found == nullptr ? std::vector<Real>() : found->values;
}

template <class Real>
std::vector<Real> HostExecutor<Real>::by_role(int rank, MemoryKind memory, Role role, int layer) const {
  const auto keys = state_->memory[rank].store.keys(memory, role, layer);
  CHECK(keys.size() == 1,
        fmt::format("{} tensors of {}, layer {} on rank {}", keys.size(), to_string(role), layer, rank));
  return tensor(rank, keys.front());
}

template <class Real>
std::vector<Real> HostExecutor<Real>::parameter(int rank, Role role, int layer) const {
  return by_role(rank, MemoryKind::kWeights, role, layer);
}

template <class Real>
std::vector<Real> HostExecutor<Real>::gradient(int rank, Role role, int layer) const {
  return by_role(rank, MemoryKind::kGradients, role, layer);
}

template <class Real>
void HostExecutor<Real>::set_parameter(int rank, std::uint32_t key, std::vector<Real> values) {
  state_->memory[rank].store.set_initial(key, std::move(values));
}

template <class Real>
std::vector<HeldTensor<Real>> HostExecutor<Real>::held(int rank, MemoryKind memory) const {
  std::vector<HeldTensor<Real>> all;
  state_->memory[rank].store.for_each(memory, [&](const Tensor& tensor, const Matrix<Real>& value) {
    all.push_back({tensor, value.view()});
  });
  return all;
}

template <class Real>
std::size_t HostExecutor<Real>::num_microbatch_tensors(int rank) const {
  return state_->memory[rank].store.num_microbatch_tensors();
}

template class HostExecutor<float>;
template class HostExecutor<double>;

std::unique_ptr<HostExecutor<float>> make_host_executor(const Layout& layout, Recorder& recorder,
                                                        const HostOptions& options) {
  return std::make_unique<HostExecutor<float>>(layout, recorder, options);
}

}  // namespace moebius
