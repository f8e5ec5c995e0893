// The fluid network against SimGrid's own on random small fabrics: messages between random pairs, two under
// way at each host, over trees whose uplinks are shared.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdio>
#include <random>

#include "tests/laws/small_world.h"

using namespace moebius;

namespace {

struct Case {
  World world;
  Layout layout;
  std::vector<Submission> submissions;
};

void pair_up(Layout& layout, int from, int to, GroupRole sender, GroupRole receiver) {
  const std::vector<std::int32_t> ranks = {from, to};
  layout.classes[from].groups[static_cast<int>(sender)] = {.ranks = ranks, .my_index = 0, .num_classes = 2};
  layout.classes[to].groups[static_cast<int>(receiver)] = {.ranks = ranks, .my_index = 1, .num_classes = 2};
}

Op message(OpKind kind, double bytes, GroupRole group, bool forward) {
  Op op = communication_op(kind, bytes, Algorithm::kAuto, group);
  if (!forward) op.lane = kind == OpKind::kSend ? Lane::kSendBackward : Lane::kRecvBackward;
  return op;
}

// 4 to 12 hosts under leaves of 2 to 4, uplinks of a whole, a half or a quarter of what the hosts can send.
// Every host sends one message of 20 to 100 MB forward and one backward, each to a host of a random rotation.
Case random_case(unsigned seed, Time hop) {
  std::mt19937 random(seed);
  const int ports = 2 + static_cast<int>(random() % 3);
  const int hosts = ports * (2 + static_cast<int>(random() % 2));
  Case made;
  made.world = {.nodes = hosts, .per_node = 1, .hop_latency = hop, .leaf_ports = ports};
  made.world.oversubscription = 1 << random() % 3;
  made.layout = make_layout({.ranks = hosts});
  const int forward = 1 + static_cast<int>(random() % (hosts - 1));
  const int backward = 1 + static_cast<int>(random() % (hosts - 1));
  std::vector<double> sizes;
  for (int i = 0; i < 2 * hosts; ++i) sizes.push_back(1e6 * (20 + random() % 81));
  for (int rank = 0; rank < hosts; ++rank) {
    pair_up(made.layout, rank, (rank + forward) % hosts, GroupRole::kNext, GroupRole::kPrevious);
    pair_up(made.layout, rank, (rank + backward) % hosts, GroupRole::kTensor, GroupRole::kContext);
  }
  for (int rank = 0; rank < hosts; ++rank) {
    const int before = (rank + hosts - forward) % hosts, after = (rank + hosts - backward) % hosts;
    made.submissions.push_back(
        {.fragment =
             make_fragment({{message(OpKind::kSend, sizes[rank], GroupRole::kNext, true)},
                            {message(OpKind::kRecv, sizes[before], GroupRole::kPrevious, true)},
                            {message(OpKind::kSend, sizes[hosts + rank], GroupRole::kTensor, false)},
                            {message(OpKind::kRecv, sizes[hosts + after], GroupRole::kContext, false)}}),
         .rank_class = rank,
         .after = {}});
  }
  return made;
}

double seconds(const Case& made, SimOptions options) {
  return simulate({make_cluster(made.world), made.layout, made.submissions, {}, options}).seconds();
}

std::vector<double> differences(Time hop) {
  std::vector<double> all;
  for (unsigned seed = 1; seed <= 20; ++seed) {
    const Case made = random_case(seed, hop);
    const double fluid = seconds(made, {NetworkDetail::kFluid, Driver::kPlain});
    const double native = seconds(made, {NetworkDetail::kNative, Driver::kSimGrid});
    all.push_back(std::abs(fluid / native - 1));
    std::printf("hop %s case %2u: %2d hosts, %d a leaf, %.0f:1  fluid %.4f ms native %.4f ms  %+.2f%%\n",
                to_text(hop).c_str(), seed, made.world.nodes, made.world.leaf_ports,
                made.world.oversubscription, 1e3 * fluid, 1e3 * native, 100 * (fluid / native - 1));
  }
  std::sort(all.begin(), all.end());
  return all;
}

}  // namespace

TEST_CASE("fluid and native agree on random traffic over shared paths") {
  if (!has_simgrid()) {
    WARN("skipped: this build has no SimGrid");
    return;
  }
  const std::vector<double> all = differences(Time{500});
  CHECK(all[10] < 0.02);
}
