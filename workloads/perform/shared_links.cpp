#include "workloads/perform/shared_links.h"

#include <algorithm>

#include "workloads/report/report.h"

namespace moebius {

namespace {

constexpr int kHighest = 7;  // of the links' queues

struct SizeOfShape {
  int shape = 0, pool = 0, cards = 0;
};

// Two jobs that each have half of the nodes of two leaves: how much longer the first's operation takes beside
// the second's, which goes on all the time.
double rivalry_of(const Job& job, const StartExecutor& start, ShapeTraffic one, ShapeTraffic other) {
  const QueuePlan& plan = *job.scenario.operations->queueing;
  const auto largest =
      std::max_element(plan.pools.begin(), plan.pools.end(),
                       [](const CardPool& a, const CardPool& b) { return a.all_cards() < b.all_cards(); });
  const int per_leaf = largest->nodes_per_leaf, half = per_leaf / 2;
  if (half == 0 || largest->nodes < 2 * per_leaf) return 1;
  const Cluster& whole = *job.scenario.cluster;
  Pool pool = whole.pools[static_cast<std::size_t>(largest - plan.pools.begin())];
  pool.nodes = 2 * per_leaf;
  const auto tenant = [&](const char* name, ShapeTraffic traffic, int first) {
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

// The service with so much of its network.
BesideFigures tokens_with(const Job& job, const StartExecutor& start, SizeOfShape at, double network) {
  const std::unique_ptr<Job> alone = job.read_shape(at.shape, at.pool, at.cards);
  Scenario& scenario = alone->scenario;
  if (network < 1) {
    FabricSpec spec = scenario.cluster->fabric.spec();
    spec.transport_efficiency *= network;  // of the NICs, whether the fabric or the chip gives their rate
    Cluster& cluster = *scenario.cluster;
    cluster.fabric = build_cluster(cluster.pools, spec, Place{scenario.file, "/cluster", 0}).fabric;
  }
  const Outcome outcome = perform(*alone, start, {.wants_spans = false, .quiet = true});
  const std::string json = report_json(outcome.report);
  return {network, report_value(json, "tpot_s.p99").value_or(0), report_value(json, "tpot_s.p50").value_or(0),
          report_value(json, "output_tokens_per_s").value_or(0)};
}

}  // namespace

std::vector<ServiceBeside> services_beside_training(const Job& job, const StartExecutor& start,
                                                    const ShapeSteps& steps,
                                                    const std::vector<ShapeTraffic>& traffic) {
  const QueuePlan& plan = *job.scenario.operations->queueing;
  std::vector<ServiceBeside> rows;
  for (int s = 0; s < static_cast<int>(plan.shapes.size()); ++s) {
    const JobShape& shape = plan.shapes[s];
    const int pool = steps.reference(shape, s, 0);
    if (shape.kind != JobClass::kInference || shape.sizes[0] <= plan.pools[pool].cards) continue;
    int neighbour = -1;
    double busy = 0;
    for (int t = 0; t < static_cast<int>(plan.shapes.size()); ++t) {
      const JobShape& other = plan.shapes[t];
      for (int size = 0; other.kind != JobClass::kInference && size < static_cast<int>(other.sizes.size());
           ++size) {
        const int on = steps.reference(other, t, size);
        if (on >= 0 && steps.at(t, on, size).network > busy)
          busy = steps.at(t, on, size).network, neighbour = t;
      }
    }
    if (neighbour < 0) continue;
    const ShapeTraffic of = traffic[s], by = traffic[neighbour];
    const auto left = [&](int queue, int neighbours) {
      const double rivalry = rivalry_of(job, start, {of.operation, queue}, {by.operation, neighbours});
      return network_left(busy, rivalry);
    };
    const SizeOfShape at{s, pool, shape.sizes[0]};
    ServiceBeside row;
    row.shape = shape.name;
    row.neighbour = plan.shapes[neighbour].name;
    row.busy = busy;
    row.alone = tokens_with(job, start, at, 1);
    row.one_queue = tokens_with(job, start, at, left(by.queue, by.queue));
    row.own_queue = tokens_with(job, start, at, left(kHighest, std::min(by.queue, kHighest - 1)));
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace moebius
