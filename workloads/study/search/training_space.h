// The plans of a training scenario that a search looks at: degrees, pipeline and microbatch, each with every
// bundle of switches. Degrees are set in numbers, bundles are read by the scenario's own reader, and whether
// a plan is legal its checks say.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "hw/document.h"
#include "workloads/job.h"
#include "workloads/study/search/space_file.h"
#include "workloads/study/study.h"

namespace moebius {

struct PlanDegrees {
  int tp = 1, dense_tp = 1, expert_tp = 1;
  bool rows_cut = true;  // sequence parallelism, with a tp above 1
  bool tensor_overlap = false;
  int pp = 1;
  PipelineKind schedule = PipelineKind::k1F1B;
  int chunks = 1;
  int ep = 1, cp = 1;
  int nodes_per_token = -1;  // below 0: as the scenario says, where the ranks of a group stand on as many
  int dp = 0;                // 0: all devices
  int micro_batch = 1;
};

// Switches that are independent of degrees.
struct PlanBundle {
  std::vector<Assignment> settings;
  TrainingPlan plan;  // with every degree 1
};

// Degrees with at least one legal bundle.
struct PlanGroup {
  PlanDegrees degrees;
  std::int32_t legal = 0;  // bundles
};

class TrainingSpace {
 public:
  // `base` is a training scenario. Values that `given` names take the place of the space's own:
  // - tensor-parallel degrees of attention: numbers that divide the devices of a node, dense MLPs the same,
  //   experts likewise, with sequence parallelism and without; pipeline ranks up to the number of layers,
  //   each schedule, 2 to 8 stages a rank of "interleaved"; expert-parallel degrees that divide the experts;
  //   context degrees 1 to 16; 1 to 8 sequences a microbatch; all devices, or as many as a data-parallel
  //   degree that is given comes to;
  // - zero, overlap of gradients, recomputation, offload, overlap of dispatch and combine, two batches.
  // Everything else is the scenario's own: number formats, kernels, how attention spreads over context ranks.
  TrainingSpace(Document base, const Library& library, const SpaceFile& given);

  const Scenario& scenario() const { return scenario_; }
  const std::vector<PlanBundle>& bundles() const { return bundles_; }
  // Every group, in the order of degrees; counts every legal plan once: bundles that differ in nothing that
  // these degrees have (zero without replicas, overlap without exchanges) are one.
  std::vector<PlanGroup> groups() const;
  // Degrees that go with the least demanding bundle go with a bundle whatever their size: what is asked of
  // both together is which of them are above 1 and which schedule there is.
  std::shared_ptr<const std::vector<int>> legal_bundles(const PlanDegrees& degrees) const;
  // Bundles that differ only in shards, state on the host and when gradients are reduced are of one variant;
  // those that differ besides in whether activations go to the host compute the same; those that differ only
  // in what is computed again, kept and overlapped, are of one kind. Numbers by bundle.
  const std::vector<int>& variants() const { return variants_; }
  const std::vector<int>& computed() const { return computed_; }
  const std::vector<int>& kinds() const { return kinds_; }

  // The plan as the reader would leave it; nothing when the scenario refuses it.
  struct Legal {
    bool legal = false;
    TrainingPlan plan;
    TrainingWorkload workload;
  };
  Legal plan_of(const PlanDegrees& degrees, int bundle) const;
  // What a document changes to say so.
  std::vector<Assignment> settings(const PlanDegrees& degrees, int bundle) const;
  Document document(const PlanDegrees& degrees, int bundle) const;
  // What the file of the space varies beside degrees and the space's own switches, in words; empty: nothing.
  std::string given_text(int bundle) const;
  const Document& base() const { return base_; }

 private:
  struct Choices;
  using Shape = std::array<int, 10>;
  Choices choices() const;
  Shape shape_of(const PlanDegrees& degrees) const;
  void number_bundles();
  bool divides(const PlanDegrees& degrees) const;
  bool has_replicas(const PlanDegrees& degrees) const;
  bool distinct(const PlanDegrees& degrees, const TrainingPlan& bundle) const;
  // To routed experts on other ranks, or between tensor-parallel ranks to shared ones, of which each has a
  // part.
  bool rows_travel(const PlanDegrees& d) const {
    return d.ep * d.expert_tp > 1 || (d.tp > 1 && scenario_.model.experts.shared_width > 0);
  }
  // With one microbatch nothing runs in pairs: two_batch says then at most what shared experts gather again.
  bool has_pairs(const PlanDegrees& d) const {
    const std::int64_t dp = d.dp > 0 ? d.dp : devices_ / (std::int64_t{d.tp} * d.cp * d.pp);
    const bool gathers = d.tp > 1 && scenario_.model.experts.shared_width > 0;
    return gathers || scenario_.training.global_batch > d.micro_batch * dp;
  }
  void read_bundles(const SpaceFile& given);
  void check_given(const SpaceFile& given) const;
  void number_extras(const std::set<std::string>& switches);
  void set_degrees(const PlanDegrees& degrees, TrainingPlan& plan) const;
  int nodes_per_token(const PlanDegrees& degrees) const;
  using Bundles = std::shared_ptr<const std::vector<int>>;
  Bundles legal_with(const PlanDegrees& degrees, int extra) const;
  Legal legal_plan(const PlanDegrees& degrees, const TrainingPlan& switches) const;

  std::unique_ptr<Scenario> take_scenario() const;
  Legal checked(const PlanDegrees& degrees, const TrainingPlan& switches, Scenario& scenario) const;

  Document base_;
  Scenario scenario_;  // as the base says
  std::optional<Algorithm> exchange_;  // of plans with experts on other ranks, which the base does not say
  SpaceFile given_;
  std::vector<std::string> shown_;  // pointers of given_text()
  int devices_ = 0, node_ = 1;
  std::vector<PlanBundle> bundles_;
  // What bundles have at the least: there a switch counts that changes nothing of some degrees.
  int least_zero_ = 0;
  bool sums_beside_ = false, exchanges_beside_ = false, one_by_one_ = false;
  // The least demanding bundle of each combination of what the file varies beside the space's own switches:
  // degrees that do not go with it go with none of that combination.
  std::vector<TrainingPlan> plain_;
  std::vector<int> extras_;  // by bundle: which of these it is of
  // Whether a switch of the file goes with the least demanding bundle says nothing of the others.
  bool by_number_ = false;
  std::vector<int> variants_, computed_, kinds_;
  mutable std::mutex mutex_;                                // of what follows
  mutable std::map<std::pair<Shape, int>, Bundles> legal_;  // by shape and combination
  mutable std::vector<std::unique_ptr<Scenario>> spare_;    // to be checked in
};

}  // namespace moebius
