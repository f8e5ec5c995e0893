#include "sim/machine.h"

#include <algorithm>
#include <functional>
#include <map>

#include <fmt/format.h>

#include "hw/error.h"

namespace moebius {
namespace {

std::size_t pool_index(const Cluster& cluster, int device) {
  return static_cast<std::size_t>(&cluster.pool_of(device) - cluster.pools.data());
}

}  // namespace

Machine::Machine(MachineParts parts)
    : whole_chips_(parts.cluster.exchange.has_value()),
      layout_(parts.layout),
      recorder_(parts.recorder),
      plans_(parts.plans),
      network_(parts.network),
      counters_(parts.counters),
      paces_(parts.paces),
      launches_(parts.layout.classes.size(), parts.cluster.launch),
      uses_(parts.cluster, parts.layout, parts.costs, parts.powers, parts.plans) {
  lanes_.resize(layout_.classes.size() * kNumLanes);
  std::map<int, std::int32_t> chip_of_device;  // representatives may share one (virtual ranks)
  for (std::size_t i = 0; i < layout_.classes.size(); ++i) {
    const int device = layout_.device_of_rank[layout_.classes[i].representative()];
    const auto [chip, is_new] = chip_of_device.try_emplace(device, 0);
    const double pace = layout_.pace_of_class.empty() ? 1 : layout_.pace_of_class[i];
    if (is_new) chip->second = chips_.add(parts.cluster.pool_of(device).accelerator, pace);
    if (is_new && paces_ != nullptr) paces_->add(chip->second, device);
    if (is_new && parts.powers != nullptr)
      governors_.emplace_back((*parts.powers)[pool_index(parts.cluster, device)]);
    chip_of_class_.push_back(chip->second);
    chips_shared_ = chips_shared_ || !is_new;
  }
}

std::int32_t Machine::new_live() {
  if (free_live_.empty()) {
    free_live_.push_back(static_cast<std::int32_t>(live_.size()));
    live_.emplace_back();
  }
  const std::int32_t slot = free_live_.back();
  free_live_.pop_back();
  return slot;
}

void Machine::submit(const Submission& submission) {
  const auto expected = first_open_ + static_cast<std::int32_t>(live_of_sequence_.size());
  CHECK(submission.sequence == expected,
        fmt::format("sequence {} after {}", submission.sequence, expected - 1));
  FragmentUse& use = uses_.acquire(submission.fragment, submission.rank_class);
  const std::int32_t slot = new_live();
  Live& live = live_[slot];
  live.use = &use;
  live.as_class = use.classes[submission.rank_class].get();
  live.sequence = submission.sequence;
  live.rank_class = submission.rank_class;
  live.step = submission.step;
  live.microbatch = submission.microbatch;
  live.second_microbatch = submission.second_microbatch;
  live.ops_left = static_cast<std::int32_t>(use.fragment->ops.size());
  live.waits_for = 0;
  live.dependencies.assign(use.num_dependencies.begin(), use.num_dependencies.end());
  live.ops.assign(use.num_dependencies.size(), {now_, {}});
  live_of_sequence_.push_back(slot);
  ++outstanding_;
  wait_for(submission.after, slot);
  follow(submission.follows, slot);
  if (use.fragment->launch != LaunchMode::kHidden) wait_for_launches(submission.rank_class, slot);
  for (int lane = 0; lane < kNumLanes; ++lane) {
    if (!use.lane_ops[lane].empty()) lane_of(live.rank_class, static_cast<Lane>(lane)).queue.push_back(slot);
  }
  wake_class(live.rank_class);
  if (live.ops_left == 0 && live.waits_for == 0) complete(slot);
  start_ready();
}

void Machine::wait_for(const std::vector<std::int32_t>& after, std::int32_t slot) {
  for (const std::int32_t sequence : after) {
    CHECK(sequence < live_[slot].sequence, fmt::format("{} waits for {}", live_[slot].sequence, sequence));
    const std::int32_t before = sequence < first_open_ ? -1 : live_of_sequence_[sequence - first_open_];
    if (before < 0) continue;
    live_[before].followers.push_back(slot);
    ++live_[slot].waits_for;
  }
}

void Machine::follow(const std::vector<Follow>& follows, std::int32_t slot) {
  Live& live = live_[slot];
  for (const Follow& follow : follows) {
    CHECK(follow.sequence < live.sequence, fmt::format("{} waits for {}", live.sequence, follow.sequence));
    const std::int32_t of =
        follow.sequence < first_open_ ? -1 : live_of_sequence_[follow.sequence - first_open_];
    if (of < 0 || live_[of].dependencies[follow.before] < 0) continue;
    live_[of].op_followers.push_back({follow.before, slot, follow.op});
    ++live.dependencies[follow.op];
  }
}

void Machine::wait_for_launches(std::int32_t rank_class, std::int32_t slot) {
  Live& live = live_[slot];
  const Fragment& fragment = *live.use->fragment;
  if (fragment.launch == LaunchMode::kGraph) ++live.waits_for;
  for (std::size_t op = 0; op < fragment.ops.size(); ++op)
    live.dependencies[op] += Launches::launches_of(fragment, op);
  launches_.add(fragment, rank_class, slot, now_);
}

// A launch ends like what an op waits for, all ops of its graph, or like a submission that all its ops wait
// for.
void Machine::launch(const Launches::Launched& launched) {
  Live& live = live_[launched.slot];
  if (launched.op < 0) {
    if (--live.waits_for == 0) wake_class(live.rank_class);
    return;
  }
  const Fragment& fragment = *live.use->fragment;
  for (std::int32_t op = launched.op; op >= 0; op = fragment.next_in_graph(op)) {
    live.ops[op].ready = now_;
    if (--live.dependencies[op] == 0)
      offer(live.rank_class * kNumLanes + static_cast<int>(fragment.ops[op].lane));
  }
}

void Machine::wake_class(std::int32_t rank_class) {
  for (int lane = 0; lane < kNumLanes; ++lane) offer(rank_class * kNumLanes + lane);
}

Time Machine::next_event() {
  const Time pace = paces_ == nullptr ? kForever : paces_->next_event();
  return std::min({network_.next_event(), chips_.next_event(), pace, launches_.next_event()});
}

Time Machine::advance(Time to) {
  CHECK(to >= now_, fmt::format("from {} ns back to {} ns", now_.ns, to.ns));
  if (counters_ != nullptr) counters_->before(to);
  now_ = to;
  Time next;
  do {
    if (paces_ != nullptr) paces_->advance(now_, chips_);
    for (Launches::Launched launched; launches_.pop(now_, launched);) launch(launched);
    ended_.clear();
    network_.advance(now_, ended_);
    for (const std::int32_t meeting : ended_) next_step(meeting);
    for (std::int32_t holder; (holder = chips_.pop_finished(now_)) != Chips::kNobody;) end_work(holder);
    start_ready();
    next = next_event();
  } while (next <= now_);
  return next;
}

void Machine::end_work(std::int32_t holder) {
  if (holder >= 0) return finish(holder);
  holder > kPosting ? end_part(meeting_of_copy(holder)) : end_posting(kPosting - holder);
}

std::vector<Completion> Machine::take_completions() {
  std::vector<Completion> taken = std::move(completions_);
  completions_.clear();
  std::sort(taken.begin(), taken.end(), [](const Completion& a, const Completion& b) {
    return a.time != b.time ? a.time < b.time : a.sequence < b.sequence;
  });
  return taken;
}

// ---- from queued to running

void Machine::LaneQueue::pop_front() {
  if (2 * ++first <= slots.size()) return;
  slots.erase(slots.begin(), slots.begin() + static_cast<std::ptrdiff_t>(first));
  first = 0;
}

// The next op of the lane starts with the others that become ready at this time, in the order of ids. Where
// it waits for nothing but a host that reads what came before, the host may go on.
void Machine::offer(std::int32_t index) {
  const LaneState& lane = lanes_[index];
  if (lane.busy || lane.queue.empty()) return;
  const Live& live = live_on(lane);
  const std::int32_t op = live.use->lane_ops[index % kNumLanes][lane.cursor];
  if (live.waits_for > 0) return;
  if (live.dependencies[op] == 1 && live.use->ops[op].host_reads)
    launches_.reached(live.rank_class, {lane.queue.front(), op}, now_);
  if (live.dependencies[op] > 0) return;
  ready_.push_back({id_of(live.sequence, op), index, op});
  std::push_heap(ready_.begin(), ready_.end(), std::greater<>());
}

bool Machine::is_next(const LaneState& lane, const Ready& ready) {
  if (lane.queue.empty()) return false;
  const Live& live = live_on(lane);
  return ready.id == id_of(live.sequence, live.use->lane_ops[ready.lane % kNumLanes][lane.cursor]);
}

void Machine::start_ready() {
  while (!ready_.empty()) {
    const Ready first = ready_.front();
    std::pop_heap(ready_.begin(), ready_.end(), std::greater<>());
    ready_.pop_back();
    LaneState& lane = lanes_[first.lane];
    if (lane.busy || !is_next(lane, first)) continue;  // offered twice
    lane.busy = true;
    lane.op = first.op;
    const OpUse& op = use_on(lane);
    const int chip = chip_of_class_[live_on(lane).rank_class];
    const int cores =
        chips_.take(chip, first.lane, units_of(lane),
                    op.communicates || op.on_host ? Chips::Use::kCommunication : Chips::Use::kCompute);
    if (cores >= 0) hold(first.lane, cores);
  }
}

void Machine::hold(std::int32_t index, int cores) {
  LaneState& lane = lanes_[index];
  if (lane.meeting >= 0) return post(index, cores);
  lane.cores = cores;
  lane.start = lane.work_start = now_;
  // Whoever came last made this op wait, and hands on how far the average member is ahead of the slowest.
  const OpState& state = live_on(lane).ops[lane.op];
  if (state.ready > lane.last_end) lane.lag = state.lag;
  if (state.ready == lane.last_end) lane.lag = std::max(lane.lag, state.lag);
  if (use_on(lane).communicates) {
    communicate(index);
  } else {
    compute(index);
  }
}

void Machine::compute(std::int32_t index) {
  LaneState& lane = lanes_[index];
  Live& live = live_on(lane);
  lane.cost = &live.as_class->cost(lane.op, lane.cores);
  chips_.start(
      {chip_of_class_[live.rank_class], index, id_of(lane), seconds_at_clock(lane), lane.cost->memory_bytes},
      now_);
}

// ---- from running to done

// An op whose members have loads of their own ends with the slowest of them. The average member is ahead by
// the lag that builds up from op to op until the members meet again.
void Machine::finish(std::int32_t index) {
  LaneState& lane = lanes_[index];
  const std::int32_t slot = lane.queue.front();
  Live& live = live_[slot];
  const FragmentUse& use = *live.use;
  const std::int32_t op = lane.op, chip = chip_of_class_[live.rank_class];
  ++events_;
  report(lane, live);
  const bool alone = ready_.empty() && chips_.is_idle(chip);
  if (!alone) release_cores(lane, live, use_of(lane, live));
  if (lane.cost == nullptr) {
    lane.lag = {};
    if (!governors_.empty()) draw_for_transfer(lane, live);
  } else {
    if (!governors_.empty()) draw(live.rank_class, lane.cost->energy, lane.clock, lane.start);
    if (lane.cost->mean < 1)
      lane.lag.ns +=
          static_cast<std::int64_t>((1 - lane.cost->mean) * static_cast<double>((now_ - lane.start).ns));
  }
  lane.last_end = now_;
  lane.busy = false;
  if (++lane.cursor == static_cast<std::int32_t>(use.lane_ops[index % kNumLanes].size())) {
    lane.queue.pop_front();
    lane.cursor = 0;
  }
  for (std::int32_t s = use.first_successor[op]; s < use.first_successor[op + 1]; ++s)
    end_dependency(live, use.successors[s], lane.lag);
  live.dependencies[op] = -1;
  for (const OpFollower& follower : live.op_followers)
    if (follower.before == op) end_dependency(live_[follower.slot], follower.op, lane.lag);
  --live.ops_left;
  if (alone && goes_on(index, op)) {
    lane.busy = true;
    lane.op = use.lane_ops[index % kNumLanes][lane.cursor];
    return hold(index, lane.cores);
  }
  if (alone) release_cores(lane, live, use_of(lane, live));
  offer(index);
  if (live.ops_left == 0) complete(slot);
}

void Machine::end_dependency(Live& live, std::int32_t op, Time lag) {
  OpState& state = live.ops[op];
  state.lag = state.ready == now_ ? std::max(state.lag, lag) : lag;
  state.ready = now_;
  const std::int32_t left = --live.dependencies[op];
  if (left == 0 || (left == 1 && live.use->ops[op].host_reads))
    offer(live.rank_class * kNumLanes + static_cast<int>(live.use->ops[op].lane));
}

// Whether the lane's next op computes with the cores that `op` held: nothing else is to start now, so no one
// else is asked.
bool Machine::goes_on(std::int32_t index, std::int32_t op) const {
  const LaneState& lane = lanes_[index];
  if (lane.cursor == 0 || !ready_.empty()) return false;
  const Live& live = live_[lane.queue.front()];
  const std::int32_t next = live.use->lane_ops[index % kNumLanes][lane.cursor];
  const OpUse &before = live.use->ops[op], &after = live.use->ops[next];
  return live.dependencies[next] == 0 && before.units == after.units && !before.communicates &&
         !before.on_host && !after.communicates && !after.on_host;
}

void Machine::report(const LaneState& lane, const Live& live) {
  Span span;
  span.sequence = live.sequence;
  span.op = lane.op;
  span.rank_class = live.rank_class;
  span.lane = live.use->ops[lane.op].lane;
  span.start = lane.start;
  span.end = span.first_end = span.mean_end = now_;
  if (lane.cost != nullptr) {
    span.origin = lane.cost->origin;
    span.error = lane.cost->error;
    span.slowest = lane.cost->slowest;
    if (lane.cost->first < 1) {
      const auto duration = static_cast<double>((now_ - lane.start).ns);
      span.first_end = lane.start + Time{static_cast<std::int64_t>(duration * lane.cost->first)};
      span.mean_end = lane.start + Time{static_cast<std::int64_t>(duration * lane.cost->mean)};
    }
  } else {
    span.slowest = lane.slowest;
    span.start = std::max(lane.start - lane.lag, lane.last_end);
    span.work_start = lane.work_start;
  }
  recorder_.span(span);
}

void Machine::complete(std::int32_t slot) {
  Live& live = live_[slot];
  completions_.push_back({live.sequence, now_});
  --outstanding_;
  uses_.release(*live.use);
  live_of_sequence_[live.sequence - first_open_] = -1;
  while (!live_of_sequence_.empty() && live_of_sequence_.front() < 0) {
    live_of_sequence_.pop_front();
    ++first_open_;
  }
  std::vector<std::int32_t> followers;
  followers.swap(live.followers);
  live.op_followers.clear();
  free_live_.push_back(slot);
  for (const std::int32_t follower : followers) {
    Live& next = live_[follower];
    if (--next.waits_for > 0) continue;
    wake_class(next.rank_class);
    if (next.ops_left == 0) complete(follower);
  }
}

}  // namespace moebius
