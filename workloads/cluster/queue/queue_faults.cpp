// What breaks, and how a job comes back.
#include <algorithm>
#include <cmath>
#include <utility>

#include "workloads/cluster/cluster_rates.h"
#include "workloads/cluster/queue/queue_run.h"

namespace moebius {

void QueueRun::next_fault() {
  if (total_rate_ <= 0) return;
  const double gap = -std::log(random_.unit()) * 3600 / total_rate_;  // of rare faults beyond all clocks
  if (gap < (in_.cluster.duration - now_).seconds()) push(now_ + time_from_seconds(gap), Event::What::kFault);
}

// A job's own software, of any job.
void QueueRun::strike_any(int kind) {
  QueuedRun& run = runs_[first_run_[random_.below(static_cast<std::uint32_t>(jobs_.size()))]];
  if (run.stage != RunStage::kRunning) return;
  ++course_.faults[kind];
  strike_run(run, kind, -1, false);
}

void QueueRun::strike(int kind_index, int pool, int node) {
  const FailureKind& kind = in_.cluster.faults[kind_index];
  if (maps_[pool].down(node)) return;
  ++course_.faults[kind_index];
  const bool at_once = kind.effect == FailureEffect::kCrash || kind.effect == FailureEffect::kHang;
  const int first = kind.nodes > 0 ? node / kind.nodes * kind.nodes : node;
  const int last = kind.nodes > 0 ? std::min(first + kind.nodes, maps_[pool].pool().nodes) : node + 1;
  for (int hit = first; hit < last; ++hit) {
    if (maps_[pool].down(hit)) continue;
    bool held = false;
    const std::vector<int> here = holders_[pool];  // as they are before any loses the node
    for (const int r : here) {
      QueuedRun& run = runs_[r];
      if (!run.holds()) continue;
      const auto on = [&](const NodeCards& of) { return of.node == hit; };
      if (std::none_of(run.nodes.begin(), run.nodes.end(), on)) continue;
      held = true;
      strike_run(run, kind_index, hit, kind.nodes > 0);
    }
    if (kind.nodes > 0 && (at_once || !held)) take_down(pool, hit, kind_index);
  }
}

void QueueRun::take_down(int pool, int node, int kind) {
  maps_[pool].take_down(node);
  push(now_ + in_.cluster.faults[kind].repair.draw(random_), Event::What::kRepaired, node, pool);
}

// Its cards there are gone.
void QueueRun::lose_node(QueuedRun& run, int node) {
  std::int64_t cards = run.cards;
  std::erase_if(run.nodes, [&](const NodeCards& held) {
    if (held.node == node) cards -= held.cards;
    return held.node == node;
  });
  hold(run, cards, true);
  if (run.bad && run.bad_node == node) lose_bad(run);
}

// It is not slow any more; what was computed wrongly is still there.
void QueueRun::lose_bad(QueuedRun& run) {
  run.slow = 1;
  run.bad_node = -1;
  run.bad = run.bad && run.progress && in_.cluster.faults[run.bad_kind].effect == FailureEffect::kSilent;
}

// Where it goes on: a restart is enough where the fault is of no node. Else a slow node is slow as before; of
// wrong results work from before the first is right, and from there they are made again only by a node that
// it still has.
void QueueRun::judge(QueuedRun& run) {
  const FailureKind& kind = in_.cluster.faults[run.bad_kind];
  if (kind.effect == FailureEffect::kSlow && kind.nodes == 0) run.bad = false, run.slow = 1;
  if (kind.effect != FailureEffect::kSilent || !run.progress) return;
  const auto stands = [&](const NodeCards& held) { return held.node == run.bad_node; };
  const bool stays = kind.nodes > 0 && std::any_of(run.nodes.begin(), run.nodes.end(), stands);
  run.bad = stays || run.progress->done() > run.wrong_from;
  run.wrong_from = std::min(run.wrong_from, run.progress->done());
}

void QueueRun::strike_run(QueuedRun& run, int kind_index, int node, bool takes_node) {
  const FailureKind& kind = in_.cluster.faults[kind_index];
  tell(What::kFault, run, node, kind_index);
  book(run);
  if (kind.effect == FailureEffect::kSlow || kind.effect == FailureEffect::kSilent) {
    if (run.stage != RunStage::kRunning || run.bad) return;  // one at a time
    ++course_.jobs[run.job].interrupted;
    run.bad = true;
    run.bad_node = node;
    run.bad_kind = kind_index;
    if (run.progress) run.wrong_from = run.progress->done();
    if (kind.effect == FailureEffect::kSlow) run.slow = kind.slow_factor;
    set_speed(run);
    const DetectionPlan& detection = in_.cluster.detection;
    const Delay& after = random_.unit() < detection.recall     ? detection.monitored
                         : kind.effect == FailureEffect::kSlow ? detection.slow
                                                               : detection.silent;
    return push(now_ + after.draw(random_), Event::What::kFound, index_of(run), ++run.bad_version);
  }
  if (takes_node) lose_node(run, node);
  run.lost_memory = run.lost_memory || takes_node;
  run.broken_nodes += takes_node ? 1 : 0;
  go_down(run, kind_index);
}

// Whoever is down already gets to know of one more fault when it knows of the first.
void QueueRun::go_down(QueuedRun& run, int kind_index) {
  if (run.stage == RunStage::kDetecting) return;
  ++course_.jobs[run.job].interrupted;
  if (run.stage == RunStage::kRunning && run.progress) run.progress->stop(now_);
  run.next_size = -1;
  const DetectionPlan& detection = in_.cluster.detection;
  const Delay& after = random_.unit() < detection.recall                               ? detection.monitored
                       : in_.cluster.faults[kind_index].effect == FailureEffect::kHang ? detection.hang
                                                                                       : detection.crash;
  begin_stage(run, RunStage::kDetecting, after.draw(random_));
}

// Work since `before` was lost: what it took was not useful.
void QueueRun::lose_work(QueuedRun& run, Time before) {
  const Time lost = before - run.progress->done();
  const double factor = in_.steps.at(run.shape, run.pool, run.size).seconds / run.reference;
  const auto cards = static_cast<double>(cards_of(run, run.size));
  const CardTime what =
      std::min(run.useful, static_cast<CardTime>(static_cast<double>(lost.ns) * factor * cards));
  run.useful -= what;
  course_.pools[run.pool].move(CardItem::kUseful, CardItem::kRecomputed, what);
  course_.queues[run.queue].move(CardItem::kUseful, CardItem::kRecomputed, what);
  course_.jobs[run.job].tokens -=
      in_.steps.at(run.shape, run.pool, run.size).tokens_per_s * lost.seconds() * factor;
}

void QueueRun::detected(QueuedRun& run) {
  tell(What::kDetected, run);
  Time takes = in_.cluster.recovery.isolate.draw(random_);
  const CheckpointPlan& checkpoint = in_.cluster.checkpoint;
  if (run.progress) {
    const Time before = run.progress->done();
    if (!run.lost_memory && random_.unit() < checkpoint.triggered) {
      const double step = costs_of(run.shape, run.pool, run.size).interval.seconds();
      const double part = std::min(random_.unit() * run.reference, step);
      run.progress->back_by(time_from_seconds(part));
      run.progress->save_now();
      takes += costs_of(run.shape, run.pool, run.size).checkpoint.load;
    } else if (checkpoint.policy == CheckpointPolicy::kMemory && run.broken_nodes <= 1) {
      run.progress->back_to_peers();
    } else {
      run.progress->back_to_storage();
    }
    lose_work(run, before);
  }
  begin_stage(run, RunStage::kIsolating, takes);
}

// Work since the last state that was right.
void QueueRun::lose_wrong(QueuedRun& run) {
  const Time before = run.progress->done();
  run.progress->back_before(run.wrong_from);
  lose_work(run, before);
}

// Its state is in storage when it stops; where nothing is ever saved that is the beginning.
void QueueRun::save(QueuedRun& run) {
  if (in_.cluster.checkpoint.policy != CheckpointPolicy::kNone) return run.progress->save_now();
  const Time before = run.progress->done();
  run.progress->back_to_storage();
  lose_work(run, before);
}

// A slow node, or one that computes wrongly, is found: the job is stopped and goes on without it. Of one that
// waits only what it has computed is wrong.
void QueueRun::found(QueuedRun& run) {
  const FailureKind& kind = in_.cluster.faults[run.bad_kind];
  if (run.stage == RunStage::kWaiting) {
    run.bad = false;
    return lose_wrong(run);
  }
  if (!run.holds()) return;
  if (run.stage != RunStage::kRunning)
    return push(now_ + kLookAgain, Event::What::kFound, index_of(run), run.bad_version);
  tell(What::kDetected, run, run.bad_node, run.bad_kind);
  book(run);
  Time takes = in_.cluster.recovery.isolate.draw(random_);
  if (run.progress) {
    run.progress->stop(now_);
    if (kind.effect == FailureEffect::kSilent) {
      lose_wrong(run);
    } else {
      save(run);  // it is stopped as planned
      takes += costs_of(run.shape, run.pool, run.size).checkpoint.durable;
    }
  }
  const int node = run.bad_node;
  run.bad = false;
  run.slow = 1;
  // Whoever shares the node, or has got it since, loses it too.
  if (kind.nodes > 0 && node >= 0 && !maps_[run.pool].down(node)) {
    const std::vector<int> here = holders_[run.pool];  // as they are before any loses the node
    for (const int r : here) {
      QueuedRun& other = runs_[r];
      if (&other == &run || !other.holds()) continue;
      const auto on = [&](const NodeCards& held) { return held.node == node; };
      if (std::none_of(other.nodes.begin(), other.nodes.end(), on)) continue;
      book(other);
      lose_node(other, node);
      other.lost_memory = true;
      ++other.broken_nodes;
      go_down(other, run.bad_kind);
    }
    lose_node(run, node);
    run.lost_memory = true;
    ++run.broken_nodes;
    take_down(run.pool, node, run.bad_kind);
  }
  begin_stage(run, RunStage::kIsolating, takes);
}

// Nodes in place of broken ones, spares too. Where there are none it goes on smaller, or waits without cards.
void QueueRun::replace_nodes(QueuedRun& run) {
  CardMap& map = maps_[run.pool];
  const RecoveryPlan& recovery = in_.cluster.recovery;
  run.claims = false;
  auto told = [&, before = run.size]() mutable {
    if (run.size == std::exchange(before, run.size)) return;
    if (run.progress) {
      run.progress->save_now();
      run.progress->forget_peers();  // others hold its parts
    }
    tell(What::kShrunk, run);
    ++course_.jobs[run.job].resized;
    run.settled_since = now_;
  };
  std::int64_t missing = cards_of(run, run.size) - run.cards;
  // What it has grown by it does without before others are asked for theirs.
  while (run.size > run.asked && missing > 0 && !map.can_place(static_cast<int>(missing), true))
    missing = cards_of(run, --run.size) - run.cards;
  if (missing > 0 && !map.can_place(static_cast<int>(missing), true)) {
    if (const std::optional<Time> when = claim_spares(run, missing)) {
      told();
      return begin_stage(run, RunStage::kIsolating, *when - now_);
    }
  }
  const int least = least_size(run);
  bool exchanged = false;
  while (missing > 0 && !map.can_place(static_cast<int>(missing), true) && run.size > least &&
         in_.steps.runs(run.shape, run.pool, run.size - 1)) {
    --run.size;
    missing = cards_of(run, run.size) - run.cards;
  }
  if (missing > 0 && !map.can_place(static_cast<int>(missing), true)) {
    if (run.progress) run.progress->save_now();
    release(run);
    set_stage(run, RunStage::kWaiting);
    run.waiting_since = now_;
    return;
  }
  told();
  if (missing > 0) {
    exchanged = true;
    for (const NodeCards& held : map.place(static_cast<int>(missing), true)) run.nodes.push_back(held);
    hold(run, cards_of(run, run.size));
    disturb_neighbours(run.pool);
  } else if (missing < 0) {
    give_back_part(run, cards_of(run, run.size));
  }
  const CheckpointCosts& costs = costs_of(run.shape, run.pool, run.size).checkpoint;
  const bool from_peers = run.progress && run.progress->peers_hold_it();
  double takes = delay(recovery.restart) + (from_peers ? costs.reload : costs.load).seconds();
  if (exchanged) takes += delay(recovery.replace) + delay(recovery.image) + delay(recovery.cache);
  begin_stage(run, RunStage::kStarting, time_from_seconds(takes));
}

}  // namespace moebius
