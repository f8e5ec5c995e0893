// What distance costs: pipelines split over two regions, and messages over boards of a super-node.
#include <catch2/catch.hpp>

#include <algorithm>

#include "tests/laws/simulated_step.h"

using namespace moebius;

namespace {

constexpr int kReplicas = 8;

// Pipelines side by side.
TrainingJob side_by_side(int stages, int microbatches) {
  return equal_stages(stages, microbatches, kReplicas);
}

struct Fibre {
  double metres = 0;
  double rate = 1e17;  // bytes per second
};

// Nodes of one device: the first half of `devices` in one region, the others in another. Nothing but the
// fibre takes time.
Cluster two_regions(int devices, Fibre fibre) {
  World world{.nodes = devices / 2, .per_node = 1, .nic = 1e16};
  world.host_latency = world.hop_latency = {0};
  std::vector<Pool> pools(2, make_cluster(world).pools.front());
  FabricSpec spec = make_cluster(world).fabric.spec();
  spec.tiers = kAutomaticTiers;
  spec.region_distance = {fibre.metres};
  spec.region_rate = {fibre.rate};
  std::vector<FabricPool> parts;
  for (int region = 0; region < 2; ++region) {
    pools[region].name = pools[region].region = region == 0 ? "north" : "south";
    parts.push_back(part_of_fabric(pools[region], spec));
    parts.back().region = region;
  }
  return {pools, Fabric(spec, parts)};
}

double step_seconds(const TrainingJob& job, Fibre fibre) {
  return simulate(job, two_regions(job.plan.ranks(), fibre), cost_of_passes()).seconds;
}

// 1F1B by its definition: stage s starts min(m, p - 1 - s) forwards, then one forward and one backward in
// turn, then the backwards that are left. A message from the middle stage to the next, and its gradient back,
// takes `delay`; others take nothing.
double pipeline_seconds(int stages, int microbatches, double delay) {
  const double kNotYet = -1;
  std::vector<std::vector<double>> forward(stages, std::vector<double>(microbatches, kNotYet));
  std::vector<std::vector<double>> backward = forward;
  std::vector<double> free(stages, 0);
  std::vector<int> done_forward(stages, 0), done_backward(stages, 0);
  const auto between = [&](int s) { return s == stages / 2 - 1 ? delay : 0; };  // from s to s + 1
  for (bool moved = true; moved;) {
    moved = false;
    for (int s = 0; s < stages; ++s) {
      const int warm_up = std::min(microbatches, stages - 1 - s);
      const bool next_is_forward =
          done_forward[s] < microbatches && done_forward[s] <= warm_up + done_backward[s];
      const int i = next_is_forward ? done_forward[s] : done_backward[s];
      if (i == microbatches) continue;
      double ready = 0;
      if (next_is_forward && s > 0)
        ready = forward[s - 1][i] < 0 ? kNotYet : forward[s - 1][i] + between(s - 1);
      if (!next_is_forward)
        ready = s == stages - 1          ? forward[s][i]
                : backward[s + 1][i] < 0 ? kNotYet
                                         : backward[s + 1][i] + between(s);
      if (ready < 0) continue;
      const double end = std::max(ready, free[s]) + (next_is_forward ? kForward : kBackward);
      (next_is_forward ? forward : backward)[s][i] = free[s] = end;
      ++(next_is_forward ? done_forward : done_backward)[s];
      moved = true;
    }
  }
  return *std::max_element(free.begin(), free.end());
}

}  // namespace

TEST_CASE("a pipeline split over two regions takes longer by the fibre's latency and capacity alone") {
  // 150 km are 750 us each way. All 8 replicas send their activations, 32 tokens x 64 x 2 bytes, at the same
  // time: at 327.68 MB/s they take 100 us together.
  constexpr double kLatency = 750e-6, kTransfer = 100e-6;
  const double bytes = 32.0 * 64 * 2 * kReplicas;
  for (const auto& [stages, microbatches] : {std::pair{2, 1}, {2, 9}, {4, 1}, {4, 12}, {8, 16}}) {
    INFO(stages << " stages, " << microbatches << " microbatches");
    const TrainingJob job = side_by_side(stages, microbatches);
    const double at_once = step_seconds(job, {});
    CHECK(at_once == Approx(pipeline_seconds(stages, microbatches, 0)).epsilon(1e-3));
    const double far = step_seconds(job, {.metres = 150e3});
    const double added =
        pipeline_seconds(stages, microbatches, kLatency) - pipeline_seconds(stages, microbatches, 0);
    CHECK(far - at_once == Approx(added).epsilon(0.02));
    const double narrow = step_seconds(job, {.metres = 150e3, .rate = bytes / kTransfer});
    const double both = pipeline_seconds(stages, microbatches, kLatency + kTransfer) -
                        pipeline_seconds(stages, microbatches, 0);
    CHECK(narrow - at_once == Approx(both).epsilon(0.02));
  }
}

TEST_CASE("one microbatch over two regions pays the fibre once forward and once back") {
  const TrainingJob job = side_by_side(4, 1);
  CHECK(step_seconds(job, {.metres = 30e3}) - step_seconds(job, {}) == Approx(2 * 150e-6).epsilon(1e-3));
}

TEST_CASE("folded and unfolded pipelines share the fibre alike") {
  TrainingJob job = side_by_side(4, 6);
  const Fibre fibre{.metres = 30e3, .rate = 20e6};
  const double folded = step_seconds(job, fibre);
  job.plan.fold = false;
  CHECK(folded == Approx(step_seconds(job, fibre)).epsilon(0.005));
}

TEST_CASE("an all-to-all within boards is faster than one across them by latency and by bandwidth") {
  // Boards of 4 of a node of 8, 2 us more between them and half of the link: a member sends 4 of its 7
  // messages to the other board at 50 GB/s, and 3 to its own within what is left of 100 GB/s.
  World world{.nodes = 1, .per_node = 8};
  Cluster cluster = make_cluster(world);
  FabricPool part = part_of_fabric(cluster.pools.front(), cluster.fabric.spec());
  const Cluster one_board{cluster.pools, Fabric(cluster.fabric.spec(), {part})};
  part.board = 4;
  part.board_latency = Time{2'000};
  part.board_rate = part.link_rate * 0.5;
  const Cluster two_boards{cluster.pools, Fabric(cluster.fabric.spec(), {part})};
  const auto seconds = [&](const Cluster& on) {
    const Layout layout = make_layout({.ranks = 8});
    const FragmentPtr fragment =
        make_fragment({{communication_op(OpKind::kAllToAll, 80e6, Algorithm::kDirect)}});
    return simulate({on, layout, on_all_classes(layout, fragment)}).seconds();
  };
  CHECK(seconds(one_board) == Approx(1e-6 + 7 * 10e6 / 100e9).epsilon(1e-4));
  CHECK(seconds(two_boards) == Approx(3e-6 + 4 * 10e6 / 50e9).epsilon(1e-4));
}
