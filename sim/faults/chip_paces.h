// Chips that become slow and fast again while a run goes on: slow nodes.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "hw/fabric/fabric.h"
#include "sim/chips.h"
#include "sim/faults/fault_log.h"

namespace moebius {

class ChipPaces {
 public:
  // All must outlive it; of the occurrences those of slow nodes.
  ChipPaces(const Fabric& fabric, const FaultPlan& plan, const std::vector<Occurrence>& occurrences,
            FaultLog& log);

  // The chip is that of the device. Before the first advance().
  void add(int chip, int device) { chips_.emplace_back(chip, fabric_.node_of(device)); }
  Time next_event() const { return next_ < changes_.size() ? changes_[next_].time : kForever; }
  void advance(Time now, Chips& chips);

 private:
  enum class Kind : std::uint8_t { kUp, kDown, kDetect };
  struct Change {
    Time time;
    Kind kind = Kind::kDown;
    std::int32_t number = 0;  // of the occurrence
  };

  const Fabric& fabric_;
  const std::vector<Occurrence>& occurrences_;
  FaultLog& log_;
  std::vector<Change> changes_;
  std::size_t next_ = 0;
  std::vector<std::pair<int, int>> chips_;  // and their nodes
};

}  // namespace moebius
