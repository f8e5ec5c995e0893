// From traffic to flow classes: which wires the edges cross, and how few flows stand for them.
#pragma once

#include <array>
#include <map>
#include <utility>
#include <vector>

#include "sim/network/transfer.h"
#include "sim/network/wire_table.h"
#include "sim/traffic/flow_paths.h"
#include "sim/traffic/sites.h"
#include "sim/traffic/step_parts.h"
#include "sim/traffic/traffic.h"

namespace moebius {

// Traffic in lockstep becomes one flow class for each size of message: a pipeline goes as fast as its slowest
// hop. Other traffic becomes one flow class for each wire, with what crosses it: every wire has its own end,
// the last one is the step's, so that hot receivers bind. Folding: of devices with the same stand-in the most
// loaded one counts; on leaf and pod wires the traffic of all groups of the kind that the class stands for
// (see like_groups.h), and of the wires that one stands for again the most loaded. What the others of a class
// carry is noted beside the flows, for accounts. Messages that a NIC posts
// pass a wire of their own, counted instead of measured.
//
// Where ports are looked at one by one (FlowPaths::by_ports(); nothing is folded then), a message loads the
// ports of its paths. A pipeline is one flow class all the same: its messages wait for the slowest of their
// queue pairs. Other messages that go by single paths become one flow class for each pair of NICs and path,
// from NIC to NIC; only what they cross inside nodes stays one class for each wire.
class StepBuilder {
 public:
  StepBuilder(Sites& sites, WireTable& table, FlowPaths& paths, bool with_pairs)
      : sites_(sites), table_(table), paths_(paths), with_pairs_(with_pairs) {
    for (int kind = 0; kind < kNumWireKinds; ++kind)
      can_bind_[kind] = sites.fabric().can_bind(static_cast<WireKind>(kind));
  }
  void keep_parts() { keep_parts_ = true; }  // fills Step::parts from here on

  Step build(const Traffic& traffic, const GroupSites& group);
  // Of the last step built: the member whose own wires are busy longest.
  int busiest_member(const GroupSites& group) const;

 private:
  // Whether a wire's load becomes a flow of its own, is part of flows from NIC to NIC, or of none: wires that
  // can never bind.
  enum class Carried : std::uint8_t { kByItself, kInFlows, kFree };
  struct Load {
    std::int32_t wire = 0;
    std::int32_t device = -1;  // whose own wire it is; -1: of a pair, leaf or pod
    std::int32_t stand_in = 0;
    double bytes = 0;
    double flows = 0;
    Carried carried = Carried::kByItself;
    bool of_nic = false;  // the device's NIC, or what that posts
    double times = 1;     // so many like the group at hand send through it
  };

  // What queue pairs of two NICs carry over one path, of all messages between these.
  struct NicFlow {
    FlowPath flow;
    double bytes = 0;
    int messages = 0;
  };

  // Which wires of a way: those of devices and of pairs in a node, those of many, or both.
  enum class Part { kAll, kOwned, kShared };
  struct Way {
    double bytes = 0, messages = 0;
    Part part = Part::kAll;
    RailChange change = RailChange::kInNode;
  };

  // What a message loads at one wire of its way, without its bytes. Ways are asked for again and again, by
  // both exchanges of a layer, forward and backward.
  struct Hop {
    Load load = {.wire = -1};  // no wire: nothing
    std::int32_t nic = -1;     // that posts the message here; -1: none
  };
  struct KnownWay {
    std::int32_t from = -1, to = -1;
    Part part = Part::kAll;
    RailChange change = RailChange::kInNode;
    std::vector<Hop> hops;
  };

  void add_edges(const Traffic& traffic, const GroupSites& group, double bytes);
  void add_switch_edge(const Edge& edge, const GroupSites& group);
  void add_edge(int from, int to, const Way& way);
  void add_meshes(const Traffic& traffic, const GroupSites& group);
  void note_part(const StepPart& part);
  void add_posting(int nic, double messages);
  void add_on(WireId wire, double bytes, double flows);
  Load load_on(WireId wire);  // wire -1: it is left out
  static constexpr int kWayBits = 13;  // of the number of ways that are kept
  KnownWay& place_of_way(int from, int to, const Way& way);
  void take_way(int from, int to, const Way& way, KnownWay* learned);  // null: it is not kept
  void take_hop(const Hop& hop, const Way& way);
  void add_edge_by_ports(int from, int to, const Way& way);
  void add(Load load);
  void share_nics(const GroupSites& group);
  void level_paths(const Traffic& traffic, const GroupSites& group);
  void note_flow(const FlowPath& flow, double bytes);
  void add_single_flows(const Traffic& traffic, Step& step);
  void add_passed(Step& step) const;
  void add_lockstep_flows(const Traffic& traffic, const GroupSites& group, Step& step);
  void add_wire_flows(const Traffic& traffic, const GroupSites& group, Step& step);
  std::vector<Load> folded_loads();
  void account_for_members(const Traffic& traffic, const GroupSites& group, Step& step);
  bool is_own(const Load& load) const;
  double chunk_seconds(const Traffic& traffic, const GroupSites& group) const;
  void begin();
  const std::vector<std::int32_t>& shifts_of(const GroupSites& group, RailChange change) const;
  double alone_of_own(const Traffic& traffic, const GroupSites& group);
  void add_flows(const Traffic& traffic, const GroupSites& group, Step& step);
  double alone(const Step& step);
  double limit(const Traffic& traffic, Step& step);
  void add_pairs(const Traffic& traffic, const GroupSites& group, Step& step) const;

  Sites& sites_;
  WireTable& table_;
  FlowPaths& paths_;
  std::array<bool, kNumWireKinds> can_bind_;  // as Fabric::can_bind() goes through all pods
  bool with_pairs_, keep_parts_ = false;
  bool own_only_ = false;             // of the step at hand: what the group itself sends, folded or not
  bool singly_ = false;               // of the step at hand: its messages become flows from NIC to NIC
  bool learns_ = true;                // of the step at hand: its ways are few enough to be kept
  std::shared_ptr<StepParts> parts_;  // of the step at hand; null: no one wants them
  double detour_ = 0;                 // of the step at hand: s, the longest
  std::vector<WireId> path_;
  std::vector<KnownWay> known_ways_;  // each in the one place where it may stand
  std::vector<FlowPath> flow_paths_;
  std::vector<NicFlow> nic_flows_;
  std::map<std::array<int, 3>, std::size_t> flow_of_nics_;  // by NICs and path
  std::vector<Load> loads_;
  std::vector<std::int32_t> load_of_wire_;  // -1: none yet
  // By wire, as long as they are needed: between calls all are -1, all 0.
  std::vector<std::int32_t> folded_at_;
  std::vector<double> busy_;
};

}  // namespace moebius
