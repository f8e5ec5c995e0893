// What is broken in the network now, since when, and which pairs of NICs have found out.
#pragma once

#include <array>
#include <cstdint>
#include <map>

#include "hw/fabric/path_health.h"
#include "hw/fault.h"

namespace moebius {

class Outages {
 public:
  Outages(const Fabric& fabric, const Failover& failover) : fabric_(fabric), failover_(failover) {}

  void begin(std::int32_t number, const PartHealth& part, Time now);
  void end(std::int32_t number);
  bool none() const { return open_.empty(); }

  // Whether one of them breaks the wire; `number` becomes that of the last one that does.
  bool breaks(WireId wire, std::int32_t& number) const;
  // When packets from one NIC to another leave the ways that an outage breaks: failover.in_collective after
  // the first of them was missed, which is now if it was not before; failover.mitigate after the outage at
  // the latest.
  Time avoided_from(std::int32_t number, int from, int to, Time now);

 private:
  struct Outage {
    PathHealth alone;  // a fabric with nothing else broken
    Time since;
  };

  const Fabric& fabric_;
  const Failover failover_;
  std::map<std::int32_t, Outage> open_;                  // by number
  std::map<std::array<std::int32_t, 3>, Time> noticed_;  // by outage and NICs: when they take other ways
};

}  // namespace moebius
