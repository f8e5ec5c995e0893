// Accounts of what crossed the wires, step by step as steps begin, and of single flows under way.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "sim/network/network.h"
#include "sim/network/wire_table.h"
#include "workloads/report/network_use.h"
#include "workloads/schedule/layout.h"

namespace moebius {

// Flows that are looked at one by one, at a time.
inline constexpr std::int64_t kMostSingleFlows = 65536;

class WireMeter {
 public:
  // Before the first add(). What is referred to must live until the last use().
  void open(const Cluster& cluster, const Layout& layout, const WireTable& table);
  void add(const Step& step);
  void flows_under_way(std::int64_t flows);
  // From here its bytes are those that the network says it carried: flows have changed their ways.
  void settle(const Network& network);
  NetworkUse use() const;

 private:
  double times(WireId wire) const;
  WireId id(int wire) const;
  void add_forwarded(const Step& step);

  const Cluster* cluster_ = nullptr;
  const WireTable* table_ = nullptr;
  std::vector<double> carried_;     // by wire of the table
  std::vector<double> passed_;      // of it: in no flow
  std::vector<double> stands_for_;  // by device: devices
  // Of steps with messages through host memory: s that the busiest wire of each row needs for what they
  // carry, and that the steps take alone.
  std::array<double, 16> forwarded_{};
  double forwarded_seconds_ = 0;
  bool folded_ = false;
  std::int64_t most_flows_ = 0;
};

// The network, with what it is given told to the meter (which may be null). Steps of single flows beyond
// kMostSingleFlows at a time are a run_error.
std::unique_ptr<Network> make_metered_network(std::unique_ptr<Network> network, WireMeter* meter);

}  // namespace moebius
