// Who gets cards: first those whose queues have quota left, then, where idle quota is lent, all others.
#include <algorithm>
#include <limits>

#include "workloads/cluster/queue/queue_run.h"

namespace moebius {

void QueueRun::give_cards() {
  reserved_.assign(reserved_.size(), {});
  promised_.assign(promised_.size(), 0);
  no_room_.assign(maps_.size(), std::numeric_limits<std::int64_t>::max());
  forget_claims();
  begin_cap();
  const std::vector<int> order = in_order();
  give_own(order);
  if (in_.plan.scheduler.partition == PartitionRule::kBorrow) lend(order);
  if (in_.plan.scheduler.elastic) {
    for (std::size_t p = 0; p < maps_.size(); ++p)
      while (grow_one(static_cast<int>(p))) continue;
  }
  for (std::size_t p = 0; p < maps_.size(); ++p) free_item_[p] = why_free(static_cast<int>(p));
}

// In each round a queue's first is tried before what it keeps from the rest counts.
void QueueRun::begin_round() {
  std::fill(reserved_.begin() + static_cast<std::ptrdiff_t>(maps_.size()), reserved_.end(), Reservation{});
  blocked_queue_.assign(in_.plan.queues.size(), 0);
}

void QueueRun::keep_for(const QueuedRun& run, bool within) {
  if (in_.plan.scheduler.backfill == BackfillRule::kNone)
    blocked_queue_[run.queue] = 1;
  else
    reserve(run, within);
}

// Idle cards that are not its own do as well, once all others have what is theirs; only without them others
// make room. Who has a right to some comes before those who could but borrow them.
void QueueRun::give_own(const std::vector<int>& order) {
  begin_round();
  std::vector<int> later;
  for (const int r : order) {
    QueuedRun& run = runs_[r];
    if (run.stage != RunStage::kWaiting) continue;
    if (held_by_cap(run)) break;
    if (blocked_queue_[run.queue] != 0 || try_start(run, true)) continue;
    if (could_borrow(run)) {
      if (!has_right(run)) continue;
      blocked_queue_[run.queue] = 1;
      later.push_back(r);
      continue;
    }
    reclaim(run);
    if (run.stage == RunStage::kWaiting) keep_for(run, true);
  }
  for (const int r : later) {
    QueuedRun& run = runs_[r];
    if (try_start(run, false)) continue;
    reclaim(run);
    if (run.stage == RunStage::kWaiting) keep_for(run, true);
  }
}

void QueueRun::lend(const std::vector<int>& order) {
  begin_round();
  for (const int r : order) {
    QueuedRun& run = runs_[r];
    if (run.stage != RunStage::kWaiting) continue;
    if (held_by_cap(run)) break;
    if (blocked_queue_[run.queue] != 0 || try_start(run, false)) continue;
    if (yields_to(run)) make_room(run);
    keep_for(run, false);
  }
}

// Who has waited for too long, those by arrival alone, so that nobody waits for more than the patience and
// those who came before; then by the priority of queues, then by arrival.
std::vector<int> QueueRun::in_order() {
  std::vector<int> order = waiting_;
  const auto aged = [&](const QueuedRun& run) {
    return now_ - run.waiting_since > in_.plan.scheduler.patience;
  };
  std::sort(order.begin(), order.end(), [&](int x, int y) {
    const QueuedRun &a = runs_[x], &b = runs_[y];
    if (aged(a) || aged(b)) return aged(a) && (!aged(b) || x < y);
    const int pa = in_.plan.queues[a.queue].priority, pb = in_.plan.queues[b.queue].priority;
    return pa != pb ? pa > pb : x < y;  // runs stand in the order of arrival
  });
  return order;
}

int QueueRun::least_size(const QueuedRun& run) const {
  const JobShape& shape = shape_of(run);
  if (!shape.elastic || !in_.plan.scheduler.elastic) return run.asked;
  int size = run.asked;
  while (size > 0 && shape.sizes[size - 1] >= shape.least * shape.sizes[run.asked]) --size;
  return size;
}

const std::vector<int>& QueueRun::pools_for(const QueuedRun& run, int size) const {
  return pool_order_[size_first_[run.shape] + size];
}

// At the size that it asked for, or smaller: what is its own first, then what is idle.
bool QueueRun::try_start(QueuedRun& run, bool within) {
  const bool lends = in_.plan.scheduler.partition == PartitionRule::kBorrow;
  const int least = within && lends ? run.asked : least_size(run);
  for (int size = run.asked; size >= least; --size)
    if (start_at(run, size, within)) return true;
  return false;
}

bool QueueRun::start_at(QueuedRun& run, int size, bool within) {
  for (const int pool : pools_for(run, size)) {
    const Place place{pool, size};
    if (!maps_[pool].can_place(static_cast<int>(cards_of(run, size)), lends_spares_to(run)) ||
        !may_take(run, place, within) || !cap_allows(pool, cards_of(run, size)))
      continue;
    pass_watts_ += static_cast<double>(cards_of(run, size)) * card_watts(pool);
    for (Reservation* reserved : {&reserved_of(run.queue, pool), &reserved_of(kEverybody, pool)}) {
      if (reserved->set && now_ + estimated_length(run, place) > reserved->until)
        reserved->extra -= cards_of(run, size);
    }
    start(run, place, run.progress && run.progress->done().ns > 0);
    if (in_.plan.scheduler.partition == PartitionRule::kStatic &&
        used(run.queue, pool) > quota(run.queue, pool))
      ++course_.beyond_quota;
    return true;
  }
  return false;
}

// Its queue has quota left for it, at some size.
bool QueueRun::has_right(const QueuedRun& run) {
  for (int size = run.asked; size >= least_size(run); --size) {
    for (const int pool : pools_for(run, size))
      if (used(run.queue, pool) + cards_of(run, size) <= quota(run.queue, pool)) return true;
  }
  return false;
}

bool QueueRun::could_borrow(const QueuedRun& run) {
  if (in_.plan.scheduler.partition == PartitionRule::kStatic) return false;
  const std::vector<int>& pools = pools_for(run, run.asked);
  return std::any_of(pools.begin(), pools.end(), [&](int pool) {
    return maps_[pool].can_place(static_cast<int>(cards_of(run, run.asked))) &&
           may_take(run, {pool, run.asked}, false);
  });
}

// By the rule of the partition, and without delaying who waits before: in its queue, or with a better right.
bool QueueRun::may_take(const QueuedRun& run, Place place, bool within) {
  const std::int64_t cards = cards_of(run, place.size);
  if (within && used(run.queue, place.pool) + cards > quota(run.queue, place.pool)) return false;
  const Time end = now_ + estimated_length(run, place);
  const auto passes = [&](const Reservation& reserved) {
    return !reserved.set || reserved.by == &run || cards <= reserved.extra || end <= reserved.until;
  };
  return passes(reserved_of(run.queue, place.pool)) && passes(reserved_of(kEverybody, place.pool));
}

// What a queue's first keeps from the rest of it, and what the first of all keeps from everybody.
QueueRun::Reservation& QueueRun::reserved_of(int queue, int pool) {
  return reserved_[(queue + 1) * maps_.size() + pool];
}

Time QueueRun::estimated_length(const QueuedRun& run, Place place) const {
  if (!run.progress) return in_.cluster.duration;
  const double step = in_.steps.at(run.shape, place.pool, place.size).seconds;
  const Time left = std::max(Time{}, run.estimate - run.progress->done());
  constexpr double kLongest = 4e9;  // longer than any course, so that sums with it fit
  return time_from_seconds(std::min(kLongest, left.seconds() * step / run.reference));
}

Time QueueRun::estimated_end(const QueuedRun& run) const {
  if (run.stage == RunStage::kSaving && run.next_size < 0) return run.stage_end;
  if (!run.progress) return now_ + in_.cluster.duration;
  if (run.stage == RunStage::kRunning) return std::max(now_, run.progress->end_of(run.estimate));
  return run.stage_end + estimated_length(run, {run.pool, run.size});
}

// In the pool that it would like best: from when it has its cards if those who run end when they say, and
// what is left over then. EASY keeps that for the first who waits alone. Who has quota left, or borrows,
// keeps it from everybody, who has none from its own queue.
void QueueRun::reserve(const QueuedRun& run, bool within) {
  const bool easy = in_.plan.scheduler.backfill == BackfillRule::kEasy;
  const bool apart = in_.plan.scheduler.partition == PartitionRule::kStatic;
  const int size = least_size(run);
  const std::int64_t cards = cards_of(run, size);
  for (const int pool : pools_for(run, size)) {
    const bool own = used(run.queue, pool) + cards <= quota(run.queue, pool);
    Reservation& reserved = reserved_of(apart || (within && !own) ? run.queue : kEverybody, pool);
    // Who waits behind the first of its own queue keeps nothing.
    if (easy && (reserved.set || reserved_of(run.queue, pool).set)) return;
    std::int64_t free = maps_[pool].free_cards() - maps_[pool].spare_cards();
    if (apart) free = std::min(free, quota(run.queue, pool) - used(run.queue, pool));
    std::vector<std::pair<Time, std::int64_t>> ends;
    for (const int r : holders_[pool]) {
      const QueuedRun& other = runs_[r];
      if (!other.holds() || (apart && other.queue != run.queue)) continue;
      ends.emplace_back(estimated_end(other), other.cards);
    }
    std::sort(ends.begin(), ends.end());
    reserved.wanted += cards;
    std::size_t i = 0;
    for (; i < ends.size() && free < reserved.wanted; ++i) free += ends[i].second;
    if (free < reserved.wanted) {  // never, as it looks: another pool perhaps
      reserved.wanted -= cards;
      continue;
    }
    const Time until = i == 0 ? now_ : ends[i - 1].first;
    reserved.until = reserved.set ? std::min(reserved.until, until) : until;
    reserved.extra = free - reserved.wanted;
    if (!reserved.set) reserved.by = &run;
    reserved.set = true;
    return;
  }
}

// Of the cards that are free now: what keeps those who wait from them.
CardItem QueueRun::why_free(int pool) {
  const std::int64_t free = maps_[pool].free_cards() - maps_[pool].spare_cards();
  bool fragmented = false, by_quota = false, held = false, too_few = false;
  for (const int r : waiting_) {
    const QueuedRun& run = runs_[r];
    const int size = least_size(run);
    const std::vector<int>& pools = pools_for(run, size);
    if (std::find(pools.begin(), pools.end(), pool) == pools.end()) continue;
    const std::int64_t cards = cards_of(run, size);
    const bool apart = in_.plan.scheduler.partition == PartitionRule::kStatic;
    if (cards > free)
      too_few = true;
    else if (!maps_[pool].can_place(static_cast<int>(cards)))
      fragmented = true;
    else if (apart && used(run.queue, pool) + cards > quota(run.queue, pool))
      by_quota = true;
    else
      held = true;
  }
  if (fragmented) return CardItem::kFragmented;
  if (held) return cap_holds_ ? CardItem::kPower : CardItem::kHeld;
  if (by_quota) return CardItem::kQuota;
  if (too_few) return CardItem::kTooFew;
  return could_be_larger(pool) ? CardItem::kUngrown : CardItem::kIdle;
}

}  // namespace moebius
