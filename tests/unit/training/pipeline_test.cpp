#include "workloads/training/pipeline/pipeline.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <set>

#include "pipeline_clock.h"

using namespace moebius;

namespace {

constexpr std::array kKinds{PipelineKind::kGpipe,    PipelineKind::k1F1B, PipelineKind::kInterleaved,
                            PipelineKind::kZbH1,     PipelineKind::kZbV,  PipelineKind::kDualPipe,
                            PipelineKind::kDualPipeV};

PipelineSpec spec_of(PipelineKind kind, int ranks, int microbatches, int chunks = 2) {
  return {kind, ranks, StagePlacement(kind, ranks, chunks).chunks(), microbatches, false};
}

double time_of(const PipelineSpec& spec, const ClockedPasses& times) {
  return PipelineClock(spec, times).run();
}

// What all ranks compute, of one: F, B and W of each microbatch in each chunk that it passes through.
double work_of(const PipelineSpec& spec, const ClockedPasses& times) {
  const int passes =
      spec.kind == PipelineKind::kDualPipe ? spec.microbatches : spec.microbatches * spec.chunks;
  return passes * (times.forward + times.input + times.weight);
}

double bubble(const PipelineSpec& spec, const ClockedPasses& times = {}) {
  return time_of(spec, times) - work_of(spec, times);
}

}  // namespace

TEST_CASE("every rank runs each microbatch once through each of its stages, then the optimizer") {
  for (const PipelineKind kind : kKinds) {
    const PipelineSpec spec = spec_of(kind, 4, 12);
    const auto all = pipeline_passes(spec);
    REQUIRE(all.size() == 4);
    const int of_chunk = kind == PipelineKind::kDualPipe ? 6 : 12;
    for (const std::vector<Pass>& passes : all) {
      std::vector<std::set<int>> forward(spec.chunks), backward(spec.chunks), weights(spec.chunks);
      for (const Pass& pass : passes) {
        if (pass.runs_forward()) CHECK(forward[pass.part.chunk].insert(pass.part.microbatch).second);
        const PassPart& part = pass.backward_part();
        if (pass.runs_backward()) CHECK(backward[part.chunk].insert(part.microbatch).second);
        if (pass.writes_weights()) CHECK(weights[part.chunk].insert(part.microbatch).second);
      }
      for (int chunk = 0; chunk < spec.chunks; ++chunk) {
        CHECK(int(forward[chunk].size()) == of_chunk);
        CHECK(backward[chunk] == forward[chunk]);
        CHECK(weights[chunk] == forward[chunk]);
      }
      CHECK(passes.back().kind == PassKind::kOptimizer);
    }
  }
}

TEST_CASE("the gradients of a chunk are complete with the last of its passes that writes them") {
  for (const PipelineKind kind : kKinds) {
    for (const std::vector<Pass>& passes : pipeline_passes(spec_of(kind, 4, 8))) {
      std::set<int> complete;
      for (const Pass& pass : passes) {
        if (pass.writes_weights()) CHECK(complete.count(pass.backward_part().chunk) == 0);
        if (pass.last) complete.insert(pass.backward_part().chunk);
      }
      CHECK(complete.size() == std::size_t(spec_of(kind, 4, 8).chunks));
    }
  }
}

TEST_CASE("1F1B keeps at most as many microbatches alive as ranks follow, itself included") {
  const auto passes = pipeline_passes(spec_of(PipelineKind::k1F1B, 4, 16));
  for (int rank = 0; rank < 4; ++rank) CHECK(most_alive(passes[rank]) == 4 - rank);
}

TEST_CASE("GPipe keeps all microbatches alive") {
  CHECK(most_alive(pipeline_passes(spec_of(PipelineKind::kGpipe, 4, 16))[0]) == 16);
}

// Narayanan et al., SC'21, section 2.3; Korthikanti et al. 2022, section 4.2.3: (1 + (p-1)/(p v)) of p
// stages' worth on the first rank, in chunks p v + p - 1.
TEST_CASE("interleaving keeps (v + 1)p - 1 chunks alive on the first rank") {
  for (const int chunks : {2, 3}) {
    const auto passes = pipeline_passes(spec_of(PipelineKind::kInterleaved, 4, 16, chunks));
    CHECK(most_alive(passes[0]) == (chunks + 1) * 4 - 1);
    CHECK(most_alive(passes[3]) == (chunks - 1) * 4 + 1);
  }
}

// Qi et al., ICLR 2024, table 2 and section 6.
TEST_CASE("zero-bubble schedules keep no more alive than the first rank of 1F1B") {
  for (const auto& passes : pipeline_passes(spec_of(PipelineKind::kZbH1, 8, 32)))
    CHECK(most_alive(passes) <= 8);
  for (const auto& passes : pipeline_passes(spec_of(PipelineKind::kZbV, 8, 32)))
    CHECK(most_alive(passes) <= 2 * 8);  // half as large chunks
}

// DeepSeek-V3 technical report, table 2.
TEST_CASE("DualPipe keeps PP + 1 chunks alive at most") {
  for (const auto& passes : pipeline_passes(spec_of(PipelineKind::kDualPipe, 8, 32)))
    CHECK(most_alive(passes) == 8 + 1);
  for (const auto& passes : pipeline_passes(spec_of(PipelineKind::kDualPipeV, 4, 16)))
    CHECK(most_alive(passes) == 2 * 4 + 1);
}

TEST_CASE("with fewer microbatches than ranks 1F1B still runs them all") {
  CHECK(pipeline_passes(spec_of(PipelineKind::k1F1B, 8, 2))[0].size() == 5);
}

// Narayanan et al., SC'21: p - 1 slots of F + B, of F + B over v when interleaved.
TEST_CASE("the bubble of equal stages is (p-1)(F+B), and v times smaller when interleaved") {
  const ClockedPasses times{1, 1.25, 0.75, 3};
  for (const PipelineKind kind : {PipelineKind::k1F1B, PipelineKind::kGpipe}) {
    CHECK(bubble(spec_of(kind, 4, 16), times) == Approx(3 * 3));
    CHECK(bubble(spec_of(kind, 8, 8), times) == Approx(7 * 3));
    CHECK(bubble(spec_of(kind, 1, 5), times) == Approx(0));
  }
  // Times are of a chunk, a v-th of a stage of a pipeline without.
  for (const int chunks : {2, 3, 4})
    CHECK(bubble(spec_of(PipelineKind::kInterleaved, 4, 16, chunks), times) == Approx(3 * 3));
}

// Qi et al., ICLR 2024, table 2: (p-1)(F + B - W) with B of inputs alone.
TEST_CASE("the bubble of ZB-H1 is (p-1)(F+B-W)") {
  for (const ClockedPasses& times : {ClockedPasses{1, 1, 1, 3}, ClockedPasses{1, 1.25, 0.75, 3}}) {
    for (const int ranks : {2, 4, 8}) {
      const double expected = (ranks - 1) * (times.forward + times.input - times.weight);
      CHECK(bubble(spec_of(PipelineKind::kZbH1, ranks, 4 * ranks), times) == Approx(expected));
    }
  }
}

// Qi et al., section 6: with F = B = W only the first microbatch is waited for.
TEST_CASE("ZB-V has no bubble but (p-1)F while the pipeline fills") {
  for (const int ranks : {2, 3, 4, 8}) {
    for (const int microbatches : {ranks, 2 * ranks, 6 * ranks})
      CHECK(bubble(spec_of(PipelineKind::kZbV, ranks, microbatches)) == Approx(ranks - 1));
  }
}

// Half of a stage in each chunk: a step by 1F1B takes (m + p - 1) whole stages.
TEST_CASE("with unequal times ZB-V has no longer a bubble than 1F1B, at equal memory") {
  for (const double forward : {0.5, 1.0, 2.0}) {
    for (const double input : {0.4, 0.8, 1.0, 1.5, 2.5}) {
      for (const double weight : {0.3, 0.7, 1.0, 1.6}) {
        for (const int ranks : {2, 3, 4, 8}) {
          for (const int microbatches : {1, ranks, 2 * ranks, 4 * ranks + 1}) {
            CAPTURE(forward, input, weight, ranks, microbatches);
            PipelineSpec spec = spec_of(PipelineKind::kZbV, ranks, microbatches);
            spec.seconds.assign(2 * ranks, {forward, input, weight});
            PipelineClock v(spec, {forward, input, weight, 0});
            const double stage = 2 * (forward + input + weight);
            CHECK(v.run() <= Approx((microbatches + ranks - 1) * stage));
            for (const std::vector<Pass>& passes : v.passes()) CHECK(most_alive(passes) <= 2 * ranks);
          }
        }
      }
    }
  }
}

// Gradients of inputs longer than those of weights, as with attention, which has none of these.
TEST_CASE("ZB-V laid out for its times takes no longer than laid out for equal ones") {
  for (const StageSeconds& of : {StageSeconds{1, 1.4, 0.6}, StageSeconds{1, 1.2, 0.8}}) {
    for (const int ranks : {4, 8}) {
      const ClockedPasses times{of.forward, of.input, of.weight, 0};
      PipelineSpec spec = spec_of(PipelineKind::kZbV, ranks, 4 * ranks);
      const double equal = PipelineClock(spec, times).run();
      spec.seconds.assign(2 * ranks, of);
      CHECK(PipelineClock(spec, times).run() < equal);
    }
  }
}

// DeepSeek-V3 technical report, table 2: (PP/2 - 1)(F&B + B - 3W) with B a whole backward pass, on top of
// what the passes take when pairs are F&B; of DualPipeV, PP counts its stages.
TEST_CASE("the bubble of DualPipe is (PP/2-1)(F&B+B-3W)") {
  for (const double pair : {3.0, 2.5}) {
    const ClockedPasses times{1, 1, 1, pair};
    const double whole = times.input + times.weight;
    for (const auto& [kind, ranks, depth] : {std::tuple{PipelineKind::kDualPipe, 8, 4},
                                             {PipelineKind::kDualPipe, 16, 8},
                                             {PipelineKind::kDualPipeV, 4, 4}}) {
      const PipelineSpec spec = spec_of(kind, ranks, 4 * ranks);
      double most_idle = 0;  // of a rank in the middle, which has the most pairs
      PipelineClock clock(spec, times);
      const double end = clock.run();
      for (const std::vector<Pass>& passes : clock.passes()) {
        double busy = 0;
        for (const Pass& pass : passes) {
          busy += pass.kind == PassKind::kPair
                      ? pair
                      : (pass.runs_forward() ? times.forward : 0) + (pass.runs_backward() ? times.input : 0) +
                            (pass.writes_weights() ? times.weight : 0);
        }
        most_idle = std::max(most_idle, end - busy);
      }
      INFO("end " << end << " of " << ranks << " ranks");
      CHECK(most_idle == Approx((depth - 1) * (pair + whole - 3 * times.weight)));
    }
  }
}

TEST_CASE("pairs of 1F1B never wait once the pipeline is full") {
  PipelineSpec spec = spec_of(PipelineKind::k1F1B, 4, 24);
  spec.pairs = true;
  const ClockedPasses times{1, 1, 1, 2.5};
  const auto passes = pipeline_passes(spec);
  CHECK(most_alive(passes[3]) == 2);
  CHECK(most_alive(passes[0]) == 8);
  // The last rank runs ahead by one forward pass and has 23 pairs; before and behind them, three ranks each.
  CHECK(time_of(spec, times) <= 3 * 2.5 + 1 + 23 * 2.5 + 2 + 3 * 2.5);
}

// As the interleaved schedule without pairs, but one more forward pass alone in front and one more backward
// pass behind.
TEST_CASE("pairs of interleaved stages never wait once the pipeline is full") {
  for (const int chunks : {2, 4}) {
    PipelineSpec spec = spec_of(PipelineKind::kInterleaved, 4, 16, chunks);
    const ClockedPasses times{1, 1, 1, 2.5};
    const double apart = time_of(spec, times);
    spec.pairs = true;
    const auto passes = pipeline_passes(spec);
    const int ahead = (chunks - 1) * 4 + 1;  // of the last rank
    const int pairs = 16 * chunks - ahead;
    CHECK(std::count_if(passes[3].begin(), passes[3].end(),
                        [](const Pass& pass) { return pass.kind == PassKind::kPair; }) == pairs);
    // Ranks in front begin as much earlier as they end later: three passes each way, and those of the last
    // rank alone.
    CHECK(time_of(spec, times) <= 3 * 1 + ahead * (1 + 2) + pairs * 2.5 + 3 * 2 + 2.5);
    CHECK(time_of(spec, times) < apart);
  }
}

TEST_CASE("whatever the schedule there is an order to issue its passes in") {
  for (const PipelineKind kind : kKinds) {
    for (const int ranks : {2, 4, 6}) {
      PipelineSpec spec = spec_of(kind, ranks, 4 * ranks);
      spec.pairs = ranks == 6 && kind == PipelineKind::kInterleaved;
      const auto passes = pipeline_passes(spec);
      std::vector<std::size_t> issued(ranks, 0);
      for (const auto& turn : issue_turns(passes, StagePlacement(kind, ranks, 2))) {
        for (const int rank : turn) ++issued[rank];
      }
      for (int rank = 0; rank < ranks; ++rank) CHECK(issued[rank] == passes[rank].size());
    }
  }
}

TEST_CASE("1F1B and GPipe issue a pass of every rank each turn") {
  for (const PipelineKind kind : {PipelineKind::k1F1B, PipelineKind::kGpipe}) {
    for (const auto& turn : issue_turns(pipeline_passes(spec_of(kind, 5, 7)), StagePlacement(kind, 5, 1)))
      CHECK(turn == std::vector<int>{0, 1, 2, 3, 4});
  }
}

TEST_CASE("stages of a V stand there and back, of both ways from either end, interleaved round by round") {
  const StagePlacement v(PipelineKind::kZbV, 4, 1), both(PipelineKind::kDualPipe, 4, 1),
      rounds(PipelineKind::kInterleaved, 4, 3);
  CHECK(v.stages() == 8);
  CHECK(v.stage_of(1, 1) == 6);
  CHECK(v.next(3, 0) == GroupRole::kNone);
  CHECK(v.next(1, 1) == GroupRole::kPrevious);
  CHECK(both.stages() == 4);
  CHECK(both.stage_of(0, 1) == 3);
  CHECK(both.previous(0, 1) == GroupRole::kNext);
  CHECK(both.next(0, 1) == GroupRole::kNone);
  CHECK(rounds.stages() == 12);
  CHECK(rounds.next(3, 0) == GroupRole::kNext);
  CHECK(rounds.previous(0, 1) == GroupRole::kPrevious);
  CHECK(rounds.previous(0, 0) == GroupRole::kNone);
}
