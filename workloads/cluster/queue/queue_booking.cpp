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

// What the time since the last booking was for.
void QueueRun::book(QueuedRun& run) {
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
        course_.jobs[run.job].tokens +=
            in_.steps.at(run.shape, run.pool, run.size).tokens_per_s * past.seconds() / longer;
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
  of.cost_usd += static_cast<double>(account.all()) * 1e-9 / 3600 * in_.plan.pools[run.pool].card_price.value;
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
