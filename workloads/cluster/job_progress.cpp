#include "workloads/cluster/job_progress.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "hw/error.h"

namespace moebius {

namespace {

constexpr std::array<std::string_view, kNumTimeItems> kItemNames{
    "productive", "recomputed",  "checkpoint", "detection", "isolation",
    "waiting",    "replacement", "restart",    "slowed",    "queued"};

Time scaled(Time time, double factor) {
  return {static_cast<std::int64_t>(std::floor(static_cast<double>(time.ns) * factor))};
}

constexpr std::size_t kLatest = 64;                // that storage keeps, whatever their distance
constexpr Time kNever{4'000'000'000'000'000'000};  // longer than any course, so that sums with it fit

}  // namespace

std::string_view to_string(TimeItem item) {
  return kItemNames[static_cast<int>(item)];
}

int JobCourse::total() const {
  return std::accumulate(interruptions.begin(), interruptions.end(), 0);
}

JobProgress::JobProgress(const CheckpointPlan& plan, const CheckpointCosts& costs, Time interval)
    : plan_(plan), costs_(costs), interval_(interval) {
  course_.interval = interval;
}

void JobProgress::begin(Time now) {
  running_ = true;
  begun_ = now;
  phase_ = {};
}

void JobProgress::change_speed(Time now, double factor) {
  const bool saves = plan_.policy != CheckpointPolicy::kNone;
  const Time into{saves ? (now - begun_ + phase_).ns % cycle().ns : 0};
  stop(now);
  factor_ = factor;
  begin(now);
  phase_ = into;
}

void JobProgress::set_costs(const CheckpointCosts& costs, Time interval, double factor) {
  CHECK(!running_, "a job that stands still");
  costs_ = costs;
  interval_ = interval;
  factor_ = factor;
}

// Of a stretch: so many whole cycles, then a part of one.
void JobProgress::stop(Time now) {
  if (!running_) return;
  running_ = false;
  const Time elapsed = now - begun_, before = done_;
  const bool saves = plan_.policy != CheckpointPolicy::kNone;
  const std::int64_t cycles = saves ? (elapsed + phase_).ns / cycle().ns : 0;
  const Time rest{(elapsed + phase_).ns - cycles * (saves ? cycle().ns : 0)};
  const Time computing =
      saves ? Time{cycles * interval_.ns + std::min(rest, interval_).ns - std::min(phase_, interval_).ns}
            : elapsed;
  const Time work = factor_ == 1 ? computing : scaled(computing, 1 / factor_);
  done_ = before + work;
  add(TimeItem::kProductive, work);
  add(TimeItem::kSlowed, computing - work);
  add(TimeItem::kCheckpoint, elapsed - computing);
  if (saves) keep(elapsed + phase_, before);
}

// Which checkpoints of the stretch are where. The n-th (from 1) began n intervals and n - 1 stalls after the
// cycle in which the stretch began; storage takes one after the other, and those that come while it is busy
// are left out. What was still on its way to storage when the speed changed counts as not arrived.
void JobProgress::keep(Time since, Time before) {
  const std::int64_t elapsed = since.ns;
  const auto finished = [&](Time takes) {  // how many began at least that long ago
    const std::int64_t left = elapsed - takes.ns - interval_.ns;
    return left < 0 ? std::int64_t{0} : left / cycle().ns + 1;
  };
  const auto work_at = [&](std::int64_t n) {
    return before + scaled(Time{n * interval_.ns} - std::min(phase_, interval_), 1 / factor_);
  };
  course_.checkpoints += finished(costs_.stall);
  if (plan_.policy == CheckpointPolicy::kMemory) {
    if (const std::int64_t n = finished(costs_.in_peers); n > 0) in_peers_ = work_at(n);
  }
  const std::int64_t busy = (costs_.durable - costs_.stall).ns;
  const std::int64_t every = std::max<std::int64_t>(1, (busy + cycle().ns - 1) / cycle().ns);
  const std::int64_t stored =
      (finished(costs_.durable) + every - 1) / every;  // the 1st, the (1 + every)-th, ...
  store(stored, [&](std::int64_t i) { return work_at(1 + i * every); });
}

// The latest stay all, of older ones those that are far enough apart: results may turn out to have been wrong
// for long. Of a stretch with very many only those are looked at that can stay.
void JobProgress::store(std::int64_t count, const std::function<Time(std::int64_t)>& work_of) {
  if (count <= 0) return;
  const Time apart = count > 1 ? work_of(1) - work_of(0) : plan_.keep_every;
  const std::int64_t stride = apart.ns > 0 ? std::max<std::int64_t>(1, plan_.keep_every.ns / apart.ns) : 1;
  const std::int64_t latest = std::max<std::int64_t>(0, count - static_cast<std::int64_t>(kLatest));
  for (std::int64_t i = 0; i < latest; i += stride) stored_.push_back(work_of(i));
  for (std::int64_t i = latest; i < count; ++i) stored_.push_back(work_of(i));
  thin_out();
}

// Those that are settled were found far enough apart before: looked at again and again, they would make a run
// quadratic in its length.
void JobProgress::thin_out() {
  const std::size_t all = stored_.size();
  std::size_t kept = settled_;
  for (std::size_t i = settled_; i < all; ++i) {
    const bool latest = i + kLatest >= all;
    if (latest || stored_[i] - stored_[kept - 1] >= plan_.keep_every) stored_[kept++] = stored_[i];
    if (!latest) settled_ = kept;
  }
  stored_.resize(kept);
}

void JobProgress::drop_last() {
  stored_.pop_back();
  settled_ = std::min(settled_, stored_.size());
}

Time JobProgress::end_of(Time work) const {
  const Time left = work - done_;
  const bool saves = plan_.policy != CheckpointPolicy::kNone;
  const double longer = factor_ * (saves ? 1 + costs_.stall.seconds() / interval_.seconds() : 1);
  if (left.seconds() * longer > kNever.seconds()) return kNever;
  const Time computing = factor_ == 1 ? left : Time{static_cast<std::int64_t>(std::ceil(left.ns * factor_))};
  if (!saves || computing.ns <= 0) return begun_ + computing;
  // Of a stall that is under way the rest; none after the last bit of work.
  const Time stalled{std::max<std::int64_t>(0, (phase_ - interval_).ns)};
  const Time into = stalled.ns > 0 || phase_ == interval_ ? Time{} : phase_;
  const std::int64_t stalls = (computing.ns + into.ns - 1) / interval_.ns;
  const Time rest = phase_ >= interval_ ? costs_.stall - stalled : Time{};
  return begun_ + computing + rest + Time{stalls * costs_.stall.ns};
}

void JobProgress::back_to(Time done) {
  CHECK(!running_ && done <= done_, "a job goes back to what it has done");
  const Time lost = done_ - done;
  course_.items[static_cast<int>(TimeItem::kProductive)] = course_.of(TimeItem::kProductive) - lost;
  add(TimeItem::kRecomputed, lost);
  done_ = done;
  in_peers_ = std::min(in_peers_, done);
  while (stored_.back() > done) drop_last();
}

void JobProgress::back_by(Time part) {
  back_to(std::max(std::max(in_peers_, stored_.back()), done_ - std::min(part, done_)));
}

void JobProgress::back_to_storage() {
  in_peers_ = {};
  back_to(stored_.back());
}

void JobProgress::back_to_peers() {
  back_to(std::max(in_peers_, stored_.back()));
}

void JobProgress::back_before(Time done) {
  while (stored_.size() > 1 && stored_.back() > done) drop_last();
  back_to_storage();
}

void JobProgress::save_now() {
  if (stored_.back() < done_) stored_.push_back(done_);
  if (plan_.policy == CheckpointPolicy::kMemory) in_peers_ = done_;
}

}  // namespace moebius
