// Who gives cards back: jobs that grew into idle cards, then jobs of queues that have borrowed.
#include <algorithm>
#include <limits>

#include "workloads/cluster/queue/queue_run.h"

namespace moebius {

// The owner's queue has quota left for it, and there are no free cards: others make room. Smaller than it
// asked for it takes what is free now: others would borrow it, and be stopped again.
void QueueRun::reclaim(QueuedRun& owner) {
  bool has_quota = false, kept = false;
  for (int size = owner.asked; size >= least_size(owner); --size) {
    if (size < owner.asked && start_at(owner, size, true)) return;
    for (const int pool : pools_for(owner, size)) {
      // Cards that are kept for who waits before it would only go back to those who gave them.
      if (!may_take(owner, {pool, size}, true) || kept_for_others(owner, {pool, size}) ||
          !cap_allows(pool, cards_of(owner, size)))
        continue;
      has_quota = true;
      if (reclaim_in(owner, {pool, size}, true)) return;
      kept = kept || borrowed_in(pool, owner.queue) >= cards_of(owner, size);
    }
  }
  if (has_quota && kept) ++course_.kept_from_owner;
}

// What is free by its end may be another's: what others give up must be left over.
bool QueueRun::kept_for_others(const QueuedRun& owner, Place place) {
  const auto keeps = [&](const Reservation& reserved) {
    return reserved.set && reserved.by != &owner && cards_of(owner, place.size) > reserved.extra;
  };
  return keeps(reserved_of(owner.queue, place.pool)) || keeps(reserved_of(kEverybody, place.pool));
}

// Cards that preemptible jobs of other queues hold beyond their quotas.
std::int64_t QueueRun::borrowed_in(int pool, int but) {
  std::int64_t sum = 0;
  for (int q = 0; q < static_cast<int>(in_.plan.queues.size()); ++q) {
    if (q == but) continue;
    std::int64_t preemptible = 0;
    for (const int r : holders_[pool])
      if (runs_[r].queue == q && runs_[r].holds() && shape_of(runs_[r]).preemptible)
        preemptible += runs_[r].cards;
    sum += std::max<std::int64_t>(0, std::min(preemptible, used(q, pool) - quota(q, pool)));
  }
  return sum;
}

// Cards that a run gives up when it goes on with `next`, or stops (-1).
std::int64_t QueueRun::given_up(const QueuedRun& run, int next) const {
  return std::max<std::int64_t>(0, run.cards - (next < 0 ? 0 : cards_of(run, next)));
}

// Of these, as far as they help a job of so many: whole nodes where it needs whole nodes.
std::int64_t QueueRun::freed(const QueuedRun& run, int next, std::int64_t needed) const {
  const std::int64_t cards = given_up(run, next), node = maps_[run.pool].pool().cards;
  return needed >= node ? cards / node * node : cards;
}

// What a run could do to make room: the size to which it shrinks, -1 to stop; kNothing.
int QueueRun::way_to_free(const QueuedRun& run, const QueuedRun& owner, std::int64_t missing) {
  const bool lends = in_.plan.scheduler.partition == PartitionRule::kBorrow;
  const bool elastic = shape_of(run).elastic && in_.plan.scheduler.elastic;
  // Who has just got its cards gets to run: two who take turns at them would keep time from going on.
  if (run.stage != RunStage::kRunning) return kNothing;
  if (elastic && run.size > run.asked && (lends || run.queue == owner.queue)) return run.asked;
  const std::int64_t over = used(run.queue, run.pool) - quota(run.queue, run.pool) - going_[run.queue];
  if (!lends || run.queue == owner.queue || over <= 0 || !shape_of(run).preemptible) return kNothing;
  const int least = least_size(run);
  for (int next = run.size - 1; elastic && next >= least; --next) {
    if (in_.steps.runs(run.shape, run.pool, next) && freed(run, next, missing) >= std::min(missing, over))
      return next;
  }
  return -1;
}

// The largest size that frees enough, of those that its user allows.
int QueueRun::way_to_yield(const QueuedRun& run, std::int64_t missing) const {
  if (run.stage != RunStage::kRunning || !shape_of(run).elastic || run.bad) return kNothing;
  if (run.size <= run.asked && now_ - run.settled_since < in_.plan.scheduler.settle) return kNothing;
  int way = kNothing;
  for (int next = run.size - 1; next >= least_size(run); --next) {
    if (!in_.steps.runs(run.shape, run.pool, next)) continue;
    way = next;
    if (freed(run, next, missing) >= missing) break;
  }
  return way;
}

// What running jobs would give is as it was until somebody starts, or gives.
void QueueRun::forget_claims() {
  no_claim_.assign(in_.plan.queues.size() * maps_.size(), std::numeric_limits<std::int64_t>::max());
}

// The lowest priority first, of it who came last. Nobody moves unless it suffices.
bool QueueRun::reclaim_in(const QueuedRun& owner, Place place, bool by_right) {
  const std::int64_t needed = cards_of(owner, place.size);
  const CardMap& map = maps_[place.pool];
  std::int64_t there = map.can_place(static_cast<int>(needed)) ? needed
                       : needed >= map.pool().cards            ? map.whole_free_cards()
                                                               : 0;
  std::int64_t& no_claim = no_claim_[owner.queue * maps_.size() + place.pool];
  if (by_right && there < needed && needed >= no_claim) return false;
  going_.assign(in_.plan.queues.size(), 0);
  std::vector<int> others;
  for (const int r : holders_[place.pool]) {
    const QueuedRun& run = runs_[r];
    if (!run.holds()) continue;
    if (run.stage == RunStage::kSaving && (run.next_size < 0 || run.next_size < run.size)) {
      there += freed(run, run.next_size, needed);
      going_[run.queue] += given_up(run, run.next_size);
    } else {
      others.push_back(r);
    }
  }
  there -= promised_[place.pool];
  // Most have nothing to give, and mostly all together too little: everybody who waits asks in every pass.
  std::int64_t most = 0;
  std::erase_if(others, [&](int r) {
    const int next = by_right ? way_to_free(runs_[r], owner, needed) : way_to_yield(runs_[r], needed);
    if (next != kNothing) most += freed(runs_[r], -1, needed);
    return next == kNothing;
  });
  if (there + most < needed) {
    if (by_right) no_claim = needed;
    return false;
  }
  std::sort(others.begin(), others.end(), [&](int x, int y) {
    const QueuedRun &a = runs_[x], &b = runs_[y];
    const bool ga = a.size > a.asked, gb = b.size > b.asked;
    if (ga != gb) return ga;
    const int pa = in_.plan.queues[a.queue].priority, pb = in_.plan.queues[b.queue].priority;
    if (pa != pb) return pa < pb;
    return a.settled_since != b.settled_since ? a.settled_since > b.settled_since : x > y;
  });
  std::vector<std::pair<int, int>> moves;
  for (const int r : others) {
    if (there >= needed) break;
    const int next =
        by_right ? way_to_free(runs_[r], owner, needed - there) : way_to_yield(runs_[r], needed - there);
    if (next == kNothing || freed(runs_[r], next, needed) == 0) continue;
    there += freed(runs_[r], next, needed);
    going_[runs_[r].queue] += given_up(runs_[r], next);
    moves.emplace_back(r, next);
  }
  if (there < needed) return false;
  for (const auto& [r, next] : moves) save_and(runs_[r], next);
  promised_[place.pool] += needed;
  return true;
}

// What is being made is stopped only once its state is in storage; a replica has none.
void QueueRun::save_and(QueuedRun& run, int next_size) {
  book(run);
  const bool computes = run.stage == RunStage::kRunning && run.progress;
  if (computes) run.progress->stop(now_);
  run.next_size = next_size;
  forget_claims();
  begin_stage(run, RunStage::kSaving,
              computes ? costs_of(run.shape, run.pool, run.size).checkpoint.durable : Time{});
}

}  // namespace moebius
