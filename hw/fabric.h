// The network between nodes: parameters (FabricSpec), and the generated topology (Fabric) that answers, by arithmetic,
// which wires a message between two devices crosses. Wires carry one direction. Switch ports of one bundle (all
// uplinks of a leaf, say) are one wire: packets are sprayed over them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hw/accelerator.h"
#include "hw/units.h"

namespace moebius {

struct FabricSpec {
  std::string type;                  // catalog id: "rail-optimised-clos", "multi-plane-fat-tree", "single-node", ...
  int planes = 1;                    // independent copies of the switch tree
  int tiers = 2;                     // switch tiers of one plane
  bool rail_optimised = true;        // accelerator i of every node hangs on the leaf of rail i
  ByteRate nic;                      // per accelerator and direction
  double oversubscription = 1;       // at the leaf uplinks: capacity down / capacity up
  double core_oversubscription = 1;  // at the pod uplinks of a three-tier tree
  int leaf_ports = 0;                // accelerator-facing ports of a leaf
  int pod_leaves = 0;                // leaves (per rail or plane) under one pod; three tiers only
  double transport_efficiency = 0;   // payload share of the line rate (headers, congestion control)
  Time host_latency;                 // NIC and host, both ends, without any switch
  Time hop_latency;                  // one switch and its cable
  std::vector<Fact> facts;
};

// How far apart two devices are.
enum class Distance : std::uint8_t { kSelf, kScaleUp, kLeaf, kSpine, kCore };
inline constexpr int kNumDistances = 5;

enum class WireKind : std::uint8_t { kScaleUpOut, kScaleUpIn, kNicOut, kNicIn, kLeafUp, kLeafDown, kPodUp, kPodDown };
inline constexpr int kNumWireKinds = 8;

// A wire's identity: its kind and the device, leaf or pod that it belongs to.
struct WireId {
  WireKind kind = WireKind::kScaleUpOut;
  std::int32_t index = 0;
  auto operator<=>(const WireId&) const = default;
};

// The devices of a node, as the fabric sees them. Nodes of one pool are equal; pools stand one after the other.
struct FabricPool {
  int nodes = 0;
  int devices_per_node = 0;
  ByteRate link_rate;       // scale-up, achieved, per device and direction
  Time link_latency;
  ByteRate nic_rate;        // achieved payload rate, per device and direction
};

class Fabric {
 public:
  // Throws input_error when the parameters cannot make a network (too many devices for the ports, say).
  Fabric(FabricSpec spec, std::vector<FabricPool> pools);

  int num_devices() const { return num_devices_; }
  int node_of(int device) const;
  Distance distance(int from, int to) const;
  Time latency(int from, int to) const;                       // of an empty message
  void route(int from, int to, std::vector<WireId>& wires) const;  // appends; kSelf adds nothing
  ByteRate capacity(WireId wire) const;                       // achieved payload rate
  bool can_bind(WireKind kind) const;                         // false: can never be the bottleneck, may be left out
  const FabricSpec& spec() const { return spec_; }

 private:
  struct Site { int pool; int node; int local; };             // of a device: pool, node over all pools, index in node
  Site site_of(int device) const;
  int leaf_of(int device) const;
  int pod_of(int device) const;

  FabricSpec spec_;
  std::vector<FabricPool> pools_;
  std::vector<int> first_device_;  // per pool
  std::vector<int> first_node_;
  int num_devices_ = 0;
  int nodes_per_leaf_ = 1;
};

}  // namespace moebius
