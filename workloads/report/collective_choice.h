// How the simulator's collectives went: by which algorithm, what the others would have taken, over which
// wires.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "workloads/schedule/op.h"

namespace moebius {

// All wires of one kind ("nic-out") in one collective: what crosses them together, and the busiest of them.
struct WireUse {
  std::string kind;
  int wires = 0;  // that carry something
  double bytes = 0, busiest_bytes = 0;
  double busiest_seconds = 0;  // until it has passed its bytes, at its full rate
  // Of NICs: messages that the busiest one posts, and how long that takes it beside the bytes.
  double messages = 0, posting_seconds = 0;
};

struct AlgorithmTime {
  Algorithm algorithm = Algorithm::kAuto;
  double seconds = 0;  // on an idle network
  std::string protocol =
      {};  // by which the chip's library carries it out: "LL128"; empty: the structure alone
};

// One row for all collectives of a kind, a size, a number of ranks and nodes, channels and algorithm.
struct CollectiveChoice {
  OpKind kind = OpKind::kAllReduce;
  GroupRole group = GroupRole::kNone;
  int ranks = 0, nodes = 0, channels = 0;  // channels 0: as many as needed
  double bytes = 0;                        // Op::payload
  AlgorithmTime chosen = {};
  bool automatic = false;                      // else the workload names the algorithm
  bool by_structure = false;                   // its steps are those of wires and their latency
  bool with_library = false;                   // though a library is asked for: it has none such here
  std::vector<AlgorithmTime> candidates = {};  // of an automatic choice, the chosen one among them
  std::vector<WireUse> wires = {};  // of the chosen one; none for groups of more than kMostRanksTraced
};
inline constexpr int kMostRanksTraced = 512;
inline constexpr int kMostChoices = 64;  // distinct ones that a run notes

// Of an automatic choice, and a faster one among the candidates, where there is one.
std::string algorithm_text(const CollectiveChoice& choice);
std::string choices_text(const std::vector<CollectiveChoice>& choices);  // empty for none
std::string wires_text(const std::vector<WireUse>& wires);

}  // namespace moebius
