// From a model and a plan to the forward fragment of one pipeline stage. The reverse pass is derived from it
// (workloads/training/layers/backward.h), so that each layer is written down once.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "models/model.h"
#include "workloads/routing/routing.h"
#include "workloads/training/layers/builder.h"
#include "workloads/training/pipeline/slicing.h"
#include "workloads/training/plan.h"

namespace moebius {

// Everything that lowering reads; lives as long as the run.
struct LoweringInput {
  const Model* model = nullptr;
  const TrainingPlan* plan = nullptr;
  const TrainingWorkload* workload = nullptr;
  int ranks_per_node = 1;
};

// Where a rank stands in the groups over which parameters are cut.
struct ShardPosition {
  int tensor = 0;       // index in its tensor-parallel group
  int expert = 0;       // index in its expert-parallel group
  int dense = 0;        // index among the ranks that share dense MLPs
  int expert_part = 0;  // index among the ranks that share each of their experts
  int replica = 0;      // of the data, where replicas read sequences of lengths of their own
};

// Draws each route once. Balanced routes are the same for all layers and steps.
class RouteCache {
 public:
  // Of one model, seed and popularity; sets the weights.
  RoutePtr get(RouteSpec spec);

 private:
  std::optional<PopularityCourse> course_;
  std::vector<RoutePtr> routes_;
};

// The forward fragment of a stage under construction, with what the reverse pass needs to know about it.
struct ForwardPass {
  explicit ForwardPass(std::string name, int meetings = 0)
      : builder(std::move(name), Phase::kForward, meetings) {}

  FragmentBuilder builder;
  std::vector<int> block_of_op;         // attention and MLP of a layer are one block each
  std::set<std::int32_t> recomputable;  // ops whose results are not kept but computed again
  std::vector<std::pair<std::int32_t, std::int32_t>> again;  // ops [first, last) that run again as a whole
  // Gradients arrive as partial sums over the tensor-parallel group; those that come through a matrix which
  // every rank of it holds are whole.
  std::set<TensorId> partial;
  std::set<TensorId> partial_weights;           // partial sums, too: of parameters that all of the group hold
  std::map<TensorId, TensorId> quantised_from;  // 8-bit copy -> original
  std::map<TensorId, TensorId> columns_of;  // 8-bit copy -> the one with scales along columns, if it has one
  TensorId received = kNoTensor;            // from the previous stage
  TensorId sent = kNoTensor;                // to the next stage
  std::int32_t batch = -1;                  // of the packed sequences; -1: none
  std::int32_t local_batch = -1;            // the same as layers see them that attend in chunks
  std::vector<TensorId> read;               // tokens and labels that a load has brought; empty: none
  std::vector<TensorId> streams;            // all that the load reads on the host, these among them
};

// Hybrid: what is computed again in which layer; or the layers whole.
struct RecomputeChoice {
  bool full = false;
  std::set<std::pair<int, RecomputeOp>> ops;  // layer, op
};

struct StageSpec {
  StageSlice slice;
  int stage = 0;
  ShardPosition shard;
  int step = 0;
  int microbatch = -1;        // of the routes; -1: they do not depend on it
  BatchPtr packed = nullptr;  // the sequences in its rows; null: each row is one
  double counted_tokens = 0;  // of the whole step, that the loss is taken on; 0: all
  std::shared_ptr<const RecomputeChoice> recompute = {};
  int chunk = 0;     // of the rank
  int meetings = 0;  // whose collectives it may meet: of stages on one rank those of each stage differ
  // Where the stages before and after this one stand; kNone: on the same rank, or there is none.
  GroupRole previous = GroupRole::kPrevious, next = GroupRole::kNext;

  std::string name() const;  // "stage 3", of a second chunk "stage 3, chunk 1"
};

// The op that reads a microbatch's tokens and labels: of the forward pass, or of a load before it.
Op input_op(const LoweringInput& input, std::int64_t tokens, int streams);

// What brings `forward.read`: the host reads and prepares it (Lane::kLoader), a copy engine moves it.
// `first`: of the run.
FragmentBuilder lower_load(const LoweringInput& input, const StageSpec& stage, const ForwardPass& forward,
                           bool first);

ForwardPass lower_forward(const LoweringInput& input, const StageSpec& stage, RouteCache& routes);

// Tokens of one microbatch on one rank: cut by context and, with sequence parallelism, between blocks also by
// tensor parallelism.
std::int64_t tokens_per_rank(const LoweringInput& input);

// A message between stages of which each tensor-parallel rank sends a share of the rows
// (TrainingPlan::cut_messages): the rows of `member`, as many as the op says.
void cut_message(Op& send, const TrainingPlan& plan, int member);

// The groups between which a token chooses first, so that its experts stand on no more nodes than the plan
// says.
struct ExpertGroups {
  int all = 1, active = 1;
};
// `devices`: of a node.
ExpertGroups expert_groups(const TrainingPlan& plan, const Experts& experts, int devices);

// Most copies that one expert takes of a group of one rank's tokens: the plan's capacity times the mean of
// the group, rounded up (Fedus et al., Switch Transformer, equation 3). The group is all of a microbatch, or
// what the rank has of each of its `sequences`.
struct ExpertCapacity {
  int rows = 0;  // 0: no limit
  int groups = 1;
  std::int64_t of_rank() const { return std::int64_t{rows} * groups; }
};
ExpertCapacity capacity_of(const TrainingPlan& plan, const Experts& experts, std::int64_t tokens,
                           std::int64_t sequences);

// Ops of ExpertBuffers::kOneHot: the pass that writes a layer's masks, the products with them.
bool writes_masks(const Op& op);
bool multiplies_mask(const Op& op);

}  // namespace moebius
