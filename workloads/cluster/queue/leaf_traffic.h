// What jobs send over the uplinks of leaves that they share, and how much longer that takes them.
//
// Of a job counts what crosses: an exchange within one leaf, or within a node, meets nobody there. Loads are
// in nodes that send at their full rate, so that a leaf of n nodes at m:1 carries n / m of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace moebius {

enum class LinkPattern : std::uint8_t {
  kExchange,  // each to each: expert parallelism
  kRing,      // each to the next: sums and gathers
  kChain,     // each to the one a stride further: stages of a pipeline
};

inline constexpr int kNumLinkPatterns = 3;

// One kind of traffic between the nodes of a job: groups of so many nodes, a stride apart.
struct GroupTraffic {
  LinkPattern pattern = LinkPattern::kRing;
  int nodes = 2, stride = 1;
  double exposed = 0;  // share of a step in which nothing else goes on
  double busy = 0;     // share in which it goes on, hidden or not
};

// By leaf, what the job's nodes send up while this traffic goes on. `leaf_of`: of its nodes, in its order.
std::vector<double> crossing(const GroupTraffic& traffic, const std::vector<int>& leaf_of, int leaves);

struct LeafSender {
  int run = 0;
  double load = 0;     // nodes that send at their full rate, while it goes on
  double busy = 0;     // share of the time in which it goes on
  double exposed = 0;  // of a step
  int queue = 0;       // priority queue of the links: higher goes first
  LinkPattern pattern = LinkPattern::kRing;
};

// How many times as long senders[which] takes beside the others, against alone on the same uplinks; from 1.
// Others go on independently of each other; one's own do not meet. Equal queues share by what they send;
// higher ones take theirs first.
double time_beside(const std::vector<LeafSender>& senders, std::size_t which, double capacity);

}  // namespace moebius
