// Dynamic slicing: the search against every cut there is, and what goes into it.
#include "workloads/training/pipeline/slice_search.h"

#include <cmath>
#include <functional>
#include <tuple>

#include <catch2/catch.hpp>

#include "workloads/routing/routing.h"
#include "workloads/training/pipeline/dynamic_slicing.h"
#include "workloads/training/pipeline/slice_clock.h"

using namespace moebius;

namespace {

// Layers of three sizes in a drawn order; ranks of two speeds; a heavy head, a light embedding.
SliceLoads drawn_loads(int layers, const PipelineSpec& spec, std::uint64_t seed) {
  SliceLoads loads;
  std::vector<double> work;
  for (int i = 0; i < layers; ++i) {
    const double size = 1.0 + static_cast<double>(random_bits(seed, i) % 3);
    work.push_back(size);
    loads.stays.push_back(10 * size);
    loads.kept.push_back(4 - size);
  }
  for (int rank = 0; rank < spec.ranks; ++rank) {
    const double speed = rank % 2 == 0 ? 1.0 : 1.5;
    loads.seconds.emplace_back();
    for (const double size : work) loads.seconds.back().push_back(size / speed);
    loads.embedding_seconds.push_back(0.25 / speed);
    loads.head_seconds.push_back(2.5 / speed);
    loads.room.push_back(1000);
  }
  loads.embedding_stays = 6, loads.head_stays = 8, loads.head_kept = 1;
  loads.passing = 2, loads.head_passing = 5;
  loads.alive = alive_microbatches(spec);
  return loads;
}

void each_slicing(int layers, int stages, std::vector<int>& begun,
                  const std::function<void(const std::vector<int>&)>& visit) {
  if (stages == 1) {
    begun.push_back(layers);
    visit(begun);
    begun.pop_back();
    return;
  }
  for (int count = 1; count <= layers - (stages - 1); ++count) {
    begun.push_back(count);
    each_slicing(layers - count, stages - 1, begun, visit);
    begun.pop_back();
  }
}

// Rounded, so that sums in another order compare equal.
auto key(const SliceCost& cost) {
  const auto rounded = [](double value) { return std::round(value * 1e6); };
  return std::tuple(rounded(cost.slowest_rank), rounded(cost.slowest_stage), rounded(cost.fullest),
                    rounded(cost.squares));
}

SliceCost best_of_all(const SliceLoads& loads, const StagePlacement& placement) {
  bool any = false, fits = false;
  SliceCost best;
  std::vector<int> begun;
  each_slicing(loads.layers(), placement.stages(), begun, [&](const std::vector<int>& layers) {
    const SliceCost cost = cost_of_slices(loads, placement, layers);
    const bool fit = cost.fullest <= 1;
    if (fit < fits) return;
    const bool first = !any || fit > fits;
    any = true, fits = fit;
    const auto less = [&] {
      if (fit) return key(cost) < key(best);
      return std::tuple(std::round(cost.fullest * 1e6), key(cost)) <
             std::tuple(std::round(best.fullest * 1e6), key(best));
    };
    if (first || less()) best = cost;
  });
  return best;
}

PipelineSpec spec_of(PipelineKind kind, int ranks) {
  const int chunks = kind == PipelineKind::kInterleaved ? 2 : 1;
  return {kind, ranks, StagePlacement(kind, ranks, chunks).chunks(), 4 * ranks, false};
}

}  // namespace

TEST_CASE("slices are as good as the best of all cuts under every schedule") {
  for (const PipelineKind kind :
       {PipelineKind::kGpipe, PipelineKind::k1F1B, PipelineKind::kZbH1, PipelineKind::kInterleaved,
        PipelineKind::kZbV, PipelineKind::kDualPipe, PipelineKind::kDualPipeV}) {
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
      const int ranks = kind == PipelineKind::kDualPipe ? 4 : 2 + static_cast<int>(seed % 2);
      const PipelineSpec spec = spec_of(kind, ranks);
      const StagePlacement placement(kind, ranks, spec.chunks);
      const SliceLoads loads = drawn_loads(10, spec, seed);
      const SliceChoice choice = search_slices(loads, placement);
      CAPTURE(static_cast<int>(kind), seed, choice.layers);
      CHECK(choice.exact);
      CHECK(key(choice.cost) == key(best_of_all(loads, placement)));
    }
  }
}

// Room for less and less: at 1 the best still fits, far below nothing does.
TEST_CASE("slices fit where any do and else exceed the room least") {
  for (const PipelineKind kind : {PipelineKind::kGpipe, PipelineKind::k1F1B, PipelineKind::kInterleaved,
                                  PipelineKind::kZbV, PipelineKind::kDualPipeV}) {
    const PipelineSpec spec = spec_of(kind, 3);
    const StagePlacement placement(kind, 3, spec.chunks);
    SliceLoads loads = drawn_loads(9, spec, 5);
    const SliceCost free = search_slices(loads, placement).cost;
    for (const double room : {1.0, 0.97, 0.9, 0.7, 0.4}) {
      loads.room.assign(3, 1000 * free.fullest * room);
      const SliceCost found = search_slices(loads, placement).cost, best = best_of_all(loads, placement);
      CHECK(key(found) == key(best));
      CHECK(found.slowest_rank >= free.slowest_rank * (1 - 1e-9));
    }
  }
}

TEST_CASE("three stages a rank never end slower than even numbers of layers") {
  const PipelineSpec spec{PipelineKind::kInterleaved, 2, 3, 8, false};
  const StagePlacement placement(PipelineKind::kInterleaved, 2, 3);
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    const SliceLoads loads = drawn_loads(12, spec, seed);
    const SliceChoice choice = search_slices(loads, placement);
    CHECK_FALSE(choice.exact);
    CHECK(choice.cost.slowest_rank <=
          cost_of_slices(loads, placement, {2, 2, 2, 2, 2, 2}).slowest_rank * (1 + 1e-6));
  }
}

// 1F1B on p ranks keeps p - s microbatches alive on rank s, GPipe all.
TEST_CASE("microbatches alive are counted in the passes of a schedule") {
  CHECK(alive_microbatches({PipelineKind::k1F1B, 3, 1, 8, false}) ==
        std::vector<std::vector<std::vector<int>>>{{{3}}, {{2}}, {{1}}});
  CHECK(alive_microbatches({PipelineKind::kGpipe, 2, 1, 5, false}) ==
        std::vector<std::vector<std::vector<int>>>{{{5}}, {{5}}});
}

// Eight equal layers, a head as long as two of them, two ranks: 5 and 3 + 2.
// (m + p - 1) times the slowest stage where all are alike, and half the bubble with two chunks each.
TEST_CASE("slices are weighed by the schedule that runs them") {
  SliceLoads loads = drawn_loads(16, {PipelineKind::kInterleaved, 4, 2, 8}, 1);
  for (auto& of_rank : loads.seconds) of_rank.assign(16, 3.0);
  loads.embedding_seconds.assign(4, 0), loads.head_seconds.assign(4, 0);
  const PipelineSpec plain{PipelineKind::k1F1B, 4, 1, 64};
  CHECK(step_seconds(loads, plain, StagePlacement(plain.kind, 4, 1), {4, 4, 4, 4}) ==
        Approx((64 + 3) * 12.0));
  CHECK(step_seconds(loads, plain, StagePlacement(plain.kind, 4, 1), {4, 4, 5, 3}) > 64 * 15.0);
  const PipelineSpec two{PipelineKind::kInterleaved, 4, 2, 64};
  const StagePlacement placement(two.kind, 4, 2);
  const double even = step_seconds(loads, two, placement, {2, 2, 2, 2, 2, 2, 2, 2});
  CHECK(even == Approx((64 + 1.5) * 12.0));
  // As much work for each rank, but chunks of one and of three layers.
  const std::vector<int> uneven{1, 1, 3, 3, 3, 3, 1, 1};
  CHECK(cost_of_slices(loads, placement, uneven).slowest_rank == Approx(12));
  CHECK(step_seconds(loads, two, placement, uneven) > 1.1 * even);
  const std::vector<int> moved = with_layers_moved(loads, two, placement, uneven);
  CHECK(step_seconds(loads, two, placement, moved) <= step_seconds(loads, two, placement, uneven));
}

TEST_CASE("a head counts as the layers that it is as long as") {
  SliceLoads loads;
  loads.stays.assign(8, 1);
  loads.kept.assign(8, 1);
  loads.seconds.assign(2, std::vector<double>(8, 1));
  loads.embedding_seconds = {0, 0};
  loads.head_seconds = {2, 2};
  loads.room = {1e6, 1e6};
  loads.alive = alive_microbatches({PipelineKind::k1F1B, 2, 1, 8, false});
  CHECK(search_slices(loads, StagePlacement(PipelineKind::k1F1B, 2, 1)).layers == std::vector<int>{5, 3});
}
