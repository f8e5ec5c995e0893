// How a training step is spread over ranks: degrees, precision, what overlaps. Plain data; the scenario
// reader checks it.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hw/dtype.h"
#include "workloads/routing/routing.h"
#include "workloads/schedule/fragment.h"
#include "workloads/schedule/layout.h"
#include "workloads/training/adapters.h"
#include "workloads/training/layers/captured.h"
#include "workloads/training/layers/fusion.h"
#include "workloads/training/sequence_lengths.h"

namespace moebius {

enum class PipelineKind : std::uint8_t { kGpipe, k1F1B, kInterleaved, kZbH1, kZbV, kDualPipe, kDualPipeV };
enum class RecomputePolicy : std::uint8_t { kNone, kSelective, kFull, kHybrid };
// How layers are spread over stages, where the plan does not list them.
enum class Slicing : std::uint8_t {
  kBalanced,      // the stage with most FLOPs has least
  kEven,          // as many layers on each, as Megatron-LM cuts by default
  kEvenWithEnds,  // the same, embedding and head counted as a layer each (its account-for-embedding and
                  // -loss)
  kDynamic,       // by time and memory: dynamic_slicing.h
};
// Whether attention is one kernel, or products, softmax and dropout are kernels of their own (before 2022).
enum class AttentionKernels : std::uint8_t { kFlash, kUnfused };
// Kernels of the loss over the logits: two, or one for each step (workloads/cost/separate_kernels.h).
enum class LossKernels : std::uint8_t {
  kFused,
  kSeparate,  // as Megatron-LM's vocabulary-parallel cross entropy
  kAutocast,  // as PyTorch's cross entropy under autocast
};
// Biases of queries, keys and values (the others of a layer are added behind their products): both in the
// products; summed by kernels of their own; added by such, too.
enum class BiasKernels : std::uint8_t { kFused, kSummedApart, kApart };
// What stands between a tensor and the collective that gathers it or sums it into shards (zero 2 and 3).
enum class ShardBuffers : std::uint8_t {
  kInPlace,  // nothing
  kFlat,     // gradients are put together into a flat one and divided, pass by pass (PyTorch's FSDP of 2022)
  kCopied,   // gathers fill a buffer that is copied out, gradients are copied into one (its FSDP2)
};
// What gradients that are sharded (zero 2 and 3) wait in for the last microbatch of a step.
enum class Accumulation : std::uint8_t {
  kShards,     // each microbatch's are summed over the replicas, into shards
  kWhole,      // on each rank, whole; summed once (FSDP2's set_requires_gradient_sync(False))
  kWholeBf16,  // the same in BF16, whatever they are summed in (FSDP1's no_sync(), in what it computes in)
};
// What a rank holds of a weight that is sharded (zero 3): its shard alone; beside it the larger one of a few
// neighbours; beside it all.
enum class WeightsStand : std::uint8_t { kCut, kPart, kWhole };
// Of the weights that a pass uses, before it and behind it.
struct HeldWeights {
  WeightsStand found = WeightsStand::kCut, left = WeightsStand::kCut;
  auto operator<=>(const HeldWeights&) const = default;
};
// How ranks that share a sequence see each other's keys.
enum class ContextKind : std::uint8_t {
  kAllGather,  // keys and values of all are gathered before attention
  kRing,       // blocks of them go round the ring beside attention over the block before (Liu et al. 2023)
  kUlysses,    // heads instead of tokens are cut for attention (Jacobs et al. 2023)
};
// What experts compute where an expert takes no more than a capacity of a rank's tokens.
enum class ExpertBuffers : std::uint8_t {
  kRows,    // as many rows as came
  kPadded,  // buffers of the capacity, filled up (Megatron-Core, --moe-pad-expert-input-to-capacity)
  kOneHot,  // the same, into and out of which products with one-hot masks bring rows (GShard): one_hot.cpp
};
enum class RecomputeOp : std::uint8_t {
  kNorm,
  kMlaUp,
  kActivation,
  kAttention,
  kQkv,
  kGate,
  kDispatch,
  kPermute,
  kExpertUp,
  kMlpUp,
  kAttentionOut,  // and the residual stream behind it, which is then not kept
  kMlpDown,       // the same
};
inline constexpr int kNumRecomputeOps = static_cast<int>(RecomputeOp::kMlpDown) + 1;

// What stands in host memory and is copied in and out where it is used.
struct Offload {
  bool optimizer = false;    // master weights and moments
  bool parameters = false;   // weights, or their shards
  bool gradients = false;    // sums of gradients, or their shards
  bool activations = false;  // what the layers keep for the reverse pass
  bool of_update() const { return optimizer || parameters || gradients; }  // of what an update touches
  bool any() const { return of_update() || activations; }
};

// What a microbatch takes in a stage of the model: its forward pass, the two parts of its reverse pass.
struct StageSeconds {
  double forward = 1, input = 1, weight = 1;
};

struct TrainingPlan {
  // Of attention, shared experts, embedding and head; of dense MLPs too, unless dense_tp says otherwise.
  int tp = 1;
  int dense_tp = 0;   // of dense MLPs; 0: tp
  int expert_tp = 1;  // of each expert
  // Pieces of a tensor-parallel gather or sum beside its matrix product; 0: whole, before or after it.
  int tp_chunks = 0;
  bool sequence_parallel = false;
  // What is gathered over them is put in order by a pass, what is summed is cut by one before, and gathered
  // rows are kept: collectives cut the first dimension alone, which is sequences (PyTorch's DTensor).
  bool gather_passes = false;
  int pp = 1;
  PipelineKind schedule = PipelineKind::k1F1B;
  int chunks = 1;  // stages of the model on a rank, of kInterleaved
  // A pass begins when the messages of those before it have arrived, not while they travel (Megatron-LM
  // until 2022, whose exchange ends with a synchronisation; github.com/deepseek-ai/DualPipe).
  bool blocking_messages = false;
  // Without sequence parallelism tensor-parallel ranks hold the same activations: each sends its share of the
  // rows, and the receivers gather them (Narayanan et al., SC'21, section 4.1).
  bool cut_messages = false;
  std::vector<int> layers = {};  // of each stage; empty: by slicing
  Slicing slicing = Slicing::kBalanced;
  int ep = 1;
  int nodes_per_token = 0;  // 0: as the model's group-limited routing says
  double capacity = 0;      // of an expert, see capacity_of(); 0: no limit
  bool capacity_of_sequence = false;  // counted for each sequence, not for all of a rank's microbatch
  ExpertBuffers expert_buffers = ExpertBuffers::kRows;
  int cp = 1;
  ContextKind context = ContextKind::kAllGather;
  int dp = 1;  // ranks / (tp * cp * pp)
  // Microbatches of each replica, where slower chips take fewer; empty: all take as many.
  std::vector<int> microbatches = {};
  bool auto_microbatches = false;  // found from the speed of their chips: uneven_batches.h
  // ZeRO (Rajbhandari et al. 2020) over the data-parallel replicas: 0 nothing is sharded, 1 optimizer states,
  // 2 gradients too, 3 parameters too.
  int zero = 0;
  int shard = 0;         // ranks that share a copy of what is sharded (HSDP); 0: all replicas
  int group_layers = 1;  // layers whose parameters are gathered, or copied, together
  int prefetch = 1;      // groups of layers ahead of use that this begins
  ShardBuffers shard_buffers = ShardBuffers::kInPlace;
  Accumulation accumulation = Accumulation::kShards;
  // Zero 3: neighbours among whom a forward pass leaves one copy of the weights that it has gathered; 1: each
  // keeps them whole; 0: they go back to all their shards' ranks.
  int regather = 0;
  bool free_after_backward = true;  // false, with regather 1: once a step, behind its last reverse pass
  Offload offload;
  bool overlap_gradients = false;
  bool overlap_weights = false;  // zero 1 and 2: updated shards are gathered beside the next forward pass
  DType gemm = DType::kBf16;
  DType dispatch = DType::kBf16;
  DType combine = DType::kBf16;
  Algorithm exchange = Algorithm::kAuto;  // of dispatch and combine: see exchange_family() in sim/traffic
  DType gradients = DType::kFp32;
  DType optimizer_states = DType::kFp32;
  DType master = DType::kFp32;
  bool keeps_master = true;           // false: the weights themselves are updated
  Scaling scaling = Scaling::kBlock;  // of FP8 operands of matrix products
  // Largest magnitudes of delayed scaling are shared by ranks of the same tokens alone, not by all of a
  // stage.
  bool history_of_tensor_ranks = false;
  bool fused_quantise = false;
  bool half_weights =
      false;  // weights of FP8 products are updated and gathered in BF16, and quantised once a step
  bool separate_accumulation =
      false;  // weight gradients are written in BF16 and added to the kept ones (zero 0, 1)
  LossKernels loss = LossKernels::kFused;
  bool eager_elementwise =
      false;  // RMSNorms, rotations and gated activations are a kernel for each operation
  BiasKernels biases = BiasKernels::kFused;
  bool separate_norm_grad = false;  // a norm's own gradient is a kernel that reads both operands again
  double clip = 0;                  // the norm over all gradients that a step keeps to; 0: whatever it is
  bool separate_update = false;     // unscaling, scaling by the norm and copies are kernels beside Adam's
  bool separate_routing = false;    // gate, permutation and weights are kernels of elementary steps
  bool expert_by_expert = false;    // a matrix product for each expert, not one for all of a rank
  bool expert_modules = false;      // beside that: each takes a slice of the rows, and its result is copied
  AttentionKernels attention = AttentionKernels::kFlash;
  RecomputePolicy recompute = RecomputePolicy::kNone;
  std::vector<RecomputeOp> recompute_ops;
  int recompute_layers = 1;       // full: layers of which only the first one's input is kept
  int recompute_every = 1;        // full: the last one of so many layers, the others keep everything
  bool recompute_stops = false;   // full: behind the last op whose operands or results the reverse pass reads
  Bytes recompute_budget = {};    // hybrid: memory of a device that a step may fill
  bool keeps_to_budget = true;    // hybrid: a stage that does not fit is an error; else it recomputes all
  FlopRate recompute_flops = {};  // hybrid: of the slowest device, to weigh what is computed again
  ByteRate recompute_memory = {};
  ByteRate recompute_host = {};  // of its link to the host: what is kept there is copied; 0: in no time
  Bytes memory_reserve = {};     // of a device, beside what the step's tensors take
  bool overlap_dispatch_combine = true;
  bool overlap_tensor_gradients = true;  // tensor-parallel sums of the reverse pass beside weight gradients
  bool overlap_two_batch = false;        // 1F1B, interleaved: forward beside backward passes, layer by layer
  bool recompute_whole = false;          // full: a layer ends again before its reverse pass, its sums in line
  std::vector<StageSeconds> stage_seconds = {};  // of each stage, as passes of ZB-V are ordered; empty: equal
  std::vector<double> stage_speeds;  // FLOP/s of a rank of each stage, as layers are given out; empty: equal
  int communication_sms = 0;         // cores that dispatch and combine hold; 0: they run by copy engines
  int tensor_sms = 0;                // and tensor-parallel gathers and sums; 0: their library's
  LaunchMode launch = LaunchMode::kHidden;
  std::vector<GraphModule> captured;  // kKernel, kEager: launched as graphs all the same
  std::vector<Fusion> fusions;
  bool fold = true;  // simulate one rank of each class

  // Of one tensor or of 32 elements: activations and gradients are quantised for both their products at once.
  bool quantises_both_ways() const { return gemm == DType::kFp8 && scaling != Scaling::kBlock; }
  bool keeps_history() const { return gemm == DType::kFp8 && scaling == Scaling::kHistory; }
  // Shards of FP8 weights travel as such; else in BF16, and every rank quantises what it gathered.
  bool gathers_fp8() const { return zero >= 3 && gemm == DType::kFp8 && !half_weights; }
  bool keeps_gathered() const { return zero >= 3 && regather > 0; }
  int ranks() const { return tp * cp * pp * dp; }
  int dense_degree() const { return dense_tp > 0 ? dense_tp : tp; }
  bool zigzag() const { return cp > 1 && context == ContextKind::kRing; }  // see context_part.h
  int expert_ranks() const { return ep * expert_tp; }                      // that hold a layer's experts once
  bool fills_buffers() const { return expert_buffers != ExpertBuffers::kRows; }
  int message_parts() const { return cut_messages ? tp : 1; }
  bool uneven_batches() const { return auto_microbatches || !microbatches.empty(); }
  bool mixed_tp() const { return dense_degree() != tp; }  // dense MLPs have groups of their own
};

struct TrainingWorkload {
  std::int64_t sequence_length = 0;
  std::int64_t global_batch = 0;  // sequences per step
  std::int64_t micro_batch = 1;   // sequences per microbatch and data-parallel rank
  int steps = 1;                  // in all, those of earlier runs that this one goes on from included
  int first_step = 0;             // the first one of this run
  double learning_rate = 1e-3;    // of Adam, where numbers are computed
  double dropout = 0;             // of probabilities and of what a block adds; simulated only
  Popularity popularity;
  std::uint64_t seed = 1;
  std::optional<SequenceLengths> lengths = {};          // packed sequences; none: each fills its row
  int input_ahead = 0;                                  // microbatches read ahead of use; 0: they are there
  bool forward_only = false;                            // scoring: no reverse pass, no optimizer
  Adapters adapters = {};                               // that alone are trained; none: all weights are
  int num_steps() const { return steps - first_step; }  // of this run
  // Of a replica; the most, where they differ.
  int num_microbatches(const TrainingPlan& plan) const {
    if (!plan.microbatches.empty())
      return *std::max_element(plan.microbatches.begin(), plan.microbatches.end());
    return static_cast<int>(global_batch / (micro_batch * plan.dp));
  }
};

// Rank order: tensor fastest, then context, data, pipeline slowest; expert groups are consecutive ranks of a
// stage, or of those at the same place in runs of ranks that share an expert. Folded: one class per pipeline
// stage. Unfolded: one per rank.
Layout make_layout(const TrainingPlan& plan);

// "loss, update": what stands in kernels of its own; empty: nothing.
std::string kernels_apart(const TrainingPlan& plan);

}  // namespace moebius
