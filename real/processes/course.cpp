#include "real/processes/course.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "hw/error.h"

namespace moebius {
namespace {

constexpr auto kBetweenRounds = std::chrono::milliseconds(100);
constexpr int kTimes = 8;

bool earlier(const FinishedSubmission& a, const FinishedSubmission& b) {
  return std::pair(a.completion.time, a.completion.sequence) <
         std::pair(b.completion.time, b.completion.sequence);
}

[[noreturn]] void throw_deadlock(const std::vector<std::string>& waiting) {
  throw run_error(fmt::format("deadlock: {}", fmt::join(waiting, "; ")));
}

}  // namespace

Course::Course(Processes* processes, int ranks, Monitor& monitor)
    : processes_(processes), ranks_(ranks), here_(ranks_here(processes, ranks)), monitor_(monitor) {}

Course::~Course() {
  end();
}

void Course::end() {
  if (std::exchange(joined_, false)) processes_->leave();
}

RankBlock Course::ranks_here(const Processes* processes, int ranks) {
  return processes == nullptr ? RankBlock{0, ranks} : processes->block_of(processes->self(), ranks);
}

OutsideRanks Course::outside() {
  const auto is_here = [this](std::int32_t rank) { return here_.holds(rank); };
  const auto post_to = [this](std::int32_t rank, ByteString message) {
    post(processes_->process_of(rank, ranks_), Kind::kOutside, std::move(message));
  };
  return {is_here, post_to};
}

void Course::begin(Outside outside) {
  outside_ = std::move(outside);
  if (!several()) return;
  joined_ = true;
  processes_->join({[this](int from, ByteReader& message) { hear(from, message); },
                    [this](const Error& error) { hear_failure(error); }});
  if (leads()) return;
  try {
    ask_time();
  } catch (const Error&) {
    end();
    throw;
  }
}

Time Course::since_start(Clock::time_point moment) const {
  return {std::max<std::int64_t>(
      0, std::chrono::duration_cast<std::chrono::nanoseconds>(moment - start_).count())};
}

// ---- messages ----

void Course::post(int process, Kind kind, ByteString content) {
  if (kind == Kind::kOutside || kind == Kind::kFinished || kind == Kind::kTaken) ++sent_;
  ByteWriter message;
  message.put(kind);
  message.put_all(std::span<const std::byte>(content));
  processes_->send(process, message.take());
}

void Course::post_all(Kind kind, const ByteString& content) {
  for (int process = 0; process < processes_->count(); ++process) {
    if (process != processes_->self()) post(process, kind, content);
  }
}

void Course::hear(int from, ByteReader& message) {
  const auto kind = message.get<Kind>();
  switch (kind) {
    case Kind::kOutside:
      outside_(message);
      break;
    case Kind::kFinished:
      mark_complete(read_finished_submission(message));
      break;
    case Kind::kTaken: {
      const Monitor::Lock lock(monitor_.mutex());
      const auto stops = message.get<bool>();
      orders_.push_back({stops, message.get_list<std::int32_t>()});
      break;
    }
    case Kind::kStop: {  // not counted, as questions are not: nobody waits for it
      const Monitor::Lock lock(monitor_.mutex());
      stop_asked_ = true;
      return;
    }
    case Kind::kProbe:
      return hear_probe(message);
    case Kind::kState:
      return hear_state(from, message);
    case Kind::kWhatTime: {
      ByteWriter answer;
      answer.put(now());
      return post(from, Kind::kTime, answer.take());
    }
    case Kind::kTime:
      return hear_time(message);
  }
  const Monitor::Lock lock(monitor_.mutex());
  ++received_;
  monitor_.changed();
}

// ---- one clock ----

void Course::ask_time() {
  Monitor::Lock lock(monitor_.mutex());
  while (times_ < kTimes) {
    const int before = times_;
    asked_ = Clock::now();
    lock.unlock();
    post(0, Kind::kWhatTime, {});
    lock.lock();
    while (times_ == before && !failure_) monitor_.wait_for_change(lock, nullptr);
    if (failure_) throw *failure_;
  }
}

void Course::hear_time(ByteReader& message) {
  const std::chrono::nanoseconds there(message.get<Time>().ns);
  const Monitor::Lock lock(monitor_.mutex());
  const auto took = Clock::now() - asked_;
  ++times_;
  if (took < shortest_) {
    shortest_ = took;
    start_ = asked_ + took / 2 - there;
  }
  monitor_.changed();
}

// ---- what ranks finish ----

void Course::finish(FinishedSubmission finished) {
  if (several()) {
    ByteWriter message;
    write(message, finished);
    post_all(Kind::kFinished, message.take());
  }
  mark_complete(std::move(finished));
}

void Course::mark_complete(FinishedSubmission finished) {
  const Monitor::Lock lock(monitor_.mutex());
  const auto sequence = static_cast<std::size_t>(finished.completion.sequence);
  if (complete_.size() <= sequence) complete_.resize(sequence + 1);
  complete_[sequence] = true;
  finished_.push_back(std::move(finished));
  monitor_.changed();
}

bool Course::is_complete(std::int32_t sequence) const {
  return sequence < static_cast<std::int32_t>(complete_.size()) && complete_[sequence];
}

void Course::fail(const Error& error) {
  hear_failure(error);
  if (several()) processes_->fail(error);
}

void Course::hear_failure(const Error& error) {
  const Monitor::Lock lock(monitor_.mutex());
  if (!failure_) failure_ = error;
  monitor_.stop();
}

// ---- the owner ----

// The first process takes what there is, the others what it says, once all of that has come.
bool Course::can_take() const {
  if (leads()) return !finished_.empty();
  if (orders_.empty()) return false;
  const std::vector<std::int32_t>& next = orders_.front().sequences;
  return std::all_of(next.begin(), next.end(), [this](std::int32_t sequence) {
    return std::any_of(finished_.begin(), finished_.end(),
                       [&](const FinishedSubmission& f) { return f.completion.sequence == sequence; });
  });
}

std::vector<FinishedSubmission> Course::take() {
  std::vector<FinishedSubmission> taken;
  if (leads()) {
    taken = std::exchange(finished_, {});
    std::sort(taken.begin(), taken.end(), earlier);
    announce(taken);
  } else {
    stops_ = orders_.front().stops;
    for (const std::int32_t sequence : orders_.front().sequences) {
      const auto found = std::find_if(finished_.begin(), finished_.end(), [&](const FinishedSubmission& f) {
        return f.completion.sequence == sequence;
      });
      taken.push_back(std::move(*found));
      finished_.erase(found);
    }
    orders_.pop_front();
  }
  outstanding_ -= static_cast<std::int64_t>(taken.size());
  return taken;
}

void Course::announce(const std::vector<FinishedSubmission>& taken) {
  if (!several()) return;
  stops_ = stop_asked_;
  std::vector<std::int32_t> sequences;
  sequences.reserve(taken.size());
  for (const FinishedSubmission& finished : taken) sequences.push_back(finished.completion.sequence);
  ByteWriter message;
  message.put(stops_);
  message.put_list(std::span<const std::int32_t>(sequences));
  post_all(Kind::kTaken, message.take());
}

bool Course::stops(bool asked) {
  if (asked && !std::exchange(stop_asked_, true) && !leads()) post(0, Kind::kStop, {});
  return stops_;
}

std::vector<FinishedSubmission> Course::wait(Monitor::Lock& lock, Time until) {
  const bool timed = until != kForever && leads();  // the first process watches the time for all
  const auto deadline = start_ + std::chrono::nanoseconds(timed ? until.ns : 0);
  while (true) {
    if (failure_) throw *failure_;
    if (can_take()) return take();
    if (outstanding_ == 0) return {};
    if (timed && Clock::now() >= deadline) {
      announce({});
      return {};
    }
    if (until == kForever) check_progress();
    const bool asks = several() && leads() && !timed;
    const auto next = timed ? deadline : Clock::now() + kBetweenRounds;
    owner_waits_ = true;
    monitor_.wait_for_change(lock, timed || asks ? &next : nullptr);
    owner_waits_ = false;
  }
}

// ---- deadlocks ----

Course::State Course::state() const {
  const bool owner_rests = outstanding_ > 0 && !can_take() && (owner_waits_ || leads());
  return {owner_rests && monitor_.rests(), sent_, received_, monitor_.stuck()};
}

void Course::check_progress() {
  if (several()) {
    if (leads()) check_states();
    return;
  }
  const std::vector<std::string> waiting = monitor_.stuck();
  if (!waiting.empty()) throw_deadlock(waiting);
}

void Course::hear_probe(ByteReader& message) {
  ByteWriter answer;
  answer.put(message.get<std::int32_t>());
  {
    const Monitor::Lock lock(monitor_.mutex());
    const State mine = state();
    answer.put(mine.rests);
    answer.put(mine.sent);
    answer.put(mine.received);
    const std::string waiting = fmt::format("{}", fmt::join(mine.waiting, "; "));
    answer.put_list(std::span<const char>(waiting));
  }
  post(0, Kind::kState, answer.take());
}

void Course::hear_state(int from, ByteReader& message) {
  const Monitor::Lock lock(monitor_.mutex());
  if (message.get<std::int32_t>() != round_) return;
  State& told = states_[from];
  told.rests = message.get<bool>();
  told.sent = message.get<std::int64_t>();
  told.received = message.get<std::int64_t>();
  const std::string waiting = message.get_text();
  if (!waiting.empty()) told.waiting = {waiting};
}

// Processes are asked at different moments, so that one who rests may be woken by a message under way. It is
// sure that nothing goes on when two rounds in a row find all at rest, all messages received, and none added
// in between (the four counters of Mattern, Algorithms for distributed termination detection, 1987).
void Course::check_states() {
  const auto now = Clock::now();
  const bool answered = static_cast<int>(states_.size()) == processes_->count();
  if (now < next_round_ || (round_ > 0 && !answered)) return;
  next_round_ = now + kBetweenRounds;
  if (answered) {
    std::int64_t sent = 0, received = 0;
    bool rest = true;
    std::vector<std::string> waiting;
    for (const auto& [process, told] : states_) {
      sent += told.sent, received += told.received;
      rest = rest && told.rests;
      waiting.insert(waiting.end(), told.waiting.begin(), told.waiting.end());
    }
    const bool rested = rest && sent == received;
    if (rested && rested_at_ == sent && !waiting.empty()) throw_deadlock(waiting);
    rested_at_ = rested ? sent : -1;
  }
  ++round_;
  states_.clear();
  states_[0] = state();
  ByteWriter question;
  question.put(round_);
  post_all(Kind::kProbe, question.take());
}

}  // namespace moebius
