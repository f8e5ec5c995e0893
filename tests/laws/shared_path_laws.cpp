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
  op.match = forward ? 0 : 1;  // both may go between the same two hosts
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

WorldRun outcome_of(const Case& made, SimOptions options) {
  return simulate({make_cluster(made.world), made.layout, made.submissions, {}, options});
}

struct Differences {
  std::vector<double> whole;  // of the last end, by case, the smallest first
  double worst_message = 0;   // of the end of any one message
};

Differences differences(Time hop) {
  Differences found;
  for (unsigned seed = 1; seed <= 20; ++seed) {
    const Case made = random_case(seed, hop);
    const WorldRun fluid = outcome_of(made, {NetworkDetail::kFluid, Driver::kPlain});
    const WorldRun native = outcome_of(made, {NetworkDetail::kNative, Driver::kSimGrid});
    found.whole.push_back(std::abs(fluid.seconds() / native.seconds() - 1));
    double worst = 0;
    for (const Span& span : fluid.spans) {
      const double other = native.span(span.sequence, span.op).end.seconds();
      worst = std::max(worst, std::abs(span.end.seconds() / other - 1));
    }
    found.worst_message = std::max(found.worst_message, worst);
    std::printf(
        "hop %s case %2u: %2d hosts, %d a leaf, %.0f:1  fluid %.4f ms native %.4f ms  %+.2f%%, worst "
        "message %.2f%%\n",
        to_text(hop).c_str(), seed, made.world.nodes, made.world.leaf_ports, made.world.oversubscription,
        1e3 * fluid.seconds(), 1e3 * native.seconds(), 100 * (fluid.seconds() / native.seconds() - 1),
        100 * worst);
  }
  std::sort(found.whole.begin(), found.whole.end());
  return found;
}

}  // namespace

// SimGrid weighs a flow by the latency of its path (see detail_laws.cpp): 2.5 us under a leaf, 3.5 us between
// leaves. Where the two kinds share a wire, native serves the near one first, and what waits for the far one
// ends later.
TEST_CASE("fluid and native agree within 2% at the median on random traffic over shared paths") {
  if (!has_simgrid()) {
    WARN("skipped: this build has no SimGrid");
    return;
  }
  const std::vector<double> whole = differences(Time{500}).whole;
  CHECK((whole[9] + whole[10]) / 2 < 0.02);
  CHECK(whole.back() < 0.1);
}

// The same 20 cases with switches that take no time: all paths weigh the same, and what is left is rounding
// of messages to whole bytes and nanoseconds.
TEST_CASE("fluid and native agree on the end of every message where all paths have one latency") {
  if (!has_simgrid()) {
    WARN("skipped: this build has no SimGrid");
    return;
  }
  CHECK(differences(Time{0}).worst_message < 1e-5);
}
