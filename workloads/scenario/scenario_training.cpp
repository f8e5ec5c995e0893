// Plan and workload of a training scenario. Every default is stated here, once.
#include <algorithm>
#include <array>
#include <filesystem>

#include <fmt/format.h>

#include "workloads/scenario/capacity_keys.h"
#include "workloads/scenario/input_keys.h"
#include "workloads/scenario/placement_keys.h"
#include "workloads/scenario/plan_state_keys.h"
#include "workloads/scenario/popularity_keys.h"
#include "workloads/scenario/scenario_parts.h"
#include "workloads/scenario/training_job_keys.h"
#include "workloads/training/frameworks.h"
#include "workloads/training/layers/tensor_overlap.h"

namespace moebius {

namespace {

constexpr std::array kAttentions{
    Named<AttentionKernels>{"flash", AttentionKernels::kFlash, "one kernel; scores stay on the chip"},
    Named<AttentionKernels>{
        "unfused", AttentionKernels::kUnfused,
        "products, softmax and dropout are kernels of their own; scores go through memory"},
};

constexpr std::array kLosses{
    Named<LossKernels>{"fused", LossKernels::kFused, "two kernels over the logits as the head wrote them"},
    Named<LossKernels>{"separate", LossKernels::kSeparate,
                       "the logits are copied to FP32, and each step of softmax and loss is a kernel "
                       "(Megatron-LM)"},
    Named<LossKernels>{"autocast", LossKernels::kAutocast,
                       "the logits are copied to FP32; log-softmax, the loss and their gradients are kernels "
                       "(PyTorch under autocast)"},
};

constexpr std::array kElementwise{
    Named<bool>{"fused", false, "a norm, a rotation and a gated activation are a kernel each"},
    Named<bool>{
        "eager", true,
        "RMSNorms, rotations and gated activations run operation by operation, through memory in FP32 "
        "(PyTorch that is not compiled)"},
};

constexpr std::array kBiases{
    Named<BiasKernels>{"fused", BiasKernels::kFused,
                       "products add biases of queries, keys and values, and sum their gradients"},
    Named<BiasKernels>{"summed-apart", BiasKernels::kSummedApart,
                       "products add them; their gradients are kernels that read those of the results again"},
    Named<BiasKernels>{"apart", BiasKernels::kApart, "adding them is a kernel behind the product, too"},
};

constexpr std::array kNorms{
    Named<bool>{"fused", false, "one kernel gives both gradients, rows are read once"},
    Named<bool>{
        "separate", true,
        "rows are read twice, forward too, and the gradient of the norm's own weights is a kernel that "
        "reads both operands again"},
};

constexpr std::array kUpdates{
    Named<bool>{"fused", false, "one kernel reads the gradient, and writes master and weight"},
    Named<bool>{
        "separate", true,
        "gradients are unscaled and checked, their norm is taken, they are scaled by it, and weights are "
        "copied from their masters: each a kernel"},
};

constexpr std::array kRoutings{
    Named<bool>{"fused", false, "one kernel chooses, one moves rows to experts, one sums them up"},
    Named<bool>{
        "separate", true,
        "each step of choosing is a kernel, rows of several experts are sorted again, and weights are "
        "applied by passes of their own"},
};

enum class ExpertProducts : std::uint8_t { kGrouped, kEach, kModules };
constexpr std::array kExpertProducts{
    Named<ExpertProducts>{"grouped", ExpertProducts::kGrouped,
                          "one kernel multiplies the rows of all experts of a rank"},
    Named<ExpertProducts>{"each", ExpertProducts::kEach, "a dense product for each expert"},
    Named<ExpertProducts>{"modules", ExpertProducts::kModules,
                          "likewise, each in a module that takes a slice of the rows and writes one of the "
                          "results"},
};

constexpr std::array kTensorBuffers{
    Named<bool>{"in-place", false, "collectives read and write the tensors themselves"},
    Named<bool>{"copied", true,
                "sequence by sequence: gathered rows are put in order by a pass and kept, what is summed is "
                "cut by one before (PyTorch's DTensor)"},
};

constexpr std::array kFusions{
    Named<Fusion>{"residual", Fusion::kResidual, "sums with sums and norms, and their gradients"},
    Named<Fusion>{"rotary", Fusion::kRotary, "splits and norms of heads with the rotation"},
    Named<Fusion>{"router", Fusion::kRouter, "the router's product with the gate"},
};

constexpr std::array kLaunchModes{
    Named<LaunchMode>{"hidden", LaunchMode::kHidden, "far enough ahead that the device never waits"},
    Named<LaunchMode>{"kernel", LaunchMode::kKernel, "one by one"},
    Named<LaunchMode>{"graph", LaunchMode::kGraph,
                      "each pass captured as a graph, which is launched at once"},
    Named<LaunchMode>{"eager", LaunchMode::kEager,
                      "by a framework, op by op, whose host reads how many tokens come to experts; "
                      "/cluster/launch is what it takes for one plain operation"},
};

constexpr std::array kGraphModules{
    Named<GraphModule>{"attn", GraphModule::kAttention, "attention with its norm"},
    Named<GraphModule>{"mlp", GraphModule::kMlp, "dense feed-forward layers with their norm"},
    Named<GraphModule>{"moe", GraphModule::kMoe, "all of a mixture of experts, whose capacity is limited"},
    Named<GraphModule>{"moe_router", GraphModule::kMoeRouter, "its norm, its router and shared experts"},
    Named<GraphModule>{"moe_preprocess", GraphModule::kMoePreprocess,
                       "what stands around the messages that bring tokens to experts"},
};

constexpr std::array kContexts{
    Named<ContextKind>{"all-gather", ContextKind::kAllGather,
                       "keys and values of all are gathered before attention"},
    Named<ContextKind>{"ring", ContextKind::kRing,
                       "blocks of keys and values go round the ring beside attention to the block before"},
    Named<ContextKind>{"ulysses", ContextKind::kUlysses,
                       "for attention heads are cut instead of tokens: all-to-alls before and after"},
};

constexpr Range kDegree{1, 1 << 20};

int degree(Section& section, std::string_view key, int otherwise, std::string_view help) {
  return static_cast<int>(section.integer(key, kDegree, otherwise, help));
}

bool captures(const TrainingPlan& plan, GraphModule module) {
  return std::find(plan.captured.begin(), plan.captured.end(), module) != plan.captured.end();
}

// As Megatron-Core refuses them (core/transformer/transformer_config.py).
void read_captured(Section& section, TrainingPlan& plan) {
  plan.captured = section.choices<GraphModule>(
      "captured", kGraphModules,
      "modules of a layer that are launched as one graph a layer, microbatch and direction, with launch "
      "\"kernel\" or \"eager\" of all else");
  if (plan.captured.empty()) return;
  const Place place = section.place_of("captured");
  if (plan.launch != LaunchMode::kKernel && plan.launch != LaunchMode::kEager)
    place.fail(fmt::format("graphs of modules are for launch \"kernel\" or \"eager\", found \"{}\"",
                           to_string(plan.launch)));
  const bool whole = captures(plan, GraphModule::kMoe), router = captures(plan, GraphModule::kMoeRouter),
             prepares = captures(plan, GraphModule::kMoePreprocess);
  if (whole && (router || prepares))
    place.fail("\"moe\" has \"moe_router\" and \"moe_preprocess\" in it: expected it alone or those");
  if (prepares && !router) place.fail("\"moe_preprocess\" goes with \"moe_router\", found it without");
  if (whole && plan.capacity == 0)
    place.fail(
        "rows of experts are not known beforehand: \"moe\" needs a limit in /plan/ep/capacity, found 0");
  if (plan.recompute == RecomputePolicy::kFull || plan.recompute == RecomputePolicy::kHybrid)
    place.fail(
        "layers that run again as a whole are in no graph of a module: expected /plan/recompute/policy "
        "\"none\" or \"selective\"");
}

void read_tensor_overlap(Section& section, TrainingPlan& plan) {
  const bool overlap = section.boolean(
      "overlap", false, "gathers and sums are cut in pieces that travel beside the product before or after");
  const auto chunks = static_cast<int>(section.integer(
      "chunks", {0, kMostTensorChunks}, 0, "pieces of each with `overlap`; 0: as many as there are ranks"));
  if (!overlap && chunks > 0) section.place_of("chunks").fail("pieces are for overlap true only");
  if (overlap && plan.tp == 1)
    section.place_of("overlap").fail("overlap true needs a tensor-parallel degree above 1, found 1");
  if (overlap && !plan.sequence_parallel)
    section.place_of("overlap").fail(
        "overlap true cuts the gathers and sums of sequence_parallel true, found false");
  if (overlap && chunks == 1)
    section.place_of("chunks").fail("expected at least 2 pieces, or 0 for one of each rank, found 1");
  if (overlap) plan.tp_chunks = chunks > 0 ? chunks : std::min(plan.tp, kMostTensorChunks);
}

void read_tensor(Section section, TrainingPlan& plan) {
  plan.tp = degree(section, "attention", 1, "tensor-parallel degree of attention");
  const auto dense = static_cast<int>(
      section.integer("dense", {0, kDegree.high}, 0,
                      "of dense MLPs; ranks of a stage that follow one another; 0: as many as of attention"));
  plan.dense_tp = dense == plan.tp ? 0 : dense;
  plan.expert_tp = degree(section, "expert", 1, "of each expert; ranks of a stage that follow one another");
  plan.sequence_parallel = section.boolean("sequence_parallel", false,
                                           "activations between tensor-parallel parts are sharded by tokens");
  read_tensor_overlap(section, plan);
  const bool whole_rows = plan.tp > 1 && plan.sequence_parallel && plan.tp_chunks == 0 && !plan.mixed_tp();
  plan.gather_passes = section.choice<bool>("buffers", kTensorBuffers, plan.gather_passes && whole_rows,
                                            "between tensors and what is gathered and summed of them");
  if (plan.gather_passes && !whole_rows)
    section.place_of("buffers").fail(
        "copies are of gathers and sums of sequence_parallel true, in one piece and of one degree");
  section.finish();
}

// A framework's defaults, of which those of experts and of biases are for models that have some.
TrainingPlan read_framework(Section& section, const Model& model) {
  TrainingPlan plan =
      section
          .row("framework", training_frameworks(),
               "whose defaults other keys of the plan have, where they apply: `moebius list frameworks`")
          .plan;
  if (model.experts.routed == 0) {
    plan.expert_by_expert = false;
    plan.exchange = Algorithm::kAuto;
  }
  if (!model.trains_qkv_bias()) plan.biases = BiasKernels::kFused;
  return plan;
}

void read_expert(Section section, TrainingPlan& plan) {
  plan.ep = degree(section, "degree", 1, "ranks that share the experts of a layer");
  plan.exchange = read_dispatch(section, plan.ep > 1 ? plan.exchange : Algorithm::kAuto);
  plan.nodes_per_token = static_cast<int>(section.integer(
      "nodes_per_token", {0, 1 << 16}, 0,
      "most nodes that the experts of a token stand on; 0: as the model's routing groups say"));
  read_capacity(section, plan);
  plan.separate_routing =
      section.choice<bool>("kernels", kRoutings, false, "kernels of the router and of the rows' ways");
  const ExpertProducts otherwise = plan.expert_by_expert ? ExpertProducts::kEach : ExpertProducts::kGrouped;
  const ExpertProducts products =
      section.choice<ExpertProducts>("products", kExpertProducts, otherwise, "products of experts");
  plan.expert_by_expert = products != ExpertProducts::kGrouped;
  plan.expert_modules = products == ExpertProducts::kModules;
  section.finish();
}

void read_overlap(Section section, TrainingPlan& plan) {
  plan.overlap_dispatch_combine =
      section.boolean("dispatch_combine", false, "dispatch and combine run beside compute");
  plan.overlap_tensor_gradients =
      section.boolean("tensor_gradients", plan.overlap_tensor_gradients,
                      "tensor-parallel sums of the reverse pass run beside weight gradients");
  plan.communication_sms = static_cast<int>(section.integer(
      "communication_sms", {0, 4096}, 0, "cores that dispatch and combine hold; 0: copy engines"));
  plan.tensor_sms =
      static_cast<int>(section.integer("tensor_sms", {0, 4096}, 0,
                                       "cores that tensor-parallel gathers and sums hold; 0: as many as the "
                                       "library's channels, of /plan/tp/overlap copy engines"));
  if (plan.tensor_sms > 0 && plan.tp_chunks > 0)
    section.place_of("tensor_sms")
        .fail("pieces of /plan/tp/overlap travel by copy engines: expected 0 cores with it, found " +
              std::to_string(plan.tensor_sms));
  plan.overlap_two_batch =
      section.boolean("two_batch", false,
                      "schedules 1f1b and interleaved: forward and backward passes of two microbatches "
                      "beside each other, so that the "
                      "dispatch and combine of one travel while the other computes; dualpipe always does");
  section.finish();
}

// Paths in a file are relative to it, those of a command line to where it is given.
std::string path_of(Section& section, std::string_view key, const std::string& otherwise,
                    std::string_view help) {
  const std::string path = section.text(key, otherwise, help);
  const Place place = section.place_of(key);
  if (path == otherwise || place.line == 0) return path;
  return (std::filesystem::path(place.file).parent_path() / path).string();
}

}  // namespace

std::string read_weights(Section& section) {
  std::string weights = path_of(section, "weights", "random",
                                "where a run that computes numbers starts: a checkpoint (Hugging Face or "
                                "ours), or \"random\", drawn from the seed");
  if (weights.empty()) section.place_of("weights").fail("expected a checkpoint or \"random\", found \"\"");
  return weights;
}

void read_training_plan(Section section, Scenario& scenario) {
  TrainingPlan& plan = scenario.plan;
  plan = read_framework(section, scenario.model);
  read_tensor(section.object("tp", false, "tensor parallelism"), plan);
  read_pipeline(section.object("pp", false, "pipeline parallelism"), plan);
  read_expert(section.object("ep", false, "expert parallelism"), plan);
  plan.cp = degree(section, "cp", 1, "context-parallel degree: ranks that share a sequence");
  if (plan.cp == 1) plan.context = ContextKind::kAllGather;
  plan.context = section.choice<ContextKind>("context", kContexts, plan.context,
                                             "how ranks that share a sequence see each other's keys");
  if (plan.cp == 1 && plan.context != ContextKind::kAllGather)
    section.place_of("context").fail("ring and ulysses need a context-parallel degree above 1, found 1");
  read_data_parallelism(section.object("dp", false, "data parallelism"), plan);
  read_precision(section.object("precision", false, "number formats"), plan);
  read_recompute(section.object("recompute", false, "activations that are not kept"), plan);
  read_offload(section.object("offload", false, "state in host memory"), plan);
  read_overlap(section.object("overlap", false, "what runs beside compute"), plan);
  plan.attention =
      section.choice<AttentionKernels>("attention", kAttentions, plan.attention, "kernels of attention");
  plan.loss = section.choice<LossKernels>("loss", kLosses, plan.loss, "kernels of the loss");
  plan.eager_elementwise = section.choice<bool>("elementwise", kElementwise, plan.eager_elementwise,
                                                "kernels of norms, rotations and activations");
  plan.biases = section.choice<BiasKernels>("biases", kBiases, plan.biases,
                                            "kernels of the biases of queries, keys and values");
  plan.separate_norm_grad =
      section.choice<bool>("norms", kNorms, plan.separate_norm_grad, "kernels of a norm");
  plan.clip =
      section.number("clip", {0, 1e30}, plan.clip,
                     "norm over the gradients of all parameters above which they are scaled down to it: "
                     "every rank waits for it before the update; 0: it is not taken");
  plan.separate_update = section.choice<bool>("optimizer", kUpdates, plan.separate_update,
                                              "kernels of the update; numbers are those of one");
  scenario.weights = read_weights(section);
  scenario.resume = section.boolean(
      "resume", false, "goes on where the run that saved `weights` stopped: its optimizer state, its step");
  scenario.save = path_of(section, "save", "",
                          "directory for a checkpoint when such a run ends or is interrupted; empty: none");
  scenario.save_every = static_cast<int>(section.integer(
      "save_every", {0, 1 << 20}, 0, "steps from one checkpoint to the next; 0: one at the end"));
  if (scenario.resume && scenario.weights == "random")
    section.place_of("resume").fail("expected a checkpoint in `weights` to go on from, found \"random\"");
  if (scenario.save_every > 0 && scenario.save.empty())
    section.place_of("save_every").fail("expected a directory in `save`, found none");
  plan.fusions = section.choices<Fusion>(
      "fusion", kFusions, "neighbours that are one kernel: less is read, written and launched");
  plan.launch =
      section.choice<LaunchMode>("launch", kLaunchModes, plan.launch,
                                 "how the host launches kernels; how long one takes: /cluster/launch");
  read_captured(section, plan);
  read_placement(section.object("placement", false, "on which devices ranks stand"), scenario);
  plan.fold = section.boolean("fold", true, "simulate one rank of each class of ranks that do the same");
  scenario.enforce_memory = section.choice<bool>("memory", kMemoryRules, true, "when a step does not fit");
  plan.keeps_to_budget = scenario.enforce_memory;
  plan.memory_reserve =
      section.bytes("memory_reserve", Bytes{},
                    "of a device: for what no tensor of the step takes, such as the context, "
                    "communication buffers and gaps of the allocator");
  section.finish();
}

ReadPlan read_plan(const Document& document, const Model& model) {
  ReadPlan found;
  Scenario scenario;
  scenario.model = model;
  Section top(Reader(document), &found.settings);
  read_training_plan(top.object("plan", false, ""), scenario);
  found.plan = std::move(scenario.plan);
  return found;
}

void read_training_workload(Section section, Scenario& scenario) {
  TrainingWorkload& workload = scenario.training;
  workload.sequence_length =
      section.integer("sequence_length", {1, 1 << 24}, std::nullopt, "tokens of a sequence");
  workload.global_batch =
      section.integer("global_batch", {1, 1 << 30}, std::nullopt, "sequences of a step, over all replicas");
  workload.micro_batch =
      section.integer("micro_batch", {1, 1 << 20}, 1, "sequences of a microbatch, on one replica");
  workload.steps = static_cast<int>(section.integer("steps", {1, 1 << 20}, 1, "optimizer steps"));
  workload.learning_rate =
      section.number("learning_rate", {0, 10}, 1e-3, "of Adam, where numbers are computed");
  workload.dropout = section.number(
      "dropout", {0, 0.99}, 0,
      "share of attention's probabilities and of what a block adds that is dropped; simulated only");
  workload.popularity =
      read_popularity(section.object("experts", false, "which experts tokens choose"), true);
  read_input(section, scenario);
  read_training_job(section, scenario);
  workload.seed = scenario.seed;
  section.finish();
}

}  // namespace moebius
