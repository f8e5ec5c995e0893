// What failed in a run, when, and what the network did about it. Tells it to the timeline as counters too:
// "fault leaf 0 uplink 3" is the share of capacity (of a slow node: speed) that is left, "failover stalled
// bytes", "failover moved bytes" and "failover detour bytes" add up over the run.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "hw/fault.h"
#include "workloads/report/fault_facts.h"
#include "workloads/schedule/recorder.h"

namespace moebius {

// One time that a fault happens; a flap has several.
struct Occurrence {
  Fault fault;
  Time down, up;  // kForever: it stays
};

// Of all faults, by time; equal times in the order of the plan.
std::vector<Occurrence> occurrences(const FaultPlan& plan);

class FaultLog {
 public:
  // Before anything else, where the run begins; the recorder must outlive the calls below.
  void open(const std::vector<Occurrence>& occurrences, Recorder& recorder);

  // By number of the occurrence.
  void down(std::int32_t number, Time now);
  void detected(std::int32_t number, Time now) { facts_[number].detected = now; }
  void mitigated(std::int32_t number, Time now) { facts_[number].mitigated = now; }
  void up(std::int32_t number, Time now);
  void stalled(std::int32_t number, double bytes, Time now);
  void moved(std::int32_t number, double bytes, bool detour, Time now);

  // Of those that the run reached.
  std::vector<FaultFacts> facts() const;

 private:
  void tell(std::string_view name, Time now, double value);

  Recorder* recorder_ = nullptr;
  std::vector<FaultFacts> facts_;
  double stalled_ = 0, moved_ = 0, detour_ = 0;
};

}  // namespace moebius
