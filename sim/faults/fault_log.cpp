#include "sim/faults/fault_log.h"

#include <algorithm>
#include <string>

namespace moebius {

std::vector<Occurrence> occurrences(const FaultPlan& plan) {
  std::vector<Occurrence> all;
  for (const Fault& fault : plan.faults) {
    for (std::int32_t i = 0; i < fault.times; ++i) {
      const Time down = fault.at + fault.every * i;
      all.push_back({fault, down, fault.lasts == kForever ? kForever : down + fault.lasts});
    }
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Occurrence& a, const Occurrence& b) { return a.down < b.down; });
  return all;
}

void FaultLog::open(const std::vector<Occurrence>& occurrences, Recorder& recorder) {
  recorder_ = &recorder;
  for (const Occurrence& occurrence : occurrences) {
    const Fault& fault = occurrence.fault;
    FaultFacts facts;
    facts.kind = to_string(fault.kind);
    facts.place = place_of(fault);
    facts.left = fault.kind == FaultKind::kSlowNode ? fault.speed : fault.part.capacity;
    facts_.push_back(facts);
  }
}

void FaultLog::tell(std::string_view name, Time now, double value) {
  recorder_->counter(0, name, now, value);
}

void FaultLog::down(std::int32_t number, Time now) {
  FaultFacts& facts = facts_[number];
  facts.down = now;
  tell("fault " + facts.place, now, facts.left);
}

void FaultLog::up(std::int32_t number, Time now) {
  facts_[number].up = now;
  tell("fault " + facts_[number].place, now, 1);
}

void FaultLog::stalled(std::int32_t number, double bytes, Time now) {
  facts_[number].stalled_bytes += bytes;
  tell("failover stalled bytes", now, stalled_ += bytes);
}

void FaultLog::moved(std::int32_t number, double bytes, bool detour, Time now) {
  FaultFacts& facts = facts_[number];
  facts.failover = std::min(facts.failover, now);
  facts.last_failover = now;
  facts.moved_bytes += bytes;
  tell("failover moved bytes", now, moved_ += bytes);
  if (!detour) return;
  facts.detour_bytes += bytes;
  tell("failover detour bytes", now, detour_ += bytes);
}

std::vector<FaultFacts> FaultLog::facts() const {
  std::vector<FaultFacts> reached;
  for (const FaultFacts& facts : facts_)
    if (facts.down != kForever) reached.push_back(facts);
  return reached;
}

}  // namespace moebius
