#include "workloads/scenario/adapter_keys.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "workloads/scenario/scenario_parts.h"

namespace moebius {
namespace {

constexpr std::array kTargets{
    Named<AdapterTarget>{"qkv", AdapterTarget::kQkv,
                         "maps of attention's input: queries, keys and values as one, or their latents"},
    Named<AdapterTarget>{"attention_out", AdapterTarget::kAttentionOut, "projection of attention's results"},
    Named<AdapterTarget>{"mlp_up", AdapterTarget::kMlpUp,
                         "first products of dense MLPs and shared experts, gate and up as one"},
    Named<AdapterTarget>{"mlp_down", AdapterTarget::kMlpDown, "their last products"},
    Named<AdapterTarget>{"expert_up", AdapterTarget::kExpertUp,
                         "first products of routed experts, each with adapters of its own"},
    Named<AdapterTarget>{"expert_down", AdapterTarget::kExpertDown, "their last products"},
};

// What has the matrices that each target names: routed experts, or MLPs that every token goes through.
bool has(const Model& model, AdapterTarget target) {
  const bool experts = target == AdapterTarget::kExpertUp || target == AdapterTarget::kExpertDown;
  const bool mlp = target == AdapterTarget::kMlpUp || target == AdapterTarget::kMlpDown;
  if (experts) return model.num_moe_layers() > 0;
  return !mlp || model.num_moe_layers() < model.layers || model.experts.shared_width > 0;
}

class AdapterChecks {
 public:
  AdapterChecks(const Scenario& scenario, const Document& document)
      : scenario_(scenario), adapters_(scenario.training.adapters), document_(document) {}

  void run() const {
    job();
    targets();
    plan();
    if (adapters_.beside_experts()) experts();
  }

 private:
  template <class... Args>
  void require(bool holds, const char* pointer, fmt::format_string<Args...> sentence, Args&&... args) const {
    if (!holds) place_at(document_, pointer).fail(fmt::format(sentence, std::forward<Args>(args)...));
  }

  void job() const {
    require(adapters_.rank <= scenario_.model.hidden, "/workload/lora/rank",
            "every matrix with adapters is as wide as the model on one side: expected {} at most, found {}",
            scenario_.model.hidden, adapters_.rank);
    require(!scenario_.training.forward_only, "/workload/lora/rank",
            "job \"scoring\" trains nothing: expected 0, found {}", adapters_.rank);
    require(!scenario_.rl, "/workload/lora/rank",
            "job \"rl\" trains and sends out all weights so far: expected 0, found {}", adapters_.rank);
    require(
        scenario_.model.mtp_layers == 0, "/model",
        "multi-token prediction is trained with the whole model: /workload/lora needs mtp_layers 0, found "
        "{}",
        scenario_.model.mtp_layers);
  }

  void targets() const {
    for (const Named<AdapterTarget>& row : kTargets) {
      const bool chosen =
          std::find(adapters_.targets.begin(), adapters_.targets.end(), row.value) != adapters_.targets.end();
      require(!chosen || has(scenario_.model, row.value), "/workload/lora/targets",
              "\"{}\" names matrices that {} does not have", row.name, scenario_.model.id);
    }
  }

  void plan() const {
    const TrainingPlan& plan = scenario_.plan;
    require(!plan.mixed_tp(), "/plan/tp/dense",
            "adapters are cut by one tensor-parallel degree: with /workload/lora expected that of attention, "
            "{}, found {}",
            plan.tp, plan.dense_tp);
    require(
        !plan.separate_norm_grad, "/plan/norms",
        "\"separate\" is a kernel for the gradient of a norm's own weights, which /workload/lora freezes: "
        "expected \"fused\"");
    require(scenario_.weights == "random", "/plan/weights",
            "checkpoints hold no adapters so far: with /workload/lora expected \"random\", found \"{}\"",
            scenario_.weights);
    require(scenario_.save.empty(), "/plan/save",
            "checkpoints hold no adapters so far: with /workload/lora expected none, found \"{}\"",
            scenario_.save);
  }

  void experts() const {
    const TrainingPlan& plan = scenario_.plan;
    require(plan.expert_tp == 1, "/plan/tp/expert",
            "adapters beside experts stand whole with their expert: expected 1, found {}", plan.expert_tp);
    require(plan.dispatch != DType::kFp8, "/plan/precision/dispatch",
            "adapters beside experts multiply tokens of 16 bits: expected \"bf16\", found \"fp8\"");
  }

  const Scenario& scenario_;
  const Adapters& adapters_;
  const Document& document_;
};

}  // namespace

void read_adapters(Section& workload, Adapters& adapters) {
  const bool given = workload.given("lora");
  Section section =
      workload.object("lora", false,
                      "low-rank adapters beside matrices of the model, which alone are trained; "
                      "absent: all weights are");
  adapters.rank = static_cast<int>(
      section.integer("rank", {0, 1 << 16}, 0, "of both matrices of an adapter; 0: all weights are trained"));
  adapters.targets =
      section.choices<AdapterTarget>("targets", kTargets, "matrices of the model that have adapters");
  if (given && !section.given("rank")) section.place_of("rank").fail("expected key \"rank\", found none");
  if (given && adapters.targets.empty())
    section.place_of("targets").fail("expected at least one matrix beside which adapters stand, found none");
  section.finish();
}

void check_adapters(const Scenario& scenario, const Document& document) {
  if (scenario.training.adapters.any()) AdapterChecks(scenario, document).run();
}

}  // namespace moebius
