#include "workloads/study/search/training_space.h"

#include <algorithm>
#include <array>
#include <set>

#include <fmt/format.h>

#include "hw/error.h"
#include "hw/mixed_pools.h"
#include "workloads/scenario/framework_settings.h"
#include "workloads/scenario/placement_keys.h"
#include "workloads/scenario/scenario_parts.h"
#include "workloads/study/search/divisors.h"
#include "workloads/study/search/document_changes.h"
#include "workloads/study/search/plan_settings.h"
#include "workloads/training/layers/tensor_overlap.h"
#include "workloads/training/pipeline/pipeline.h"

namespace moebius {
namespace {

constexpr const char* kDispatchKey = "/plan/ep/dispatch";

}  // namespace

// By degree, in the order in which they are tried.
struct TrainingSpace::Choices {
  std::vector<int> tp, dense_tp, expert_tp, pp, chunks, ep, nodes_per_token, cp, dp, micro_batch;
  std::vector<PipelineKind> schedules;
  std::vector<bool> rows_cut, tensor_overlap;
};

TrainingSpace::TrainingSpace(Document base, const Library& library, const SpaceFile& given)
    : base_(std::move(base)),
      scenario_(read_scenario(base_, library.hardware, library.models)),
      given_(given) {
  if (!given.touches(kDispatchKey)) exchange_ = framework_exchange(base_, scenario_.model);
  base_ = without_framework(std::move(base_), scenario_.model);
  devices_ = static_cast<int>(devices_for_ranks(scenario_));
  node_ = scenario_.cluster->pools.front().node.accelerators;
  read_bundles(given);
}

TrainingSpace::Choices TrainingSpace::choices() const {
  const Model& model = scenario_.model;
  const bool moe = model.experts.routed > 0;
  const auto of = [&](const char* pointer, std::vector<int> otherwise) {
    const StudyAxis* axis = given_.find(pointer);
    return axis != nullptr ? given_.numbers(*axis) : std::move(otherwise);
  };
  Choices all;
  all.tp = of("/plan/tp/attention", divisors(node_, node_));
  all.dense_tp = of("/plan/tp/dense", {0});
  all.expert_tp = of("/plan/tp/expert", moe ? divisors(node_, node_) : std::vector<int>{1});
  all.pp = of("/plan/pp/degree", divisors(devices_, model.layers));
  all.chunks = of("/plan/pp/virtual", {2, 3, 4, 5, 6, 7, 8});
  all.ep = of("/plan/ep/degree", moe ? divisors(model.experts.routed, devices_) : std::vector<int>{1});
  const StudyAxis* nodes = given_.find("/plan/ep/nodes_per_token");
  all.nodes_per_token = nodes != nullptr ? given_.numbers(*nodes, 0) : std::vector<int>{-1};
  all.cp = of("/plan/cp", divisors(devices_, 16));
  all.dp = of("/plan/dp/degree", {0});
  all.micro_batch = of("/workload/micro_batch", {1, 2, 4, 8});
  if (const StudyAxis* axis = given_.find("/plan/pp/schedule")) {
    for (const std::string& name : axis->values) all.schedules.push_back(schedule_of(name, given_.file));
  } else {
    for (const Named<PipelineKind>& row : pipeline_schedules()) all.schedules.push_back(row.value);
  }
  const auto either = [&](const char* pointer, std::vector<bool> otherwise) {
    const StudyAxis* axis = given_.find(pointer);
    return axis != nullptr ? given_.booleans(*axis) : std::move(otherwise);
  };
  all.rows_cut = either("/plan/tp/sequence_parallel", {true, false});
  all.tensor_overlap = either("/plan/tp/overlap", {false, true});
  return all;
}

// A value of what holds a degree would take its place in the scenario, not in the search.
void TrainingSpace::check_given(const SpaceFile& given) const {
  for (const StudyAxis& axis : given.axes) {
    if (const auto degree = degree_below(axis.pointer))
      throw input_error(
          fmt::format("{}: {}: expected its keys one by one, such as {}", given.file, axis.pointer, *degree));
    if (is_degree(axis.pointer) || axis.pointer.starts_with("/plan/")) continue;
    throw input_error(
        fmt::format("{}: {}: expected a key of /plan, or /workload/micro_batch: a search keeps model, "
                    "machines and work",
                    given.file, axis.pointer));
  }
}

void TrainingSpace::read_bundles(const SpaceFile& given) {
  check_given(given);
  const bool host = scenario_.cluster->pools.front().accelerator.host_rate.value > 0 &&
                    scenario_.cluster->pools.front().node.host_memory_rate.value > 0;
  const bool latent = scenario_.model.attention == AttentionKind::kMla;
  std::vector<StudyAxis> axes{{"/plan/dp/zero", {"0", "1", "2", "3"}},
                              {"/plan/dp/overlap_gradients", {"true", "false"}},
                              {"/plan/recompute",
                               {R"({"policy": "none"})",
                                fmt::format(R"({{"policy": "selective", "ops": ["rmsnorm", {}"swiglu"]}})",
                                            latent ? "\"mla_up\", " : ""),
                                R"({"policy": "full"})"}},
                              {"/plan/offload", {R"({"optimizer": false, "activations": false})"}},
                              {"/plan/overlap/dispatch_combine", {"true", "false"}},
                              {"/plan/overlap/two_batch", {"false", "true"}}};
  if (host)
    for (const char* what :
         {R"({"optimizer": true, "activations": false})", R"({"optimizer": false, "activations": true})",
          R"({"optimizer": true, "activations": true})"})
      axes[3].values.emplace_back(what);
  const auto exchanges = [](const StudyAxis& axis) {
    return axis.pointer == "/plan/overlap/dispatch_combine";
  };
  if (scenario_.model.experts.routed == 0) std::erase_if(axes, exchanges);  // there are none
  std::set<std::string> switches{"/plan/overlap/dispatch_combine"};
  for (const StudyAxis& axis : axes) switches.insert(axis.pointer);
  for (StudyAxis& axis : axes) add_own(base_, axis);
  std::erase_if(axes, [&](const StudyAxis& axis) { return given.touches(axis.pointer); });
  for (const StudyAxis& axis : given.axes) {
    if (is_degree(axis.pointer)) continue;
    if (scenario_.model.experts.routed == 0 && exchanges(axis)) continue;
    axes.push_back(axis);
    if (!switches.contains(axis.pointer) && axis.values.size() > 1) shown_.push_back(axis.pointer);
    for (const char* switched : {"/plan/dp/", "/plan/recompute/", "/plan/offload/", "/plan/overlap/"})
      by_number_ =
          by_number_ || (!switches.contains(axis.pointer) && (axis.pointer + "/").starts_with(switched));
  }
  bundles_ = bundles_of(base_, axes);
  least_zero_ = bundles_.front().plan.zero;
  for (const PlanBundle& bundle : bundles_) {
    least_zero_ = std::min(least_zero_, bundle.plan.zero);
    sums_beside_ = sums_beside_ || bundle.plan.overlap_gradients;
    exchanges_beside_ = exchanges_beside_ || bundle.plan.overlap_dispatch_combine;
    one_by_one_ = one_by_one_ || !bundle.plan.overlap_two_batch;
  }
  number_bundles();
  number_extras(switches);
}

void TrainingSpace::number_extras(const std::set<std::string>& switches) {
  std::map<std::string, int> known;
  for (const PlanBundle& bundle : bundles_) {
    std::string extra;
    for (const Assignment& change : bundle.settings)
      if (!switches.contains(change.pointer) && given_.find(change.pointer) != nullptr)
        extra += change.pointer + "=" + change.value + ";";
    const auto [at, added] = known.emplace(extra, static_cast<int>(known.size()));
    extras_.push_back(at->second);
    if (!added) continue;
    TrainingPlan plain = bundle.plan;
    plain.zero = plain.shard = plain.regather = 0;
    plain.accumulation = Accumulation::kShards, plain.free_after_backward = true;
    plain.group_layers = plain.prefetch = 1;
    plain.offload = {};
    plain.overlap_two_batch = false;
    plain.recompute = RecomputePolicy::kNone;
    plain.recompute_ops.clear();
    plain_.push_back(std::move(plain));
  }
}

bool TrainingSpace::divides(const PlanDegrees& d) const {
  const Model& model = scenario_.model;
  const std::int64_t replica = std::int64_t{d.tp} * d.cp * d.pp;
  if ((d.dp == 0 && devices_ % replica != 0) || replica * std::max(1, d.dp) > devices_) return false;
  const int dp = d.dp > 0 ? d.dp : static_cast<int>(devices_ / replica);
  const int stage = d.tp * d.cp * dp;
  const StagePlacement placement(d.schedule, d.pp, d.chunks);
  const int ends = scenario_.plan.slicing == Slicing::kEvenWithEnds ? 2 : 0;
  if (placement.stages() > model.layers + ends || (d.pp == 1 && placement.chunks() > 1)) return false;
  if (placement.both_ways() && d.pp % 2 != 0) return false;
  if (stage % (d.ep * d.expert_tp) != 0) return false;
  if (scenario_.plan.uneven_batches()) return true;
  return scenario_.training.global_batch % (std::int64_t{d.micro_batch} * dp) == 0;
}

int TrainingSpace::nodes_per_token(const PlanDegrees& d) const {
  if (d.nodes_per_token >= 0) return d.nodes_per_token;
  const int said = scenario_.plan.nodes_per_token, nodes = (d.ep * d.expert_tp + node_ - 1) / node_;
  return said <= nodes ? said : 0;  // fewer nodes than the limit: there is none
}

void TrainingSpace::set_degrees(const PlanDegrees& d, TrainingPlan& plan) const {
  plan.tp = d.tp;
  plan.dense_tp = d.dense_tp == d.tp ? 0 : d.dense_tp;
  plan.expert_tp = d.expert_tp;
  plan.sequence_parallel = d.tp > 1 && d.rows_cut;
  plan.tp_chunks = d.tensor_overlap ? std::min(d.tp, kMostTensorChunks) : 0;
  plan.pp = d.pp;
  plan.schedule = d.schedule, plan.chunks = d.chunks;
  plan.ep = d.ep;
  if (exchange_) plan.exchange = d.ep > 1 ? *exchange_ : Algorithm::kAuto;
  plan.nodes_per_token = nodes_per_token(d);
  plan.cp = d.cp;
  plan.context = d.cp > 1 ? scenario_.plan.context : ContextKind::kAllGather;
  plan.dp = d.dp;
}

// Of dense weights or of experts.
bool TrainingSpace::has_replicas(const PlanDegrees& d) const {
  const std::int64_t replica = std::int64_t{d.tp} * d.cp * d.pp;
  const std::int64_t dp = d.dp > 0 ? d.dp : devices_ / replica;
  const bool of_experts =
      scenario_.model.experts.routed > 0 && std::int64_t{d.tp} * d.cp * dp > std::int64_t{d.ep} * d.expert_tp;
  return dp * d.cp > 1 || of_experts;
}

// Switches that change nothing count in one position only, of those that there are.
bool TrainingSpace::distinct(const PlanDegrees& d, const TrainingPlan& plan) const {
  const bool sums_last = !plan.overlap_gradients && sums_beside_;
  if (!has_replicas(d) && (plan.zero > least_zero_ || sums_last)) return false;
  if (plan.zero >= 2 && sums_last) return false;
  const bool in_line = scenario_.model.experts.routed > 0 && !plan.overlap_dispatch_combine;
  if (in_line && !rows_travel(d) && exchanges_beside_) return false;
  const bool can_pair = d.schedule == PipelineKind::k1F1B || d.schedule == PipelineKind::kInterleaved;
  return !plan.overlap_two_batch || (can_pair && d.ep * d.expert_tp > 1 && (has_pairs(d) || !one_by_one_));
}

TrainingSpace::Legal TrainingSpace::plan_of(const PlanDegrees& degrees, int bundle) const {
  return legal_plan(degrees, bundles_[bundle].plan);
}

TrainingSpace::Legal TrainingSpace::legal_plan(const PlanDegrees& degrees,
                                               const TrainingPlan& switches) const {
  std::unique_ptr<Scenario> scenario = take_scenario();
  const Legal result = checked(degrees, switches, *scenario);
  const std::lock_guard lock(mutex_);
  spare_.push_back(std::move(scenario));
  return result;
}

// A scenario is large: threads take turns with a few of them.
std::unique_ptr<Scenario> TrainingSpace::take_scenario() const {
  const std::lock_guard lock(mutex_);
  if (spare_.empty()) return std::make_unique<Scenario>(scenario_);
  std::unique_ptr<Scenario> scenario = std::move(spare_.back());
  spare_.pop_back();
  return scenario;
}

TrainingSpace::Legal TrainingSpace::checked(const PlanDegrees& degrees, const TrainingPlan& switches,
                                            Scenario& scenario) const {
  scenario.plan = switches;
  set_degrees(degrees, scenario.plan);
  if (scenario.plan.tensor_sms > 0 && scenario.plan.tp_chunks > 0) return {};
  if (scenario.plan.tp_chunks > 0 && !scenario.plan.sequence_parallel) return {};
  scenario.training.micro_batch = degrees.micro_batch;
  try {
    check_training(scenario, base_);
  } catch (const Error&) {
    return {};
  }
  return {true, scenario.plan, scenario.training};
}

TrainingSpace::Shape TrainingSpace::shape_of(const PlanDegrees& d) const {
  return {static_cast<int>(d.schedule),
          d.tp > 1,
          d.tp > 1 && d.rows_cut,
          d.tensor_overlap,
          d.dense_tp != d.tp,
          d.expert_tp > 1,
          d.cp > 1,
          d.ep > 1,
          has_replicas(d),
          has_pairs(d)};
}

TrainingSpace::Bundles TrainingSpace::legal_with(const PlanDegrees& degrees, int extra) const {
  static const auto kNone = std::make_shared<const std::vector<int>>();
  if (!by_number_ && !legal_plan(degrees, plain_[extra]).legal) return kNone;
  const std::pair shape(shape_of(degrees), extra);
  if (!by_number_) {
    const std::lock_guard lock(mutex_);
    const auto known = legal_.find(shape);
    if (known != legal_.end()) return known->second;
  }
  auto legal = std::make_shared<std::vector<int>>();
  for (int i = 0; i < static_cast<int>(bundles_.size()); ++i) {
    const bool own = extras_[i] == extra && distinct(degrees, bundles_[i].plan);
    if (own && plan_of(degrees, i).legal) legal->push_back(i);
  }
  const std::lock_guard lock(mutex_);
  if (!by_number_) legal_[shape] = legal;
  return legal;
}

TrainingSpace::Bundles TrainingSpace::legal_bundles(const PlanDegrees& degrees) const {
  if (plain_.size() == 1) return legal_with(degrees, 0);
  auto legal = std::make_shared<std::vector<int>>();
  for (int extra = 0; extra < static_cast<int>(plain_.size()); ++extra) {
    const Bundles with = legal_with(degrees, extra);
    legal->insert(legal->end(), with->begin(), with->end());
  }
  std::sort(legal->begin(), legal->end());
  return legal;
}

void TrainingSpace::number_bundles() {
  std::map<std::string, int> variants, computed, kinds;
  const auto number = [](const std::string& text, std::map<std::string, int>& known) {
    return known.emplace(text, static_cast<int>(known.size())).first->second;
  };
  for (const PlanBundle& bundle : bundles_) {
    std::string variant, kind;
    for (const Assignment& change : bundle.settings) {
      const std::string text = change.pointer + "=" + change.value + ";";
      // Set beside the shards that they are for (plan_settings.cpp), unless they are varied.
      const bool turns =
          (change.pointer == "/plan/dp/group_layers" || change.pointer == "/plan/dp/prefetch") &&
          given_.find(change.pointer) == nullptr;
      const bool state = says_where_state_stands(change.pointer) || turns;
      if (!state) variant += text;
      if (!state && change.pointer != "/plan/recompute" && change.pointer != "/plan/overlap/dispatch_combine")
        kind += text;
    }
    computed_.push_back(number(variant, computed));
    variants_.push_back(number(variant + (bundle.plan.offload.activations ? "away" : ""), variants));
    kinds_.push_back(number(kind, kinds));
  }
}

std::vector<PlanGroup> TrainingSpace::groups() const {
  const Choices all = choices();
  // Without stages most schedules are one; who names them is told of each.
  const bool named = given_.find("/plan/pp/schedule") != nullptr;
  std::vector<PlanGroup> groups;
  const auto take = [&](PlanDegrees d) {
    if (!divides(d)) return;
    const auto legal = static_cast<std::int32_t>(legal_bundles(d)->size());
    if (legal > 0) groups.push_back({d, legal});
  };
  const auto schedules = [&](PlanDegrees d) {
    for (const PipelineKind kind : all.schedules) {
      if (d.pp == 1 && !named && kind != all.schedules.front() && kind != PipelineKind::k1F1B) continue;
      d.schedule = kind;
      for (const int chunks : kind == PipelineKind::kInterleaved ? all.chunks : std::vector<int>{1}) {
        d.chunks = chunks;
        take(d);
      }
    }
  };
  const auto tensors = [&](PlanDegrees d) {
    for (const int dense : all.dense_tp)
      for (const int expert : all.expert_tp)
        for (const bool cut : d.tp > 1 ? all.rows_cut : std::vector<bool>{true})
          for (const bool overlap : all.tensor_overlap) {
            if (overlap && (d.tp == 1 || !cut)) continue;
            d.dense_tp = dense == 0 ? d.tp : dense, d.expert_tp = expert;
            d.rows_cut = cut, d.tensor_overlap = overlap;
            schedules(d);
          }
  };
  for (const int tp : all.tp)
    for (const int pp : all.pp)
      for (const int ep : all.ep)
        for (const int cp : all.cp)
          for (const int dp : all.dp)
            for (const int nodes : all.nodes_per_token)
              for (const int micro_batch : all.micro_batch)
                tensors({.tp = tp,
                         .pp = pp,
                         .ep = ep,
                         .cp = cp,
                         .nodes_per_token = nodes,
                         .dp = dp,
                         .micro_batch = micro_batch});
  return groups;
}

std::vector<Assignment> TrainingSpace::settings(const PlanDegrees& d, int bundle) const {
  std::vector<Assignment> all = degree_settings(d, nodes_per_token(d));
  if (d.cp == 1) all.push_back({"/plan/context", "\"all-gather\""});
  for (const Assignment& own : bundles_[bundle].settings) {
    std::erase_if(all, [&](const Assignment& change) { return change.pointer == own.pointer; });
    all.push_back(own);
  }
  return all;
}

std::string TrainingSpace::given_text(int bundle) const {
  std::string text;
  for (const Assignment& change : bundles_[bundle].settings) {
    if (std::find(shown_.begin(), shown_.end(), change.pointer) == shown_.end()) continue;
    text += fmt::format(" · {} {}", change.pointer.substr(std::string_view("/plan/").size()),
                        plain(change.value));
  }
  return text;
}

Document TrainingSpace::document(const PlanDegrees& degrees, int bundle) const {
  std::vector<Assignment> all = settings(degrees, bundle);
  const Algorithm exchange = degrees.ep > 1 ? exchange_.value_or(Algorithm::kAuto) : Algorithm::kAuto;
  if (exchange_) all.push_back({kDispatchKey, fmt::format("\"{}\"", dispatch_name(exchange))});
  return changed(base_, all);
}

}  // namespace moebius
