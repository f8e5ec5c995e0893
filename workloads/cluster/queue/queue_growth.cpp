// Elastic jobs follow what there is: they grow into cards that nobody waits for, on spares too where these
// are lent, and shrink for replicas that find none.
#include <algorithm>
#include <tuple>

#include "workloads/cluster/queue/queue_run.h"

namespace moebius {

namespace {
// Growing pays when what is left takes so many times what the change costs.
constexpr double kWorthwhile = 6;
}  // namespace

// What it lacks for that size is free: while it has a part of a node, on this one.
bool QueueRun::has_room(const QueuedRun& run, int next) const {
  const CardMap& map = maps_[run.pool];
  const auto more = static_cast<int>(cards_of(run, next) - run.cards);
  if (run.cards < map.pool().cards) return more <= map.free_beside(run.nodes.front());
  return map.can_place(more, lends_spares_to(run));
}

// The size that follows, where it can be had now and pays; -1: none.
int QueueRun::next_size(const QueuedRun& run) {
  const int next = run.size + 1, pool = run.pool;
  if (run.stage != RunStage::kRunning || !run.progress || !shape_of(run).elastic || run.bad) return -1;
  if (next >= static_cast<int>(shape_of(run).sizes.size()) || !in_.steps.runs(run.shape, pool, next))
    return -1;
  // Below what it asked for it grows again at once.
  if (run.size >= run.asked && now_ - run.settled_since < in_.plan.scheduler.settle) return -1;
  const std::int64_t more = cards_of(run, next) - run.cards;
  if (reserved_of(run.queue, pool).set || reserved_of(kEverybody, pool).set || cap_holds_ ||
      !cap_allows(pool, more) || !has_room(run, next))
    return -1;
  const bool apart = in_.plan.scheduler.partition == PartitionRule::kStatic;
  if (apart && used(run.queue, pool) + more > quota(run.queue, pool)) return -1;
  const double before = in_.steps.at(run.shape, pool, run.size).seconds;
  const double after = in_.steps.at(run.shape, pool, next).seconds;
  const CheckpointCosts& costs = costs_of(run.shape, pool, next).checkpoint;
  const double change = (costs.durable + costs.load + in_.cluster.recovery.restart.mean).seconds();
  const double left = std::max(0.0, (run.progress->end_of(run.work) - now_).seconds());
  // Of what is left; of everything where nothing is saved.
  const bool anew = in_.cluster.checkpoint.policy == CheckpointPolicy::kNone;
  const double then = (anew ? run.work.seconds() * run.progress->factor() : left) * after / before;
  return left - then < kWorthwhile * change ? -1 : next;
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
  pass_watts_ += static_cast<double>(cards - best->cards) * card_watts(pool);
  const auto more = static_cast<int>(cards - best->cards);
  if (best->cards < map.pool().cards)
    map.take_beside(best->nodes.front(), more);
  else
    for (const NodeCards& held : map.place(more, lends_spares_to(*best))) best->nodes.push_back(held);
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

// Cards that jobs which lost nodes lack, of one queue or of everybody; not of those who are getting them
// back.
std::int64_t QueueRun::lost_cards(int pool, int queue) const {
  std::int64_t sum = 0;
  for (const int r : holders_[pool]) {
    const QueuedRun& run = runs_[r];
    const bool down = run.stage == RunStage::kDetecting || run.stage == RunStage::kIsolating;
    if (down && !run.claims && (queue == kEverybody || run.queue == queue))
      sum += std::max<std::int64_t>(0, cards_of(run, run.size) - run.cards);
  }
  return sum;
}

// Of the cards of spare nodes those that jobs hold beside their own: neither free nor in the place of broken
// ones. With what was lost all jobs held what is up and not free; what is not spare they have a right to.
std::int64_t QueueRun::lent_cards(int pool) const {
  const CardMap& map = maps_[pool];
  const std::int64_t free_nodes = map.whole_free_cards() + map.spare_cards();
  const std::int64_t gone = std::int64_t{map.nodes_down()} * map.pool().cards;
  return std::int64_t{map.pool().spares} * map.pool().cards - gone - free_nodes +
         lost_cards(pool, kEverybody);
}

// Who grew gives back first; of the others those whose queues hold more than their quotas do, or what is
// theirs would be taken for who has no better right to it.
bool QueueRun::may_hold_spares(QueuedRun& run, const QueuedRun& owner) {
  if (&run == &owner || run.stage != RunStage::kRunning || !lends_spares_to(run)) return false;
  if (run.size > run.asked || run.queue == owner.queue) return true;
  return used(run.queue, run.pool) + lost_cards(run.pool, run.queue) > quota(run.queue, run.pool);
}

// The size at which a run goes on that gives spares back; -1: it stops.
int QueueRun::size_without_spares(const QueuedRun& run) const {
  if (!shape_of(run).elastic || run.size == 0) return -1;
  const int next = run.size > run.asked ? run.asked : run.size - 1;
  return next >= least_size(run) && in_.steps.runs(run.shape, run.pool, next) ? next : -1;
}

// A job that lost nodes finds the spares lent: who holds some saves and gives them back. When that will be;
// nothing: none are lent, or nobody can.
std::optional<Time> QueueRun::claim_spares(QueuedRun& owner, std::int64_t cards) {
  if (!in_.plan.scheduler.lend_spares || in_.plan.scheduler.partition == PartitionRule::kStatic ||
      lent_cards(owner.pool) < cards)
    return std::nullopt;
  // Who grew before others; of these the lowest priority, who shrinks before who stops, who holds least.
  const auto rank = [&](const QueuedRun& run, int next) {
    const int priority = in_.plan.queues[run.queue].priority;
    return std::tuple{run.size <= run.asked, priority, next < 0, run.cards};
  };
  QueuedRun* best = nullptr;
  int best_next = kNothing;
  for (const int r : holders_[owner.pool]) {
    QueuedRun& run = runs_[r];
    if (!may_hold_spares(run, owner)) continue;
    const int next = size_without_spares(run);
    if (freed(run, next, cards) < cards) continue;
    if (best == nullptr || rank(run, next) < rank(*best, best_next)) best = &run, best_next = next;
  }
  if (best == nullptr) return std::nullopt;
  save_and(*best, best_next);
  owner.claims = true;
  return best->stage_end;
}

}  // namespace moebius
