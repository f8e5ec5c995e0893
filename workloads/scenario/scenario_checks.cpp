// Relations between the keys of a scenario. Each is one sentence with the numbers that do not fit.
#include <fmt/format.h>

#include "hw/mixed_pools.h"
#include "workloads/scenario/capacity_keys.h"
#include "workloads/scenario/placement_keys.h"
#include "workloads/scenario/plan_state_keys.h"
#include "workloads/scenario/popularity_keys.h"
#include "workloads/scenario/scenario_parts.h"
#include "workloads/scenario/training_job_keys.h"
#include "workloads/training/layers/lowering.h"
#include "workloads/training/pipeline/pipeline.h"

namespace moebius {
namespace {

// Sentences about one training plan.
class TrainingChecks {
 public:
  TrainingChecks(Scenario& scenario, const Document& document)
      : scenario_(scenario), plan_(scenario.plan), model_(scenario.model), document_(document) {}

  void run() {
    model();
    degrees();
    check_stages(scenario_, document_);
    check_folding(scenario_, document_);
    attention();
    dense();
    where_state_stands();
    experts();
    nodes_per_token();
    batch();
    sequence();
    counts();
    arithmetic();
    scaling();
    kinds();
    check_passes(scenario_, document_);
    const RankPlacement placement = placement_of(scenario_);
    check_placement(placement, scenario_, document_);
    if (!placement.any()) check_reached(*scenario_.cluster, scenario_.ranks());
  }

 private:
  template <class... Args>
  void require(bool holds, const char* pointer, fmt::format_string<Args...> sentence, Args&&... args) const {
    if (!holds) place_at(document_, pointer).fail(fmt::format(sentence, std::forward<Args>(args)...));
  }

  // tp * cp * pp * dp = ranks = devices of the pool, or fewer when the plan says dp.degree.
  void degrees() {
    const std::vector<Pool>& pools = scenario_.cluster->pools;
    const std::int64_t devices = devices_for_ranks(scenario_);
    std::string of = pools.size() == 1 ? fmt::format("pool \"{}\"", pools.front().name)
                                       : fmt::format("{} pools", pools.size());
    if (!placement_of(scenario_).devices.empty()) of = "/plan/placement/devices";
    const std::int64_t replica = std::int64_t{plan_.tp} * plan_.cp * plan_.pp;
    if (plan_.dp == 0) {
      require(devices % replica == 0, "/plan",
              "tp {} x cp {} x pp {} = {} ranks a replica do not divide the {} devices of {}", plan_.tp,
              plan_.cp, plan_.pp, replica, devices, of);
      plan_.dp = static_cast<int>(devices / replica);
    }
    require(replica * plan_.dp <= devices, "/plan/dp/degree",
            "tp {} x cp {} x pp {} x dp {} = {} ranks do not fit on the {} devices of {}", plan_.tp, plan_.cp,
            plan_.pp, plan_.dp, replica * plan_.dp, devices, of);
  }

  void model() const {
    require(!model_.delta.given() && !model_.output_gate, "/model",
            "{} has {}, which are served but not trained so far", model_.id,
            model_.delta.given() ? "gated delta networks" : "output gates");
    require(model_.kv_share == 1, "/model",
            "{} consecutive layers of {} share keys and values, which are not trained so far",
            model_.kv_share, model_.id);
    keeps_streams();
  }

  // With one stream a layer each would be computed again from the one before, back to the stage's first.
  void keeps_streams() const {
    if (!model_.is_parallel() || plan_.recompute != RecomputePolicy::kSelective) return;
    for (const RecomputeOp op : plan_.recompute_ops) {
      const bool of_stream = op == RecomputeOp::kAttentionOut || op == RecomputeOp::kMlpDown;
      require(!of_stream, "/plan/recompute/ops",
              "the layers of {} have one residual stream each, which is kept: expected other ops, found "
              "\"{}\"",
              model_.id, op == RecomputeOp::kMlpDown ? "mlp_down" : "attention_out");
    }
  }

  void divides(int degree, int number, const char* pointer, const char* degree_name, const char* what) const {
    require(number % degree == 0, pointer, "{} {} does not divide the {} {} of {}", degree_name, degree,
            number, what, model_.id);
  }

  void attention() const {
    require(!model_.is_sparse(), "/model",
            "{} chooses keys by an indexer, which is served and not trained so far", model_.id);
    const char* at = "/plan/tp/attention";
    const char* tp = "tensor-parallel degree";
    divides(plan_.tp, model_.heads, at, tp, "attention heads");
    if (model_.attention == AttentionKind::kGqa)
      divides(plan_.tp, model_.kv_heads, at, tp, "key-value heads");
    divides(plan_.tp, model_.vocabulary, at, tp, "words of the vocabulary");
    if (model_.dense_width > 0 && !plan_.mixed_tp())
      divides(plan_.tp, model_.dense_width, at, tp, "columns of a dense MLP");
    if (model_.experts.shared_width > 0) {
      divides(plan_.tp, model_.experts.shared_width, at, tp, "columns of the shared experts");
    }
    const bool moe = model_.experts.routed > 0;
    require(plan_.tp == 1 || !moe || plan_.sequence_parallel, "/plan/tp/sequence_parallel",
            "a model with experts and tensor-parallel degree {} needs sequence_parallel true, found false",
            plan_.tp);
  }

  // Dense MLPs that are cut otherwise than attention: every rank brings rows of its own to the group.
  void dense() const {
    if (!plan_.mixed_tp()) return;
    const char* at = "/plan/tp/dense";
    const int stage = plan_.tp * plan_.cp * plan_.dp;
    bool has_dense = false;
    for (int layer = 0; layer < model_.layers; ++layer) has_dense = has_dense || !model_.is_moe_layer(layer);
    require(has_dense, at, "degree {} for dense MLPs, of which {} has none", plan_.dense_tp, model_.id);
    divides(plan_.dense_tp, model_.dense_width, at, "degree of dense MLPs", "columns of a dense MLP");
    require(
        stage % plan_.dense_tp == 0, at,
        "degree of dense MLPs {} does not divide the tp {} x cp {} x dp {} = {} ranks of a pipeline stage",
        plan_.dense_tp, plan_.tp, plan_.cp, plan_.dp, stage);
    require(
        plan_.tp == 1 || plan_.sequence_parallel, at,
        "a degree of dense MLPs other than that of attention, {}, needs sequence_parallel true, found false",
        plan_.tp);
    require(scenario_.weights == "random" && scenario_.save.empty(), at,
            "checkpoints are cut by one tensor-parallel degree: expected that of attention, {}, found {}",
            plan_.tp, plan_.dense_tp);
    require(!several_kinds(*scenario_.cluster), at,
            "pools of different chips need the degree of attention, {}, found {}", plan_.tp, plan_.dense_tp);
  }

  // Passes whose tensors come and go are written anew around whole collectives.
  void where_state_stands() const {
    const Offload& away = plan_.offload;
    const bool is_away = away.optimizer || away.parameters || away.gradients || away.activations;
    const std::string found = plan_.shard > 0 ? fmt::format(", shard {}", plan_.shard) : "";
    const char* offloaded = is_away ? ", offload" : "";
    const bool whole = plan_.zero <= 1 && plan_.shard == 0 && !is_away;
    require(
        !plan_.mixed_tp() || whole, "/plan/tp/dense",
        "a degree of dense MLPs of their own needs zero 0 or 1 without shard or offload, found zero {}{}{}",
        plan_.zero, found, offloaded);
    const bool sums_at_once = plan_.zero >= 2 && plan_.accumulation == Accumulation::kShards;
    require(!plan_.separate_accumulation || !sums_at_once, "/plan/precision/accumulation",
            "\"separate\" adds to whole gradients, which zero {} cuts: expected /plan/dp/zero 0 or 1, or "
            "/plan/dp/accumulate \"whole\"",
            plan_.zero);
    overlapped_weights();
  }

  // They are gathered by the first microbatch that a stage takes, in the groups of their shards.
  void overlapped_weights() const {
    if (!plan_.overlap_weights) return;
    const char* at = "/plan/dp/overlap_weights";
    require(plan_.schedule != PipelineKind::kDualPipe, at,
            "the two ranks that hold a stage of \"dualpipe\" begin at different ends: expected false, found "
            "true");
    require(!plan_.mixed_tp(), at, "dense MLPs of a degree of their own: expected false, found true");
    require(!plan_.offload.parameters, at,
            "weights that stand on the device: expected false, found true with /plan/offload/parameters");
    require(scenario_.weights == "random" && scenario_.save.empty(), at,
            "checkpoints hold weights that were gathered: expected false, found true");
  }

  void experts() const {
    const char* at = "/plan/ep/degree";
    const int routed = model_.experts.routed;
    require(plan_.ep == 1 || routed > 0, at, "expert-parallel degree {} for {}, which has no experts",
            plan_.ep, model_.id);
    const int stage = plan_.tp * plan_.cp * plan_.dp;
    require(
        stage % plan_.ep == 0, at,
        "expert-parallel degree {} does not divide the tp {} x cp {} x dp {} = {} ranks of a pipeline stage",
        plan_.ep, plan_.tp, plan_.cp, plan_.dp, stage);
    if (routed > 0) divides(plan_.ep, routed, at, "expert-parallel degree", "experts");
    require(
        !plan_.expert_modules || model_.biases != Biases::kAll, "/plan/ep/products",
        "the experts of {} have biases, which modules are not told with: expected \"grouped\" or \"each\", "
        "found \"modules\"",
        model_.id);
    const std::string problem = problem_of(scenario_.training.popularity, model_);
    require(problem.empty(), "/workload/experts/popularity", "{}", problem);
  }

  // A limit on nodes is one on groups of experts, which hold all that a token uses.
  void nodes_per_token() const {
    if (plan_.nodes_per_token == 0) return;
    const Experts& experts = model_.experts;
    const char* at = "/plan/ep/nodes_per_token";
    const int per_node = scenario_.cluster->pools.front().node.accelerators;
    const int nodes = (plan_.expert_ranks() + per_node - 1) / per_node;
    require(plan_.nodes_per_token <= nodes, at,
            "{} nodes per token, but an expert-parallel group of {} ranks stands on {}",
            plan_.nodes_per_token, plan_.expert_ranks(), nodes);
    require(experts.groups > 1 || nodes == 1 || plan_.expert_ranks() % per_node == 0, at,
            "the experts of a node are a group of {}, which has none of its own: {} ranks do not fill nodes "
            "of {}",
            model_.id, plan_.expert_ranks(), per_node);
    require(experts.active % plan_.nodes_per_token == 0, at,
            "{} nodes per token do not divide the {} experts that a token of {} uses", plan_.nodes_per_token,
            experts.active, model_.id);
    require(experts.routed % nodes == 0, at, "the {} experts of {} do not spread evenly over {} nodes",
            experts.routed, model_.id, nodes);
    require(per_node % plan_.expert_tp == 0, at,
            "{} ranks that share an expert do not stand together on nodes of {}", plan_.expert_tp, per_node);
    const ExpertGroups groups = expert_groups(plan_, experts, per_node);
    require(groups.all == experts.groups || plan_.expert_ranks() % per_node == 0, at,
            "experts of a node are a group: {} ranks fill no nodes of {}", plan_.expert_ranks(), per_node);
    const int held = experts.routed / groups.all;
    require((experts.active + groups.active - 1) / groups.active <= held, at,
            "{} of {} groups of {} experts do not hold the {} that a token of {} uses", groups.active,
            groups.all, held, experts.active, model_.id);
  }

  void batch() const {
    if (plan_.uneven_batches()) return;  // check_microbatches()
    const TrainingWorkload& work = scenario_.training;
    require(work.global_batch % (work.micro_batch * plan_.dp) == 0, "/workload/global_batch",
            "{} sequences are not a multiple of micro_batch {} x dp {} = {}", work.global_batch,
            work.micro_batch, plan_.dp, work.micro_batch * plan_.dp);
    constexpr int kMost = 1 << 20;  // each is a pass of every stage
    require(work.num_microbatches(plan_) <= kMost, "/workload/global_batch",
            "expected at most {} microbatches a step and replica, found {}", kMost,
            work.num_microbatches(plan_));
  }

  void sequence() const {
    require(plan_.attention == AttentionKernels::kFlash || plan_.cp == 1, "/plan/attention",
            "\"unfused\" attention sees whole sequences: expected /plan/cp 1, found {}", plan_.cp);
    const int chunk = model_.attention_chunk;
    const std::int64_t length = scenario_.training.sequence_length;
    require(
        plan_.attention == AttentionKernels::kFlash || chunk == 0 || length <= chunk || length % chunk == 0,
        "/plan/attention",
        "\"unfused\" attention sees chunks of equal lengths: {} tokens are not a multiple of the {} of {}",
        length, chunk, model_.id);
    require(model_.learned_positions == 0 || length <= model_.learned_positions, "/workload/sequence_length",
            "sequences of {} tokens are longer than the {} positions that {} has learned", length,
            model_.learned_positions, model_.id);
    const std::int64_t parts = std::int64_t{plan_.cp} * (plan_.sequence_parallel ? plan_.tp : 1);
    require(length % parts == 0, "/workload/sequence_length",
            "{} tokens are not a multiple of cp {} x tp {} = {}", length, plan_.cp,
            plan_.sequence_parallel ? plan_.tp : 1, parts);
  }

  // Submissions, and the tokens and copies that one route draws, are counted in 32 bits.
  void counts() const {
    constexpr double kMost = 0x1p31;
    const TrainingWorkload& work = scenario_.training;
    const std::int64_t parts = std::int64_t{plan_.cp} * (plan_.sequence_parallel ? plan_.tp : 1);
    const std::int64_t tokens = work.micro_batch * work.sequence_length / parts;
    require(tokens < kMost, "/workload/micro_batch",
            "{} sequences of {} tokens are more than the 2^31 that one rank can hold", work.micro_batch,
            work.sequence_length);
    const Experts& experts = model_.experts;
    require(
        experts.routed == 0 || static_cast<double>(tokens) * plan_.expert_ranks() * experts.active < kMost,
        "/workload/micro_batch",
        "{} tokens on each of {} ranks, to {} experts each, are more than the 2^31 copies of one dispatch",
        tokens, plan_.expert_ranks(), experts.active);
    const int classes = plan_.fold ? plan_.pp : plan_.ranks();
    const bool simple = plan_.schedule == PipelineKind::kGpipe || plan_.schedule == PipelineKind::k1F1B;
    const double of_microbatch = simple ? 2.0 : 3.0 * StagePlacement(plan_).chunks();  // passes of a rank
    const double passes = of_microbatch * work.num_microbatches(plan_) + 1;
    require(work.steps * passes * classes < kMost, "/workload/steps",
            "{} steps of {} microbatches on {} rank classes are more than the 2^31 passes of one run",
            work.steps, work.num_microbatches(plan_), classes);
  }

  void arithmetic() const {
    for (const Pool& pool : scenario_.cluster->pools) {
      const Accelerator& chip = pool.accelerator;
      require(chip.peak_of(plan_.gemm).value > 0, "/plan/precision/gemm", "{} has no native {} arithmetic",
              chip.id, to_string(plan_.gemm));
      const int cores = std::max(chip.cores, chip.general_cores);
      require(plan_.communication_sms < cores, "/plan/overlap/communication_sms",
              "{} cores to hold, but {} has {}", plan_.communication_sms, chip.id, cores);
      require(plan_.tensor_sms < cores, "/plan/overlap/tensor_sms", "{} cores to hold, but {} has {}",
              plan_.tensor_sms, chip.id, cores);
    }
    require(!plan_.sequence_parallel || plan_.tp > 1, "/plan/tp/sequence_parallel",
            "sequence_parallel true needs a tensor-parallel degree above 1, found {}", plan_.tp);
  }

  // A rank finds the scale of a tensor from what it holds, and does not send it; an operand that is quantised
  // for both products by its one scale is whole, and in 16 bits before.
  void scaling() const {
    half_weights();
    elementwise();
    if (plan_.scaling == Scaling::kBlock) return;
    const std::string_view name = to_string(plan_.scaling);
    const bool micro = plan_.scaling == Scaling::kMicro;  // scales are of one token, and go with it
    require(plan_.gemm == DType::kFp8, "/plan/precision/scaling",
            "scaling \"{}\" is for gemm \"fp8\", found gemm \"{}\"", name, to_string(plan_.gemm));
    if (micro) whole_scales();
    require(
        plan_.dispatch != DType::kFp8 || micro, "/plan/precision/dispatch",
        "tokens carry no scale of their whole tensor: scaling \"{}\" needs dispatch \"bf16\", found \"fp8\"",
        name);
    require(plan_.combine != DType::kFp8 || !micro, "/plan/precision/combine",
            "results travel in 8 bits with a scale for 128 elements: scaling \"{}\" needs combine \"bf16\", "
            "found \"fp8\"",
            name);
    require(
        plan_.combine != DType::kFp8, "/plan/precision/combine",
        "tokens carry no scale of their whole tensor: scaling \"{}\" needs combine \"bf16\", found \"fp8\"",
        name);
    const bool whole = plan_.zero == 0 || plan_.zero == 3;  // 3: shards are cast by a scale that they share
    require(whole || plan_.half_weights || plan_.scaling != Scaling::kTensor, "/plan/dp/zero",
            "a shard does not know the scale of its whole weight: scaling \"tensor\" needs zero 0 or 3, or "
            "weights \"bf16\", found {}",
            plan_.zero);
    require(!plan_.fused_quantise || micro, "/plan/precision/fused_quantise",
            "operands are quantised both ways by a pass of their own: scaling \"{}\" needs false, found true",
            name);
  }

  // Of the copies that weight gradients read scales span tokens, and each piece is cast for itself. Frozen
  // weights have no such copies.
  void whole_scales() const {
    constexpr std::int64_t kTokensOfScale = 32;
    const TrainingWorkload& work = scenario_.training;
    if (plan_.tp_chunks == 0 || work.adapters.any()) return;
    const std::int64_t tokens = work.micro_batch * work.sequence_length / plan_.cp / plan_.tp;
    const std::int64_t multiple = kTokensOfScale * plan_.tp_chunks;
    require(tokens % multiple == 0, "/plan/tp/overlap",
            "pieces end amid the {} tokens of a scale: scaling \"micro\" in {} pieces needs a multiple of {} "
            "tokens on a rank, found {}",
            kTokensOfScale, plan_.tp_chunks, multiple, tokens);
  }

  void elementwise() const {
    if (!plan_.eager_elementwise) return;
    for (const Fusion fusion : plan_.fusions)
      require(
          fusion == Fusion::kRouter, "/plan/fusion",
          "what runs operation by operation has no neighbour in its kernel: elementwise \"eager\" goes with "
          "\"router\" alone, found {} more",
          plan_.fusions.size() - std::count(plan_.fusions.begin(), plan_.fusions.end(), Fusion::kRouter));
    require(!plan_.fused_quantise, "/plan/precision/fused_quantise",
            "norms and activations that run operation by operation write no 8-bit operands: elementwise "
            "\"eager\" needs false, found {}",
            plan_.fused_quantise);
  }

  void half_weights() const {
    if (!plan_.half_weights) return;
    require(plan_.gemm == DType::kFp8, "/plan/precision/weights",
            "weights \"bf16\" are quantised for gemm \"fp8\", found gemm \"{}\"", to_string(plan_.gemm));
    require(scenario_.weights == "random" && scenario_.save.empty(), "/plan/precision/weights",
            "checkpoints hold the weights of the products: expected \"as-multiplied\", found \"bf16\"");
    require(!plan_.offload.parameters, "/plan/offload/parameters",
            "weights that are quantised once a step stay on the device: weights \"bf16\" needs false, found "
            "true");
  }

  // Tokens find their experts node by node, and checkpoints are cut as for equal stages.
  void kinds() const {
    if (!several_kinds(*scenario_.cluster)) return;
    const Pool& first = scenario_.cluster->pools.front();
    for (const Pool& pool : scenario_.cluster->pools)
      require(plan_.ep == 1 || pool.node.accelerators == first.node.accelerators, "/plan/ep/degree",
              "expert parallelism over pools of different nodes needs equally many accelerators in each: "
              "\"{}\" has {}, \"{}\" {}",
              first.name, first.node.accelerators, pool.name, pool.node.accelerators);
    require(plan_.pp == 1 || (scenario_.weights == "random" && scenario_.save.empty()), "/cluster/pools",
            "checkpoints are cut for stages of equal speed: pools of different kinds need weights "
            "\"random\" and no save");
  }

  Scenario& scenario_;
  TrainingPlan& plan_;
  const Model& model_;
  const Document& document_;
};

}  // namespace

void check_training(Scenario& scenario, const Document& document) {
  TrainingChecks(scenario, document).run();
  check_training_job(scenario, document);
  check_buffers(scenario, document);
  check_plan_state(scenario, document);
  check_idle_keys(scenario, document);
}

}  // namespace moebius
