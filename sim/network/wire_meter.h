// Accounts of what crossed the wires, step by step as steps begin, and of single flows under way.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/network/network.h"
#include "sim/network/stand_ins.h"
#include "sim/network/wire_table.h"
#include "workloads/report/network_use.h"
#include "workloads/schedule/layout.h"

namespace moebius {

// Flows that are looked at one by one, at a time.
inline constexpr std::int64_t kMostSingleFlows = 262144;

// What transfers that are under way at the same time share.
enum class WireSharing : std::uint8_t {
  kNone,   // each goes as if alone
  kWires,  // what a NIC posts takes no time: that row is left out
  kWiresAndPosting,
};

class WireMeter {
 public:
  // Before the first add(). What is referred to must live until the last use().
  void open(const Cluster& cluster, const Layout& layout, const WireTable& table, WireSharing sharing);
  void add(const Step& step);
  void flows_under_way(std::int64_t flows);
  // From here its bytes are those that the network says it carried: flows have changed their ways.
  void settle(const Network& network);
  NetworkUse use() const;

 private:
  // By wire: bytes beyond the mean of those that have one stand-in, and which that is; -1: not known.
  struct Beyond {
    double bytes = 0;
    std::int32_t stand_in = -1;
  };
  using Members = std::shared_ptr<const std::vector<MemberLoad>>;

  static constexpr std::size_t kMostCounted = 4096;  // distinct steps

  void add_members(const Step& step);
  void spread(std::vector<Beyond>& beyond) const;
  std::vector<double> most_beyond() const;
  void add_forwarded(const Step& step);

  const Cluster* cluster_ = nullptr;
  const WireTable* table_ = nullptr;
  WireSharing sharing_ = WireSharing::kWiresAndPosting;
  std::vector<double> carried_;  // by wire of the table
  std::vector<double> passed_;   // of it: in no flow
  StandIns stand_ins_;
  // Steps begin far more often than there are distinct ones: these are counted, and spread over the wires
  // later.
  std::vector<std::pair<Members, double>> begun_;       // how often; in the order of first use
  std::unordered_map<const void*, std::size_t> place_;  // of members, in begun_
  std::vector<Beyond> beyond_;
  // Of steps with messages through host memory: s that the busiest wire of each row needs for what they
  // carry, and that the steps take alone.
  std::array<double, 16> forwarded_{};
  double forwarded_seconds_ = 0;
  std::int64_t most_flows_ = 0;
};

// The network, with what it is given told to the meter (which may be null). Steps of single flows beyond
// kMostSingleFlows at a time are a run_error.
std::unique_ptr<Network> make_metered_network(std::unique_ptr<Network> network, WireMeter* meter);

}  // namespace moebius
