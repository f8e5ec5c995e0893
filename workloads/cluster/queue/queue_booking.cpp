// Whose time it was, and who disturbs whom on shared links.
#include <algorithm>

#include "workloads/cluster/queue/queue_run.h"

namespace moebius {

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
        account.add(CardItem::kServed, run.cards, past);
        break;
      }
      JobCourse& course = run.progress->course();
      const Time stood = course.of(TimeItem::kCheckpoint);
      run.progress->change_speed(now_, run.progress->factor());
      const Time saving = course.of(TimeItem::kCheckpoint) - stood, computing = past - saving;
      const ShapeStep& step = in_.steps.at(run.shape, run.pool, run.size);
      const double whole = run.progress->factor() / (step.seconds / run.reference);
      const Time slowed{
          static_cast<std::int64_t>(static_cast<double>(computing.ns) * (1 - 1 / std::max(1.0, whole)))};
      account.add(CardItem::kCheckpoint, run.cards, saving);
      account.add(CardItem::kSlowed, run.cards, slowed);
      account.add(CardItem::kUseful, run.cards, computing - slowed);
      run.useful += CardTime{run.cards} * (computing - slowed).ns;
      course_.jobs[run.job].tokens += step.tokens_per_s * (computing - slowed).seconds();
      break;
    }
  }
  if (run.service) course_.wanted_replicas += account.all();
  if (run.service && run.stage == RunStage::kRunning)
    course_.jobs[run.job].tokens += in_.steps.at(run.shape, run.pool, run.size).tokens_per_s * past.seconds();
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

// Jobs that stand on several leaves of a pool share the uplinks of each: the leaf where others' networks are
// busiest decides.
void QueueRun::disturb_neighbours(int pool) {
  if (in_.rivalry.empty() || pool < 0) return;
  const CardMap& map = maps_[pool];
  std::vector<std::vector<int>> crossing(map.leaves());
  const std::vector<int>& here = holders_[pool];
  for (std::size_t i = 0; i < here.size(); ++i) {
    const QueuedRun& run = runs_[here[i]];
    if (!run.holds() || run.nodes.size() < 2) continue;
    std::vector<int> leaves;
    for (const NodeCards& held : run.nodes) leaves.push_back(map.leaf_of(held.node));
    std::sort(leaves.begin(), leaves.end());
    leaves.erase(std::unique(leaves.begin(), leaves.end()), leaves.end());
    if (leaves.size() < 2) continue;
    for (const int leaf : leaves) crossing[leaf].push_back(static_cast<int>(i));
  }
  std::vector<double> most(here.size(), 0);
  const auto shapes = in_.plan.shapes.size();
  for (const std::vector<int>& leaf : crossing) {
    for (const int a : leaf) {
      double left = 1;  // rivals are busy independently of each other
      for (const int b : leaf) {
        if (a == b) continue;
        const QueuedRun &mine = runs_[here[a]], &rival = runs_[here[b]];
        const ShapeStep& other = in_.steps.at(rival.shape, pool, rival.size);
        left *= network_left(other.network, in_.rivalry[mine.shape * shapes + rival.shape]);
      }
      most[a] = std::max(most[a], 1 / left - 1);
    }
  }
  for (std::size_t i = 0; i < here.size(); ++i) {
    QueuedRun& run = runs_[here[i]];
    if (!run.holds()) continue;
    const double exposed = in_.steps.at(run.shape, pool, run.size).exposed;
    const double disturbed = 1 + exposed * most[i];
    if (disturbed == run.disturbed) continue;
    if (run.stage == RunStage::kRunning) book(run);
    run.disturbed = disturbed;
    set_speed(run);
  }
}

}  // namespace moebius
