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

Job collective_job(const NetworkClass& of, const Pool& pool, const std::string& fabric,
                   const Library& library) {
  const int ranks = pool.node.accelerators * (of.across ? 2 : 1);
  const std::string text = fmt::format(
      R"({{"moebius": 1, "kind": "collective", "name": "{}",
  "cluster": {{"pools": [{{"name": "all", "accelerator": "{}", "node": "{}", "nodes": 2}}], "fabric": {{"type": "{}"}}}},
  "workload": {{"operation": "{}", "bytes": "{}", "ranks": {}}}, "timeline": {{"detail": "none"}}}})",
      of.op, pool.accelerator.id, pool.node.id, fabric, of.operation, of.size, ranks);
  return read_job(parse_document(text, fmt::format("<{} of {}>", of.op, pool.accelerator.id)), {}, library);
}

// Bytes that the busiest wires of a device must carry, each way, by the algorithm that needs the fewest: of
// an all-reduce in a node 2(n-1)/n of the buffer, where the switch reduces (n+1)/n; between two nodes each
// sends its own sum or half of the result and half of its own, the buffer once by its n/2 NICs, whatever the
// algorithm. All-gather passes (n-1)/n; of an all-to-all of two nodes n/2 parts of n leave the node.
double least_bytes(const NetworkClass& of, int ranks, bool switch_reduces) {
  const double others = (ranks - 1.0) / ranks;
  if (of.operation == "all-reduce") {
    if (of.across) return of.bytes / (ranks / 2.0);
    return of.bytes * (switch_reduces ? std::min(2 * others, 1 + 1.0 / ranks) : 2 * others);
  }
  if (of.across) return of.bytes / 2;
  return of.bytes * others;
}

}  // namespace

void add_network(const Pool& pool, const std::string& fabric, const Library& library,
                 const StartExecutor& start, EfficiencyMatrix& matrix) {
  matrix.node = pool.node.id;
  const Accelerator& chip = pool.accelerator;
  const bool linked = chip.link_rate.value > 0 && pool.node.scale_up != ScaleUp::kPcie;
  for (const NetworkClass& of : kClasses) {
    Job job = collective_job(of, pool, fabric, library);
    const Outcome outcome = perform(job, start, {.wants_spans = false, .quiet = true});
    const double seconds = outcome.report.metrics.makespan.seconds();
    const int ranks = job.scenario.ranks();
    // A node's NICs together, for each of its accelerators.
    const double nic = chip.nic_rate.value * pool.node.nics / pool.node.accelerators;
    const bool reduces = job.scenario.cluster->fabric.reduces(0);
    const double line = linked ? chip.link_rate.value : chip.host_rate.value;
    matrix.rows.push_back({.op = std::string(of.op),
                           .shape = std::string(of.size),
                           .kind = of.across ? EfficiencyKind::kNic : EfficiencyKind::kLink,
                           .rate = least_bytes(of, ranks, reduces) / seconds,
                           .peak = of.across ? nic : line,
                           .seconds = seconds,
                           .source = "simulated"});
  }
}

}  // namespace moebius
