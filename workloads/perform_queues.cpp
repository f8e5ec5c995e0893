#include "workloads/perform_queues.h"

#include <algorithm>
#include <chrono>
#include <map>

#include <fmt/format.h>

#include "hw/error.h"
#include "workloads/cluster/queue/queue_figures.h"
#include "workloads/cluster/queue/queue_timeline.h"
#include "workloads/progress_bar.h"
#include "workloads/report/report.h"

namespace moebius {

namespace {

// What the step of a shape, or a replica of it, takes by itself.
ShapeStep simulate(Job& job, const StartExecutor& start) {
  const Outcome outcome = perform(job, start, {.wants_spans = false, .quiet = true});
  const std::string json = report_json(outcome.report);
  const auto value = [&](const char* path) { return report_value(json, path).value_or(0); };
  ShapeStep step;
  if (job.training) {
    step.seconds = value("step_time_s");
    step.tokens_per_s = value("tokens_per_s");
    step.exposed = value("breakdown.exposed_communication_s") / step.seconds;
    step.network = std::min(1.0, step.exposed + value("breakdown.hidden_communication_s") / step.seconds);
    step.computing = std::min(1.0, value("breakdown.compute_s") / step.seconds);
  } else {
    step.tokens_per_s = value("output_tokens_per_s");
    step.seconds = step.tokens_per_s > 0 ? 1e6 / step.tokens_per_s : 0;
  }
  return step;
}

// What traffic a shape's jobs send between their leaves.
struct Traffic {
  OpKind operation = OpKind::kAllReduce;
  int queue = 0;
  auto operator<=>(const Traffic&) const = default;
};

struct Simulated {
  ShapeSteps steps;
  std::vector<SimulatedShape> rows;
  std::vector<Traffic> traffic;  // by shape
};

// A size that a pool cannot hold, or whose memory or batch does not fit, does not run there: that is an
// answer.
ShapeStep step_on(Job& job, const StartExecutor& start, int shape, int pool, int cards, Traffic& traffic) {
  const CardPool& of = job.scenario.operations->queueing->pools[pool];
  const bool whole = cards < of.cards ? of.cards % cards == 0 : cards % of.cards == 0;
  ShapeStep step;
  if (!whole || cards > std::int64_t{of.nodes - of.spares} * of.cards) {
    step.why = "no equal part of a node and no number of whole nodes of the pool";
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
        throw run_error(fmt::format("{} on {} cards runs on no pool: {}", shape.name, shape.sizes[size],
                                    all.rows.back().step.why));
    }
  }
  return all;
}

// Two jobs that each have half of the nodes of two leaves: how much longer the first's operation takes beside
// the second's, which goes on all the time.
double rivalry_of(const Job& job, const StartExecutor& start, Traffic one, Traffic other) {
  const QueuePlan& plan = *job.scenario.operations->queueing;
  const auto largest =
      std::max_element(plan.pools.begin(), plan.pools.end(),
                       [](const CardPool& a, const CardPool& b) { return a.all_cards() < b.all_cards(); });
  const int per_leaf = largest->nodes_per_leaf, half = per_leaf / 2;
  if (half == 0 || largest->nodes < 2 * per_leaf) return 1;
  const Cluster& whole = *job.scenario.cluster;
  Pool pool = whole.pools[static_cast<std::size_t>(largest - plan.pools.begin())];
  pool.nodes = 2 * per_leaf;
  const auto tenant = [&](const char* name, Traffic traffic, int first) {
    Tenant of;
    of.name = name;
    of.operation = traffic.operation;
    of.algorithm = traffic.operation == OpKind::kAllToAll ? Algorithm::kDirect : Algorithm::kRing;
    of.bytes = {64.0 * (1 << 20)};
    of.ranks = 2 * half * largest->cards;
    of.block = half * largest->cards;
    of.stride = per_leaf * largest->cards;
    of.first = first;
    of.queue = traffic.queue;
    return of;
  };
  Job both;
  both.scenario.kind = ScenarioKind::kCollective;
  both.scenario.file = job.scenario.file;
  both.scenario.name = "two jobs on one leaf";
  both.scenario.cluster = build_cluster({pool}, whole.fabric.spec(), Place{job.scenario.file, "/cluster", 0});
  both.scenario.cluster->collectives = whole.collectives;
  CollectiveWorkload& work = both.scenario.collective;
  work.tenants = {tenant("one", one, 0), tenant("other", other, half * largest->cards)};
  work.tenants[1].bytes = {1024.0 * (1 << 20)};
  work.ranks = work.tenants[0].ranks + work.tenants[1].ranks;
  work.dtype = DType::kBf16;
  both.scenario.timeline.detail = Detail::kNone;
  both.is_phase = true;
  both.tenants = std::make_unique<TenantsRun>(work);
  const Outcome outcome = perform(both, start, {.wants_spans = false, .quiet = true});
  return std::max(1.0, outcome.report.tenants.at(0).slowdown());
}

std::vector<double> rivalries(const Job& job, const StartExecutor& start,
                              const std::vector<Traffic>& traffic) {
  std::map<std::pair<Traffic, Traffic>, double> known;
  std::vector<double> all;
  for (const Traffic& one : traffic) {
    for (const Traffic& other : traffic) {
      const auto [at, is_new] = known.try_emplace({one, other}, 1);
      if (is_new) at->second = rivalry_of(job, start, one, other);
      all.push_back(at->second);
    }
  }
  return all;
}

}  // namespace

Outcome perform_queues(Job& job, const StartExecutor& start, const Hooks& hooks) {
  const auto started = std::chrono::steady_clock::now();
  Outcome outcome;
  outcome.report.scenario = &job.scenario;
  RunFacts& facts = outcome.report.facts;
  facts.executor = "sim";
  facts.detail = "events";
  facts.on_cluster = true;
  const OperationsScenario& operations = *job.scenario.operations;
  Simulated shapes = simulate_shapes(job, start, hooks.quiet);
  const QueueInputs inputs{.cluster = operations.plan,
                           .plan = *operations.queueing,
                           .steps = shapes.steps,
                           .rivalry = rivalries(job, start, shapes.traffic)};
  // From here nothing is simulated but events.
  auto figures = std::make_shared<QueueFigures>(queue_figures(inputs, job.scenario.seed));
  figures->simulated = std::move(shapes.rows);
  if (hooks.wants_spans) figures->course = queue_timeline(inputs, first_seed(job.scenario.seed));
  outcome.report.cluster.emplace();
  outcome.report.queues = std::move(figures);
  facts.provenance.emplace_back("moebius", kVersion);
  add_process_use(facts, started);
  return outcome;
}

}  // namespace moebius
