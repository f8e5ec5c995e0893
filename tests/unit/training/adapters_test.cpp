// Low-rank adapters beside a frozen model: what of a step they change, to the byte and the product.
#include <catch2/catch.hpp>

#include <numeric>

#include "state_of_job.h"
#include "workloads/cost/separate_kernels.h"
#include "workloads/training/layers/builder.h"

using namespace moebius;

namespace {

// Four layers of 64 columns, four heads of 16, MLPs of 128; a microbatch is 32 tokens.
constexpr std::int64_t kRank = 4, kLayers = 4, kTokens = 32;
constexpr std::int64_t kQkv = kRank * (192 + 64), kOut = kRank * (64 + 64), kUp = kRank * (256 + 64),
                       kDown = kRank * (64 + 128);
const std::vector<AdapterTarget> kAllDense{AdapterTarget::kQkv, AdapterTarget::kAttentionOut,
                                           AdapterTarget::kMlpUp, AdapterTarget::kMlpDown};

TrainingJob adapted(TrainingJob job, const std::vector<AdapterTarget>& targets = kAllDense) {
  job.workload.adapters = {.rank = kRank, .targets = targets};
  return job;
}

double resident(const TrainingJob& job, MemoryKind kind) {
  return memory_of(job).resident[static_cast<int>(kind)].value;
}

template <class Of>
void each_op(const TrainingJob& job, const Of& of) {
  for (const FragmentPtr& fragment : fragments_of(job))
    for (const Op& op : fragment->ops) of(*fragment, op);
}

int count(const TrainingJob& job, OpKind kind) {
  int found = 0;
  each_op(job, [&](const Fragment&, const Op& op) { found += op.kind == kind; });
  return found;
}

// Of the passes of one microbatch, without the update.
double products(const TrainingJob& job, Phase pass) {
  double flops = 0;
  for (const FragmentPtr& fragment : fragments_of(job)) {
    if (fragment->phase != pass) continue;
    for (const OpKind kind : {OpKind::kGemm, OpKind::kGemmDgrad, OpKind::kGemmWgrad})
      flops += matrix_flops(*fragment, kind);
  }
  return flops;
}

double payload(const TrainingJob& job, OpKind kind, GroupRole group, Lane lane) {
  double bytes = 0;
  each_op(job, [&](const Fragment&, const Op& op) {
    if (op.kind == kind && op.group == group && op.lane == lane) bytes += op.payload.value;
  });
  return bytes;
}

}  // namespace

TEST_CASE("adapters alone have gradients, masters and moments, and are what is added to the weights") {
  const TrainingJob full = dense_job();
  const TrainingJob job = adapted(full);
  constexpr double kTrained = kLayers * (kQkv + kOut + kUp + kDown);
  CHECK(count_adapters(job.model, job.workload.adapters).all == kTrained);
  CHECK(resident(job, MemoryKind::kWeights) == resident(full, MemoryKind::kWeights) + 2 * kTrained);
  CHECK(resident(job, MemoryKind::kGradients) == 2 * kTrained);
  CHECK(resident(job, MemoryKind::kOptimizer) == 12 * kTrained);
  CHECK(memory_of(job).peak < memory_of(full).peak);
}

TEST_CASE("zero cuts the states of adapters, and shards of frozen weights are gathered and never reduced") {
  TrainingJob full = dense_job();
  constexpr double kTrained = kLayers * (kQkv + kOut + kUp + kDown);
  full.plan.zero = 1;
  CHECK(resident(adapted(full), MemoryKind::kOptimizer) == 12 * kTrained / 4);
  full.plan.zero = 3;
  const TrainingJob job = adapted(full);
  CHECK(resident(job, MemoryKind::kWeights) == resident(full, MemoryKind::kWeights) + 2 * kTrained / 4);
  CHECK(payload(job, OpKind::kReduceScatter, GroupRole::kData, Lane::kDataComm) == 2 * kTrained);
  const auto gathered = [](const TrainingJob& of) {
    return payload(of, OpKind::kAllGather, GroupRole::kData, Lane::kDataComm);
  };
  // Forward and back alike, but for norms, embedding and head, which the way back does not read or once.
  CHECK(gathered(job) > gathered(full));
}

TEST_CASE("replicas sum the gradients of adapters and nothing else") {
  constexpr double kTrained = kLayers * kQkv;
  const TrainingJob job = adapted(dense_job(), {AdapterTarget::kQkv});
  CHECK(payload(job, OpKind::kAllReduce, GroupRole::kData, Lane::kDataComm) == 2 * kTrained);
}

TEST_CASE("updated adapters alone are gathered beside the first pass of a step") {
  TrainingJob job = adapted(dense_job(), {AdapterTarget::kQkv});
  job.plan.zero = 1;
  job.plan.overlap_weights = true;
  CHECK(payload(job, OpKind::kAllGather, GroupRole::kData, Lane::kDataComm) == 2.0 * kLayers * kQkv);
}

TEST_CASE("frozen matrices, norms and tables have no gradients of their own") {
  const TrainingJob job = adapted(dense_job());
  CHECK(count(job, OpKind::kGemmWgrad) == 2 * 4 * kLayers);  // A and B beside four matrices of a layer
  CHECK(count(job, OpKind::kEmbeddingGrad) == 0);
  each_op(job, [](const Fragment& fragment, const Op& op) {
    if (op.kind == OpKind::kNormGrad) CHECK(op.num_outputs == 1);
    if (op.kind == OpKind::kGemmWgrad) CHECK(is_adapter(fragment.tensors[fragment.output(op, 0)]));
    if (op.kind == OpKind::kAdam) {
      for (int i = 0; i < op.num_outputs; ++i) CHECK(is_adapter(fragment.tensors[fragment.output(op, i)]));
    }
  });
}

// x A' and its product with B' forward; back, both gradients of both. Of the first layer's map of queries,
// keys and values nobody asks for the gradient of what came in, by W or by A.
TEST_CASE("products of a step with adapters, by hand") {
  const TrainingJob full = dense_job();
  const TrainingJob job = adapted(full);
  constexpr double kFirst = 64 * 192, kBeside = kLayers * (kQkv + kOut + kUp + kDown);
  const double base = products(full, Phase::kForward);
  CHECK(products(job, Phase::kForward) == base + 2.0 * kTokens * kBeside);
  CHECK(products(job, Phase::kBackward) ==
        base + 2.0 * kTokens * (2 * kBeside - kFirst - static_cast<double>(kRank * 64)));
}

TEST_CASE("below the first adapter of a model nothing runs in reverse, nor is computed again") {
  TrainingJob job = adapted(dense_job(), {AdapterTarget::kMlpDown});
  CHECK(count(job, OpKind::kAttentionGrad) == kLayers - 1);
  CHECK(count(job, OpKind::kNormGrad) == 2 * (kLayers - 1) + 1);
  job = adapted(small_job(), {AdapterTarget::kExpertDown});  // in layers 1 to 3
  job.plan.recompute = RecomputePolicy::kFull;
  CHECK(count(job, OpKind::kAttentionGrad) == kLayers - 2);
  int again = 0;
  each_op(job, [&](const Fragment& fragment, const Op& op) {
    again += fragment.phase == Phase::kBackward && op.kind == OpKind::kAttention;
  });
  CHECK(again == kLayers - 1);
}

// What the reverse pass reads of a layer with adapters beside the first map alone: of the MLP what its
// activation and norm need, not what its products do.
TEST_CASE("inputs of frozen matrices without an adapter are not kept") {
  const auto kept = [](const TrainingJob& job, Role role, std::int64_t columns) {
    int found = 0;
    for (const FragmentPtr& fragment : fragments_of(job)) {
      if (fragment->phase != Phase::kForward) continue;
      for (const Tensor& tensor : fragment->tensors)
        found += tensor.scope == Scope::kMicrobatch && tensor.role == role && tensor.columns == columns;
    }
    return found;
  };
  const TrainingJob full = dense_job(), job = adapted(full, {AdapterTarget::kQkv});
  CHECK(kept(full, Role::kGateUp, 128) == kLayers);  // of the activation, which down multiplies
  CHECK(kept(job, Role::kGateUp, 128) == 0);
  CHECK(kept(full, Role::kMlpNorm, 64) == kLayers);
  CHECK(kept(job, Role::kMlpNorm, 64) == 0);
  CHECK(kept(job, Role::kAttentionNorm, 64) == kLayers);  // x, of which A's gradient is made
  CHECK(kept(job, Role::kQkv, kRank) == kLayers);         // x A', for B's
  CHECK(kept(full, Role::kGateUp, 256) == kept(job, Role::kGateUp, 256));
}

// A of a map that is cut by its outputs, and B of one that is cut by its inputs, stand whole on both ranks. A
// gets from each rank what its outputs say, B what its rows say where those are cut: the sums of a step. x A'
// of the latter map is summed in columns of the rank, in every microbatch.
TEST_CASE("tensor-parallel ranks cut adapters as the matrices beside them") {
  TrainingJob full = dense_job();
  full.plan.tp = 2;
  const std::vector<AdapterTarget> both{AdapterTarget::kQkv, AdapterTarget::kAttentionOut};
  const TrainingJob job = adapted(full, both);
  constexpr double kOfRank = kLayers * kRank * (64 + 192 / 2 + 64 / 2 + 64);
  CHECK(resident(job, MemoryKind::kGradients) == 2 * kOfRank);
  const auto summed = [](const TrainingJob& of, Lane lane) {
    return payload(of, OpKind::kAllReduce, GroupRole::kTensor, lane);
  };
  CHECK(summed(job, Lane::kDataComm) == 2.0 * kLayers * kRank * 64);
  // Of the first layer's input no gradient is asked for, nor summed.
  constexpr double kLow = 2.0 * kLayers * kTokens * kRank, kInput = 2.0 * kTokens * 64;
  CHECK(summed(job, Lane::kTensorComm) == summed(full, Lane::kTensorComm) + kLow - kInput);
  full.plan.sequence_parallel = true;
  const TrainingJob cut = adapted(full, both);
  CHECK(summed(cut, Lane::kDataComm) == 2.0 * kLayers * kRank * (64 + 64));
  double low = 0;
  each_op(cut, [&](const Fragment&, const Op& op) {
    if (op.kind == OpKind::kReduceScatter && op.shape.n == kRank) low += op.payload.value;
  });
  CHECK(low == kLow);
}

// 8-bit products of frozen weights need no copy of their operands along the tokens; adapters multiply in 16.
TEST_CASE("in an 8-bit plan adapters multiply in 16 bits, and nothing is quantised for weight gradients") {
  TrainingJob job = adapted(dense_job());
  job.plan.gemm = DType::kFp8;
  for (const Scaling scaling : {Scaling::kBlock, Scaling::kHistory}) {
    job.plan.scaling = scaling;
    CHECK(count(job, OpKind::kTransposeQuantise) == 0);
    each_op(job, [](const Fragment& fragment, const Op& op) {
      if (op.kind == OpKind::kQuantise) CHECK(op.num_outputs == 1);
      if (op.kind == OpKind::kGemm && is_adapter(fragment.tensors[fragment.input(op, 1)]))
        CHECK(op.dtype == DType::kBf16);
    });
  }
}

// Three layers with experts.
TEST_CASE("biases of experts are those of their products, which adapters have not") {
  TrainingJob job = adapted(small_job(), {AdapterTarget::kExpertDown});
  job.plan.expert_by_expert = true;
  job.model.biases = Biases::kAll;
  int with_bias = 0, down = 0;
  each_op(job, [&](const Fragment&, const Op& op) {
    if (op.kind != OpKind::kGroupedGemm || op.role != Role::kExpertDown) return;
    ++down;
    with_bias += op.shape.heads == kSeparateWithBias;
  });
  CHECK(with_bias > 0);
  CHECK(down == 3 * with_bias);
}

TEST_CASE("adapters of experts are counted as they stand, and go with their experts") {
  const TrainingJob job = adapted(small_job(), {AdapterTarget::kQkv, AdapterTarget::kExpertUp,
                                                AdapterTarget::kExpertDown, AdapterTarget::kMlpDown});
  const AdapterCount all = count_adapters(job.model, job.workload.adapters);
  std::map<std::uint32_t, double> elements;
  each_op(job, [&](const Fragment& fragment, const Op& op) {
    for (int i = 0; op.kind == OpKind::kAdam && i < op.num_inputs; ++i) {
      const Tensor& tensor = fragment.tensors[fragment.input(op, i)];
      if (tensor.memory == MemoryKind::kWeights)
        elements[tensor.key] = tensor.elements() * (tensor.experts > 0 ? 4 : 1);
    }
  });
  double sum = 0;
  for (const auto& [key, number] : elements) sum += number;
  CHECK(sum == all.all);
  // Of 8 experts 2 multiply a token.
  constexpr double kExperts = kRank * (64 + 64 + 32 + 64);
  CHECK(all.all - all.of_token == 3 * (8 - 2) * kExperts);
  CHECK(count(job, OpKind::kGroupedGemmWgrad) == 3 * 4);
}

TEST_CASE("a stage of frozen layers joins the norm with nothing, and updates nothing") {
  TrainingJob job = adapted(small_job(), {AdapterTarget::kExpertUp});
  job.plan.pp = 4;
  job.plan.clip = 1;
  job.plan.layers = {1, 1, 1, 1};  // the first is dense
  for (const PipelineKind kind : {PipelineKind::k1F1B, PipelineKind::kZbH1}) {
    job.plan.schedule = kind;
    int norms = 0, squares = 0;
    each_op(job, [&](const Fragment&, const Op& op) {
      norms += op.kind == OpKind::kAllReduce && op.group == GroupRole::kWorld;
      squares += op.kind == OpKind::kSumSquares;
    });
    CHECK(norms == 4);
    CHECK(squares == 3);
  }
}

// Three dense layers stand before the first adapters, on ranks of the pipeline of their own: what one rank
// would not run in reverse no rank does, and no gradient is sent to them.
TEST_CASE("gradients go down to the first adapter of the model, in whichever stage it stands") {
  for (const PipelineKind kind : {PipelineKind::k1F1B, PipelineKind::kZbH1}) {
    TrainingJob job = adapted(small_job(), {AdapterTarget::kExpertUp});
    job.model.first_dense = 3;
    job.plan.schedule = kind;
    const int products = count(job, OpKind::kGemmDgrad), cores = count(job, OpKind::kAttentionGrad);
    REQUIRE(products > 0);
    job.plan.pp = 4;
    job.plan.layers = {1, 1, 1, 1};
    CHECK(count(job, OpKind::kGemmDgrad) == products);
    CHECK(count(job, OpKind::kAttentionGrad) == cores);
    each_op(job, [](const Fragment&, const Op& op) {
      CHECK(op.lane != Lane::kSendBackward);
      CHECK(op.lane != Lane::kRecvBackward);
    });
    job.model.first_dense = 2;  // from the last stage to the one before
    int sent = 0, received = 0;
    each_op(job, [&](const Fragment&, const Op& op) {
      sent += op.lane == Lane::kSendBackward;
      received += op.lane == Lane::kRecvBackward;
    });
    CHECK(sent == 1);
    CHECK(received == 1);
  }
}
