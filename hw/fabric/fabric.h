// The network between nodes: parameters (FabricSpec), and the generated topology (Fabric) that answers, by
// arithmetic, which wires a message between two devices crosses. Wires carry one direction. Switch ports of
// one bundle (all uplinks of a leaf, say) are one wire: packets are sprayed over them. A NIC with one port
// into each of several twin switches (dual-plane HPN) is one bundle too; `planes` are something else: see
// below.
//
// How devices hang on leaves. NIC i of a node hangs on column i % columns. A rail-optimised fabric has a
// column for each rail; any other fabric has one for each plane. A leaf takes one column of as many
// consecutive nodes (a *group*) as it has ports for; a node that needs more ports than a leaf has (a
// super-node) spreads a column evenly over leaves of its own. Column c belongs to plane c % planes, and
// planes are separate trees: rail i of a node uses plane i % planes, and no switch joins two planes. Leaves
// of one plane meet in its spine; with three tiers, `pod_leaves` leaves of every column meet in a pod, and
// the pods of a plane meet in its core.
//
// Which way a message goes. Inside a node: over the scale-up link. Between nodes, a message for another plane
// *must* change column inside a node; one for another rail *does* wherever there is a scale-up link (as
// NCCL's PXN and the DeepEP kernels do), and climbs to the spine where there is only PCIe. It changes column
// before it leaves, on the device of the destination's local index (or, when the sending node has none on
// that column, after it arrives, on the device of the source's local index), so the spine sees traffic within
// one column only. Between regions it climbs to the top of its tree, crosses a border switch on either side
// of the fibre, and comes down; all that goes from one region to another shares one link.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hw/accelerator.h"
#include "hw/fabric/packet_transport.h"
#include "hw/units.h"

namespace moebius {

inline constexpr int kAutomaticTiers = -1;  // as few tiers as hold the devices

// How messages find their way among equal paths. kSpray: packets go over all of them alike; the switch ports
// of a bundle are one wire, and cost follows flow classes. The others look at every port. kEcmp: a hash of
// each flow (queue pair) picks its path. kAdaptive: each flow goes where the least is under way. kStatic: the
// destination decides (destination modulo ports).
enum class Routing : std::uint8_t { kSpray, kEcmp, kAdaptive, kStatic };

struct FabricSpec {
  std::string type;  // catalog id: "rail-optimised-clos", "multi-plane-fat-tree", "single-node", ...
  int planes = 1;    // independent copies of the switch tree
  int tiers = kAutomaticTiers;  // switch tiers of one plane, 1 to 3; 0: no network at all
  bool rail_optimised = true;   // NIC i of every node hangs on the leaf of rail i
  int rails = 0;                // of a rail-optimised fabric; 0: as the nodes have
  ByteRate nic;                 // one NIC, line rate, per direction
  bool nic_given = false;       // it is stated; otherwise each pool's nodes or accelerators bring their own
  double oversubscription = 1;  // at the leaf uplinks: capacity down / capacity up
  double core_oversubscription = 1;  // at the pod uplinks of a three-tier tree
  int leaf_ports = 0;                // NIC-facing ports of a leaf
  int switch_ports = 0;              // all ports of a switch above the leaves, of the NICs' speed
  int pod_leaves = 0;                // leaves of each column under one pod; 0: half the ports of a spine
  int leaf_uplinks = 0;              // ports of a leaf to the spines; 0: leaf_ports / oversubscription
  int spine_uplinks = 0;         // ports of a pod's spine to the core; 0: its leaves / core_oversubscription
  bool core_by_uplinks = false;  // the other way round: each as fast as a leaf's uplink, so many to the core
  Routing routing = Routing::kSpray;
  int queue_pairs =
      1;              // of one message between two devices: so many flows, each with a source port of its own
  int nic_ports = 1;  // of one NIC, each into a leaf of its own: twin leaves (dual-ToR, dual-plane)
  Metres region_distance;  // between any two regions, of fibre
  ByteRate region_rate;    // line rate from one region to another, each direction; zero: not stated
  // Priority queues: the one that each kind of communication goes in. A port serves a queue with what higher
  // ones leave of it. All in one, unless stated.
  int expert_queue = 0, tensor_queue = 0, pipeline_queue = 0, data_queue = 0;
  double transport_efficiency = 0;  // payload share of the line rate (headers, congestion control)
  PacketTransport transport;        // not ideal: transport_efficiency is its efficiency()
  Time host_latency;                // NIC and host, both ends, without any switch
  Time hop_latency;                 // one switch and its cable
  // Pairs of pools, the smaller index first, between whose nodes messages go through host memory at both ends
  // (CPU forwarding), in chunks of this size. See the head of fabric_host.cpp.
  std::vector<std::pair<int, int>> by_host;
  Bytes forwarding_chunk{512 * 1024};
  // Of a NIC for each message that a library's CPU thread sends over it, whatever its size: posting, the
  // queue pair's context, completion.
  Time message_time;
  bool reduces = false;  // its switches add up what members of a collective send
  std::vector<std::string> aliases;
  std::vector<Fact> facts;
};

// Where a message for another rail changes over, if both ways are open: over the scale-up link of a node, or
// at a spine that joins the rails.
enum class RailChange : std::uint8_t { kInNode, kAtSpine };

// How far apart two devices are: the highest thing that a message between them crosses.
enum class Distance : std::uint8_t { kSelf, kScaleUp, kBoards, kLeaf, kSpine, kCore, kRegion };
inline constexpr int kNumDistances = 7;
std::string_view to_string(Distance distance);  // "one leaf"

// Light in glass: 5 us for a kilometre (refractive index 1.5, from memory).
inline constexpr double kFibreSecondsPerMetre = 5e-9;

enum class WireKind : std::uint8_t {
  kScaleUpOut,
  kScaleUpIn,    // of a device, to a switch or host bridge
  kScaleUpPair,  // full mesh: from a device to one peer
  kNicOut,
  kNicIn,  // of the first device that the NIC serves
  kLeafUp,
  kLeafDown,
  kPodUp,
  kPodDown,
  // One port of the bundles above: see Fabric::route_by_ports().
  kLeafUpPort,
  kLeafDownPort,
  kPodUpPort,
  kPodDownPort,
  // Of a device, to other boards of its node: what it sends or receives across them passes these too.
  kBoardOut,
  kBoardIn,
  kRegionLink,  // from one region to another; of no device, leaf or pod
  // One port of a NIC of several: index NIC * nic_ports + port.
  kNicOutPort,
  kNicInPort,
  // CPU forwarding: copies from a device to host memory and back; the memory of a node, named by its first
  // device, which every byte that is forwarded crosses twice at each end: written, then read.
  kHostOut,
  kHostIn,
  kHostMemory,
};
inline constexpr int kNumWireKinds = 21;
std::string_view to_string(WireKind kind);  // "leaf-up"

// A wire's identity: its kind and the device, leaf or pod that it belongs to.
struct WireId {
  WireKind kind = WireKind::kScaleUpOut;
  std::int32_t index = 0;
  auto operator<=>(const WireId&) const = default;
};

// The devices of a node, as the fabric sees them. Nodes of one pool are equal; pools stand one after the
// other.
struct FabricPool {
  int nodes = 0;
  int devices_per_node = 0;
  ByteRate link_rate;  // scale-up, achieved, per device and direction, over all peers
  Time link_latency;
  ByteRate nic_rate;        // achieved payload rate, per NIC and direction; zero: no NICs
  int devices_per_nic = 1;  // neighbours that share a NIC
  int rails = 0;            // 0: one for each NIC of the node
  ByteRate pair_rate;       // full mesh: achieved, from one device to one peer; zero: a switch or host bridge
  bool reduces = false;     // the scale-up switch adds up what devices send, and sends to all
  bool forwards = true;  // messages change rail over the scale-up link; false: PCIe, they climb to the spine
  int board = 0;         // neighbours on one board of a super-node; 0: the node is one board
  Time board_latency;    // more than link_latency, between boards
  ByteRate board_rate;   // achieved, per device and direction, to all other boards together
  int region = 0;        // number of its region: 0, or that of the pool before, or the next
  ByteRate host_rate;    // of one device, to or from host memory
  ByteRate host_memory_rate;  // of one node, reads and writes together
  Time copy_latency;          // of an empty copy to or from host memory

  int boards() const { return board > 0 ? ceil_div(devices_per_node, board) : 1; }
};

// Where the pools stand on the leaves. A pool goes on filling the leaves of the pool before it when their
// nodes take the same ports at the same speed; otherwise, and in another region, it starts on new leaves.
// Each region has trees of its own: leaves, and with three tiers pods, hold nodes of one region only.
struct FabricLayout {
  struct PoolPlace {
    int first_device = 0;
    int first_node = 0;
    int first_group = 0;
    int offset = 0;  // nodes of earlier pools on the leaves of first_group
    int ports = 1;   // of one column that one node takes
    int nodes_per_leaf = 1;
    int leaves_per_node = 1;  // of one column; more than 1 where a node has more ports than a leaf
  };
  std::vector<PoolPlace> pools;
  int devices = 0;
  int nodes = 0;
  int columns = 1;  // classes of leaves: rails or planes
  int groups = 1;   // leaves of one column, all regions together
  int regions = 1;
  int region_groups = 1;  // leaves of one column in the largest region
  int pod_groups = 1;     // groups under one pod; all of them with fewer than three tiers
  int tiers = 0;          // in use
};

class Fabric {
 public:
  // Throws input_error when the parameters cannot make a network (too many devices for the ports, say).
  Fabric(FabricSpec spec, std::vector<FabricPool> pools);

  // The sentence of that error, or nothing when the network can be made.
  static std::string problem(const FabricSpec& spec, const std::vector<FabricPool>& pools);

  int num_devices() const { return layout_.devices; }
  int num_regions() const { return layout_.regions; }
  int node_of(int device) const;
  int region_of(int device) const;
  // Where the switches see a device: its NIC by the first device that the NIC serves, its leaf (all twins),
  // its pod (with two tiers all leaves of a plane and region are one).
  struct Standing {
    int node = 0, nic = 0, leaf = 0, pod = 0, region = 0;
    int pool = 0, local = 0;  // index in the node
  };
  Standing standing(int device) const;
  int switches(int from, int to) const;  // on the way
  // The devices whose NICs send and receive what goes between two nodes.
  std::pair<int, int> over_nics(int from, int to) const;
  const FabricLayout& layout() const { return layout_; }
  const std::vector<FabricPool>& pools() const { return pools_; }
  Distance distance(int from, int to, RailChange change = RailChange::kInNode) const;
  // Until the first packet of a message is there: propagation() and, where the transport says what a packet
  // is, its storing and forwarding at each switch.
  Time latency(int from, int to, RailChange change = RailChange::kInNode) const;
  Time propagation(int from, int to, RailChange change = RailChange::kInNode) const;  // of an empty message
  Time acknowledgement(int from, int to) const;  // back to the sender; 0 with an ideal transport
  // Appends; kSelf adds nothing.
  void route(int from, int to, std::vector<WireId>& wires, RailChange change = RailChange::kInNode) const;
  // A device's own wire of a kind that devices have (scale-up or NIC, out or in).
  WireId own_wire(WireKind kind, int device) const;
  // Of a kScaleUpPair, by its index: whose link it is, and the peer's place in the node.
  int device_of_pair(std::int32_t index) const { return index / mesh_stride_; }
  int peer_of_pair(std::int32_t index) const { return index % mesh_stride_; }
  int pairs_of_device() const { return mesh_stride_; }  // indices that each device has; 1: no full mesh
  bool reduces(int device) const { return pools_[site_of(device).pool].reduces; }
  bool forwards(int device) const { return pools_[site_of(device).pool].forwards; }
  ByteRate capacity(WireId wire) const;  // achieved payload rate
  // The equal paths between two devices, and one of them, port by port, instead of bundles. Path p climbs by
  // uplink u = p % leaf_uplinks of the sender's leaf to spine u of its pod, from there by uplink
  // k = p / leaf_uplinks to the core switch that joins the spines u of all pods, and comes down by the same u
  // and k. Port wires: index leaf * leaf_uplinks + u, and (pod * leaf_uplinks + u) * spine_uplinks + k.
  // Where a NIC has ports into twin leaves, these count as one leaf with the uplinks of all; uplink u is of
  // twin u % nic_ports, and the message leaves and arrives by that port of the NICs, for twins are planes of
  // their own. Between regions the way is that through the core; the link between them is one bundle.
  // Where no spine is on the way there is one path for each port of a NIC.
  int num_paths(int from, int to, RailChange change = RailChange::kInNode) const;
  void route_by_ports(int from, int to, int path, std::vector<WireId>& wires,
                      RailChange change = RailChange::kInNode) const;
  int leaf_uplinks() const { return leaf_uplinks_; }  // of all twins of a leaf
  int spine_uplinks() const { return spine_uplinks_; }
  // Switches and ports, as the wires above number them.
  int num_leaves() const;
  int num_pods() const;
  int pod_of_leaf(int leaf) const;
  int leaf_of(int device) const;
  // Spine switches, counted pod by pod; none with one tier. With three tiers uplink u of every leaf of a pod
  // leads to spine u. With two a pod has as few spines as have ports for its leaves, neighbouring uplinks of
  // a leaf (of each of its twins) lead to one of them, and nothing is above.
  int num_spines() const { return first_spine_.back(); }
  int spines_of_pod(int pod) const { return first_spine_[pod + 1] - first_spine_[pod]; }
  int spine_of(int leaf, int uplink) const;
  int leaf_port(int device) const;  // of that leaf, where the device's NIC hangs
  int nic_of(int device) const;     // the first device that its NIC serves
  struct Gates {
    int sender, receiver;
  };
  // Of two nodes: the devices whose NICs send and receive the message.
  Gates gates(int from, int to, RailChange change = RailChange::kInNode) const;
  bool by_host(int from, int to) const;  // whether messages go through host memory at both ends
  // Seconds that a message of so many bytes takes beyond its latency and its bytes over the slowest wire: the
  // first chunk passes the other stages too. Zero where the message does not go through host memory.
  double chunk_seconds(int from, int to, double bytes) const;
  // Pools that reach each other without host memory are one island, named by its first pool.
  int island_of(int device) const;
  bool can_bind(WireKind kind) const;               // false: can never be the bottleneck, may be left out
  const FabricSpec& spec() const { return spec_; }  // with the number of tiers in use

 private:
  // Where a device hangs: pool, node over all pools, index in the node, column of its NIC, group of its leaf.
  struct Site {
    int device;
    int pool;
    int node;
    int local;
    int column;
    int group;
    int region;
  };
  // The part of a message's way between two nodes: the devices whose NICs send and receive it.
  struct Crossing {
    Site sender;
    Site receiver;
  };

  Site site_of(int device) const;
  Site locate(int device) const;
  int mate_of(const Site& site, int column, int preferred_local) const;
  Crossing crossing(const Site& from, const Site& to, RailChange change) const;
  Distance network_distance(const Crossing& crossing) const;
  int hops(Distance distance) const;
  struct Stored {
    double bytes;
    int besides;  // times that they pass a link, beside once for each switch
    RailChange change;
  };
  Time forwarding(int from, int to, const Stored& stored) const;
  Time scale_up_latency(const Site& from, const Site& to) const;
  int paths(Distance distance) const;
  int nic_of(const Site& site) const { return site.device - site.local % pools_[site.pool].devices_per_nic; }
  int leaf_of(const Site& site) const { return site.group * layout_.columns + site.column; }
  int pod_of(const Site& site) const {
    return site.group / layout_.pod_groups * spec_.planes + site.column % spec_.planes;
  }
  int pool_of_group(int group) const;
  ByteRate leaf_uplink(int group) const;
  template <typename Visit>  // (pool, leaf groups)
  void each_pool_under(int first_group, const Visit& visit) const;
  ByteRate pod_uplink(int first_group) const;
  void route_between(const Crossing& ends, RailChange change, int path, std::vector<WireId>& wires) const;
  void add_switches(const Crossing& way, int path, std::vector<WireId>& wires) const;
  void add_bundles(const Crossing& way, std::vector<WireId>& wires) const;
  void add_ports(const Crossing& way, int path, std::vector<WireId>& wires) const;
  WireId region_link(const Site& from, const Site& to) const;
  bool through_pods(Distance distance) const;
  bool over_host(const Site& from, const Site& to) const;
  int first_device_of_node(const Site& site) const { return site.device - site.local; }
  void add_host(const Site& site, WireKind copy, std::vector<WireId>& wires) const;
  void add_scale_up(const Site& from, const Site& to, std::vector<WireId>& wires) const;
  std::vector<int> count_spines() const;
  bool leaves_can_bind() const;
  bool pods_in_use() const;
  bool pods_can_bind() const;

  FabricSpec spec_;
  std::vector<FabricPool> pools_;
  FabricLayout layout_;
  std::vector<Site> sites_;  // by device; empty where there are very many: each is located when asked for
  int leaf_uplinks_ = 1, spine_uplinks_ = 1;
  std::vector<int> first_spine_;  // by pod, and how many there are
  int mesh_stride_ = 1;           // kScaleUpPair: index = device * mesh_stride_ + local index of the peer
};

// The arithmetic behind Fabric's constructor: what stands where, whatever fits or not; and what does not fit.
FabricLayout lay_out(const FabricSpec& spec, const std::vector<FabricPool>& pools);
std::string problem_of(const FabricSpec& spec, const std::vector<FabricPool>& pools,
                       const FabricLayout& layout);

}  // namespace moebius
