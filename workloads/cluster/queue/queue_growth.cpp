// Elastic jobs follow what there is: they grow into cards that nobody waits for, on spares too where these
// are lent, and shrink for replicas that find none.
#include <algorithm>

#include "workloads/cluster/queue/queue_run.h"

namespace moebius {

namespace {
// Growing pays when what is left takes so many times what the change costs.
constexpr double kWorthwhile = 6;
}  // namespace

// The size that follows, where it can be had now and pays; -1: none.
int QueueRun::next_size(const QueuedRun& run) {
  const int next = run.size + 1, pool = run.pool;
  if (run.stage != RunStage::kRunning || !run.progress || !shape_of(run).elastic || run.bad) return -1;
  if (next >= static_cast<int>(shape_of(run).sizes.size()) || !in_.steps.runs(run.shape, pool, next))
    return -1;
  // Below what it asked for it grows again at once.
  if (run.size >= run.asked && now_ - run.settled_since < in_.plan.scheduler.settle) return -1;
  const std::int64_t more = cards_of(run, next) - run.cards;
  if (reserved_of(run.queue, pool).set || reserved_of(kEverybody, pool).set ||
      !maps_[pool].can_place(static_cast<int>(more), lends_spares_to(run)))
    return -1;
  const bool apart = in_.plan.scheduler.partition == PartitionRule::kStatic;
  if (apart && used(run.queue, pool) + more > quota(run.queue, pool)) return -1;
  const double before = in_.steps.at(run.shape, pool, run.size).seconds;
  const double after = in_.steps.at(run.shape, pool, next).seconds;
  const CheckpointCosts& costs = costs_of(run.shape, pool, next).checkpoint;
  const double change = (costs.durable + costs.load + in_.cluster.recovery.restart.mean).seconds();
  const double left = std::max(0.0, (run.progress->end_of(run.work) - now_).seconds());
  return left * (1 - after / before) < kWorthwhile * change ? -1 : next;
}

// Of those that can, the one that uses the cards best. False: none can.
bool QueueRun::grow_one(int pool) {
  CardMap& map = maps_[pool];
  if (map.free_cards() == 0) return false;
  QueuedRun* best = nullptr;
  double best_use = 0;
  for (const int r : holders_[pool]) {
    QueuedRun& run = runs_[r];
    const int next = next_size(run);
    if (next < 0) continue;
    const double use =
        in_.steps.at(run.shape, pool, run.size).seconds * static_cast<double>(run.cards) /
        (in_.steps.at(run.shape, pool, next).seconds * static_cast<double>(cards_of(run, next)));
    if (use > best_use) best = &run, best_use = use;
  }
  if (best == nullptr) return false;
  const int next = best->size + 1;
  const std::int64_t cards = cards_of(*best, next);
  book(*best);
  const bool spares = lends_spares_to(*best);
  for (const NodeCards& held : map.place(static_cast<int>(cards - best->cards), spares))
    best->nodes.push_back(held);
  hold(*best, cards);
  save_and(*best, next);
  return true;
}

// Some elastic job on the pool has a larger size that runs there.
bool QueueRun::could_be_larger(int pool) const {
  return in_.plan.scheduler.elastic && std::any_of(holders_[pool].begin(), holders_[pool].end(), [&](int r) {
           const QueuedRun& run = runs_[r];
           const int next = run.size + 1;
           return run.progress && shape_of(run).elastic &&
                  next < static_cast<int>(shape_of(run).sizes.size()) &&
                  in_.steps.runs(run.shape, pool, next);
         });
}

// To whom elastic jobs yield what they can do without: replicas, whose demand is lost if nobody serves it.
bool QueueRun::yields_to(const QueuedRun& run) const {
  return in_.plan.scheduler.yields && in_.plan.scheduler.elastic &&
         in_.plan.scheduler.partition == PartitionRule::kBorrow && run.service;
}

void QueueRun::make_room(const QueuedRun& run) {
  for (const int pool : pools_for(run, run.asked)) {
    // What did not suffice for as many before does not suffice now: nobody has given anything back since.
    const std::int64_t cards = cards_of(run, run.asked);
    if (cards >= no_room_[pool]) continue;
    if (!may_take(run, {pool, run.asked}, false) || kept_for_others(run, {pool, run.asked})) continue;
    if (reclaim_in(run, {pool, run.asked}, false)) return;
    no_room_[pool] = cards;
  }
}

// Idle spares are lent to who can be stopped for them.
bool QueueRun::lends_spares_to(const QueuedRun& run) const {
  return in_.plan.scheduler.lend_spares && in_.plan.scheduler.partition == PartitionRule::kBorrow &&
         shape_of(run).preemptible && run.progress.has_value();
}

// A job that lost nodes finds the spares lent: who holds some saves and gives them back. When that will be;
// nothing: nobody can.
std::optional<Time> QueueRun::claim_spares(const QueuedRun& owner, std::int64_t cards) {
  if (!in_.plan.scheduler.lend_spares || in_.plan.scheduler.partition == PartitionRule::kStatic)
    return std::nullopt;
  QueuedRun* best = nullptr;
  int best_next = kNothing;
  for (const int r : holders_[owner.pool]) {
    QueuedRun& run = runs_[r];
    if (&run == &owner || run.stage != RunStage::kRunning || !lends_spares_to(run)) continue;
    int next = -1;
    if (shape_of(run).elastic && run.size > 0) next = run.size > run.asked ? run.asked : run.size - 1;
    if (next >= 0 && (next < least_size(run) || !in_.steps.runs(run.shape, run.pool, next))) next = -1;
    if (freed(run, next, cards) < cards) continue;
    const auto better = [&] {  // who grew before who shrinks before who stops; of these who holds least
      if (best == nullptr) return true;
      const int mine = run.size > run.asked ? 2 : next >= 0,
                others = best->size > best->asked ? 2 : best_next >= 0;
      return mine != others ? mine > others : run.cards < best->cards;
    };
    if (better()) best = &run, best_next = next;
  }
  if (best == nullptr) return std::nullopt;
  save_and(*best, best_next);
  return best->stage_end;
}

}  // namespace moebius
