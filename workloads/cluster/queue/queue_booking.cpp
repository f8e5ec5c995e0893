// Whose time it was.
#include <algorithm>

#include "workloads/cluster/queue/queue_run.h"

namespace moebius {

namespace {

// Of time in which everything takes so many times as long, what it would have taken.
Time without_slowed(Time time, double longer) {
  const double slowed = static_cast<double>(time.ns) * (1 - 1 / std::max(1.0, longer));
  return time - Time{static_cast<std::int64_t>(slowed)};
}

}  // namespace

// Tokens of a service since the last time: those of the replicas that are up, but no more than are asked for,
// as whole replicas could make more.
void QueueRun::book_tokens(int job) {
  ServedDemand& demand = demand_[job];
  const double past = (now_ - demand.since).seconds();
  demand.since = now_;
  if (past <= 0) return;
  double rate = 0, most = 0;
  for (int r = first_run_[job]; r < end_of_runs(job); ++r) {
    const QueuedRun& run = runs_[r];
    if (run.stage != RunStage::kRunning) continue;
    const ShapeStep& step = in_.steps.at(run.shape, run.pool, run.size);
    rate += step.tokens_per_s / longer_of(run);
    most = demand.replicas * step.tokens_per_s * step.seconds / run.reference;
  }
  course_.jobs[job].tokens += std::min(rate, most) * past;
}

// What the time since the last booking was for.
void QueueRun::book(QueuedRun& run) {
  if (run.service) book_tokens(run.job);
  const Time past = now_ - run.since;
  run.since = now_;
  if (past.ns <= 0 || run.cards == 0) return;
  CardAccounts account;
  switch (run.stage) {
    case RunStage::kOff:
    case RunStage::kWaiting:
      return;
    case RunStage::kStarting:
      account.add(CardItem::kStarting, run.cards, past);
      break;
    case RunStage::kSaving:
      account.add(CardItem::kCheckpoint, run.cards, past);
      break;
    case RunStage::kDetecting:
    case RunStage::kIsolating:
      account.add(CardItem::kFault, run.cards, past);
      break;
    case RunStage::kRunning: {
      if (!run.progress) {
        const double longer = longer_of(run);
        const Time served = without_slowed(past, longer);
        account.add(CardItem::kServed, run.cards, served);
        account.add(CardItem::kSlowed, run.cards, past - served);
        break;
      }
      JobCourse& course = run.progress->course();
      const Time stood = course.of(TimeItem::kCheckpoint);
      run.progress->change_speed(now_, run.progress->factor());
      const Time saving = course.of(TimeItem::kCheckpoint) - stood, computing = past - saving;
      const ShapeStep& step = in_.steps.at(run.shape, run.pool, run.size);
      const double whole = run.progress->factor() / (step.seconds / run.reference);
      const Time stays = without_slowed(computing, whole);
      account.add(CardItem::kCheckpoint, run.cards, saving);
      account.add(CardItem::kSlowed, run.cards, computing - stays);
      account.add(CardItem::kUseful, run.cards, stays);
      run.useful += CardTime{run.cards} * stays.ns;
      course_.jobs[run.job].tokens += step.tokens_per_s * stays.seconds();
      break;
    }
  }
  if (run.service) course_.wanted_replicas += account.all();
  course_.pools[run.pool] += account;
  course_.queues[run.queue] += account;
  QueueJobCourse& of = course_.jobs[run.job];
  of.cards += account.all();
  of.by_pool[run.pool] += account.all();
  const UsdPerHour price = in_.plan.pools[run.pool].card_price;
  of.cost_usd += static_cast<double>(account.all()) * 1e-9 / 3600 * price.value;
  of.priced = of.priced && price.value > 0;
}

// Free and broken cards since the last time, as they were then.
void QueueRun::book_free() {
  const Time past = now_ - free_since_;
  free_since_ = now_;
  if (past.ns == 0) return;
  for (std::size_t p = 0; p < maps_.size(); ++p) {
    const std::int64_t spare = std::min(maps_[p].spare_cards(), maps_[p].free_cards());
    CardAccounts& account = course_.pools[p];
    account.add(CardItem::kSpare, spare, past);
    account.add(free_item_[p], maps_[p].free_cards() - spare, past);
    account.add(CardItem::kBroken, std::int64_t{maps_[p].nodes_down()} * maps_[p].pool().cards, past);
    for (std::size_t q = 0; q < in_.plan.queues.size(); ++q) {
      const std::int64_t over =
          used(static_cast<int>(q), static_cast<int>(p)) - quota(static_cast<int>(q), static_cast<int>(p));
      if (over > 0) course_.borrowed += CardTime{over} * past.ns;
    }
  }
}

}  // namespace moebius
