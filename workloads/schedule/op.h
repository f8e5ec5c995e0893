// One piece of work on one lane. An op carries what is to be done and on what, never how long it takes: time
// belongs to executors.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "hw/dtype.h"
#include "hw/units.h"
#include "models/op_kind.h"

namespace moebius {

// Ops of one lane of one rank start in the order of submission, one after the other, like a stream.
enum class Lane : std::uint8_t {
  kCompute,
  kTensorComm,   // tensor- and context-parallel collectives
  kExpertComm,   // dispatch and combine
  kSendForward,  // pipeline: each direction sends and receives on lanes of its own, so that none blocks
                 // another
  kRecvForward,
  kSendBackward,
  kRecvBackward,
  kDataComm,   // gradients, parameters
  kHostCopy,   // from host memory to the device: one copy engine
  kHostStore,  // and back: another
  kLoader,     // the host reads and prepares the batch: ops that produce what stands in host memory
};
inline constexpr int kNumLanes = static_cast<int>(Lane::kLoader) + 1;

// What part of a step the op belongs to.
enum class Phase : std::uint8_t { kForward, kBackward, kWeight, kGradients, kOptimizer };
inline constexpr int kNumPhases = static_cast<int>(Phase::kOptimizer) + 1;

// The groups of ranks that a rank belongs to.
enum class GroupRole : std::uint8_t {
  kNone,
  kTensor,
  kContext,
  kExpert,
  kData,        // replicas of the dense parameters
  kExpertData,  // replicas of the same experts
  kNext,        // {this rank, the same rank of the next pipeline stage}: lower rank first, here and below
  kPrevious,    // {the same rank of the previous pipeline stage, this rank}
  kTied,        // {first stage, last stage}: the embedding that both hold
  kWorld,
  kDenseTensor,  // that share dense MLPs, where those are cut otherwise than attention
  kDenseData,    // replicas of the parameters of those
  kShard,  // of kData: those that cut one copy of the dense parameters among them (HSDP); absent: kData does
  kReplica,      // of kData: those that hold the same shard
  kExpertShard,  // the same of kExpertData
  kExpertReplica,
  kBatch,         // who reads different parts of a step's batch, where that is not the data group
  kExpertTensor,  // that share each of their experts among them; absent: none is shared
  kScales,        // that share scales found in the steps before (delayed scaling); absent: there are none
  kRegather,      // of kShard, or kData: neighbours that hold a copy of the weights between two passes
  kExpertRegather,  // the same of kExpertShard, or kExpertData
};
inline constexpr int kNumGroupRoles = static_cast<int>(GroupRole::kExpertRegather) + 1;

// kLibrary: of dispatch and combine alone, the communication library's all-to-all; kRing of these: its gather
// of all tokens and reduce-scatter of their sums. The others choose by themselves.
enum class Algorithm : std::uint8_t {
  kAuto,
  kRing,
  kDirect,
  kTree,
  kHierarchical,
  kInSwitch,
  kRailLocal,
  kLibrary
};

// Which matrix or step of a layer: names for people, and the key of a parameter.
enum class Role : std::uint8_t {
  kNone,
  kInput,
  kEmbedding,
  kHead,
  kLoss,
  kAttentionNorm,
  kQkv,
  kQ,
  kQA,
  kQNorm,
  kQB,
  kKvA,
  kKvNorm,
  kKvB,
  kRope,
  kAttention,
  kO,
  kMlpNorm,
  kGateUp,
  kDown,
  kRouter,
  kGate,
  kSharedGateUp,
  kSharedDown,
  kExpertGateUp,
  kExpertDown,
  kExperts,
  kResidual,
  kFinalNorm,
  kMtpHiddenNorm,
  kMtpEmbeddingNorm,
  kMtpProjection,
  kPipeline,
  kDense,
  kCollective,
  kCache,
  kTokens,
  kDeltaGates,
  kConvolution,
  kDeltaRule,
  kDeltaNorm,
  kIndexer,
  kIndexerKey,
  kIndexerNorm,
  kIndexerHeads,
  kSharedScore,  // of the gate of shared experts
};
inline constexpr int kNumRoles = static_cast<int>(Role::kSharedScore) + 1;

// Op::units of communication that no library carries out: copies that engines make, and kernels of a
// framework's own that push and add (Transformer Engine's userbuffers, which keep 16 multiprocessors for them
// unless told otherwise).
inline constexpr std::int16_t kCopyEngines = -1, kPushKernels = -2;

struct Op {
  OpKind kind = OpKind::kAdd;
  DType dtype = DType::kBf16;  // of the operands (compute) or of the payload (communication)
  Lane lane = Lane::kCompute;
  Phase phase = Phase::kForward;
  Role role = Role::kNone;
  GroupRole group = GroupRole::kNone;  // communication only; of copies to and from the host: none
  Algorithm algorithm = Algorithm::kAuto;
  std::uint8_t num_inputs = 0, num_outputs = 0;
  std::uint8_t queue = 0;  // communication: the fabric's priority queue; 0: the one that its lane goes in
  bool second = false;     // of the submission's second microbatch
  bool fused = false;      // compute: one kernel with the op before it in its lane, whose result it reads
  std::int16_t layer = -1;
  // Cores to hold. Compute: > 0 exactly so many, 0 all that are free, < 0 all of the chip but so many,
  // which where communication has engines of its own are all that are free. Communication: exactly so many, 0
  // as many as the library's kernel takes, kCopyEngines none, kPushKernels a few.
  std::int16_t units = 0;
  std::int32_t route = -1;  // index into Fragment::routes: the loads of this op
  std::int32_t batch = -1;  // index into Fragment::batches: whose tokens its rows are (serving)
  std::uint32_t match = 0;  // communication: equal for the ops of the members that meet, unique in a
                            // microbatch; compute: context_part.h
  std::int32_t first_dependency = 0,
               num_dependencies = 0;  // into Fragment::dependencies; ops of this fragment, earlier ones only
  std::int32_t first_tensor = 0;      // into Fragment::operands: inputs, then outputs
  float scale = 1;                    // see the kinds that use it
  Shape shape = {};
  // Communication only. All-reduce, reduce-scatter, broadcast: the whole buffer; all-gather: the gathered
  // buffer; all-to-all: what one rank holds before; send, recv: the message. Dispatch, combine: one token's
  // row.
  Bytes payload = {};
};

std::string_view to_string(Lane lane);
std::string_view to_string(Phase phase);
std::string_view to_string(GroupRole group);
std::string_view to_string(Role role);
std::string_view to_string(Algorithm algorithm);

}  // namespace moebius
