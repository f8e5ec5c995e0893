#include "workloads/advice/switches.h"

#include <fmt/format.h>

#include "workloads/scenario/placement_keys.h"
#include "workloads/training/pipeline/split_groups.h"

namespace moebius {
namespace {

class Collector {
 public:
  Collector(const Scenario& scenario, const Layout& layout)
      : scenario_(scenario), plan_(scenario.plan), layout_(layout) {}

  std::vector<Switch> collect() {
    overlaps();
    kernels();
    formats();
    memory_for_time();
    pipeline();
    batch();
    placement();
    return std::move(switches_);
  }

 private:
  void add(bool open, std::string name, std::vector<std::string> sets) {
    if (open) switches_.push_back({std::move(name), std::move(sets)});
  }

  void overlaps() {
    const bool experts = plan_.ep > 1;
    add(experts && !plan_.overlap_dispatch_combine, "dispatch and combine beside compute",
        {"/plan/overlap/dispatch_combine=true"});
    add(experts && plan_.exchange != Algorithm::kLibrary, "experts' tokens by the library's all-to-all",
        {"/plan/ep/dispatch=all-to-all"});
    std::vector<std::string> once{"/plan/ep/dispatch=deepep"};
    if (plan_.fills_buffers()) once.insert(once.begin(), "/plan/ep/buffers=rows");  // it sends no full ones
    add(experts && plan_.exchange == Algorithm::kLibrary, "experts' tokens once to each node (DeepEP)", once);
    buffers();
    add((plan_.tp > 1 || plan_.zero == 3) && !scenario_.cluster->copy_engines &&
            scenario_.cluster->collectives != CollectiveSource::kStructure,
        "gathers by copy engines, which hold no cores", {"/cluster/copy_engines=true"});
    const bool pairs = plan_.schedule == PipelineKind::k1F1B || plan_.schedule == PipelineKind::kInterleaved;
    add(experts && plan_.pp > 1 && pairs && !plan_.overlap_two_batch, "forward beside backward passes",
        {"/plan/overlap/dispatch_combine=true", "/plan/overlap/two_batch=true"});
    // Sharded gradients are reduced as they come.
    add(plan_.dp * plan_.cp > 1 && plan_.zero < 2 && !plan_.overlap_gradients,
        "gradients reduced beside the last backward", {"/plan/dp/overlap_gradients=true"});
    resharding();
    add(plan_.tp > 1 && !plan_.sequence_parallel, "sequence parallelism",
        {"/plan/tp/sequence_parallel=true"});
    std::vector<std::string> pieces{"/plan/tp/overlap=true"};
    if (!plan_.sequence_parallel) pieces.insert(pieces.begin(), "/plan/tp/sequence_parallel=true");
    if (plan_.tensor_sms > 0) pieces.insert(pieces.begin(), "/plan/overlap/tensor_sms=0");
    add(plan_.tp > 1 && plan_.tp_chunks == 0, "tensor-parallel communication beside its GEMM", pieces);
    add(plan_.fusions.size() < 3, "sums, norms, rotations and gates fused",
        {R"(/plan/fusion=["residual", "rotary", "router"])"});
    graphs();
  }

  void buffers() {
    add(plan_.fills_buffers(), "experts' rows as many as came", {"/plan/ep/buffers=rows"});
    add(plan_.expert_buffers == ExpertBuffers::kOneHot, "experts' buffers filled without one-hot products",
        {"/plan/ep/buffers=padded"});
  }

  // What stands whole from microbatch to microbatch travels less often.
  void resharding() {
    const bool trains = !scenario_.training.forward_only && plan_.dp * plan_.cp > 1;
    const bool several = trains && scenario_.training.num_microbatches(plan_) > 1;
    add(plan_.zero >= 2 && several && plan_.accumulation == Accumulation::kShards,
        "whole gradients, summed once a step", {"/plan/dp/accumulate=whole"});
    const bool side_by_side = plan_.overlap_two_batch || plan_.schedule == PipelineKind::kDualPipeV;
    add(plan_.zero == 3 && several && plan_.regather != 1 && !side_by_side,
        "gathered weights kept for the backward pass", {"/plan/dp/reshard_after_forward=false"});
    add(plan_.zero == 3 && several && plan_.free_after_backward, "weights gathered once a step",
        {"/plan/dp/reshard_after_forward=false", "/plan/dp/reshard_after_backward=false"});
  }

  // Pass-wide ones stand for themselves; without, what does not depend on how tokens choose.
  void graphs() {
    if (plan_.launch != LaunchMode::kKernel && plan_.launch != LaunchMode::kEager) return;
    std::vector<std::string> passes{"/plan/launch=graph"};
    if (!plan_.captured.empty()) passes.insert(passes.begin(), "/plan/captured=[]");
    add(true, "passes captured as graphs", passes);
    const bool again =
        plan_.recompute == RecomputePolicy::kFull || plan_.recompute == RecomputePolicy::kHybrid;
    const int routed = scenario_.model.num_moe_layers();
    std::string modules = R"("attn")";
    if (routed < scenario_.model.layers) modules += R"(, "mlp")";
    if (routed > 0) modules += R"(, "moe_router", "moe_preprocess")";
    add(plan_.captured.empty() && !again, "modules of fixed sizes captured as graphs",
        {fmt::format("/plan/captured=[{}]", modules)});
  }

  // What software before fused kernels did, all at once.
  void kernels() {
    const bool apart = plan_.attention == AttentionKernels::kUnfused || plan_.loss != LossKernels::kFused ||
                       plan_.separate_norm_grad || plan_.separate_accumulation || plan_.separate_update ||
                       plan_.separate_routing || plan_.expert_by_expert || plan_.eager_elementwise ||
                       plan_.biases != BiasKernels::kFused;
    add(apart, "fused kernels of attention, loss, norms, routing and update",
        {"/plan/attention=flash", "/plan/loss=fused", "/plan/elementwise=fused", "/plan/norms=fused",
         "/plan/biases=fused", "/plan/precision/accumulation=fused", "/plan/optimizer=fused",
         "/plan/ep/kernels=fused", "/plan/ep/products=grouped"});
  }

  void formats() {
    const bool low = plan_.gemm == DType::kFp8;
    std::vector<std::string> fp8{"/plan/precision/gemm=fp8", "/plan/precision/fused_quantise=true"};
    // A shard does not know the scales of its blocks.
    const bool gathered = plan_.zero == 3 && !plan_.half_weights && !has_one_scale(plan_.scaling);
    if (gathered) fp8.emplace_back("/plan/precision/weights=bf16");
    add(!low, gathered ? "FP8 matrix products, weights gathered in BF16" : "FP8 matrix products",
        std::move(fp8));
    add(low && !plan_.fused_quantise, "quantising fused into the op before",
        {"/plan/precision/fused_quantise=true"});
    // Adapters beside experts multiply what came in 16 bits.
    const bool dispatched_low = plan_.dispatch == DType::kFp8 || scenario_.training.adapters.beside_experts();
    add(plan_.ep > 1 && !dispatched_low, "FP8 dispatch", {"/plan/precision/dispatch=fp8"});
    add(plan_.gradients == DType::kFp32, "BF16 gradients", {"/plan/precision/gradients=bf16"});
  }

  void memory_for_time() {
    add(plan_.recompute != RecomputePolicy::kNone, "no recomputation",
        {R"(/plan/recompute={"policy": "none"})"});
    add(plan_.recompute == RecomputePolicy::kFull, "recomputing norms and activations alone",
        {R"(/plan/recompute={"policy": "selective", "ops": ["rmsnorm", "swiglu"]})"});
    add(plan_.zero == 0 && plan_.dp * plan_.cp > 1, "optimizer states cut over replicas",
        {"/plan/dp/zero=1"});
    add(plan_.zero > 1 && plan_.dp * plan_.cp > 1, "whole parameters and gradients, states cut over replicas",
        whole_parameters());
    add(plan_.shard_buffers != ShardBuffers::kInPlace, "shards gathered and summed without copies",
        {"/plan/dp/buffers=in-place"});
  }

  std::vector<std::string> whole_parameters() const {
    std::vector<std::string> sets{"/plan/dp/buffers=in-place", "/plan/dp/zero=1",
                                  "/plan/dp/overlap_gradients=true"};
    if (plan_.accumulation != Accumulation::kShards) sets.emplace_back("/plan/dp/accumulate=shards");
    if (plan_.regather != 0) sets.emplace_back("/plan/dp/reshard_after_forward=true");
    if (!plan_.free_after_backward) sets.emplace_back("/plan/dp/reshard_after_backward=true");
    if (plan_.offload.any()) return sets;
    if (plan_.group_layers > 1) sets.emplace_back("/plan/dp/group_layers=1");
    if (plan_.prefetch != 1) sets.emplace_back("/plan/dp/prefetch=1");
    return sets;
  }

  void pipeline() {
    if (plan_.pp == 1) return;
    for (const Named<PipelineKind>& row : pipeline_schedules()) {
      std::vector<std::string> sets{fmt::format("/plan/pp/schedule={}", row.name)};
      if (row.value == PipelineKind::kInterleaved) sets.emplace_back("/plan/pp/virtual=2");
      if (plan_.schedule == PipelineKind::kInterleaved) sets.emplace_back("/plan/pp/virtual=1");
      const bool pairs = row.value == PipelineKind::k1F1B || row.value == PipelineKind::kInterleaved;
      const bool apart = plan_.overlap_two_batch && !pairs;
      if (apart) sets.emplace_back("/plan/overlap/two_batch=false");
      add(row.value != plan_.schedule,
          fmt::format("pipeline schedule {}{}", row.name, apart ? ", passes one by one" : ""),
          std::move(sets));
    }
  }

  void batch() {
    const TrainingWorkload& work = scenario_.training;
    add(work.num_microbatches(plan_) % 2 == 0, "microbatches twice as large",
        {fmt::format("/workload/micro_batch={}", 2 * work.micro_batch)});
    add(work.micro_batch % 2 == 0, "microbatches half as large",
        {fmt::format("/workload/micro_batch={}", work.micro_batch / 2)});
    add(scenario_.model.experts.routed > 0 && work.popularity.kind != PopularityKind::kBalanced,
        "experts in perfect balance", {R"(/workload/experts={"popularity": "balanced"})"});
    add(scenario_.cluster->variation.any(), "devices that are all alike",
        {R"(/cluster/variation={"power": 0})"});
  }

  // Devices are given up for it: what the others then do is what counts.
  void placement() {
    if (placement_of(scenario_).any()) return;
    const auto whole = devices_of_whole_groups(*scenario_.cluster, layout_);
    if (!whole) return;
    const std::string devices = device_ranges(whole->devices);
    constexpr std::size_t kLongest = 2000;  // of a command that somebody will read
    add(devices.size() <= kLongest,
        fmt::format("{} groups whole in their domains, on {} of {} devices", whole->name,
                    whole->devices.size(), devices_for_ranks(scenario_)),
        {"/plan/placement/devices=" + devices});
  }

  const Scenario& scenario_;
  const TrainingPlan& plan_;
  const Layout& layout_;
  std::vector<Switch> switches_;
};

}  // namespace

std::vector<Switch> open_switches(const Scenario& scenario, const Layout& layout) {
  return Collector(scenario, layout).collect();
}

}  // namespace moebius
