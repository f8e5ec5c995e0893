#include "real/cuda/executor_state.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <exception>
#include <system_error>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "hw/error.h"
#include "real/cuda/near_copy.h"

namespace moebius {

using cuda::DeviceRank;
using cuda::EventRef;
using cuda::IssuedOp;

CudaExecutor::State::State(const Layout& given_layout, Recorder& given_recorder,
                           const cuda::CudaOptions& given_options)
    : layout(given_layout),
      recorder(given_recorder),
      options(given_options),
      devices(cuda::open_devices()),
      device_of_rank(cuda::devices_of_ranks(layout.ranks, static_cast<int>(devices.size()))),
      monitor(layout.ranks),
      exchange(monitor),
      queues(layout.ranks),
      under_way(layout.ranks),
      results(layout.ranks) {
  if (!options.library_gemm) no_library = "chosen";
  place_ranks();
  if (options.exchange == cuda::ExchangeBy::kOwn) no_nccl = "chosen";
  if (no_nccl.empty() && device_of_rank.back() > 0) nccl = cuda::open_nccl(no_nccl);
  try {
    for (int rank = 0; rank < layout.ranks; ++rank) {
      threads.emplace_back([this, rank] { guarded(rank, [=, this] { issue_all(rank); }); });
      threads.emplace_back([this, rank] { guarded(rank, [=, this] { follow_all(rank); }); });
    }
  } catch (const std::system_error& error) {
    end_threads();
    throw run_error(
        fmt::format("{} ranks on this machine: each needs two threads, and number {} is refused: {}",
                    layout.ranks, threads.size() + 1, error.what()));
  }
}

// Ranks of one device come one after the other.
void CudaExecutor::State::place_ranks() {
  for (int rank = 0; rank < layout.ranks; ++rank) {
    const int device = device_of_rank[rank];
    const bool first = device == static_cast<int>(anchors.size());
    if (first) {
      cuda::use_device(device);
      libraries.push_back(options.library_gemm ? cuda::open_gemm_library(no_library) : nullptr);
      if (options.turns) turns.emplace_back();
    }
    const RankClass& place = layout.classes[layout.class_of_rank[rank]];
    ranks.push_back(std::make_unique<DeviceRank>(rank, place, options, libraries.back().get()));
    ranks.back()->device = device;
    if (options.turns) ranks.back()->turns = &turns.back();
    ranks.back()->devices = &device_of_rank;
    if (first) anchors.push_back(cuda::align(ranks.back()->events, ranks.back()->upload, start));
  }
}

void CudaExecutor::State::end_threads() {
  {
    Monitor::Lock lock(monitor.mutex());
    monitor.stop();
    given.notify_all();
  }
  for (std::thread& thread : threads) thread.join();
}

CudaExecutor::State::~State() {
  end_threads();
  // What is still on the device uses memory that goes away now. A device that failed says so here again.
  for (const auto& rank : ranks) {
    for (const cuda::Stream stream : rank->streams) {
      try {
        if (stream != nullptr) cuda::synchronise(stream);
      } catch (const Error&) {
      }
    }
  }
}

template <class Life>
void CudaExecutor::State::guarded(int rank, const Life& life) {
  try {
    cuda::use_device(device_of_rank[rank]);
    life();
  } catch (const Stopped&) {
  } catch (const std::exception& error) {
    fail(run_error(fmt::format("rank {}: {}", rank, error.what())));
  }
}

// ---- giving work to the device ----

void CudaExecutor::State::submit(const Submission& submission) {
  Monitor::Lock lock(monitor.mutex());
  queues[layout.classes[submission.rank_class].representative()].push_back(submission);
  ++outstanding;
  monitor.changed();
}

void CudaExecutor::State::issue_all(int rank) {
  while (true) {
    const IssuedPtr done = issue(rank, next_submission(rank));
    Monitor::Lock lock(monitor.mutex());
    issued[done->submission.sequence] = done;
    under_way[rank].push_back(done);
    ++on_device;
    given.notify_all();
    monitor.changed();
  }
}

Submission CudaExecutor::State::next_submission(int rank) {
  Monitor::Lock lock(monitor.mutex());
  monitor.wait(lock, rank, "", [&] { return !queues[rank].empty() && !monitor.stopped(); });
  Submission submission = std::move(queues[rank].front());
  queues[rank].pop_front();
  const std::string what =
      fmt::format("rank {} before {} (step {}, microbatch {}) for the submissions it comes after", rank,
                  submission.fragment->name, submission.step, submission.microbatch);
  const auto known = [this](std::int32_t sequence) {
    return issued.count(sequence) > 0 ||
           (sequence < static_cast<std::int32_t>(completed.size()) && completed[sequence]);
  };
  const auto& after = submission.after;
  monitor.wait(lock, rank, what,
               [&] { return std::all_of(after.begin(), after.end(), known) && !monitor.stopped(); });
  return submission;
}

// On the device: every lane that this submission uses waits for all lanes of those before.
void CudaExecutor::State::wait_for_predecessors(DeviceRank& rank, const Submission& submission) {
  std::vector<EventRef> ends;
  {
    Monitor::Lock lock(monitor.mutex());
    for (const std::int32_t sequence : submission.after) {
      const auto found = issued.find(sequence);
      if (found != issued.end())
        ends.insert(ends.end(), found->second->ends.begin(), found->second->ends.end());
    }
  }
  std::array<bool, kNumLanes> seen = {};
  for (const Op& op : submission.fragment->ops) {
    if (std::exchange(seen[static_cast<int>(op.lane)], true)) continue;
    for (const EventRef& end : ends) cuda::wait(rank.stream(op.lane), end);
  }
}

// Single ops of earlier submissions, which this rank has given to the device before.
void CudaExecutor::State::wait_for_followed(DeviceRank& rank, const Submission& submission, std::int32_t op) {
  for (const Follow& follow : submission.follows) {
    if (follow.op != op) continue;
    Monitor::Lock lock(monitor.mutex());
    const auto found = issued.find(follow.sequence);
    if (found == issued.end()) continue;
    cuda::wait(rank.stream(submission.fragment->ops[op].lane), found->second->ops[follow.before].end);
  }
}

// Before an op that follows them has begun.
void CudaExecutor::State::make_routes(DeviceRank& rank, const Fragment& fragment) {
  const int member = rank.place->group(GroupRole::kExpert).my_index;
  for (const Op& op : fragment.ops)
    if (op.route >= 0) rank.routes.get(fragment.routes[op.route], member, rank.memory, rank.upload);
}

CudaExecutor::State::IssuedPtr CudaExecutor::State::issue(int number, const Submission& submission) {
  DeviceRank& rank = *ranks[number];
  auto all = std::make_shared<Issued>();
  all->submission = submission;
  make_routes(rank, *submission.fragment);
  wait_for_predecessors(rank, submission);
  rank.store.begin(submission);
  std::array<EventRef, kNumLanes> last = {};
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(submission.fragment->ops.size()); ++i) {
    wait_for_followed(rank, submission, i);
    all->ops.push_back(issue_op(rank, *all, i));
    if (options.observer) tell_observer(rank, submission, submission.fragment->ops[i]);
    rank.store.release(i);
    last[static_cast<int>(submission.fragment->ops[i].lane)] = all->ops.back().end;
  }
  rank.store.end();
  for (const EventRef& end : last) {
    if (end) all->ends.push_back(end);
  }
  return all;
}

IssuedOp CudaExecutor::State::issue_op(DeviceRank& rank, const Issued& all, std::int32_t index) {
  const Fragment& fragment = *all.submission.fragment;
  const Op& op = fragment.ops[index];
  for (int i = 0; i < op.num_dependencies; ++i) {
    const std::int32_t before = fragment.dependencies[op.first_dependency + i];
    if (fragment.ops[before].lane != op.lane) cuda::wait(rank.stream(op.lane), all.ops[before].end);
  }
  if (trace) trace->begin({all.submission.sequence, index, rank.rank, op.kind});
  cuda::DeviceOp c(rank, all.submission, index);
  if (is_communication(op.kind)) {
    cuda::communicate(c, exchange, nccl.get());
  } else {
    cuda::compute(c);
  }
  IssuedOp done = c.finish();
  if (trace) trace->end();
  return done;
}

// An observer that reads waits for the device: runs that are looked into are slower.
void CudaExecutor::State::tell_observer(DeviceRank& rank, const Submission& submission, const Op& op) {
  const std::function<std::vector<float>(std::int32_t)> read = [&](std::int32_t tensor) {
    return values_of(rank.rank, rank.store.find(tensor));
  };
  options.observer({rank.rank, submission, op, read});
}

// ---- following the device ----

void CudaExecutor::State::follow_all(int rank) {
  cuda::DeviceClock clock(anchors[device_of_rank[rank]]);
  while (true) {
    IssuedPtr next;
    {
      Monitor::Lock lock(monitor.mutex());
      given.wait(lock, [&] { return monitor.stopped() || !under_way[rank].empty(); });
      if (monitor.stopped()) return;
      next = std::move(under_way[rank].front());
      under_way[rank].pop_front();
    }
    complete(follow(rank, *next, clock));
  }
}

CudaExecutor::State::Done CudaExecutor::State::follow(int rank, const Issued& all, cuda::DeviceClock& clock) {
  for (const EventRef& end : all.ends) cuda::synchronise(end.get());
  Done done{{all.submission.sequence, {}}, {}};
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(all.ops.size()); ++i) {
    done.spans.push_back(span_of(rank, all, i, clock));
    done.completion.time = std::max(done.completion.time, done.spans.back().end);
    take_loss(rank, all, i);
    if (is_communication(all.submission.fragment->ops[i].kind))
      results[rank].transfers.push_back({all.submission.sequence, i, rank, all.ops[i].sent_bytes});
  }
  if (!all.ends.empty()) clock.move_to(all.ends.front());
  return done;
}

// Times are rounded to the float that CUDA tells: spans of one lane are kept from overlapping by that.
Span CudaExecutor::State::span_of(int rank, const Issued& all, std::int32_t index,
                                  const cuda::DeviceClock& clock) {
  const IssuedOp& op = all.ops[index];
  Span span;
  span.sequence = all.submission.sequence;
  span.op = index;
  span.rank_class = all.submission.rank_class;
  span.lane = all.submission.fragment->ops[index].lane;
  span.origin = Origin::kExecuted;
  Time& lane_end = results[rank].lane_end[static_cast<int>(span.lane)];
  span.start = std::max(clock.time_of(op.start), lane_end);
  span.end = std::max(clock.time_of(op.end), span.start);
  if (op.met) span.work_start = std::min(clock.time_of(op.met), span.end);
  lane_end = span.end;
  return span;
}

void CudaExecutor::State::take_loss(int rank, const Issued& all, std::int32_t index) {
  const IssuedOp& op = all.ops[index];
  if (op.loss == nullptr) return;
  const double value = *op.loss;
  ranks[rank]->losses.give(op.loss);
  if (!std::isfinite(value)) {
    throw run_error(fmt::format("the loss of step {}, microbatch {} is not finite: lower the learning rate",
                                all.submission.step,
                                all.submission.microbatch_of(all.submission.fragment->ops[index])));
  }
  // Members of a tensor group compute the same one, which counts once.
  if (ranks[rank]->place->group(GroupRole::kTensor).my_index == 0)
    results[rank].loss[all.submission.step] += value;
}

void CudaExecutor::State::complete(Done done) {
  Monitor::Lock lock(monitor.mutex());
  const auto sequence = static_cast<std::size_t>(done.completion.sequence);
  if (completed.size() <= sequence) completed.resize(sequence + 1);
  completed[sequence] = true;
  issued.erase(done.completion.sequence);
  finished.push_back(std::move(done));
  --on_device;
  monitor.changed();
}

// The first failure is the one that counts.
void CudaExecutor::State::fail(const Error& error) {
  Monitor::Lock lock(monitor.mutex());
  if (!failure) failure = error;
  monitor.stop();
  given.notify_all();
}

// ---- the owner ----

// Hands finished submissions to the recorder and returns their completions, by time, then sequence.
std::vector<Completion> CudaExecutor::State::take_finished() {
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

std::vector<Completion> CudaExecutor::State::wait(Time until) {
  Monitor::Lock lock(monitor.mutex());
  const auto deadline = start + std::chrono::nanoseconds(until == kForever ? 0 : until.ns);
  while (true) {
    if (failure) throw *failure;
    if (!finished.empty()) return take_finished();
    if (outstanding == 0 || (until != kForever && cuda::HostClock::now() >= deadline)) return {};
    if (until == kForever) check_progress();
    monitor.wait_for_change(lock, until == kForever ? nullptr : &deadline);
  }
}

// While the device works something will complete, and its owner may then submit what ranks wait for.
void CudaExecutor::State::check_progress() const {
  if (on_device > 0) return;
  const std::vector<std::string> stuck = monitor.stuck();
  if (!stuck.empty()) throw run_error(fmt::format("deadlock: {}", fmt::join(stuck, "; ")));
}

std::vector<float> CudaExecutor::State::values_of(int number, const cuda::TensorRef& tensor) {
  if (!tensor) return {};
  DeviceRank& rank = *ranks[number];
  cuda::use_device(rank.device);
  const cuda::Operand& x = tensor->operand;
  if (tensor->written) cuda::wait(rank.upload, tensor->written);
  const cuda::DeviceTensor plain(rank.memory, rank.upload, x.rows, x.columns, cuda::Storage::kFp32);
  cuda::convert(rank.upload, x, plain.operand);
  std::vector<float> values(static_cast<std::size_t>(x.elements()));
  cuda::copy_to_host(rank.upload, values.data(), plain.operand.data, values.size() * sizeof(float));
  cuda::synchronise(rank.upload);
  return values;
}

Time CudaExecutor::State::clock_drift() {
  cuda::use_device(ranks.front()->device);
  const cuda::Anchor later = cuda::align(ranks.front()->events, ranks.front()->upload, start);
  const cuda::Anchor& anchor = anchors.front();
  return {cuda::elapsed(anchor.event.get(), later.event.get()).ns - (later.time - anchor.time).ns};
}

}  // namespace moebius
