// The rows of the efficiency matrix that are collectives and messages: each one a collective scenario of two
// nodes.
#include <algorithm>

#include <fmt/format.h>

#include "hw/error.h"
#include "workloads/study/mixed/efficiency_matrix.h"

namespace moebius {
namespace {

struct NetworkClass {
  std::string_view op;
  std::string_view operation;
  std::string_view size;
  double bytes;
  bool across;  // both nodes
};

constexpr NetworkClass kClasses[] = {
    {"all-reduce in a node", "all-reduce", "1 GB", 1e9, false},
    {"all-reduce in a node, small", "all-reduce", "1 MB", 1e6, false},
    {"all-gather in a node", "all-gather", "1 GB", 1e9, false},
    {"all-to-all in a node", "all-to-all", "256 MB", 256e6, false},
    {"all-reduce of two nodes", "all-reduce", "1 GB", 1e9, true},
    {"all-to-all of two nodes", "all-to-all", "256 MB", 256e6, true},
};

// On the pool and the fabric as they stand, whatever was changed of the catalog's.
Job collective_job(const NetworkClass& of, const Pool& pool, const FabricSpec& fabric,
                   const Library& library) {
  const int ranks = pool.node.accelerators * (of.across ? 2 : 1);
  const std::string text = fmt::format(
      R"({{"moebius": 1, "kind": "collective", "name": "{}",
  "cluster": {{"pools": [{{"name": "all", "accelerator": "{}", "node": "{}", "nodes": 2}}], "fabric": {{"type": "{}"}}}},
  "workload": {{"operation": "{}", "bytes": "{}", "ranks": {}}}, "timeline": {{"detail": "none"}}}})",
      of.op, pool.accelerator.id, pool.node.id, fabric.type, of.operation, of.size, ranks);
  Job job =
      read_job(parse_document(text, fmt::format("<{} of {}>", of.op, pool.accelerator.id)), {}, library);
  Pool two = pool;
  two.nodes = 2;
  two.region.clear();
  FabricSpec spec = fabric;
  spec.by_host.clear();  // between other pools
  const CollectiveSource collectives = job.scenario.cluster->collectives;
  job.scenario.cluster =
      build_cluster({std::move(two)}, std::move(spec), Place{job.scenario.file, "/cluster", 0});
  job.scenario.cluster->collectives = collectives;
  if (job.scenario.cluster->by_ports()) job.scenario.collective.fold = false;
  job.collective = std::make_unique<CollectiveRun>(
      job.scenario.collective,
      CollectivePlace{pool.node.accelerators, {2 * pool.node.accelerators}, &job.scenario.cluster->fabric});
  return job;
}

// What wires of a device must carry at least, each way, and how fast they are.
struct Way {
  EfficiencyKind kind;
  double bytes = 0, rate = 0;
  double seconds() const { return rate > 0 ? bytes / rate : 0; }
};

// All-reduce among n of a node: 2(n-1)/n of the buffer, where the switch reduces (n+1)/n; all-gather (n-1)/n;
// of an all-to-all the parts of the others of the node.
double link_bytes(const NetworkClass& of, int ranks, bool switch_reduces) {
  const double near = of.across ? ranks / 2.0 : ranks, others = (near - 1) / near;
  if (of.operation == "all-reduce")
    return of.bytes * (switch_reduces ? std::min(2 * others, 1 + 1 / near) : 2 * others);
  return of.operation == "all-to-all" ? of.bytes * (near - 1) / ranks : of.bytes * others;
}

// Between two nodes the buffer once by the n/2 NICs of each; of an all-to-all n/2 parts of n.
double nic_bytes(const NetworkClass& of, int ranks) {
  if (!of.across) return 0;
  return of.operation == "all-reduce" ? of.bytes / (ranks / 2.0) : of.bytes / 2;
}

}  // namespace

void add_network(const Pool& pool, const FabricSpec& fabric, const Library& library,
                 const StartExecutor& start, EfficiencyMatrix& matrix) {
  matrix.node = pool.node.id;
  const Accelerator& chip = pool.accelerator;
  if (pool.node.nics == 0 || nic_line_rate(pool, fabric).value <= 0)
    throw input_error(fmt::format(
        "{}: no NIC is known of it in node {}: give it \"nic\", or choose another --node or --fabric", chip.id,
        pool.node.id));
  const bool linked = chip.link_rate.value > 0 && pool.node.scale_up != ScaleUp::kPcie;
  for (const NetworkClass& of : kClasses) {
    Job job = collective_job(of, pool, fabric, library);
    const Outcome outcome = perform(job, start, {.wants_spans = false, .quiet = true});
    const double seconds = outcome.report.metrics.makespan.seconds();
    const int ranks = job.scenario.ranks();
    // A node's NICs together, for each of its accelerators.
    const ByteRate each = nic_line_rate(pool, fabric);
    const double nic = each.value * pool.node.nics / pool.node.accelerators;
    const bool reduces = job.scenario.cluster->fabric.reduces(0);
    const double line = linked ? chip.link_rate.value : chip.host_rate.value;
    const Way by_link{EfficiencyKind::kLink, link_bytes(of, ranks, reduces), line};
    const Way by_nic{EfficiencyKind::kNic, nic_bytes(of, ranks), nic};
    const Way& way = by_nic.seconds() > by_link.seconds() ? by_nic : by_link;
    matrix.rows.push_back({.op = std::string(of.op),
                           .shape = std::string(of.size),
                           .kind = way.kind,
                           .rate = way.bytes / seconds,
                           .peak = way.rate,
                           .seconds = seconds,
                           .source = "simulated"});
  }
}

}  // namespace moebius
