// From traffic to flow classes: which wires the edges cross, and how few flows stand for them.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "sim/network/transfer.h"
#include "sim/network/wire_table.h"
#include "sim/traffic/sites.h"
#include "sim/traffic/traffic.h"

namespace moebius {

// Traffic in lockstep becomes one flow class for each size of message: a pipeline goes as fast as its slowest
// hop. Other traffic becomes one flow class for each wire, with what crosses it: every wire has its own end,
// the last one is the step's, so that hot receivers bind. Folding: of devices with the same stand-in the most
// loaded one counts; on leaf and pod wires the traffic of all ranks of the class, also of those in other
// groups of the same kind. Messages that a NIC posts pass a wire of their own, counted instead of measured.
class StepBuilder {
 public:
  StepBuilder(Sites& sites, WireTable& table, bool with_pairs)
      : sites_(sites), table_(table), with_pairs_(with_pairs) {}

  Step build(const Traffic& traffic, const GroupSites& group);
  // Of the last step built: the member whose own wires are busy longest.
  int busiest_member(const GroupSites& group) const;

 private:
  struct Load {
    std::int32_t wire = 0;
    std::int32_t device = -1;  // whose own wire it is; -1: of a pair, leaf or pod
    std::int32_t stand_in = 0;
    double bytes = 0;
    double flows = 0;
  };

  void add_edge(const Edge& edge, const GroupSites& group, RailChange change);
  void add_way(const Edge& edge, const GroupSites& group);  // along path_
  void add_posting(int nic, double messages);
  void find_way_to_switch(const Edge& edge, const GroupSites& group);
  void add(Load load);
  void add_lockstep_flows(const Traffic& traffic, const GroupSites& group, Step& step);
  void add_wire_flows(Step& step);
  std::vector<Load> folded_loads() const;
  double ranks_for_each(const GroupSites& group, int member, WireId wire);
  void begin();
  double alone(const Step& step) const;
  void limit(const Traffic& traffic, Step& step) const;
  void add_pairs(const Traffic& traffic, const GroupSites& group, Step& step) const;

  Sites& sites_;
  WireTable& table_;
  bool with_pairs_;
  std::vector<WireId> path_;
  std::vector<Load> loads_;
  std::map<std::pair<int, WireId>, double> ranks_for_each_;  // by class and wire, of the group at hand
  std::vector<std::int32_t> load_of_wire_;                   // -1: none yet
};

}  // namespace moebius
