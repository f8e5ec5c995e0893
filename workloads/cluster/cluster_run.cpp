#include "workloads/cluster/cluster_run.h"

#include <algorithm>
#include <cmath>
#include <queue>

#include "hw/error.h"
#include "workloads/cluster/cluster_rates.h"
#include "workloads/cluster/job_run.h"
#include "workloads/cluster/node_pool.h"

namespace moebius {

namespace {

class ClusterRun {
 public:
  ClusterRun(const ClusterPlan& plan, std::uint64_t seed,
             const std::function<void(const ClusterEvent&)>& hear);
  ClusterCourse run();

 private:
  using What = ClusterEvent::What;

  void push(Time time, PendingEvent::What what, int subject = -1, int version = 0) {
    if (time < plan_.duration) events_.push({time, order_++, what, subject, version});
  }
  void tell(What what, int job, int node = -1, int kind = -1) {
    if (hear_) hear_({now_, what, job, node, kind});
  }
  void next_fault();
  void take(const PendingEvent& event);
  void strike(int kind, int node);
  void strike_job(int job, int kind, int node, bool takes_node);
  void lose_node(JobRun& run, int node, const FailureKind& kind);
  void stop_job(JobRun& run, int kind);
  void detect(int job);
  void find(int job);
  void end_bad(JobRun& run);
  void take_steps(JobRun& run, std::vector<RecoveryStep> steps, bool has_nodes);
  void next_step(int job);
  void fill_places(int job);
  void resume(int job);
  void start_waiting();
  void take_down(int node, const FailureKind& kind);
  void repair(int node);
  void finish(int job);
  void spend(JobRun& run, TimeItem next);
  int index_of(const JobRun& run) const { return static_cast<int>(&run - jobs_.data()); }

  const ClusterPlan& plan_;
  const std::function<void(const ClusterEvent&)>& hear_;
  RandomStream random_;
  std::priority_queue<PendingEvent, std::vector<PendingEvent>, std::greater<>> events_;
  std::int64_t order_ = 0;
  Time now_;
  std::vector<JobRun> jobs_;
  std::vector<int> by_arrival_;  // of equal ones the first of the plan first
  NodePool nodes_;
  std::vector<double> rates_;  // an hour, of everything that could break, by kind; all together:
  double total_rate_ = 0;
  ClusterCourse course_;
};

ClusterRun::ClusterRun(const ClusterPlan& plan, std::uint64_t seed,
                       const std::function<void(const ClusterEvent&)>& hear)
    : plan_(plan), hear_(hear), random_(RandomStream::finalise(seed)), nodes_(plan.nodes) {
  course_.faults.assign(plan.faults.size(), 0);
  for (const FailureKind& kind : plan.faults) total_rate_ += rates_.emplace_back(rate_of(plan, kind));
  for (const ClusterJob& job : plan.jobs) {
    const CheckpointCosts costs =
        checkpoint_costs(plan.checkpoint, job.state, std::int64_t{job.nodes} * plan.devices_per_node);
    const Time interval = interval_or_never(plan, job, costs);
    jobs_.emplace_back(job, plan.checkpoint, costs, interval);
    jobs_.back().since = job.arrival;  // in the queue; it may begin at the event of another of that time
    jobs_.back().progress.course().interruptions.assign(plan.faults.size(), 0);
    by_arrival_.push_back(static_cast<int>(by_arrival_.size()));
  }
  std::ranges::stable_sort(by_arrival_, {}, [&](int job) { return plan.jobs[job].arrival; });
}

// All faults together are one Poisson process: the next one, then what it is.
void ClusterRun::next_fault() {
  if (total_rate_ <= 0) return;
  const double gap = -std::log(random_.unit()) * 3600 / total_rate_, left = (plan_.duration - now_).seconds();
  if (gap < left) push(now_ + time_from_seconds(gap), PendingEvent::What::kFault);  // rare ones never come
}

ClusterCourse ClusterRun::run() {
  for (std::size_t i = 0; i < jobs_.size(); ++i)
    push(jobs_[i].job->arrival, PendingEvent::What::kArrival, static_cast<int>(i));
  for (std::size_t i = 0; i < plan_.trace.size(); ++i)
    push(plan_.trace[i].time, PendingEvent::What::kTraced, static_cast<int>(i));
  next_fault();
  while (!events_.empty()) {
    const PendingEvent event = events_.top();
    events_.pop();
    now_ = event.time;
    take(event);
  }
  now_ = plan_.duration;
  for (std::size_t i = 0; i < jobs_.size(); ++i) {
    JobRun& run = jobs_[i];
    if (run.stage != JobStage::kDone && run.job->arrival < now_) finish(static_cast<int>(i));
    course_.jobs.push_back(run.progress.course());
  }
  nodes_.finish(now_);
  course_.busy_node_s = nodes_.busy();
  course_.down_node_s = nodes_.broken();
  course_.least_free = nodes_.least_free();
  return std::move(course_);
}

void ClusterRun::take(const PendingEvent& event) {
  const bool of_job = event.what == PendingEvent::What::kDetected ||
                      event.what == PendingEvent::What::kFound || event.what == PendingEvent::What::kStep ||
                      event.what == PendingEvent::What::kEnd;
  if (of_job && event.what != PendingEvent::What::kFound && jobs_[event.subject].version != event.version)
    return;
  switch (event.what) {
    case PendingEvent::What::kArrival:
      return start_waiting();
    case PendingEvent::What::kFault: {
      double at = random_.unit() * total_rate_;
      std::size_t kind = 0;
      for (; kind + 1 < rates_.size() && at >= rates_[kind]; ++kind) at -= rates_[kind];
      strike(static_cast<int>(kind), -1);
      return next_fault();
    }
    case PendingEvent::What::kTraced:
      return strike(plan_.trace[event.subject].kind, plan_.trace[event.subject].node);
    case PendingEvent::What::kDetected:
      return detect(event.subject);
    case PendingEvent::What::kFound:
      if (jobs_[event.subject].bad && jobs_[event.subject].bad_version == event.version) find(event.subject);
      return;
    case PendingEvent::What::kStep:
      return next_step(event.subject);
    case PendingEvent::What::kRepaired:
      return repair(event.subject);
    case PendingEvent::What::kEnd:
      return finish(event.subject);
  }
}

// `node` -1: any one. A job's own software fails in a job that runs; where none does nothing happens.
void ClusterRun::strike(int kind_index, int node) {
  const FailureKind& kind = plan_.faults[kind_index];
  if (kind.unit == FailureUnit::kJob && node < 0) {
    const auto job = static_cast<int>(random_.below(static_cast<std::uint32_t>(jobs_.size())));
    if (jobs_[job].stage != JobStage::kRunning) return;
    ++course_.faults[kind_index];
    return strike_job(job, kind_index, -1, false);
  }
  if (node < 0) node = static_cast<int>(random_.below(static_cast<std::uint32_t>(plan_.nodes)));
  if (nodes_.down(node)) return;
  ++course_.faults[kind_index];
  if (kind.nodes == 0) {
    if (nodes_.owned(node)) strike_job(nodes_.owner(node), kind_index, node, false);
    return;
  }
  const int first = node / kind.nodes * kind.nodes, last = std::min(first + kind.nodes, plan_.nodes);
  for (int hit = first; hit < last; ++hit) {
    if (nodes_.down(hit)) continue;
    if (nodes_.owned(hit))
      strike_job(nodes_.owner(hit), kind_index, hit, true);
    else
      take_down(hit, kind);
  }
}

void ClusterRun::strike_job(int job, int kind_index, int node, bool takes_node) {
  JobRun& run = jobs_[job];
  const FailureKind& kind = plan_.faults[kind_index];
  tell(What::kFault, job, node, kind_index);
  const bool later = kind.effect == FailureEffect::kSlow || kind.effect == FailureEffect::kSilent;
  if (later) {
    if (run.stage != JobStage::kRunning || run.bad) return;  // one at a time
    ++run.progress.course().interruptions[kind_index];
    run.bad = true;
    run.bad_node = node;
    run.bad_kind = kind_index;
    if (kind.effect == FailureEffect::kSlow)
      run.progress.change_speed(now_, kind.slow_factor);
    else
      run.progress.change_speed(now_, 1), run.wrong_from = run.progress.done();
    if (run.job->work.ns > 0)
      push(run.progress.end_of(run.job->work), PendingEvent::What::kEnd, job, ++run.version);
    const bool seen = random_.unit() < plan_.detection.recall;
    const Delay& after = seen                                  ? plan_.detection.monitored
                         : kind.effect == FailureEffect::kSlow ? plan_.detection.slow
                                                               : plan_.detection.silent;
    push(now_ + after.draw(random_), PendingEvent::What::kFound, job, ++run.bad_version);
    return;
  }
  if (takes_node) lose_node(run, node, kind);
  stop_job(run, kind_index);
  if (!takes_node || !run.bad || run.bad_node != node) return;
  if (plan_.faults[run.bad_kind].effect == FailureEffect::kSlow) return end_bad(run);
  run.bad_node = -1;  // what it computed wrongly is still there
}

// Its place is nobody's until another one fills it: repaired, it may fill any place itself.
void ClusterRun::lose_node(JobRun& run, int node, const FailureKind& kind) {
  const auto place = std::find(run.nodes.begin(), run.nodes.end(), node);
  CHECK(place != run.nodes.end(), "a job loses a node that stands nowhere in it");
  run.broken.push_back(static_cast<int>(place - run.nodes.begin()));
  *place = JobRun::kNobody;
  ++run.lost_nodes;
  take_down(node, kind);
}

// Whoever is down already gets to know of one more fault when it knows of the first; who knows, and waits for
// nodes, loses what a peer of one that is gone as well had of it.
void ClusterRun::stop_job(JobRun& run, int kind_index) {
  if (run.stage == JobStage::kUnknown) return;
  if (run.stage == JobStage::kWaiting) {
    if (run.lost_nodes > 1) run.progress.back_to_storage();
    return;
  }
  ++run.progress.course().interruptions[kind_index];
  if (run.stage == JobStage::kRunning) {
    run.progress.stop(now_);
    run.since = now_;
  }
  spend(run, TimeItem::kDetection);
  run.stage = JobStage::kUnknown;
  const bool hangs = plan_.faults[kind_index].effect == FailureEffect::kHang;
  const Delay& after = random_.unit() < plan_.detection.recall ? plan_.detection.monitored
                       : hangs                                 ? plan_.detection.hang
                                                               : plan_.detection.crash;
  push(now_ + after.draw(random_), PendingEvent::What::kDetected, index_of(run), ++run.version);
}

// What the time since the last change was for is over; from here it is for `next`.
void ClusterRun::spend(JobRun& run, TimeItem next) {
  if (run.stage != JobStage::kRunning) run.progress.add(run.item, now_ - run.since);
  run.since = now_;
  run.item = next;
}

// It is known that the job is down: what is left of its work, then the way back.
void ClusterRun::detect(int job) {
  JobRun& run = jobs_[job];
  tell(What::kDetected, job);
  std::vector<RecoveryStep> steps{{TimeItem::kIsolation, plan_.recovery.isolate.draw(random_)}};
  if (run.lost_nodes == 0 && random_.unit() < plan_.checkpoint.triggered) {
    // Every rank saves what it holds; of the step under way a part is done again.
    const Time part = time_from_seconds(random_.unit() * run.job->step.seconds());
    run.progress.back_by(part);
    run.progress.save_now();
    steps.push_back({TimeItem::kCheckpoint, run.costs.load});
  } else if (plan_.checkpoint.policy == CheckpointPolicy::kMemory && run.lost_nodes <= 1) {
    run.progress.back_to_peers();
  } else {
    run.progress.back_to_storage();
  }
  take_steps(run, std::move(steps), false);
}

// A slow node, or one that computes wrongly, is found: the job is stopped and goes on without it.
void ClusterRun::find(int job) {
  JobRun& run = jobs_[job];
  const FailureKind& kind = plan_.faults[run.bad_kind];
  if (run.stage != JobStage::kRunning)
    return push(now_ + kLookAgain, PendingEvent::What::kFound, job, run.bad_version);
  run.progress.stop(now_);
  run.since = now_;
  tell(What::kDetected, job, run.bad_node, run.bad_kind);
  std::vector<RecoveryStep> steps{{TimeItem::kIsolation, plan_.recovery.isolate.draw(random_)}};
  if (kind.effect == FailureEffect::kSilent) {
    run.progress.back_before(run.wrong_from);
  } else if (plan_.checkpoint.policy == CheckpointPolicy::kNone) {
    run.progress.back_to_storage();  // which has the beginning
  } else {
    run.progress.save_now();  // nothing is lost: it is stopped as planned
    steps.push_back({TimeItem::kCheckpoint, run.costs.load});
  }
  const bool stands = std::find(run.nodes.begin(), run.nodes.end(), run.bad_node) != run.nodes.end();
  if (kind.nodes > 0 && run.bad_node >= 0 && stands) lose_node(run, run.bad_node, kind);
  end_bad(run);
  take_steps(run, std::move(steps), false);
}

// It stands still, and will be as fast as ever.
void ClusterRun::end_bad(JobRun& run) {
  run.bad = false;
  run.progress.set_costs(run.costs, run.progress.course().interval, 1);
}

// The last of `steps` is the first.
void ClusterRun::take_steps(JobRun& run, std::vector<RecoveryStep> steps, bool has_nodes) {
  run.steps = std::move(steps);
  run.has_nodes = has_nodes;
  next_step(index_of(run));
}

void ClusterRun::next_step(int job) {
  JobRun& run = jobs_[job];
  if (run.steps.empty()) return run.has_nodes ? resume(job) : fill_places(job);
  const RecoveryStep step = run.steps.back();
  run.steps.pop_back();
  spend(run, step.item);
  run.stage = JobStage::kRecovering;
  push(now_ + step.takes, PendingEvent::What::kStep, job, ++run.version);
}

// Nodes in place of broken ones, as far as there are free ones; then the job is on its way.
void ClusterRun::fill_places(int job) {
  JobRun& run = jobs_[job];
  spend(run, TimeItem::kWaiting);
  run.stage = JobStage::kWaiting;
  while (!run.broken.empty() && nodes_.free() > 0) {
    run.nodes[run.broken.back()] = nodes_.give(job, now_);
    run.broken.pop_back();
    run.exchanged = true;
  }
  if (!run.broken.empty()) return;
  const bool from_peers = run.progress.peers_hold_it();
  std::vector<RecoveryStep> steps{{TimeItem::kRestart, plan_.recovery.restart.draw(random_) +
                                                           (from_peers ? run.costs.reload : run.costs.load)}};
  if (run.exchanged)
    steps.push_back({TimeItem::kReplacement, plan_.recovery.replace.draw(random_) +
                                                 plan_.recovery.image.draw(random_) +
                                                 plan_.recovery.cache.draw(random_)});
  take_steps(run, std::move(steps), true);
}

void ClusterRun::resume(int job) {
  JobRun& run = jobs_[job];
  spend(run, TimeItem::kRestart);
  run.stage = JobStage::kRunning;
  run.lost_nodes = 0;
  run.exchanged = false;
  if (run.bad) run.judge(plan_.faults[run.bad_kind]);
  run.progress.begin(now_);
  tell(What::kResumed, job);
  if (run.job->work.ns > 0)
    push(run.progress.end_of(run.job->work), PendingEvent::What::kEnd, job, ++run.version);
}

// First those who lost nodes, then those who have not begun, in the order in which they came; the first who
// does not fit holds up the rest.
void ClusterRun::start_waiting() {
  for (const int job : by_arrival_) {
    if (jobs_[job].stage == JobStage::kWaiting && !jobs_[job].broken.empty()) fill_places(job);
  }
  for (const int job : by_arrival_) {
    JobRun& run = jobs_[job];
    if (run.stage != JobStage::kQueued || now_ < run.job->arrival) continue;
    if (nodes_.free() - plan_.spares < run.job->nodes) return;
    spend(run, TimeItem::kQueued);
    for (int n = 0; n < run.job->nodes; ++n) run.nodes.push_back(nodes_.give(job, now_));
    tell(What::kStart, job);
    run.stage = JobStage::kRunning;
    run.progress.begin(now_);
    if (run.job->work.ns > 0)
      push(run.progress.end_of(run.job->work), PendingEvent::What::kEnd, job, ++run.version);
  }
}

void ClusterRun::take_down(int node, const FailureKind& kind) {
  nodes_.take_down(node, now_);
  push(now_ + kind.repair.draw(random_), PendingEvent::What::kRepaired, node);
}

void ClusterRun::repair(int node) {
  nodes_.repair(node, now_);
  tell(What::kRepaired, -1, node);
  start_waiting();
}

void ClusterRun::finish(int job) {
  JobRun& run = jobs_[job];
  const bool by_end = now_ >= plan_.duration;
  if (run.stage == JobStage::kRunning)
    run.progress.stop(now_);
  else
    spend(run, run.item);
  run.bad = false;
  run.progress.course().end = now_;
  run.progress.course().done = !by_end;
  run.stage = JobStage::kDone;
  ++run.version;
  for (const int node : run.nodes) {
    if (node != JobRun::kNobody && nodes_.owned(node) && nodes_.owner(node) == job)
      nodes_.give_back(node, now_);
  }
  tell(What::kDone, job);
  if (!by_end) start_waiting();
}

}  // namespace

ClusterCourse run_cluster(const ClusterPlan& plan, std::uint64_t seed,
                          const std::function<void(const ClusterEvent&)>& hear) {
  return ClusterRun(plan, seed, hear).run();
}

}  // namespace moebius
