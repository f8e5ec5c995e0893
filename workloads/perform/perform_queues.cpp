#include "workloads/perform/perform_queues.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "hw/error.h"
#include "workloads/cluster/queue/queue_figures.h"
#include "workloads/cluster/queue/queue_timeline.h"
#include "workloads/perform/job_step.h"
#include "workloads/perform/shared_links.h"
#include "workloads/perform/traffic_between_nodes.h"
#include "workloads/progress_bar.h"
#include "workloads/report/report.h"

namespace moebius {

namespace {

// What the step of a shape, or a replica of it, takes by itself.
ShapeStep simulate(Job& job, const StartExecutor& start) {
  const Outcome outcome = perform(job, start, {.wants_spans = false, .quiet = true});
  ShapeStep step;
  if (job.training) {
    const JobStep whole = job_step(outcome.report);
    step.seconds = whole.seconds;
    step.tokens_per_s = whole.tokens / whole.seconds;
    step.between = traffic_between_nodes(outcome.report, job.layout(), whole.seconds / whole.updates);
    for (const GroupTraffic& traffic : step.between) {
      step.exposed += traffic.exposed;
      step.network = std::min(1.0, step.network + traffic.busy);
    }
    step.computing = std::min(1.0, whole.computing / whole.seconds);
  } else {
    step.tokens_per_s = outcome.report.serving->output_tokens_per_s;
    step.seconds = step.tokens_per_s > 0 ? 1e6 / step.tokens_per_s : 0;
  }
  return step;
}

struct Simulated {
  ShapeSteps steps;
  std::vector<SimulatedShape> rows;
  std::vector<ShapeTraffic> traffic;  // by shape
};

// A size that a pool cannot hold, or whose memory or batch does not fit, does not run there: that is an
// answer.
ShapeStep step_on(Job& job, const StartExecutor& start, int shape, int pool, int cards,
                  ShapeTraffic& traffic) {
  const CardPool& of = job.scenario.operations->queueing->pools[pool];
  ShapeStep step;
  if (!of.stands_whole(cards)) {
    step.why = "no equal part of a node and no number of whole nodes of the pool";
    return step;
  }
  if (cards > of.own_cards()) {
    step.why = fmt::format("more than the {} of the pool", of.own_cards());
    return step;
  }
  try {
    const std::unique_ptr<Job> alone = job.read_shape(shape, pool, cards);
    if (alone->scenario.model.experts.routed > 0) traffic.operation = OpKind::kAllToAll;
    return simulate(*alone, start);
  } catch (const Error& error) {
    step.why = error.what();
    return step;
  }
}

Simulated simulate_shapes(Job& job, const StartExecutor& start, bool quiet) {
  const QueuePlan& plan = *job.scenario.operations->queueing;
  Simulated all{.steps = ShapeSteps(plan), .rows = {}, .traffic = {}};
  double count = 0, done = 0;
  for (const JobShape& shape : plan.shapes)
    count += static_cast<double>(shape.pools.size() * shape.sizes.size());
  ProgressBar bar;
  for (std::size_t s = 0; s < plan.shapes.size(); ++s) {
    const JobShape& shape = plan.shapes[s];
    all.traffic.push_back({OpKind::kAllReduce, plan.queues[shape.queue].network});
    for (const int pool : shape.pools) {
      for (std::size_t size = 0; size < shape.sizes.size(); ++size) {
        ShapeStep step = step_on(job, start, static_cast<int>(s), pool, shape.sizes[size], all.traffic[s]);
        all.rows.push_back({shape.name, plan.pools[pool].name, shape.sizes[size], step});
        all.steps.at(static_cast<int>(s), pool, static_cast<int>(size)) = std::move(step);
        if (!quiet) bar.show(++done / count);
      }
    }
    for (std::size_t size = 0; size < shape.sizes.size(); ++size) {
      if (all.steps.reference(shape, static_cast<int>(s), static_cast<int>(size)) < 0)
        throw run_error(
            fmt::format("{} on {} cards runs on no pool: {}", shape.name, shape.sizes[size],
                        all.steps.at(static_cast<int>(s), shape.pools.back(), static_cast<int>(size)).why));
    }
  }
  return all;
}

}  // namespace

Outcome perform_queues(Job& job, const StartExecutor& start, const Hooks& hooks) {
  const auto started = std::chrono::steady_clock::now();
  Outcome outcome = outcome_of_events(job);
  RunFacts& facts = outcome.report.facts;
  const OperationsScenario& operations = *job.scenario.operations;
  Simulated shapes = simulate_shapes(job, start, hooks.quiet);
  const QueueInputs inputs{.cluster = operations.plan, .plan = *operations.queueing, .steps = shapes.steps};
  // From here nothing is simulated but events.
  auto figures = std::make_shared<QueueFigures>(queue_figures(inputs, job.scenario.seed));
  figures->simulated = std::move(shapes.rows);
  figures->beside = services_beside_training(job, start, shapes.steps, shapes.traffic);
  if (hooks.wants_spans) figures->course = queue_timeline(inputs, first_seed(job.scenario.seed));
  outcome.report.cluster.emplace();
  outcome.report.queues = std::move(figures);
  facts.provenance.emplace_back("moebius", version_text());
  add_process_use(facts, started);
  return outcome;
}

}  // namespace moebius
