#include "sim/chips.h"

#include <algorithm>

#include <fmt/format.h>

#include "hw/error.h"

namespace moebius {

int Chips::add(const Accelerator& accelerator, double pace) {
  Chip chip;
  chip.usual = chip.pace = pace;
  chip.cores.total = chip.cores.free = std::max(1, accelerator.cores);
  chip.general.total = chip.general.free = accelerator.general_cores;
  chip.independent = accelerator.independent_engines;
  chip.memory_rate = accelerator.memory_rate.value * accelerator.memory_efficiency;
  chips_.push_back(std::move(chip));
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

void Chips::start(const ComputeWork& work, Time now) {
  if (free_.empty()) {
    free_.push_back(static_cast<std::int32_t>(running_.size()));
    running_.emplace_back();
  }
  const std::int32_t slot = free_.back();
  free_.pop_back();
  Running& op = running_[slot];
  op.work = work;
  op.left = work.seconds;
  op.speed = op.usual(chips_[work.chip]);
  op.since = now;
  ++op.version;
  events_.push({later(now, op.left / op.speed), work.id, slot, op.version});
  if (work.memory_bytes <= 0 || work.seconds <= 0) return;
  op.demand = work.memory_bytes / work.seconds;
  chips_[work.chip].running.push_back(slot);
  share_memory(work.chip, now);
}

// Ops that together ask for more than the memory gives slow down in proportion. One op alone keeps its own
// cost, even where that asks for more than the streaming rate (data that stays in the cache).
void Chips::share_among_several(int index, Time now) {
  Chip& chip = chips_[index];
  double sum = 0, largest = 0;
  for (const std::int32_t slot : chip.running) {
    sum += running_[slot].demand;
    largest = std::max(largest, running_[slot].demand);
  }
  const double rate = std::max(chip.memory_rate, largest);
  const double speed = sum > rate ? rate / sum : 1;
  if (speed == 1 && chip.speed == 1) return;
  chip.speed = speed;
  for (const std::int32_t slot : chip.running) go_at(slot, speed * running_[slot].usual(chip), now);
}

void Chips::go_at(std::int32_t slot, double speed, Time now) {
  Running& op = running_[slot];
  if (op.speed == speed) return;
  op.left = std::max(0.0, op.left - op.speed * (now - op.since).seconds());
  op.since = now;
  op.speed = speed;
  ++op.version;
  events_.push({later(now, op.left / speed), op.work.id, slot, op.version});
}

void Chips::set_pace(int index, double pace, Time now) {
  Chip& chip = chips_[index];
  const double change = pace * chip.usual / chip.pace;
  chip.pace = pace * chip.usual;
  std::vector<bool> is_free(running_.size(), false);
  for (const std::int32_t slot : free_) is_free[slot] = true;
  for (std::size_t slot = 0; slot < running_.size(); ++slot) {
    if (!is_free[slot] && running_[slot].work.chip == index && running_[slot].work.paced)
      go_at(static_cast<std::int32_t>(slot), running_[slot].speed * change, now);
  }
}

std::int32_t Chips::pop_due(Time now) {
  if (next_event() > now) return kNobody;
  const std::int32_t slot = events_.top().slot;
  events_.pop();
  Running& op = running_[slot];
  ++op.version;
  free_.push_back(slot);
  std::vector<std::int32_t>& running = chips_[op.work.chip].running;
  const auto found = std::find(running.begin(), running.end(), slot);
  if (found != running.end()) {
    running.erase(found);
    share_memory(op.work.chip, now);
  }
  return op.work.holder;
}

}  // namespace moebius
