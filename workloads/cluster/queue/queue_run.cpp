#include "workloads/cluster/queue/queue_run.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "hw/error.h"
#include "workloads/cluster/cluster_rates.h"

namespace moebius {

namespace {}

void QueueRun::push(Time time, Event::What what, int subject, int version) {
  if (time < in_.cluster.duration) events_.push({time, order_++, what, subject, version});
}

void QueueRun::tell(What what, const QueuedRun& run, int node, int kind) {
  if (listeners_.hear) listeners_.hear({now_, what, run.job, run.replica, run.pool, node, kind, run.cards});
}

double QueueRun::delay(const Delay& of) {
  return of.draw(random_).seconds();
}

QueueCourse QueueRun::run() {
  for (std::size_t j = 0; j < jobs_.size(); ++j)
    push(jobs_[j].arrival, Event::What::kArrival, static_cast<int>(j));
  push(kHour, Event::What::kHour);
  for (std::size_t i = 0; i < in_.cluster.trace.size(); ++i)
    push(in_.cluster.trace[i].time, Event::What::kTraced, static_cast<int>(i));
  for (const PowerCap& cap : in_.plan.caps) {
    push(cap.from, Event::What::kCap);
    push(cap.until, Event::What::kCap);
  }
  next_fault();
  power_changed();
  while (!events_.empty()) {
    const Event event = events_.top();
    events_.pop();
    ++course_.events;
    now_ = event.time;
    book_free();
    take(event);
    // Events of one moment are taken together before cards are given.
    if (events_.empty() || events_.top().time != now_) {
      give_cards();
      power_changed();
    }
  }
  now_ = in_.cluster.duration;
  book_free();
  spend_power();
  for (QueuedRun& run : runs_) {
    QueueJobCourse& of = course_.jobs[run.job];
    if (!of.over) of.end = now_;
    if (run.stage == RunStage::kWaiting) wait(run);
    if (run.holds()) {
      book(run);
      close_span(run);
      if (run.progress && run.stage == RunStage::kRunning) run.progress->stop(now_);
    }
  }
  return std::move(course_);
}

void QueueRun::take(const Event& event) {
  switch (event.what) {
    case Event::What::kArrival:
      return arrive(event.subject);
    case Event::What::kHour:
      for (std::size_t j = 0; j < jobs_.size(); ++j)
        if (there_[j] && jobs_[j].arrival < now_) follow_demand(static_cast<int>(j));
      return push(now_ + kHour, Event::What::kHour);
    case Event::What::kLeave:
      return leave(event.subject);
    case Event::What::kStage:
      if (runs_[event.subject].version == event.version) finish_stage(runs_[event.subject]);
      return;
    case Event::What::kEnd:
      if (runs_[event.subject].version == event.version) finish(runs_[event.subject]);
      return;
    case Event::What::kFault: {
      double at = random_.unit() * total_rate_;
      std::size_t i = 0;
      for (; i + 1 < rates_.size() && at >= rates_[i]; ++i) at -= rates_[i];
      const auto kinds = in_.cluster.faults.size();
      const auto kind = static_cast<int>(i % kinds), pool = static_cast<int>(i / kinds);
      if (pool == static_cast<int>(maps_.size()))
        strike_any(kind);
      else
        strike(kind, pool,
               static_cast<int>(random_.below(static_cast<std::uint32_t>(maps_[pool].pool().nodes))));
      return next_fault();
    }
    case Event::What::kTraced: {
      const FailureInTrace& fault = in_.cluster.trace[event.subject];
      int pool = 0, node = fault.node;
      while (pool + 1 < static_cast<int>(maps_.size()) && node >= maps_[pool].pool().nodes)
        node -= maps_[pool++].pool().nodes;
      return strike(fault.kind, pool, node);
    }
    case Event::What::kFound:
      if (runs_[event.subject].bad && runs_[event.subject].bad_version == event.version)
        found(runs_[event.subject]);
      return;
    case Event::What::kRepaired: {
      maps_[event.version].repair(event.subject);
      if (listeners_.hear)
        listeners_.hear({now_, What::kRepaired, -1, 0, event.version, event.subject, -1, 0});
      return;
    }
    case Event::What::kCap:
      return;
  }
}

void QueueRun::arrive(int job) {
  QueuedRun& run = runs_[first_run_[job]];
  tell(What::kArrived, run);
  if (!run.service) {
    set_stage(run, RunStage::kWaiting);
    run.waiting_since = now_;
    return;
  }
  there_[job] = 1;
  push(now_ + jobs_[job].work, Event::What::kLeave, job);
  follow_demand(job);
}

// As many replicas as give the tokens that are asked for now, those that are up first; the last ones go.
void QueueRun::follow_demand(int job) {
  const int first = first_run_[job], last = end_of_runs(job);
  book_tokens(job);
  demand_[job].replicas = demand_of(in_.plan, jobs_[job], now_);
  const double needed = wanted_replicas(in_.plan, jobs_[job], now_);
  double there = 0;
  std::int64_t asked = 0;
  const auto worth = [&](const QueuedRun& run) {
    if (!run.holds()) return 1.0;
    const ShapeStep& step = in_.steps.at(run.shape, run.pool, run.size);
    return run.reference / step.seconds / longer_at(step, clock_);  // of slow nodes nobody knows
  };
  for (const bool up : {true, false}) {
    for (int r = first; r < last; ++r) {
      QueuedRun& run = runs_[r];
      if (run.holds() != up) continue;
      const bool wanted = there < needed - 1e-9;
      if (wanted) there += worth(run), asked += cards_of(run, run.asked);
      if (wanted && run.stage == RunStage::kOff) {
        set_stage(run, RunStage::kWaiting);
        run.waiting_since = now_;
      } else if (!wanted && run.stage == RunStage::kWaiting) {
        wait(run);
        set_stage(run, RunStage::kOff);
      } else if (!wanted && run.holds()) {
        book(run);
        release(run);
        set_stage(run, RunStage::kOff);
      }
    }
  }
  const std::int64_t hour = now_.ns / kHour.ns;
  const Time until =
      std::min({kHour * (hour + 1), jobs_[job].arrival + jobs_[job].work, in_.cluster.duration});
  if (until > now_) course_.asked_of_services[hour] += CardTime{asked} * (until - now_).ns;
}

void QueueRun::leave(int job) {
  there_[job] = 0;
  for (int r = first_run_[job]; r < end_of_runs(job); ++r) {
    QueuedRun& run = runs_[r];
    if (run.stage == RunStage::kWaiting) wait(run);
    if (run.holds()) {
      book(run);
      release(run);
    }
    set_stage(run, RunStage::kOff);
  }
  course_.jobs[job].over = true;
  course_.jobs[job].done = course_.jobs[job].started;
  course_.jobs[job].end = now_;
  tell(What::kDone, runs_[first_run_[job]]);
}

// Its time in the queue until now.
void QueueRun::wait(QueuedRun& run) {
  QueueJobCourse& of = course_.jobs[run.job];
  const Time waited = now_ - run.waiting_since;
  of.waited += waited;
  of.longest = std::max(of.longest, waited);
  if (run.service) {
    const CardTime cards = CardTime{cards_of(run, run.asked)} * waited.ns;
    course_.missing_replicas += cards;
    course_.wanted_replicas += cards;
  }
  run.waiting_since = now_;
}

// `comes_back`: who has lost all its cards is still among those who hold some, and lacks them.
void QueueRun::hold(QueuedRun& run, std::int64_t cards, bool comes_back) {
  close_span(run);
  used(run.queue, run.pool) += cards - run.cards;
  std::vector<int>& holders = holders_[run.pool];
  const auto at = std::lower_bound(holders.begin(), holders.end(), index_of(run));
  const bool listed = at != holders.end() && *at == index_of(run);
  if (!listed && cards > 0) holders.insert(at, index_of(run));
  if (listed && cards == 0 && !comes_back) holders.erase(at);
  run.cards = cards;
}

void QueueRun::set_stage(QueuedRun& run, RunStage stage) {
  const bool waits = stage == RunStage::kWaiting;
  if (waits != (run.stage == RunStage::kWaiting)) {
    const auto at = std::lower_bound(waiting_.begin(), waiting_.end(), index_of(run));
    if (waits)
      waiting_.insert(at, index_of(run));
    else
      waiting_.erase(at);
  }
  run.stage = stage;
}

void QueueRun::close_span(QueuedRun& run) {
  if (run.cards > 0 && now_ > run.span_since && listeners_.span)
    listeners_.span({run.job, run.replica, run.pool, run.cards, run.span_since, now_});
  run.span_since = now_;
}

// `again`: it comes back from a checkpoint.
void QueueRun::start(QueuedRun& run, Place place, bool again) {
  wait(run);
  QueueJobCourse& of = course_.jobs[run.job];
  if (!of.started) of.first_start = now_;
  of.started = true;
  run.pool = place.pool;
  run.size = place.size;
  run.since = run.settled_since = run.span_since = now_;
  run.nodes = maps_[place.pool].place(static_cast<int>(cards_of(run, place.size)), lends_spares_to(run));
  run.cards = 0;
  hold(run, cards_of(run, place.size));
  forget_claims();
  tell(What::kStarted, run);
  disturb_neighbours(run.pool);
  const RecoveryPlan& recovery = in_.cluster.recovery;
  const Costs& costs = costs_of(run.shape, run.pool, run.size);
  double takes = delay(recovery.image) + delay(recovery.cache) + delay(recovery.restart);
  if (again || run.service) takes += costs.checkpoint.load.seconds();
  begin_stage(run, RunStage::kStarting, time_from_seconds(takes));
}

void QueueRun::begin_stage(QueuedRun& run, RunStage stage, Time takes) {
  set_stage(run, stage);
  run.stage_end = now_ + takes;
  push(run.stage_end, Event::What::kStage, index_of(run), ++run.version);
}

void QueueRun::finish_stage(QueuedRun& run) {
  book(run);
  switch (run.stage) {
    case RunStage::kOff:
    case RunStage::kWaiting:
    case RunStage::kRunning:
      CHECK(false, "a stage that ends by itself");
      return;
    case RunStage::kStarting:
      return compute(run);
    case RunStage::kSaving: {
      if (run.progress) save(run);
      const int next = std::exchange(run.next_size, -1);
      if (next < 0) {
        ++course_.jobs[run.job].preempted;
        tell(What::kPreempted, run);
        release(run);
        set_stage(run, RunStage::kWaiting);
        run.waiting_since = now_;
        return;
      }
      if (run.progress) run.progress->forget_peers();
      tell(next < run.size ? What::kShrunk : What::kGrown, run);
      ++course_.jobs[run.job].resized;
      run.size = next;
      run.settled_since = now_;
      give_back_part(run, cards_of(run, next));
      const double takes = delay(in_.cluster.recovery.restart) +
                           costs_of(run.shape, run.pool, run.size).checkpoint.load.seconds();
      return begin_stage(run, RunStage::kStarting, time_from_seconds(takes));
    }
    case RunStage::kDetecting:
      return detected(run);
    case RunStage::kIsolating:
      return replace_nodes(run);
  }
}

void QueueRun::compute(QueuedRun& run) {
  set_stage(run, RunStage::kRunning);
  run.lost_memory = run.exchanged = false;
  run.broken_nodes = 0;
  if (run.bad) judge(run);
  ++run.version;
  if (std::exchange(run.was_running, true)) tell(What::kResumed, run);
  if (!run.progress) return;
  const Costs& costs = costs_of(run.shape, run.pool, run.size);
  run.progress->set_costs(costs.checkpoint, costs.interval, factor_of(run));
  run.progress->begin(now_);
  push(run.progress->end_of(run.work), Event::What::kEnd, index_of(run), run.version);
}

double QueueRun::factor_of(const QueuedRun& run) const {
  const ShapeStep& step = in_.steps.at(run.shape, run.pool, run.size);
  return step.seconds / run.reference * longer_of(run);
}

// As long as the step alone at full clocks.
double QueueRun::longer_of(const QueuedRun& run) const {
  return run.disturbed * run.slow * longer_at(in_.steps.at(run.shape, run.pool, run.size), clock_);
}

// Its factor has changed.
void QueueRun::set_speed(QueuedRun& run) {
  if (run.stage != RunStage::kRunning || !run.progress) return;
  const double factor = factor_of(run);
  if (std::abs(factor - run.progress->factor()) <= 1e-12 * factor) return;
  book(run);
  run.progress->change_speed(now_, factor);
  push(run.progress->end_of(run.work), Event::What::kEnd, index_of(run), ++run.version);
}

void QueueRun::finish(QueuedRun& run) {
  book(run);
  run.progress->stop(now_);
  tell(What::kDone, run);
  release(run);
  set_stage(run, RunStage::kOff);
  course_.jobs[run.job].over = course_.jobs[run.job].done = true;
  course_.jobs[run.job].end = now_;
}

void QueueRun::release(QueuedRun& run) {
  ++run.version;
  for (const NodeCards& held : run.nodes) maps_[run.pool].give_back(held);
  run.nodes.clear();
  hold(run, 0);
  if (run.progress) run.progress->forget_peers();
  if (run.bad) lose_bad(run);
  run.disturbed = 1;
  disturb_neighbours(run.pool);
}

// All but so many cards go back, those on leaves with few of its others first; of the last node a part.
void QueueRun::give_back_part(QueuedRun& run, std::int64_t keep) {
  CardMap& map = maps_[run.pool];
  run.nodes = map.loose_first(std::move(run.nodes));
  std::size_t gone = 0;
  std::int64_t cards = run.cards;
  while (gone < run.nodes.size() && cards - run.nodes[gone].cards >= keep) {
    cards -= run.nodes[gone].cards;
    map.give_back(run.nodes[gone++]);
  }
  run.nodes.erase(run.nodes.begin(), run.nodes.begin() + static_cast<std::ptrdiff_t>(gone));
  const auto slow = [&](const NodeCards& held) { return held.node == run.bad_node; };
  if (run.bad && run.bad_node >= 0 && std::none_of(run.nodes.begin(), run.nodes.end(), slow)) run.slow = 1;
  if (cards > keep) {
    NodeCards& last = run.nodes.front();
    const auto part = static_cast<int>(cards - keep);
    map.give_back({last.node, part});
    last.cards -= part;
    cards = keep;
  }
  hold(run, cards);
  disturb_neighbours(run.pool);
}

QueueCourse run_queues(const QueueInputs& inputs, std::uint64_t load_seed, std::uint64_t fault_seed,
                       const QueueListeners& listeners) {
  return QueueRun(inputs, load_seed, fault_seed, listeners).run();
}

}  // namespace moebius
