#include "sim/chips.h"

#include <algorithm>
#include <utility>

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

int Chips::most_cores(int chip, bool communication) const {
  return pool(chip, communication).total;
}

// Cores that an op takes now, or -1 when they are not free.
int Chips::wanted(const CorePool& pool, int units) {
  if (units == 0) return pool.free > 0 ? pool.free : -1;
  const int cores = units > 0 ? units : pool.total + units;
  CHECK(cores > 0 && cores <= pool.total, fmt::format("units={} of {} cores", units, pool.total));
  return cores <= pool.free ? cores : -1;
}

int Chips::take(int chip, std::int32_t holder, int units, bool communication) {
  CorePool& from = pool(chip, communication);
  if (communication && (units == 0 || from.total == 0)) return 0;
  if (units < 0 && chips_[chip].independent) units = 0;  // communication holds cores of its own
  const int cores = from.queue.empty() ? wanted(from, units) : -1;
  if (cores < 0) {
    from.queue.push_back({holder, units});
  } else {
    from.free -= cores;
  }
  return cores;
}

void Chips::release(int chip, int cores, bool communication, std::vector<Grant>& grants) {
  CorePool& to = pool(chip, communication);
  to.free += cores;
  CHECK(to.free <= to.total, fmt::format("{} of {} cores free", to.free, to.total));
  while (!to.queue.empty()) {
    const int granted = wanted(to, to.queue.front().cores);
    if (granted < 0) return;
    to.free -= granted;
    grants.push_back({to.queue.front().holder, granted});
    to.queue.pop_front();
  }
}

int Chips::take_more(int chip) {
  CorePool& from = pool(chip, false);
  return from.queue.empty() ? std::exchange(from.free, 0) : 0;
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
