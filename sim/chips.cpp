#include "sim/chips.h"

#include <algorithm>

#include <fmt/format.h>

#include "hw/error.h"
#include "sim/event_queue.h"

namespace moebius {

int Chips::add(const Accelerator& accelerator, double pace) {
  Chip chip;
  chip.usual = chip.pace = pace;
  chip.cores.total = chip.cores.free = std::max(1, accelerator.cores);
  chip.general.total = chip.general.free = accelerator.general_cores;
  chip.independent = accelerator.independent_engines;
  chip.memory_rate = accelerator.memory_rate.value * accelerator.memory_efficiency;
  chips_.push_back(std::move(chip));
  ends_.add();
  return static_cast<int>(chips_.size()) - 1;
}

const Chips::CorePool& Chips::pool(int chip, bool communication) const {
  const Chip& c = chips_[chip];
  return communication && c.independent ? c.general : c.cores;
}

Chips::CorePool& Chips::pool(int chip, bool communication) {
  Chip& c = chips_[chip];
  return communication && c.independent ? c.general : c.cores;
}

// Cores that an op takes now, or -1 when they are not free.
int Chips::wanted(const CorePool& pool, int units, Use use) {
  const int left = pool.total - pool.communicating;
  if (use == Use::kPosting) return left > 0 && left <= pool.free ? left : -1;
  if (units == 0) return pool.free > 0 ? pool.free : -1;
  int cores = units > 0 ? units : pool.total + units;
  CHECK(cores > 0 && cores <= pool.total, fmt::format("units={} of {} cores", units, pool.total));
  if (units < 0) cores = std::min(cores, left);
  return cores > 0 && cores <= pool.free ? cores : -1;
}

void Chips::grant(CorePool& pool, int cores, Use use) {
  pool.free -= cores;
  if (use == Use::kCommunication) pool.communicating += cores;
}

int Chips::take(int chip, std::int32_t holder, int units, Use use) {
  const bool communication = use != Use::kCompute;
  CorePool& from = pool(chip, communication);
  if (communication && (from.total == 0 || (use == Use::kCommunication && units == 0))) return 0;
  if (units < 0 && chips_[chip].independent) units = 0;  // communication holds cores of its own
  const int cores = from.queue.empty() ? wanted(from, units, use) : -1;
  if (cores < 0) {
    from.queue.push_back({holder, units, use});
  } else {
    grant(from, cores, use);
  }
  return cores;
}

void Chips::release(int chip, int cores, Use use, std::vector<Grant>& grants) {
  CorePool& to = pool(chip, use != Use::kCompute);
  grant(to, -cores, use);
  CHECK(to.free <= to.total && to.communicating >= 0, fmt::format("{} of {} cores free", to.free, to.total));
  while (!to.queue.empty()) {
    const Waiting& first = to.queue.front();
    const int granted = wanted(to, first.units, first.use);
    if (granted < 0) return;
    grant(to, granted, first.use);
    grants.push_back({first.holder, granted});
    to.queue.pop_front();
  }
}

int Chips::take_more(int chip, int units, int cores) {
  CorePool& from = pool(chip, false);
  if (!from.queue.empty() || units > 0) return 0;
  const bool all = units == 0 || chips_[chip].independent;
  const int more = all ? from.free : std::clamp(from.total + units - cores, 0, from.free);
  from.free -= more;
  return more;
}

void Chips::start(const ComputeWork& work, Time now) {
  if (free_.empty()) {
    free_.push_back(static_cast<std::int32_t>(running_.size()));
    running_.emplace_back();
  }
  const std::int32_t slot = free_.back();
  free_.pop_back();
  Chip& chip = chips_[work.chip];
  Running& op = running_[slot];
  op.work = work;
  op.left = work.seconds;
  op.speed = op.usual(chip);
  op.since = now;
  op.end = later(now, op.speed == 1 ? op.left : op.left / op.speed);
  op.demand = work.memory_bytes > 0 && work.seconds > 0 ? work.memory_bytes / work.seconds : 0;
  chip.running.push_back(slot);
  chip.memory_users += op.demand > 0;
  const bool changed = op.demand > 0 && share_memory(work.chip, now);
  if (changed || popped_ == work.chip) return find_first(work.chip);
  if (chip.first < 0 || ends_before(slot, chip.first)) set_first(work.chip, slot);
}

// Ops that together ask for more than the memory gives slow down in proportion. One op alone keeps its own
// cost, even where that asks for more than the streaming rate (data that stays in the cache).
bool Chips::share_among_several(int index, Time now) {
  Chip& chip = chips_[index];
  double sum = 0, largest = 0;
  for (const std::int32_t slot : chip.running) {
    sum += running_[slot].demand;
    largest = std::max(largest, running_[slot].demand);
  }
  const double rate = std::max(chip.memory_rate, largest);
  const double speed = sum > rate ? rate / sum : 1;
  if (speed == 1 && chip.speed == 1) return false;
  chip.speed = speed;
  for (const std::int32_t slot : chip.running)
    if (running_[slot].demand > 0) go_at(slot, speed * running_[slot].usual(chip), now);
  return true;
}

void Chips::go_at(std::int32_t slot, double speed, Time now) {
  Running& op = running_[slot];
  if (op.speed == speed) return;
  work_until(op, now);
  op.speed = speed;
  op.end = later(now, op.left / speed);
}

void Chips::work_until(Running& op, Time now) {
  op.left = std::max(0.0, op.left - op.speed * (now - op.since).seconds());
  op.since = now;
}

void Chips::go_on_as(int index, std::int32_t holder, double seconds, double memory_bytes, Time now) {
  Chip& chip = chips_[index];
  const auto slot = std::find_if(chip.running.begin(), chip.running.end(),
                                 [&](std::int32_t s) { return running_[s].work.holder == holder; });
  CHECK(slot != chip.running.end(), fmt::format("holder {} runs nothing on chip {}", holder, index));
  Running& op = running_[*slot];
  work_until(op, now);
  if (op.work.seconds > 0) op.left *= seconds / op.work.seconds;
  op.work.seconds = seconds;
  chip.memory_users -= op.demand > 0;
  op.demand = memory_bytes > 0 && seconds > 0 ? memory_bytes / seconds : 0;
  chip.memory_users += op.demand > 0;
  op.end = later(now, op.left / op.speed);
  share_memory(index, now);
  find_first(index);
}

void Chips::set_pace(int index, double pace, Time now) {
  Chip& chip = chips_[index];
  const double change = pace * chip.usual / chip.pace;
  chip.pace = pace * chip.usual;
  for (const std::int32_t slot : chip.running)
    if (running_[slot].work.paced) go_at(slot, running_[slot].speed * change, now);
  find_first(index);
}

void Chips::find_first(int index) {
  if (popped_ == index) popped_ = -1;
  std::int32_t first = -1;
  for (const std::int32_t slot : chips_[index].running)
    if (first < 0 || ends_before(slot, first)) first = slot;
  set_first(index, first);
}

void Chips::set_first(int index, std::int32_t slot) {
  chips_[index].first = slot;
  if (slot < 0) return ends_.set(index, kForever, 0);
  ends_.set(index, running_[slot].end, running_[slot].work.id);
}

std::int32_t Chips::pop_due(Time now) {
  const int index = ends_.first();
  Chip& chip = chips_[index];
  const std::int32_t slot = chip.first;
  free_.push_back(slot);
  chip.running.erase(std::find(chip.running.begin(), chip.running.end(), slot));
  if (running_[slot].demand > 0) {
    --chip.memory_users;
    share_memory(index, now);
  }
  popped_ = index;
  return running_[slot].work.holder;
}

}  // namespace moebius
