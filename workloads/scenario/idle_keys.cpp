// Keys of a training scenario that would count for nothing are refused where they say something else than
// their default: who varies them would take them for what makes no difference.
#include <algorithm>

#include <fmt/format.h>

#include "workloads/scenario/scenario_parts.h"

namespace moebius {
namespace {

class IdleKeys {
 public:
  IdleKeys(const Scenario& scenario, const Document& document)
      : plan_(scenario.plan), training_(scenario.training), model_(scenario.model), document_(document) {}

  void refuse() const {
    if (model_.experts.routed == 0) of_experts();
    if (plan_.zero < 2 && !plan_.overlap_weights && !plan_.offload.any()) of_layers_in_turn();
    if (!training_.forward_only && model_.experts.routed > 0) of_recomputed_ops();
    if (!training_.forward_only && !model_.trains_qkv_bias()) of_biases();
    of_captured();
  }

 private:
  template <class... Args>
  void require(bool holds, const char* pointer, fmt::format_string<Args...> sentence, Args&&... args) const {
    if (!holds) place_at(document_, pointer).fail(fmt::format(sentence, std::forward<Args>(args)...));
  }

  void of_experts() const {
    const char* model = model_.id.c_str();
    require(plan_.capacity == 0, "/plan/ep/capacity", "capacity {} of the experts of {}, which has none",
            plan_.capacity, model);
    require(training_.popularity.kind == PopularityKind::kBalanced, "/workload/experts/popularity",
            "tokens of {} choose no experts: expected \"balanced\"", model);
    require(plan_.dispatch == DType::kBf16, "/plan/precision/dispatch",
            "tokens of {} go to no experts: expected \"bf16\", found \"{}\"", model,
            to_string(plan_.dispatch));
    require(plan_.combine == DType::kBf16, "/plan/precision/combine",
            "tokens of {} come from no experts: expected \"bf16\", found \"{}\"", model,
            to_string(plan_.combine));
    require(!plan_.overlap_dispatch_combine || plan_.overlap_two_batch, "/plan/overlap/dispatch_combine",
            "tokens of {} go to no experts: expected false, found true", model);
    require(plan_.communication_sms == 0, "/plan/overlap/communication_sms",
            "tokens of {} go to no experts: expected 0, found {}", model, plan_.communication_sms);
    require(plan_.exchange == Algorithm::kAuto, "/plan/ep/dispatch",
            "tokens of {} go to no experts: expected \"auto\", found \"{}\"", model,
            dispatch_name(plan_.exchange));
    require(plan_.nodes_per_token == 0, "/plan/ep/nodes_per_token",
            "tokens of {} go to no experts: expected 0, found {}", model, plan_.nodes_per_token);
    require(!plan_.separate_routing, "/plan/ep/kernels",
            "tokens of {} choose no experts: expected \"fused\", found \"separate\"", model);
    require(!plan_.expert_by_expert, "/plan/ep/products",
            "{} has no experts to multiply: expected \"grouped\", found \"{}\"", model,
            plan_.expert_modules ? "modules" : "each");
  }

  void of_biases() const {
    require(plan_.biases == BiasKernels::kFused, "/plan/biases",
            "queries, keys and values of {} have no biases: expected \"fused\", found \"{}\"", model_.id,
            plan_.biases == BiasKernels::kApart ? "apart" : "summed-apart");
  }

  void of_captured() const {
    const int routed = model_.num_moe_layers();
    for (const GraphModule module : plan_.captured) {
      const bool dense = module == GraphModule::kMlp;
      if (module == GraphModule::kAttention) continue;
      require((dense ? model_.layers - routed : routed) > 0, "/plan/captured",
              "modules are captured of layers {} experts, of which {} has none", dense ? "without" : "with",
              model_.id);
    }
  }

  void of_layers_in_turn() const {
    const auto expect = [&](const char* pointer, int found) {
      require(found == 1, pointer,
              "parameters that stay on the device are neither gathered nor copied: expected 1 with zero {}, "
              "found {}",
              plan_.zero, found);
    };
    expect("/plan/dp/group_layers", plan_.group_layers);
    expect("/plan/dp/prefetch", plan_.prefetch);
  }

  bool recomputes(RecomputeOp op) const {
    const std::vector<RecomputeOp>& ops = plan_.recompute_ops;
    return std::find(ops.begin(), ops.end(), op) != ops.end();
  }

  // Of what is sent again only the copies by expert are made: where those are kept nobody reads it. Groups
  // that a model has none of are let be: one list may stand for several models.
  void of_recomputed_ops() const {
    require(recomputes(RecomputeOp::kPermute) || !recomputes(RecomputeOp::kDispatch), "/plan/recompute/ops",
            "what \"dispatch\" sends again is read by \"permute\" alone: expected both, found one");
  }

  const TrainingPlan& plan_;
  const TrainingWorkload& training_;
  const Model& model_;
  const Document& document_;
};

}  // namespace

void check_idle_keys(const Scenario& scenario, const Document& document) {
  IdleKeys(scenario, document).refuse();
}

}  // namespace moebius
