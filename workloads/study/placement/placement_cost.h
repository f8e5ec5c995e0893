// How long a step's communication takes under a placement, by an estimate that thousands of placements can be
// tried on: the bytes of each kind of group (tensor, expert, data, pipeline, ...) on the wires of the fabric
// that they cross, all groups of a kind at once, kind after kind. Of each kind the wire that takes longest
// counts, and the longest way of its calls. Rings go from node to node in the order of the devices, as many
// side by side as the nodes hold members; messages and tokens go as they are. What computation hides is not
// known here, nor what a library's protocol adds: finalists are simulated.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "hw/fabric/fabric.h"
#include "workloads/study/placement/volumes.h"

namespace moebius {

inline constexpr std::int32_t kNowhere = -1;  // of a rank that does not stand yet

struct PlacementCost {
  double seconds = 0;  // estimate, see above
  double mean = 0;  // of the wires of a rank, over all kinds: told apart by it where the slowest is the same
  double sum() const { return seconds + mean; }
};

class CommunicationLoads {
 public:
  CommunicationLoads(const Fabric& fabric, const std::vector<RankExchange>& exchanges, int ranks);

  // Where each rank stands; kNowhere leaves out what it sends and receives, and so gives a lower bound.
  void place(const std::vector<std::int32_t>& device_of_rank);
  // Some ranks elsewhere. undo() takes the last move() back.
  void move(const std::vector<std::pair<std::int32_t, std::int32_t>>& device_of);
  void undo();

  PlacementCost cost() const;
  const std::vector<std::int32_t>& device_of_rank() const { return device_of_rank_; }
  // Seconds by role, of the wire that takes longest, and the way of calls.
  std::map<GroupRole, double> by_role() const;

 private:
  struct Part {
    std::int32_t wire;
    double seconds;
  };
  struct Share {  // of one exchange
    std::vector<Part> parts;
    double latency = 0;
  };
  struct Member {
    std::int32_t index, device, node;
  };

  std::int32_t wire_of(WireId id);
  const std::vector<std::int32_t>& wires_between(std::int32_t from, std::int32_t to);
  void add_edge(std::int32_t from, std::int32_t to, double bytes, Share& share);
  void add_ring(const RankExchange& exchange, const std::vector<Member>& members, Share& share);
  Share share_of(const RankExchange& exchange);
  void apply(const Share& share, int kind, double sign);
  void replace(std::int32_t exchange, Share share);

  const Fabric& fabric_;
  const std::vector<RankExchange>& exchanges_;
  std::vector<std::int32_t> device_of_rank_;
  std::vector<std::vector<std::int32_t>> exchanges_of_rank_;
  std::vector<int> kind_of_;  // by exchange
  std::vector<GroupRole> role_of_kind_;
  std::vector<Share> shares_;                            // by exchange
  std::vector<std::vector<double>> loads_;               // seconds, by kind and wire
  std::vector<std::vector<std::int32_t>> wire_numbers_;  // by kind of wire and index
  std::vector<double> seconds_of_byte_;                  // by wire
  std::map<std::pair<std::int32_t, std::int32_t>, std::vector<std::int32_t>> ways_;
  std::vector<std::pair<std::int32_t, Share>> before_;  // of the last move
  std::vector<std::pair<std::int32_t, std::int32_t>> devices_before_;
};

}  // namespace moebius
