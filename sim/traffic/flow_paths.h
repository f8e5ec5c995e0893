// Which of the equal paths through the switches the flows of a message take, as FabricSpec::routing says.
//
// A message between two devices is `queue_pairs` flows of equal bytes. Queue pairs belong to the NICs that
// send and receive, so that messages between the same NICs take the same paths.
// - ecmp: a hash of (seed, NICs, queue pair, switch) picks the uplink at every switch on the way up; the way
//   down is unique. What is broken is not among the uplinks that the hash picks from.
// - static: the destination's port p, counted over all leaves, decides: uplink p modulo uplinks; where that
//   is broken, the next one.
// - spray: all flows share all paths alike, whatever these carry. With nothing broken that is what the
//   bundles of fabric.h do, and no port is looked at.
// - adaptive: as spray, but the shares level what the ports carry: see path_balance.h. With nothing broken
// the
//   paths between two leaves are alike, level shares are equal ones, and again bundles do.
// Where no path is left between two NICs, the message leaves and arrives by another rail of the two nodes and
// goes there and back over the scale-up links: libraries move what a dead NIC had to send to one other NIC,
// so that a message never has more of them than it had. An end whose NIC works keeps it where the fabric
// allows; messages of different pairs go by different rails.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "hw/cluster.h"

namespace moebius {

// A part of a message and its way: over these gates (devices whose NICs send and receive), on this path.
struct FlowPath {
  Fabric::Gates gates;  // both -1 inside a node
  std::int32_t path = 0;
  double share = 1;                         // of the message's bytes; the shares of a message sum to 1
  RailChange change = RailChange::kInNode;  // as the message asked for; its gates are what came of it
};

// Shares of the paths between two leaves, by path, for who levels them.
using PathShares = std::vector<std::pair<std::int32_t, double>>;

class FlowPaths {
 public:
  FlowPaths(const Cluster& cluster, std::uint64_t seed);

  // False: messages cross bundles (Fabric::route()), and the rest of this class is not needed.
  bool by_ports() const { return by_ports_; }
  // Flows are looked at one by one, each on one path; else they share paths in proportions.
  bool single() const { return single_; }
  int flows_of_message() const { return flows_; }  // 1 unless they are hashed

  // The parts of a message, one for each path. Where no way is left, input_error at Cluster::damaged_at, or
  // run_error if no scenario names it or something broke since.
  void choose(int from, int to, RailChange change, std::vector<FlowPath>& into);
  // The one path of a single flow.
  FlowPath of_queue_pair(int from, int to, RailChange change, int queue_pair);
  // The wires of one of them, from device to device.
  void wires(int from, int to, const FlowPath& flow, std::vector<WireId>& wires) const;
  Time detour(int from, int to, const FlowPath& flow) const;  // latency beyond Fabric::latency()

  // The wires from NIC to NIC.
  void wires(Fabric::Gates gates, std::int32_t path, std::vector<WireId>& wires) const;

  // Paths between two gates on which every port carries something.
  const std::vector<std::int32_t>& whole_paths(Fabric::Gates gates);
  // From here choose() takes these shares between two leaves, where it has some.
  void set_shares(std::map<std::pair<int, int>, PathShares> shares) { shares_ = std::move(shares); }
  // From here ways are chosen around what is broken now.
  void set_health(const PartHealth& part);
  const PathHealth& health() const { return health_; }
  const Fabric& fabric() const { return fabric_; }
  bool connected(int from, int to, RailChange change);  // whether choose() finds a way

 private:
  FlowPath one_path(Fabric::Gates by, RailChange change, int queue_pair);
  bool nics_work(Fabric::Gates gates) const;
  struct Ends {  // of a message
    int from = 0, to = 0;
    RailChange change = RailChange::kInNode;
  };
  std::vector<Fabric::Gates> gates_around(const Ends& ends, Fabric::Gates usual);
  std::optional<Fabric::Gates> gates_if_any(const Ends& ends);
  Fabric::Gates gates_left(const Ends& ends);
  std::int32_t hashed(Fabric::Gates gates, int queue_pair);
  std::int32_t by_destination(Fabric::Gates gates);
  std::int32_t picked(const std::vector<std::int32_t>& paths, std::uint64_t at_leaf,
                      std::uint64_t at_spine) const;
  void add(FlowPath flow, std::vector<FlowPath>& into, std::size_t first) const;
  void choose_shared(Fabric::Gates by, RailChange change, std::vector<FlowPath>& into);

  const Fabric& fabric_;
  PathHealth health_;
  Place damaged_at_;  // no file: see choose()
  std::uint64_t seed_;
  bool by_ports_, single_;
  int flows_;
  std::vector<int> first_device_of_node_;
  std::map<std::pair<int, int>, std::vector<std::int32_t>> whole_;  // by gates; ascending
  std::map<std::pair<int, int>, PathShares> shares_;
  std::vector<WireId> scratch_;
};

}  // namespace moebius
