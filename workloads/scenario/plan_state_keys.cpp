#include "workloads/scenario/plan_state_keys.h"

#include "workloads/scenario/reshard_keys.h"
#include "workloads/scenario/uneven_batch_keys.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace moebius {
namespace {

constexpr std::array kProducts{
    Named<DType>{"bf16", DType::kBf16, ""}, Named<DType>{"fp8", DType::kFp8, ""},
    Named<DType>{"fp32", DType::kFp32,
                 "multiplied at the rate of FP32; weights and what passes between ops stay BF16, so that "
                 "what executors compute is what they compute in bf16"}};
constexpr std::array kTrainingArithmetic{Named<DType>{"bf16", DType::kBf16, ""},
                                         Named<DType>{"fp8", DType::kFp8, ""},
                                         Named<DType>{"fp32", DType::kFp32, ""}};
constexpr std::array kScalings{
    Named<Scaling>{"block", Scaling::kBlock,
                   "a scale per 128 elements of activations and gradients, per 128 x 128 of weights"},
    Named<Scaling>{"tensor", Scaling::kTensor,
                   "a scale per tensor of a rank (weights of experts: per expert), from its largest "
                   "magnitude, which a pass "
                   "before finds"},
    Named<Scaling>{
        "history", Scaling::kHistory,
        "a scale per tensor, from its largest magnitudes in the steps before, which its ranks share (delayed "
        "scaling): no pass before; simulated only"},
    Named<Scaling>{"micro", Scaling::kMicro,
                   "MXFP8: a scale, a power of two, per 32 elements; per 32 x 32 of weights"},
};
constexpr std::array kHistories{
    Named<bool>{"stage", false, "all ranks of a pipeline stage (Megatron-Core's default)"},
    Named<bool>{"tensor", true,
                "its tensor- and context-parallel ranks, each replica by itself (its tp_only_amax_red)"},
};
constexpr std::array kWeights{
    Named<bool>{"as-multiplied", false, "in the format of the products"},
    Named<bool>{"bf16", true, "in BF16, from which those of FP8 products are quantised once a step"},
};
constexpr std::array kGradients{
    Named<DType>{"fp32", DType::kFp32, ""}, Named<DType>{"bf16", DType::kBf16, ""},
    Named<DType>{"fp8", DType::kFp8, "kept in fp32, reduced in 8 bits with a scale per 128 elements"}};
constexpr std::array kStates{
    Named<DType>{"fp32", DType::kFp32, ""}, Named<DType>{"bf16", DType::kBf16, ""},
    Named<DType>{"fp8", DType::kFp8, "the first one with a scale per 128 elements; the second in bf16"}};

enum class Master : std::uint8_t { kFp32, kBf16, kNone };
constexpr std::array kMasters{
    Named<Master>{"fp32", Master::kFp32, ""}, Named<Master>{"bf16", Master::kBf16, ""},
    Named<Master>{"none", Master::kNone, "the weights themselves are updated, in their own format"}};

constexpr std::array kAccumulations{
    Named<bool>{"fused", false, "the matrix product adds to the kept gradient"},
    Named<bool>{"separate", true, "it writes BF16, which a pass of its own adds"},
};

constexpr std::array kRecomputePolicies{
    Named<RecomputePolicy>{"none", RecomputePolicy::kNone, "activations are kept"},
    Named<RecomputePolicy>{"selective", RecomputePolicy::kSelective, "those of `ops` are computed again"},
    Named<RecomputePolicy>{"full", RecomputePolicy::kFull,
                           "only the input of each group of `layers` layers is kept"},
    Named<RecomputePolicy>{"hybrid", RecomputePolicy::kHybrid,
                           "what fits in `budget` is kept; of the rest, what costs least is computed again"},
};

constexpr std::array kRecomputeOps{
    Named<RecomputeOp>{"rmsnorm", RecomputeOp::kNorm, "norms"},
    Named<RecomputeOp>{"mla_up", RecomputeOp::kMlaUp, "up-projections of latent attention, keys, rotary"},
    Named<RecomputeOp>{"swiglu", RecomputeOp::kActivation, "activation functions"},
    Named<RecomputeOp>{"attention", RecomputeOp::kAttention, "the core: scores, softmax, values"},
    Named<RecomputeOp>{"qkv", RecomputeOp::kQkv, "projections to queries, keys and values, rotary"},
    Named<RecomputeOp>{"gate", RecomputeOp::kGate, "router and gate"},
    Named<RecomputeOp>{"dispatch", RecomputeOp::kDispatch, "tokens are dispatched to experts again"},
    Named<RecomputeOp>{"permute", RecomputeOp::kPermute, "copies of tokens by expert"},
    Named<RecomputeOp>{"expert_up", RecomputeOp::kExpertUp, "first products of routed experts"},
    Named<RecomputeOp>{"mlp_up", RecomputeOp::kMlpUp, "first products of dense MLPs and shared experts"},
    Named<RecomputeOp>{"attention_out", RecomputeOp::kAttentionOut,
                       "projection of attention's results; the residual stream behind it is not kept"},
    Named<RecomputeOp>{"mlp_down", RecomputeOp::kMlpDown,
                       "last products of dense MLPs; the residual stream behind them is not kept"},
};

constexpr std::array kShardBuffers{
    Named<ShardBuffers>{"in-place", ShardBuffers::kInPlace,
                        "collectives read and write the tensors themselves"},
    Named<ShardBuffers>{
        "flat", ShardBuffers::kFlat,
        "gradients are put together into a flat one and divided, pass by pass, before they are "
        "summed (PyTorch's FSDP of 2022)"},
    Named<ShardBuffers>{"copied", ShardBuffers::kCopied,
                        "gathers fill a buffer that is copied out, gradients are copied into one (FSDP2)"},
};

}  // namespace

// dp.degree 0: all devices that ranks may stand on. Defaults that the framework has for other kinds of shards
// and of products fall to the keys' own.
void read_data_parallelism(Section section, TrainingPlan& plan) {
  plan.dp = static_cast<int>(
      section.integer("degree", {0, 1 << 20}, 0, "replicas of the model; 0: as many as the devices allow"));
  read_microbatches(section, plan);
  plan.zero =
      section.one_of("zero", {0, 1, 2, 3}, plan.zero,
                     "sharded over replicas: 0 nothing; 1 optimizer states; 2 gradients too, which are "
                     "reduced in every microbatch; 3 parameters too, gathered before use, forward and back");
  plan.shard = static_cast<int>(section.integer("shard", {0, 1 << 20}, 0,
                                                "zero 1 to 3: neighbouring replicas that share one copy of "
                                                "what is sharded; other copies are replicas; 0: all"));
  read_resharding(section, plan);
  plan.group_layers = static_cast<int>(
      section.integer("group_layers", {1, 1 << 16}, 1,
                      "layers whose parameters are gathered, or copied from the host, together"));
  plan.prefetch = static_cast<int>(section.integer(
      "prefetch", {0, 1 << 10}, 1, "groups of layers ahead of use that gathers and copies begin"));
  if (plan.zero < 2) plan.shard_buffers = ShardBuffers::kInPlace;
  plan.shard_buffers =
      section.choice<ShardBuffers>("buffers", kShardBuffers, plan.shard_buffers,
                                   "zero 2 and 3: between tensors and what is sharded of them");
  if (plan.zero < 2 && plan.shard_buffers != ShardBuffers::kInPlace)
    section.place_of("buffers").fail(
        fmt::format("buffers of shards are for zero 2 and 3, found zero {}", plan.zero));
  plan.overlap_gradients = section.boolean(
      "overlap_gradients", plan.overlap_gradients,
      "gradients are reduced beside the last backward (zero 2 and 3: always, beside every backward, or the "
      "last one with accumulate)");
  const bool gathers_after = plan.zero == 1 || plan.zero == 2;
  if (!gathers_after || plan.mixed_tp() || plan.schedule == PipelineKind::kDualPipe)
    plan.overlap_weights = false;
  plan.overlap_weights = section.boolean("overlap_weights", plan.overlap_weights,
                                         "zero 1 and 2: updated weights are gathered beside the first "
                                         "forward pass of a step, not after the update");
  if (plan.overlap_weights && !gathers_after)
    section.place_of("overlap_weights")
        .fail(fmt::format("zero {} {}: expected zero 1 or 2", plan.zero,
                          plan.zero == 0 ? "gathers nothing" : "gathers beside every pass"));
  section.finish();
}

void read_precision(Section section, TrainingPlan& plan) {
  plan.gemm = section.choice<DType>("gemm", kProducts, DType::kBf16, "operands of matrix products");
  plan.dispatch =
      section.choice<DType>("dispatch", kTrainingArithmetic, DType::kBf16, "tokens on their way to experts");
  plan.combine = section.choice<DType>("combine", kTrainingArithmetic, DType::kBf16, "and back");
  plan.gradients =
      section.choice<DType>("gradients", kGradients, plan.gradients, "gradients, kept and reduced");
  plan.optimizer_states =
      section.choice<DType>("optimizer_states", kStates, DType::kFp32, "Adam's two moments");
  const Master master = section.choice<Master>("master_weights", kMasters, Master::kFp32,
                                               "what Adam updates; weights are rounded from it");
  plan.master = master == Master::kBf16 ? DType::kBf16 : DType::kFp32;
  plan.keeps_master = master != Master::kNone;
  if (plan.gemm != DType::kFp8) {
    plan.scaling = Scaling::kBlock;
    plan.half_weights = false;
  }
  plan.scaling = section.choice<Scaling>("scaling", kScalings, plan.scaling,
                                         "of fp8 operands of matrix products; all but \"block\" make "
                                         "both copies of an operand in one pass");
  plan.history_of_tensor_ranks =
      section.choice<bool>("history", kHistories, false,
                           "scaling \"history\": who finds largest magnitudes together, once a pass");
  if (plan.history_of_tensor_ranks && plan.scaling != Scaling::kHistory)
    section.place_of("history").fail(
        fmt::format("expected scaling \"history\" beside it, found \"{}\"", to_string(plan.scaling)));
  plan.half_weights =
      section.choice<bool>("weights", kWeights, plan.half_weights, "weights, updated and gathered");
  plan.fused_quantise =
      section.boolean("fused_quantise", false, "8-bit operands are written by the op before");
  if (plan.zero > 1 && plan.accumulation == Accumulation::kShards) plan.separate_accumulation = false;
  plan.separate_accumulation =
      section.choice<bool>("accumulation", kAccumulations, plan.separate_accumulation,
                           "how weight gradients of dense matrices gather over microbatches");
  section.finish();
}

namespace {

// "auto", or a quantity.
Bytes read_budget(Section& section) {
  const std::string text = section.text(
      "budget", "auto", "hybrid: what a step may fill of a device; auto: its memory less memory_reserve");
  if (text == "auto") return {};
  const auto bytes = parse_quantity(text, Dimension::kBytes);
  if (!bytes || *bytes <= 0)
    section.place_of("budget").fail(
        fmt::format("expected \"auto\" or {}, found \"{}\"", describe(Dimension::kBytes), text));
  return {*bytes};
}

}  // namespace

namespace {

void check_recomputed_layers(const Section& section, const TrainingPlan& plan) {
  const auto recomputes = [&](RecomputeOp op) {
    return std::find(plan.recompute_ops.begin(), plan.recompute_ops.end(), op) != plan.recompute_ops.end();
  };
  if (plan.recompute != RecomputePolicy::kFull && plan.recompute_every > 1)
    section.place_of("every").fail("one of several layers is for policy \"full\" only");
  if (plan.recompute_every > 1 && plan.recompute_layers > 1)
    section.place_of("every").fail(
        fmt::format("one of {} layers is computed again by itself: expected layers 1, found {}",
                    plan.recompute_every, plan.recompute_layers));
  if (recomputes(RecomputeOp::kAttentionOut) && recomputes(RecomputeOp::kMlpDown))
    section.place_of("ops").fail(
        "a layer is computed again from one of its two residual streams: expected \"attention_out\" or "
        "\"mlp_down\", found both");
}

}  // namespace

void read_recompute(Section section, TrainingPlan& plan) {
  plan.recompute = section.choice<RecomputePolicy>("policy", kRecomputePolicies, RecomputePolicy::kNone,
                                                   "activations in the backward pass");
  plan.recompute_ops = section.choices<RecomputeOp>("ops", kRecomputeOps, "what `selective` computes again");
  plan.recompute_layers = static_cast<int>(
      section.integer("layers", {1, 1 << 16}, 1, "full: layers of which only the first one's input is kept"));
  plan.recompute_every = static_cast<int>(section.integer(
      "every", {1, 1 << 16}, 1, "full: one of so many layers, their last, is computed again"));
  plan.recompute_budget = read_budget(section);
  plan.recompute_whole = section.boolean(
      "whole_layers", false,
      "full recompute runs each layer again to its end first, with tensor-parallel sums in line");
  if (plan.recompute_whole && plan.recompute != RecomputePolicy::kFull)
    section.place_of("whole_layers").fail("whole layers are for policy \"full\" only");
  const bool runs_layers_again = plan.recompute == RecomputePolicy::kFull;
  plan.recompute_stops = section.boolean("early_stop", plan.recompute_stops && runs_layers_again,
                                         "full: what the reverse pass reads nothing of is left out at a "
                                         "group's end: the last product of a dense layer");
  if (plan.recompute_stops && !runs_layers_again)
    section.place_of("early_stop").fail("recomputation that stops early is for policy \"full\" only");
  const bool selective = plan.recompute == RecomputePolicy::kSelective;
  if (selective && plan.recompute_ops.empty()) {
    section.place_of("ops").fail("policy \"selective\" needs at least one op, found none");
  }
  if (!selective && !plan.recompute_ops.empty()) {
    section.place_of("ops").fail("ops are for policy \"selective\" only");
  }
  if (plan.recompute != RecomputePolicy::kFull && plan.recompute_layers > 1)
    section.place_of("layers").fail("groups of layers are for policy \"full\" only");
  check_recomputed_layers(section, plan);
  if (plan.recompute != RecomputePolicy::kHybrid && plan.recompute_budget.value > 0)
    section.place_of("budget").fail("a budget is for policy \"hybrid\" only");
  section.finish();
}

void read_offload(Section section, TrainingPlan& plan) {
  plan.offload.optimizer = section.boolean(
      "optimizer", false, "master weights and moments: copied in, updated by the device, copied back");
  plan.offload.parameters =
      section.boolean("parameters", false, "weights, with zero 3 their shards: copied in for each pass");
  plan.offload.gradients = section.boolean(
      "gradients", false, "shards of summed gradients (zero 2, 3): copied in and back in each microbatch");
  plan.offload.activations = section.boolean(
      "activations", false, "what layers keep for the backward pass, but for the last group of layers");
  section.finish();
}

namespace {

class StateChecks {
 public:
  StateChecks(Scenario& scenario, const Document& document)
      : scenario_(scenario), plan_(scenario.plan), document_(document) {}

  void run() {
    schedules();
    shards();
    formats();
    host();
    checkpoints();
    budget();
  }

 private:
  template <class... Args>
  void require(bool holds, const char* pointer, fmt::format_string<Args...> sentence, Args&&... args) const {
    if (!holds) place_at(document_, pointer).fail(fmt::format(sentence, std::forward<Args>(args)...));
  }

  // Collectives of a microbatch meet in it, and the two replicas of a stage of DualPipe never run the same.
  void schedules() const {
    const bool both_ways = plan_.schedule == PipelineKind::kDualPipe;
    require(!both_ways || plan_.zero < 2, "/plan/dp/zero",
            "zero 2 and 3 meet in every microbatch, but the two ranks that hold a stage of \"dualpipe\" run "
            "different ones: expected 0 or 1, found {}",
            plan_.zero);
    require(scenario_.training.input_ahead == 0 || !scenario_.training.lengths, "/workload/input",
            "packed sequences are read by their forward pass: expected no input for job \"sft\"");
  }

  void shards() const {
    if (plan_.shard == 0) return;
    require(plan_.zero >= 1, "/plan/dp/shard", "copies of shards are for zero 1 to 3, found zero {}",
            plan_.zero);
    const int dense = plan_.cp * plan_.dp, experts = plan_.tp * plan_.cp * plan_.dp / plan_.expert_ranks();
    require(dense % plan_.shard == 0, "/plan/dp/shard",
            "{} ranks that share a copy do not divide the cp {} x dp {} = {} replicas", plan_.shard, plan_.cp,
            plan_.dp, dense);
    require(scenario_.model.experts.routed == 0 || experts <= plan_.shard || experts % plan_.shard == 0,
            "/plan/dp/shard", "{} ranks that share a copy do not divide the {} replicas of the experts",
            plan_.shard, experts);
  }

  void formats() const {
    require(
        !plan_.uneven_batches() || !plan_.keeps_history() || plan_.history_of_tensor_ranks,
        "/plan/precision/history",
        "all replicas of a stage meet in every pass, but they run unequal numbers of microbatches: expected "
        "\"tensor\" with /plan/dp/microbatches, found \"stage\"");
    require(!plan_.gathers_fp8() || has_one_scale(plan_.scaling), "/plan/dp/zero",
            "a shard does not know the scales of its blocks: zero 3 with gemm \"fp8\" needs "
            "/plan/precision/weights \"bf16\", or scaling \"tensor\" or \"history\", found \"{}\"",
            to_string(plan_.scaling));
    require(plan_.keeps_master || plan_.gemm != DType::kFp8, "/plan/precision/master_weights",
            "weights of 8 bits lose small updates: master_weights \"none\" needs gemm \"bf16\" or \"fp32\", "
            "found "
            "\"fp8\"");
  }

  void host() const {
    require(!plan_.offload.gradients || plan_.zero >= 2, "/plan/offload/gradients",
            "sums that are not sharded are reduced on the device: gradients in host memory need zero 2 or 3, "
            "found {}",
            plan_.zero);
    if (!plan_.offload.any()) return;
    for (const Pool& pool : scenario_.cluster->pools) {
      require(pool.accelerator.host_rate.value > 0, "/plan/offload",
              "the link of {} to its host is not known", pool.accelerator.id);
      require(pool.node.host_memory.value > 0 && pool.node.host_memory_rate.value > 0, "/plan/offload",
              "the host memory of {} is not known", pool.node.id);
    }
  }

  void checkpoints() const {
    const bool files = scenario_.weights != "random" || !scenario_.save.empty();
    require(!files || plan_.zero < 3, "/plan/dp/zero",
            "checkpoints are cut for parameters that ranks hold whole: with weights or save expected zero 0, "
            "1 or "
            "2, found {}",
            plan_.zero);
    require(!files || plan_.shard == 0, "/plan/dp/shard",
            "checkpoints are cut for shards over all replicas: with weights or save expected 0, found {}",
            plan_.shard);
    require(
        !(scenario_.resume || !scenario_.save.empty()) || plan_.keeps_master,
        "/plan/precision/master_weights",
        "checkpoints keep master weights: with resume or save expected \"fp32\" or \"bf16\", found \"none\"");
    require(
        !(scenario_.resume || !scenario_.save.empty()) || plan_.optimizer_states != DType::kFp8,
        "/plan/precision/optimizer_states",
        "checkpoints keep moments without scales: with resume or save expected \"fp32\" or \"bf16\", found "
        "\"fp8\"");
  }

  // The smallest memory, the slowest chip: every stage is judged by them.
  void budget() {
    for (const Pool& pool : scenario_.cluster->pools) {
      const Accelerator& chip = pool.accelerator;
      require(plan_.memory_reserve < chip.memory, "/plan/memory_reserve",
              "expected less than the {} of {}, found {}", to_text(chip.memory), chip.id,
              to_text(plan_.memory_reserve));
    }
    if (plan_.recompute != RecomputePolicy::kHybrid) return;
    const Bytes said = plan_.recompute_budget;
    for (const Pool& pool : scenario_.cluster->pools) {
      const Accelerator& chip = pool.accelerator;
      const Bytes room = chip.memory - plan_.memory_reserve;
      if (said.value == 0 && (plan_.recompute_budget.value == 0 || room < plan_.recompute_budget))
        plan_.recompute_budget = room;
      const ByteRate memory = chip.memory_rate * chip.memory_efficiency;
      if (plan_.recompute_flops.value == 0 || chip.peak_of(DType::kBf16) < plan_.recompute_flops)
        plan_.recompute_flops = chip.peak_of(DType::kBf16);
      if (plan_.recompute_memory.value == 0 || memory < plan_.recompute_memory)
        plan_.recompute_memory = memory;
      if (plan_.recompute_host.value == 0 || chip.host_rate < plan_.recompute_host)
        plan_.recompute_host = chip.host_rate;
    }
  }

  Scenario& scenario_;
  TrainingPlan& plan_;
  const Document& document_;
};

}  // namespace

void check_plan_state(Scenario& scenario, const Document& document) {
  check_microbatches(scenario, document);
  check_resharding(scenario, document);
  StateChecks(scenario, document).run();
}

}  // namespace moebius
