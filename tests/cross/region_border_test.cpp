// What a border between two regions costs a pipeline of uneven stages, as the shipped scenario of DeepSeek-V3
// has them: the time that is added follows from the stages' own times in a run without distance.
#include <catch2/catch.hpp>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/sim_run.h"
#include "tests/scenario_file.h"
#include "workloads/perform/perform.h"

using namespace moebius;

namespace {

constexpr int kStages = 16, kBorder = 7;  // stage 7 is the last one north
const std::string kTwoRegions = test::scenario_file("study/deepseek-v3-train-two-regions.json");

struct Pass {
  bool forward = false;
  int microbatch = 0;
  double received = 0;  // when its message had come; 0: it needs none
  double end = 0;       // of its last compute op
  double sent = 0, arrived = 0;
};

struct MeasuredRun {
  double seconds = 0;
  std::vector<std::vector<Pass>> stages;  // in order, without the optimizer
  double nic = 0, border = 0, tied = 0;   // bytes per second; seconds of the tied embedding's all-reduce
  double message = 0, embedding = 0;      // bytes
  int replicas = 0;
};

MeasuredRun run(const std::string& distance, const std::string& rate, NetworkDetail detail,
                const std::string& queue = "0") {
  const Library library("");
  Changes changes;
  // By the structure: the library keeps so much of the embedding under way that its crossings do not show.
  changes.sets = {"/cluster/fabric/region_distance=" + distance, "/cluster/fabric/region_rate=" + rate,
                  "/cluster/collectives=structure", "/cluster/fabric/pipeline_queue=" + queue};
  Job job = read_job(kTwoRegions, changes, library);
  const Outcome outcome = perform(
      job,
      [&](const Job& given, const Layout& layout, Recorder& recorder) {
        return start_simulator(given, layout, recorder, {.data = "", .options = {detail, Driver::kPlain}});
      },
      {});
  const Timeline& timeline = outcome.timeline;
  std::vector<Pass> passes(timeline.submissions.size());
  MeasuredRun measured;
  std::map<std::int32_t, std::int32_t> first_row;  // of a fragment
  for (const OpRow& op : timeline.ops)
    if (op.index == 0) first_row[op.fragment] = static_cast<std::int32_t>(&op - timeline.ops.data());
  for (const Span& span : timeline.spans) {
    Pass& pass = passes[span.sequence];
    const OpRow& op = timeline.ops[first_row[timeline.submissions[span.sequence].fragment] + span.op];
    if (op.kind == OpKind::kRecv) {
      pass.received = span.end.seconds();
    } else if (op.kind == OpKind::kSend) {
      pass.sent = span.start.seconds(), pass.arrived = span.end.seconds();
      measured.message = op.payload;
    } else if (op.group == GroupRole::kTied) {
      measured.tied = (span.end - span.work_start).seconds(), measured.embedding = op.payload;
    }
    if (span.lane == Lane::kCompute) pass.end = std::max(pass.end, span.end.seconds());
  }
  measured.seconds = outcome.report.metrics.makespan.seconds();
  measured.stages.resize(kStages);
  for (const SubmissionRow& row : timeline.submissions) {
    const std::string& name = timeline.fragments[row.fragment];
    if (name.starts_with("optimizer")) continue;
    Pass& pass = passes[row.sequence];
    pass.forward = name.starts_with("forward");
    pass.microbatch = row.microbatch;
    measured.stages[row.rank_class].push_back(pass);
  }
  const Fabric& fabric = job.scenario.cluster->fabric;
  measured.nic = fabric.capacity({WireKind::kNicOut, 0}).value;
  measured.border = fabric.capacity({WireKind::kRegionLink, 1}).value;
  measured.replicas = job.training->layout().ranks / kStages;
  return measured;
}

// When the first stage has computed its last pass, if messages over the border take `delay` more. A pass
// starts when the one before it on its stage has ended and its message has come, and takes what it took; its
// message leaves when it did, counted from the pass's end, and none overtakes another.
double last_pass_seconds(const MeasuredRun& run, double delay) {
  std::vector<std::size_t> next(kStages, 0);
  std::vector<double> free(kStages, 0), ended(kStages, 0);  // now; as it was measured
  std::map<std::pair<int, int>, double> forward, backward;  // by stage that receives and microbatch
  std::vector<double> line_forward(kStages, 0), line_backward(kStages, 0);
  for (bool moved = true; moved;) {
    moved = false;
    for (int stage = 0; stage < kStages; ++stage) {
      if (next[stage] == run.stages[stage].size()) continue;
      const Pass& pass = run.stages[stage][next[stage]];
      const bool receives = pass.forward ? stage > 0 : stage < kStages - 1;
      auto& messages = pass.forward ? forward : backward;
      const auto message = messages.find({stage, pass.microbatch});
      if (receives && message == messages.end()) continue;
      const double start = std::max(free[stage], receives ? message->second : 0);
      const double measured_start = std::max(ended[stage], receives ? pass.received : 0);
      free[stage] = start + (pass.end - measured_start);
      ended[stage] = pass.end;
      if (pass.arrived > 0) {
        double& line = pass.forward ? line_forward[stage] : line_backward[stage];
        const bool crosses = stage == (pass.forward ? kBorder : kBorder + 1);
        line = std::max(line, free[stage] + (pass.sent - pass.end)) + (pass.arrived - pass.sent) +
               (crosses ? delay : 0);
        messages[{stage + (pass.forward ? 1 : -1), pass.microbatch}] = line;
      }
      ++next[stage];
      moved = true;
    }
  }
  return free[0];
}

// The first stage computes last; then its embedding is reduced with the last stage's, over the border once to
// and once fro, half of it each time.
double added_seconds(const MeasuredRun& near, double latency, double border) {
  const auto transfer = [&](double bytes) {
    return std::max(bytes / near.nic, bytes * near.replicas / border) - bytes / near.nic;
  };
  const double delay = latency + transfer(near.message);
  return last_pass_seconds(near, delay) - last_pass_seconds(near, 0) + 2 * latency + transfer(near.embedding);
}

// Of the messages that cross the border, in both directions.
double mean_crossing(const MeasuredRun& run) {
  double sum = 0;
  int count = 0;
  for (const int stage : {kBorder, kBorder + 1})
    for (const Pass& pass : run.stages[stage]) {
      if (pass.forward != (stage == kBorder)) continue;
      sum += pass.arrived - pass.sent;
      ++count;
    }
  return sum / count;
}

}  // namespace

TEST_CASE("uneven stages hide crossings of a border as far as the slowest cycle leaves slack") {
  constexpr double kLatency = 150e-6;  // 30 km at 5 ns a metre
  const std::string wide = "1000000 Tb/s", narrow = "25.6 Tb/s";
  const MeasuredRun near = run("0 km", wide, NetworkDetail::kAlphaBeta);
  REQUIRE(last_pass_seconds(near, 0) == Approx(near.stages[0].back().end).epsilon(1e-12));
  // The critical path crosses 22 times: twice in filling and draining, twice in each of nine turns of a cycle
  // over stages on both sides that are all but equal, and twice with the embedding.
  const double far = run("30 km", wide, NetworkDetail::kAlphaBeta).seconds - near.seconds;
  CHECK(added_seconds(near, kLatency, 1e17) == Approx(22 * kLatency).epsilon(1e-3));
  CHECK(far == Approx(added_seconds(near, kLatency, 1e17)).epsilon(2e-3));
  const MeasuredRun both = run("30 km", narrow, NetworkDetail::kAlphaBeta);
  CHECK(both.seconds - near.seconds == Approx(added_seconds(near, kLatency, both.border)).epsilon(0.02));
}

// Messages that come later meet other tokens: from 30 to 60 km that adds 1 to 14 ms to a step of 21 s, below
// it next to nothing (10, 20 and 25 km add 1.0, 2.1 and 2.8 ms).
TEST_CASE("where messages share NICs with experts' tokens a border adds what it adds alone but for that") {
  const MeasuredRun near = run("0 km", "1000000 Tb/s", NetworkDetail::kFluid);
  for (const auto& [distance, latency] : {std::pair("10 km", 50e-6), std::pair("20 km", 100e-6)}) {
    const double far = run(distance, "1000000 Tb/s", NetworkDetail::kFluid).seconds - near.seconds;
    INFO(distance);
    CHECK(far == Approx(added_seconds(near, latency, 1e17)).epsilon(0.08));
  }
  const double far = run("30 km", "1000000 Tb/s", NetworkDetail::kFluid).seconds - near.seconds;
  CHECK(far == Approx(added_seconds(near, 150e-6, 1e17)).margin(1e-4 * near.seconds));
}

// In a queue of their own messages take the NIC whole, or as much of it as the border lets through, and every
// crossing costs what is derived: 150 us, and its bytes at 23 GB/s instead of 46. The experts' tokens wait.
TEST_CASE("messages before tokens cross a border for its latency and its capacity alone") {
  const MeasuredRun near = run("0 km", "1000000 Tb/s", NetworkDetail::kFluid, "1");
  const MeasuredRun far = run("30 km", "25.6 Tb/s", NetworkDetail::kFluid, "1");
  const double capacity = near.message * (far.replicas / far.border - 1 / near.nic);
  CHECK(capacity == Approx(1.277e-3).epsilon(1e-3));
  CHECK(mean_crossing(far) - mean_crossing(near) == Approx(150e-6 + capacity).epsilon(0.02));
}
