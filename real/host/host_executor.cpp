#include "real/host/host_executor.h"

#include <algorithm>
#include <deque>
#include <exception>
#include <map>
#include <string>
#include <system_error>
#include <thread>

#include <fmt/format.h>

#include "hw/error.h"
#include "real/host/host_communication.h"
#include "real/processes/course.h"
#include "real/thread_clock.h"

namespace moebius {
namespace {

// What is known of a rank, wherever it lives.
struct RankResults {
  std::map<int, double> loss;  // by step
  std::vector<Transfer> transfers;
  std::vector<OpTime> times;
};

template <class Real>
struct RankMemory {
  TensorStore<Real> store;
  RoutePlans routes;
};

}  // namespace

template <class Real>
struct HostExecutor<Real>::State {
  State(const Layout& given_layout, Recorder& given_recorder, const HostOptions& given_options)
      : layout(given_layout),
        recorder(given_recorder),
        options(given_options),
        here(Course::ranks_here(options.processes, layout.ranks)),
        monitor(here.count(), options.one_at_a_time, here.first),
        course(options.processes, layout.ranks, monitor),
        exchange(monitor, course.outside()),
        queues(given_layout.ranks),
        results(given_layout.ranks) {
    for (int rank = 0; rank < layout.ranks; ++rank) {
      memory.push_back({TensorStore<Real>(store_options(rank)), {}});
    }
    course.begin([this](ByteReader& message) { exchange.deliver(message); });
    try {
      for (int rank = here.first; rank < here.last; ++rank)
        threads.emplace_back([this, rank] { run_rank(rank); });
    } catch (const std::system_error& error) {
      shut_down();
      throw run_error(
          fmt::format("{} ranks on this machine: each needs a thread, and number {} is refused: {}",
                      here.count(), threads.size() + 1, error.what()));
    }
  }

  StoreOptions store_options(int rank) const {
    StoreOptions store{options.seed,
                       options.exact,
                       options.weights,
                       options.stacked,
                       {},
                       &layout.classes[layout.class_of_rank[rank]]};
    if (options.states)
      store.states = [&states = options.states, rank](const Tensor& state) { return states(rank, state); };
    return store;
  }

  ~State() { shut_down(); }

  void shut_down() {
    course.end();
    {
      Monitor::Lock lock(monitor.mutex());
      monitor.stop();
    }
    for (std::thread& thread : threads) thread.join();
  }

  // The life of a rank's thread: submissions in order until the run stops.
  void run_rank(int rank) {
    try {
      while (true) execute(rank, next_submission(rank));
    } catch (const Stopped&) {
    } catch (const std::exception& error) {
      course.fail(run_error(fmt::format("rank {}: {}", rank, error.what())));
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
      return std::all_of(after.begin(), after.end(), [&](int s) { return course.is_complete(s); }) &&
             !monitor.stopped();
    });
    return submission;
  }

  void execute(int rank, const Submission& submission) {
    RankMemory<Real>& mine = memory[rank];
    const typename OpContext<Real>::Rank place{rank, &layout.classes[layout.class_of_rank[rank]], &options,
                                               &mine.store, &mine.routes};
    FinishedSubmission done{.completion = {submission.sequence, {}}, .rank = rank, .step = submission.step};
    mine.store.begin(submission);
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(submission.fragment->ops.size()); ++i) {
      OpContext<Real> context(place, submission, i);
      Span span;
      span.sequence = submission.sequence;
      span.op = i;
      span.rank_class = submission.rank_class;
      span.lane = context.op().lane;
      span.origin = Origin::kExecuted;
      span.start = course.now();
      span.work_start = options.one_at_a_time ? time_op(context, done, i) : execute_op(context, done, i);
      if (options.observer) tell_observer(rank, submission, context.op(), mine.store);
      mine.store.release(i);
      span.end = course.now();
      done.spans.push_back(span);
    }
    mine.store.end();
    done.completion.time = course.now();
    course.finish(std::move(done));
  }

  void tell_observer(int rank, const Submission& submission, const Op& op, TensorStore<Real>& store) const {
    const std::function<std::vector<float>(std::int32_t)> read = [&store](std::int32_t tensor) {
      const std::vector<Real>& values = store.read(tensor).values;
      return std::vector<float>(values.begin(), values.end());
    };
    options.observer({rank, submission, op, read});
  }

  // Parameters and plans of routes appear when they are first touched: that is no part of the op. States of
  // the optimizer appear where their op says how they begin.
  static void touch(OpContext<Real>& context) {
    const Op& op = context.op();
    const Fragment& fragment = *context.submission().fragment;
    for (int i = 0; i < op.num_inputs + op.num_outputs; ++i) {
      const std::int32_t tensor = fragment.operands[op.first_tensor + i];
      const Tensor& touched = fragment.tensors[tensor];
      const bool begins = touched.memory != MemoryKind::kOptimizer || context.store().restores_states();
      if (touched.scope == Scope::kRank && begins) context.store().read(tensor);
    }
    if (op.route >= 0) context.route();
  }

  Time time_op(OpContext<Real>& context, FinishedSubmission& done, std::int32_t index) {
    touch(context);
    const auto worked = [&] { return thread_cpu_time() - monitor.cpu_of_waiting(context.rank()); };
    const Time before = worked();
    const Time met = execute_op(context, done, index);
    done.times.push_back({context.submission().sequence, index, worked() - before});
    return met;
  }

  // Returns when the transfer of a communication op could begin; zero for compute.
  Time execute_op(OpContext<Real>& context, FinishedSubmission& done, std::int32_t index) {
    const Submission& submission = context.submission();
    if (is_communication(context.op().kind)) {
      const Moved moved = communicate(context, exchange);
      done.transfers.push_back({submission.sequence, index, context.rank(), moved.sent_bytes});
      return course.since_start(moved.met);
    }
    const double loss = compute(context);
    const bool counts =
        context.op().kind == OpKind::kCrossEntropy && context.index_in(GroupRole::kTensor) == 0;
    done.has_loss = done.has_loss || counts;
    if (counts) done.loss += loss;
    return {};
  }

  // Hands what is taken to the recorder and returns its completions.
  std::vector<Completion> wait(Time until) {
    Monitor::Lock lock(monitor.mutex());
    std::vector<Completion> completions;
    for (FinishedSubmission& done : course.wait(lock, until)) {
      for (const Span& span : done.spans) recorder.span(span);
      completions.push_back(done.completion);
      last_end = std::max(last_end, done.completion.time);
      RankResults& shown = results[done.rank];
      if (done.has_loss) shown.loss[done.step] += done.loss;
      shown.transfers.insert(shown.transfers.end(), done.transfers.begin(), done.transfers.end());
      shown.times.insert(shown.times.end(), done.times.begin(), done.times.end());
    }
    return completions;
  }

  const Layout layout;
  Recorder& recorder;
  const HostOptions options;
  const RankBlock here;
  Monitor monitor;  // its mutex guards everything from here to `last_end`
  Course course;
  Exchange<Real> exchange;
  std::vector<std::deque<Submission>> queues;  // by rank
  std::vector<RankResults> results;            // by rank
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
  return state_->course.now();
}

template <class Real>
void HostExecutor<Real>::submit(const Submission& submission) {
  Monitor::Lock lock(state_->monitor.mutex());
  const std::int32_t rank = state_->layout.classes[submission.rank_class].representative();
  if (state_->here.holds(rank)) state_->queues[rank].push_back(submission);
  state_->course.submitted();
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
  for (const RankResults& shown : state_->results) {
    const auto found = shown.loss.find(step);
    if (found != shown.loss.end()) sum += found->second;
  }
  return sum;
}

template <class Real>
int HostExecutor<Real>::num_steps() const {
  int steps = 0;
  for (const RankResults& shown : state_->results) {
    if (!shown.loss.empty()) steps = std::max(steps, shown.loss.rbegin()->first + 1);
  }
  return steps;
}

template <class Real>
std::vector<Transfer> HostExecutor<Real>::transfers() const {
  std::vector<Transfer> all;
  for (const RankResults& shown : state_->results) {
    all.insert(all.end(), shown.transfers.begin(), shown.transfers.end());
  }
  std::sort(all.begin(), all.end(), [](const Transfer& a, const Transfer& b) {
    return std::pair(a.sequence, a.op) < std::pair(b.sequence, b.op);
  });
  return all;
}

template <class Real>
std::vector<OpTime> HostExecutor<Real>::op_times() const {
  std::vector<OpTime> all;
  for (const RankResults& shown : state_->results)
    all.insert(all.end(), shown.times.begin(), shown.times.end());
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
RankBlock HostExecutor<Real>::ranks_here() const {
  return state_->here;
}

template <class Real>
bool HostExecutor<Real>::stops(bool asked) {
  const Monitor::Lock lock(state_->monitor.mutex());
  return state_->course.stops(asked);
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
