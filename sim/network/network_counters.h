// How busy the wires are, sampled at a fixed interval while a run goes on: one counter for each wire in use
// ("wire leaf-up 3") and two for each kind of wire ("tier leaf-up mean", "tier leaf-up max"), all as shares
// of the wire's nominal capacity. A sample stands for the time from its own to that of the counter's next
// one; a counter that keeps its value has no new sample. Of a folded run the wires are those that stand for
// the others.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "hw/fabric/fabric.h"
#include "hw/units.h"
#include "sim/network/network.h"
#include "sim/network/wire_table.h"
#include "workloads/schedule/recorder.h"

namespace moebius {

class NetworkCounters {
 public:
  // All must outlive it. Throws run_error, at the first sample, when the network does not count bytes.
  NetworkCounters(const WireTable& table, Network& network, Recorder& recorder, Time interval)
      : table_(table), network_(network), recorder_(recorder), interval_(interval), next_(interval) {}

  // To be called before the network goes to `to`, at most its next event.
  void before(Time to);
  // The run ends at `end`.
  void finish(Time end);

 private:
  struct Counter {
    std::int32_t id = -1;  // of the recorder; -1: not yet told
    double value = 0;      // as told last
  };
  struct Tier {
    double sum = 0, most = 0;
    int wires = 0;
    Counter mean, max;
  };

  void sample(Time until);
  template <class Name>
  void tell(Counter& counter, const Name& name, double value);

  const WireTable& table_;
  Network& network_;
  Recorder& recorder_;
  Time interval_, next_, begin_;  // of the interval at hand: begin_ to next_
  std::vector<double> carried_;   // by wire, up to begin_
  std::vector<Counter> wires_;
  std::array<Tier, kNumWireKinds + 2> tiers_;  // the last: copies inside a device, messages posted
};

}  // namespace moebius
