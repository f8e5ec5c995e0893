// What an iteration of a service, or a step of training, takes on boards at their power limit: as much as
// when it is repeated, whatever was timed before it.
#include <algorithm>
#include <random>

#include "tests/laws/timed_iterations.h"
#include "workloads/schedule/steady_timer.h"
#include "workloads/set_option.h"

#include "hw/error.h"
#include "tests/catch.h"

namespace moebius {
namespace {

// Products of BF16 on H100 draw more than a board may.
Scenario scenario_of(const Library& library, const std::string& model = "qwen3-8b") {
  Document document = parse_document(
      R"({"moebius": 1, "kind": "serving", "name": "steady", "seed": 1, "model": "qwen3-8b",
        "cluster": {"pools": [{"name": "a", "accelerator": "h100-sxm", "node": "hgx-8", "nodes": 1}],
                    "fabric": {"type": "rail-optimised-clos", "nic": "400 Gb/s"}},
        "plan": {"prefill": {"attention": {"dp": 8, "tp": 1}}, "decode": {"attention": {"dp": 8, "tp": 1}},
                 "cache": {"block_tokens": 64}},
        "workload": {"trace": {"generator": "conversation", "requests": 30, "rate": 20, "context_tokens": 4096}}})",
      "steady");
  set_at_pointer(document, "/model", '"' + model + '"');
  return read_scenario(document, library.hardware, library.models);
}

const std::vector<StepPoint> kPoints{{8192, 4096, 0, 0, 1},   {256, 16, 0, 0, 1},   {0, 0, 64, 4096, 1},
                                     {1024, 256, 64, 256, 1}, {4096, 256, 0, 0, 1}, {64, 16, 0, 0, 1}};

TEST_CASE("an iteration takes as long timed first as timed after others") {
  const Library library("");
  for (const char* model : {"qwen3-8b", "qwen3-30b-a3b"}) {
    const Scenario scenario = scenario_of(library, model);
    std::vector<double> alone;
    for (int point = 0; point < 6; ++point)
      alone.push_back(TimedIterations(scenario).seconds(kPoints[point]));
    std::mt19937 random(1);
    for (int order = 0; order < 4; ++order) {
      std::vector<int> points{0, 1, 2, 3, 4, 5};
      std::shuffle(points.begin(), points.end(), random);
      TimedIterations timed(scenario);
      for (const int point : points) {
        INFO(model << " point " << point);
        CHECK(timed.seconds(kPoints[point]) == alone[point]);
      }
    }
  }
}

// Run over and over on an executor that is told nothing, for ten times what its boards remember.
TEST_CASE("an iteration takes what the last of many such takes") {
  const Library library("");
  const Scenario scenario = scenario_of(library);
  ServicePool pool = service_pool(scenario, scenario.service.phases.front());
  const Layout& layout = pool.job->layout();
  const ServingJob job{.model = pool.job->scenario.model,
                       .plan = pool.job->scenario.serving,
                       .workload = pool.job->scenario.served,
                       .ranks_per_node = 8};
  const StartExecutor start = simulator(NetworkDetail::kFluid);
  int slower = 0;
  for (const StepPoint& point : kPoints) {
    Recorder steady_spans(layout, {.detail = Detail::kNone}), spans(layout, {.detail = Detail::kNone});
    StartedExecutor told = start(*pool.job, layout, steady_spans), untold = start(*pool.job, layout, spans);
    IterationTimer steady(job, layout, {*told.executor, told.clocks}, steady_spans);
    IterationTimer after_others(job, layout, *untold.executor, spans);
    const double first = after_others.seconds(point, {.all_layers = true});
    double last = first, spent = first;
    while (spent < 10 * 0.05) spent += last = after_others.seconds(point, {.all_layers = true});
    const double one = steady.seconds(point, {.all_layers = true});
    INFO(point.prefill_tokens << " tokens, " << point.decode_sequences << " sequences");
    CHECK(one == Approx(last).epsilon(1e-3));
    slower += last > 1.01 * first ? 1 : 0;
  }
  CHECK(slower > 0);  // some of them are at the limit, so that the clock matters
}

// Products of a step of 0.1 s that a board can only begin at full clock.
double step_seconds(const Library& library, int steps, int batch) {
  Document document = parse_document(
      R"({"moebius": 1, "kind": "training", "name": "steady", "seed": 1, "model": "qwen2.5-7b",
        "cluster": {"pools": [{"name": "a", "accelerator": "h200-sxm", "node": "hgx-8", "nodes": 1}],
                    "fabric": {"type": "rail-optimised-clos", "nic": "400 Gb/s"}},
        "plan": {"dp": {"degree": 1, "zero": 2}},
        "workload": {"steps": 1, "sequence_length": 4096, "global_batch": 2, "micro_batch": 1}})",
      "steady");
  apply_sets({"/model={\"base\":\"qwen2.5-7b\",\"layers\":4}", "/workload/steps=" + std::to_string(steps),
              "/workload/global_batch=" + std::to_string(batch)},
             document);
  Job job = read_job(std::move(document), {}, library);
  const Hooks hooks{.wants_spans = false, .quiet = true};
  const Outcome outcome = perform(job, simulator(NetworkDetail::kFluid), hooks);
  return outcome.report.metrics.makespan.seconds() / steps;
}

TEST_CASE("a step takes as long alone as among many") {
  const Library library("");
  const double alone = step_seconds(library, 1, 2);
  CHECK(step_seconds(library, 10, 2) == Approx(alone).epsilon(2e-3));
  CHECK(step_seconds(library, 40, 2) == Approx(alone).epsilon(2e-3));
  CHECK(step_seconds(library, 1, 4) < 2 * alone);  // but for what is done once a step
}

}  // namespace
}  // namespace moebius
