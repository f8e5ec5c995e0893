// Small clusters with round numbers, layouts and fragments of a few ops, and a run of them: what the laws are
// tested on.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "sim/sim_executor.h"
#include "workloads/cost/cost_source.h"

namespace moebius {

// Rates are achieved ones: every efficiency is 1.
struct World {
  int nodes = 1;
  int per_node = 8;
  double link = 100e9;  // scale-up, bytes per second, device and direction
  double nic = 50e9;    // bytes per second, device and direction
  Time link_latency{1'000};
  Time host_latency{2'000};
  Time hop_latency{500};  // each switch
  ScaleUp scale_up = ScaleUp::kSwitch;
  int leaf_ports = 1024;  // one leaf for each rail, unless smaller
  double oversubscription = 1;
  int cores = 100;
  int general_cores = 0;
  bool independent_engines = false;
  double memory_rate = 1e12;
};
Cluster make_cluster(const World& world);

// Cost of a kind: seconds at all cores of the chip, inversely proportional to the cores held; bytes of memory
// traffic. Kinds with a row count cost `seconds` for each row of the shape when `per_row` is set.
struct KindCost {
  double seconds = 0;
  double memory_bytes = 0;
  bool per_row = false;
};

class FixedCost : public CostSource {
 public:
  FixedCost(std::map<OpKind, KindCost> kinds, int cores) : kinds_(std::move(kinds)), cores_(cores) {}
  Cost cost(const CostQuery& query) const override;
  std::string description() const override { return "fixed"; }

 private:
  std::map<OpKind, KindCost> kinds_;
  int cores_;
};

// `ranks` ranks on the first devices. All are the world group; expert groups are `expert` consecutive ranks.
// Rank r has the next group {r, r + stage} and the previous group {r - stage, r} where `stage` is not zero
// and the ranks exist.
struct LayoutSpec {
  int ranks = 1;
  int expert = 0;
  int stage = 0;
  bool fold = false;  // one class; with stages, one for each
};
Layout make_layout(const LayoutSpec& spec);

Op compute_op(OpKind kind, int units = 0);
Op communication_op(OpKind kind, double bytes, Algorithm algorithm = Algorithm::kRing,
                    GroupRole group = GroupRole::kWorld);

// Fragments with dependencies by op index.
struct OpWith {
  Op op;
  std::vector<std::int32_t> after = {};
};
FragmentPtr make_fragment(std::vector<OpWith> ops, std::vector<RoutePtr> routes = {});

struct Outcome {
  Time end;
  std::vector<Span> spans;  // as they ended
  Metrics metrics;
  double seconds() const { return end.seconds(); }
  // The one span of an op; CHECKs that there is one.
  const Span& span(int sequence, int op = 0) const;
};

struct Run {
  const Cluster& cluster;
  const Layout& layout;
  std::vector<Submission> submissions;  // sequences are set by simulate()
  std::map<OpKind, KindCost> costs = {};
  SimOptions options = {};
};
Outcome simulate(const Run& run);

// The fragment once for each class.
std::vector<Submission> on_all_classes(const Layout& layout, const FragmentPtr& fragment);

}  // namespace moebius
