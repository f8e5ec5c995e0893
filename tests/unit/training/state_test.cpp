// How much memory the state of a plan takes, and what brings it to the device.
#include <catch2/catch.hpp>

#include "state_of_job.h"
#include "workloads/cost/op_costs.h"
#include "workloads/cost/roofline.h"
#include "workloads/schedule/recorder.h"

using namespace moebius;

namespace {

double kept(const ClassMemory& memory, MemoryKind kind) {
  return memory.resident[static_cast<int>(kind)].value;
}
double host(const ClassMemory& memory, MemoryKind kind) {
  return memory.on_host[static_cast<int>(kind)].value;
}

double payload(const TrainingJob& job, OpKind kind, Phase phase) {
  double bytes = 0;
  for (const FragmentPtr& fragment : fragments_of(job)) {
    for (const Op& op : fragment->ops) {
      if (op.kind == kind && fragment->phase == phase) bytes += op.payload.value;
    }
  }
  return bytes;
}

}  // namespace

// Rajbhandari et al. 2020, figure 1, with K = 12 for mixed-precision Adam: (2 + 2 + K) P without; 2P + 2P + K
// P / N with the optimizer's states sharded; 2P + (2 + K) P / N with gradients too; (2 + 2 + K) P / N with
// parameters too.
TEST_CASE("the stages of ZeRO keep what their paper says, to the byte") {
  TrainingJob job = dense_job();
  const double p = count_parameters(job.model).total(), n = 4;
  const double weights[] = {2 * p, 2 * p, 2 * p, 2 * p / n};
  const double gradients[] = {2 * p, 2 * p, 2 * p / n, 2 * p / n};
  const double states[] = {12 * p, 12 * p / n, 12 * p / n, 12 * p / n};
  for (int zero = 0; zero <= 3; ++zero) {
    job.plan.zero = zero;
    const ClassMemory memory = memory_of(job);
    CHECK(kept(memory, MemoryKind::kWeights) == weights[zero]);
    CHECK(kept(memory, MemoryKind::kGradients) == gradients[zero]);
    CHECK(kept(memory, MemoryKind::kOptimizer) == states[zero]);
    CHECK(memory.after_pass.back().value ==
          weights[zero] + gradients[zero] + states[zero] + 4);  // and the loss
  }
}

TEST_CASE("biases of queries, keys and values are kept as all parameters are, to the byte") {
  TrainingJob job = dense_job();
  job.model.biases = Biases::kQkv;
  const double p = count_parameters(job.model).total(), n = 4;
  for (const int zero : {0, 3}) {
    job.plan.zero = zero;
    const ClassMemory memory = memory_of(job);
    CHECK(kept(memory, MemoryKind::kWeights) == 2 * p / (zero == 3 ? n : 1));
    CHECK(kept(memory, MemoryKind::kGradients) == 2 * p / (zero == 3 ? n : 1));
    CHECK(kept(memory, MemoryKind::kOptimizer) == 12 * p / (zero == 3 ? n : 1));
  }
}

TEST_CASE("two copies of shards over four replicas take twice the memory of one") {
  TrainingJob job = dense_job();
  job.plan.zero = 3;
  const ClassMemory one = memory_of(job);
  job.plan.shard = 2;
  const ClassMemory two = memory_of(job);
  for (const MemoryKind kind : {MemoryKind::kWeights, MemoryKind::kGradients, MemoryKind::kOptimizer})
    CHECK(kept(two, kind) == 2 * kept(one, kind));
}

// InternEvo's zero1 and Megatron-Core's num_distributed_optimizer_instances: states are cut in each copy.
TEST_CASE(
    "sums that stay whole are reduced over all replicas, and weights gathered in each copy of their states") {
  TrainingJob job = dense_job();
  job.plan.zero = 1;
  const ClassMemory one = memory_of(job);
  const double p = count_parameters(job.model).total();
  CHECK(payload(job, OpKind::kReduceScatter, Phase::kOptimizer) == 2 * p);
  job.plan.shard = 2;
  const ClassMemory two = memory_of(job);
  CHECK(kept(two, MemoryKind::kOptimizer) == 2 * kept(one, MemoryKind::kOptimizer));
  CHECK(kept(two, MemoryKind::kGradients) == kept(one, MemoryKind::kGradients));
  CHECK(payload(job, OpKind::kReduceScatter, Phase::kOptimizer) == 0);
  CHECK(payload(job, OpKind::kAllReduce, Phase::kOptimizer) == 2 * p);
  CHECK(payload(job, OpKind::kAllGather, Phase::kOptimizer) == 2 * p);
}

// ZeRO-3's communication (section 7.2 there): parameters are gathered once forward and once backward,
// gradients reduced once: 3 P in all, against 2 P of an all-reduce. The embedding is not read backward.
TEST_CASE("sharded parameters are gathered once in each pass, and sums of gradients scattered once") {
  TrainingJob job = dense_job();
  job.plan.zero = 3;
  const double p = count_parameters(job.model).total();
  const double embedding = static_cast<double>(job.model.vocabulary) * job.model.hidden;
  CHECK(payload(job, OpKind::kAllGather, Phase::kForward) == 2 * p);
  CHECK(payload(job, OpKind::kAllGather, Phase::kBackward) == 2 * (p - embedding));
  CHECK(payload(job, OpKind::kReduceScatter, Phase::kBackward) == 2 * p);
  CHECK(payload(job, OpKind::kAllGather, Phase::kOptimizer) == 0);
}

// Elements that passes between tensors and buffers copy: of all parameters after each gather, and of all
// gradients.
TEST_CASE("buffers are copied out after each gather and filled before each sum") {
  TrainingJob job = dense_job();
  job.plan.zero = 3;
  const double p = count_parameters(job.model).total();
  const double embedding = static_cast<double>(job.model.vocabulary) * job.model.hidden;
  const auto copied = [&](ShardBuffers buffers, Phase phase) {
    job.plan.shard_buffers = buffers;
    double elements = 0;
    for (const FragmentPtr& fragment : fragments_of(job)) {
      for (const Op& op : fragment->ops) {
        if (op.kind == OpKind::kSplit && op.num_outputs == 1 && fragment->phase == phase)
          elements += static_cast<double>(op.shape.m * op.shape.n);
      }
    }
    return elements;
  };
  for (const Phase phase : {Phase::kForward, Phase::kBackward})
    CHECK(copied(ShardBuffers::kInPlace, phase) == 0);
  CHECK(copied(ShardBuffers::kFlat, Phase::kForward) == 0);
  CHECK(copied(ShardBuffers::kFlat, Phase::kBackward) == 2 * p);
  CHECK(copied(ShardBuffers::kCopied, Phase::kForward) == p);
  CHECK(copied(ShardBuffers::kCopied, Phase::kBackward) == (p - embedding) + p);
}

// While layer i computes, layers i and i + 1 .. i + prefetch are there: of equal layers so many times one
// layer's bytes.
TEST_CASE("gathered parameters fill no more than the layers in use and those ahead") {
  TrainingJob job = dense_job();
  job.model.layers = 8;
  job.model.first_dense = 8;
  job.plan.zero = 3;
  const auto most_gathered = [&](int prefetch) {
    job.plan.prefetch = prefetch;
    double now = 0, most = 0;
    const FragmentPtr forward = fragments_of(job)[0];
    std::vector<int> last(forward->tensors.size(), -1);
    const auto gathered = [&](std::int32_t t) {
      const Tensor& tensor = forward->tensors[t];
      return tensor.scope == Scope::kFragment && tensor.memory == MemoryKind::kWeights && tensor.layer >= 0 &&
             tensor.role != Role::kFinalNorm;
    };
    for (std::size_t i = 0; i < forward->ops.size(); ++i) {
      const Op& op = forward->ops[i];
      for (int j = 0; j < op.num_inputs; ++j) last[forward->input(op, j)] = static_cast<int>(i);
    }
    for (std::size_t i = 0; i < forward->ops.size(); ++i) {
      const Op& op = forward->ops[i];
      for (int j = 0; j < op.num_outputs; ++j)
        if (gathered(forward->output(op, j))) now += forward->tensors[forward->output(op, j)].bytes().value;
      most = std::max(most, now);
      for (int j = 0; j < op.num_inputs; ++j) {
        const std::int32_t t = forward->input(op, j);
        if (gathered(t) && last[t] == static_cast<int>(i)) now -= forward->tensors[t].bytes().value;
      }
    }
    return most;
  };
  const double one = most_gathered(0);
  CHECK(most_gathered(1) == 2 * one);
  CHECK(most_gathered(3) == 4 * one);
}

// All of 12 bytes a parameter stand on the host; the device holds two buckets of updates at a time.
TEST_CASE("optimizer states in host memory leave the device, and come and go once a step") {
  TrainingJob job = dense_job();
  const double p = count_parameters(job.model).total();
  const double before = memory_of(job).resident[static_cast<int>(MemoryKind::kOptimizer)].value;
  job.plan.offload.optimizer = true;
  const ClassMemory memory = memory_of(job);
  CHECK(before == 12 * p);
  CHECK(kept(memory, MemoryKind::kOptimizer) == 0);
  CHECK(host(memory, MemoryKind::kOptimizer) == 12 * p);
  CHECK(payload(job, OpKind::kCopyFromHost, Phase::kOptimizer) == 12 * p);
  CHECK(payload(job, OpKind::kCopyToHost, Phase::kOptimizer) == 12 * p);
}

TEST_CASE("scoring holds the shards of ZeRO 3 alone, and gathers as a forward pass does") {
  TrainingJob job = dense_job();
  job.workload.forward_only = true;
  const double whole = kept(memory_of(job), MemoryKind::kWeights);
  job.plan.zero = 3;
  CHECK(kept(memory_of(job), MemoryKind::kWeights) == whole / 4);
  CHECK(payload(job, OpKind::kAllGather, Phase::kForward) == whole);
  job.plan.zero = 0;
  job.plan.offload.parameters = true;
  CHECK(kept(memory_of(job), MemoryKind::kWeights) == 0);
}

TEST_CASE("however deep a model is, a group of its layers is updated at a time from host memory") {
  const auto brought_at_once = [](int layers, int group) {
    TrainingJob job = dense_job();
    job.model.layers = job.model.first_dense = layers;
    job.plan.group_layers = group;
    job.plan.offload.optimizer = true;
    double most = 0;
    for (const FragmentPtr& fragment : fragments_of(job)) {
      for (const Op& op : fragment->ops) {
        const bool brings =
            op.kind == OpKind::kCopyFromHost && fragment->tensors[fragment->output(op, 0)].layer >= 0;
        if (brings && fragment->phase == Phase::kOptimizer) most = std::max(most, op.payload.value);
      }
    }
    return most;
  };
  CHECK(brought_at_once(8, 1) > 0);
  CHECK(brought_at_once(16, 1) == brought_at_once(8, 1));
  CHECK(brought_at_once(16, 2) == 2 * brought_at_once(16, 1));
}

TEST_CASE("where no ranks hold the same gradients their overlap changes no pass and no update") {
  for (const PipelineKind kind : {PipelineKind::k1F1B, PipelineKind::kZbH1}) {
    TrainingJob job = dense_job();
    job.plan.dp = 1;
    job.plan.schedule = kind;
    job.plan.offload.optimizer = true;
    const std::vector<FragmentPtr> apart = fragments_of(job);
    job.plan.overlap_gradients = true;
    const std::vector<FragmentPtr> beside = fragments_of(job);
    REQUIRE(beside.size() == apart.size());
    for (std::size_t i = 0; i < apart.size(); ++i) CHECK(beside[i]->hash == apart[i]->hash);
  }
}

// Each is as large as several layers: 12 bytes a parameter of one, which come while the other's go.
TEST_CASE("the embedding and the head come from host memory for updates of their own") {
  for (const bool beside : {false, true}) {
    TrainingJob job = dense_job();
    job.plan.offload.optimizer = true;
    job.plan.overlap_gradients = beside;
    const double one = 12.0 * static_cast<double>(job.model.vocabulary * job.model.hidden);
    double most = 0;
    for (const FragmentPtr& fragment : fragments_of(job)) {
      if (fragment->phase != Phase::kOptimizer) continue;
      for (const Op& op : fragment->ops)
        if (op.kind == OpKind::kCopyFromHost && fragment->tensors[fragment->output(op, 0)].layer < 0)
          most = std::max(most, op.payload.value);
    }
    CHECK(most >= one);
    CHECK(most < 1.5 * one);
  }
}

// Every microbatch that is alive has its activations on the host, but for those of the last layer.
TEST_CASE("activations in host memory leave room on the device for all but the last group of layers") {
  TrainingJob job = dense_job();
  const ClassMemory before = memory_of(job);
  const double all = before.after_pass[0].value - before.after_pass.back().value;
  job.plan.offload.activations = true;
  const ClassMemory memory = memory_of(job);
  const double left = memory.after_pass[0].value - memory.after_pass.back().value;
  CHECK(left + host(memory, MemoryKind::kActivations) == all);
  CHECK(left < 0.5 * all);
  CHECK(memory.peak < before.peak);
  CHECK(payload(job, OpKind::kCopyToHost, Phase::kForward) ==
        payload(job, OpKind::kCopyFromHost, Phase::kBackward));
}

// Adam's moments: one byte and a 128th of 4 for the first, two for the second; weights updated without a
// master.
TEST_CASE("8-bit moments and missing masters take the bytes of their formats") {
  TrainingJob job = dense_job();
  const double p = count_parameters(job.model).total();
  job.plan.optimizer_states = DType::kFp8;
  job.plan.keeps_master = false;
  const double bytes = kept(memory_of(job), MemoryKind::kOptimizer);
  const double norms = 64.0 * (2 * job.model.layers + 1);  // rows of 128 that a norm of 64 fills by half
  CHECK(bytes == (p + norms) * (1 + 4.0 / 128) + 2 * p);
}

// Read and written: gradient, master, both moments; written: the BF16 weight.
TEST_CASE("an update moves the bytes of the formats that gradients, masters and moments have") {
  const auto bytes_of_parameter = [](const TrainingJob& job) {
    for (const FragmentPtr& fragment : fragments_of(job)) {
      for (const Op& op : fragment->ops) {
        if (op.kind != OpKind::kAdam) continue;
        const CostQuery query = query_of(*fragment, op, 1);
        return op_bytes(op.kind, op.shape, op.dtype, query.stored, query.summed).value /
               static_cast<double>(op.shape.m);
      }
    }
    return 0.0;
  };
  TrainingJob job = dense_job();
  job.plan.gradients = DType::kFp32;
  CHECK(bytes_of_parameter(job) == 2 * (4 + 4 + 4 + 4) + 2);
  job.plan.gradients = DType::kBf16;
  CHECK(bytes_of_parameter(job) == 2 * (2 + 4 + 4 + 4) + 2);
  job.plan.master = DType::kBf16;
  CHECK(bytes_of_parameter(job) == 2 * (2 + 2 + 4 + 4) + 2);
  job.plan.optimizer_states = DType::kBf16;
  CHECK(bytes_of_parameter(job) == 2 * (2 + 2 + 2 + 2) + 2);
  job.plan.keeps_master = false;  // the weight is read in its place
  CHECK(bytes_of_parameter(job) == 2 * (2 + 2 + 2) + 2 + 2);
}

TEST_CASE("a timeline tells the bytes that ops are costed with, in the formats of what they find") {
  TrainingJob job = dense_job();
  for (const DType gradients : {DType::kBf16, DType::kFp32}) {
    job.plan.gradients = gradients;
    job.plan.gemm = DType::kFp8;
    job.plan.master = DType::kBf16;
    Training training(job);
    Recorder recorder(training.layout(), {});
    std::size_t rows = 0;
    for (const Submission& submission : all_submissions(training)) {
      recorder.submitted(submission);
      for (; rows < recorder.timeline().ops.size(); ++rows) {
        const OpRow& row = recorder.timeline().ops[rows];
        if (is_communication(row.kind)) continue;
        const CostQuery query = query_of(*submission.fragment, submission.fragment->ops[row.index], 1);
        INFO(to_string(row.kind));
        CHECK(row.bytes == least_bytes(query));
      }
    }
  }
}

TEST_CASE("gradients that are reduced in 8 bits are kept in FP32") {
  TrainingJob job = dense_job();
  const double p = count_parameters(job.model).total();
  job.plan.gradients = DType::kFp8;
  CHECK(kept(memory_of(job), MemoryKind::kGradients) == 4 * p);
  CHECK(payload(job, OpKind::kAllReduce, Phase::kOptimizer) == p * (1 + 4.0 / 128));
}

// The reverse pass runs every op of a layer again, as its checkpoint does.
TEST_CASE("full recomputation costs exactly one forward pass of the layers") {
  for (const int layers : {1, 2, 4}) {
    TrainingJob job = small_job();
    const auto forward_products = [](const TrainingJob& of) {
      const auto fragments = fragments_of(of);
      const auto count = [](const Fragment& fragment) {
        double flops = 0;
        for (const OpKind kind : {OpKind::kGemm, OpKind::kGroupedGemm, OpKind::kAttention}) {
          for (const Op& op : fragment.ops)
            if (op.kind == kind && op.role != Role::kHead) flops += op_flops(kind, op.shape).value;
        }
        return flops;
      };
      return std::pair(count(*fragments[0]), count(*fragments[1]));
    };
    const auto [forward, none] = forward_products(job);
    job.plan.recompute = RecomputePolicy::kFull;
    job.plan.recompute_layers = layers;
    const auto [same, again] = forward_products(job);
    CHECK(none == 0);
    CHECK(same == forward);
    CHECK(again == forward);
  }
}

TEST_CASE("larger groups of recomputed layers keep fewer inputs") {
  TrainingJob job = small_job();
  job.plan.recompute = RecomputePolicy::kFull;
  const auto kept_after_forward = [&](int layers) {
    job.plan.recompute_layers = layers;
    const ClassMemory memory = memory_of(job);
    return memory.after_pass[0].value - memory.after_pass.back().value;
  };
  // One input of 32 tokens and 64 BF16 columns less for each two of the four layers.
  CHECK(kept_after_forward(1) - kept_after_forward(2) == 2 * 32 * 64 * 2);
}

// Two ranks and two layers by hand would need drawn routes: instead, no rank holds more than the sum of the
// layers' fullest, and the fullest rank holds at least the mean.
TEST_CASE("with skewed experts the fullest rank counts, not the fullest of each layer") {
  TrainingJob job = small_job();
  job.model.experts.routed = 16;
  job.workload.popularity.kind = PopularityKind::kZipf;
  job.workload.popularity.exponent = 1;
  Training training(job);
  double fullest_of_each = 0, of_one_rank = 0;
  std::vector<double> rows(4, 0);
  const FragmentPtr forward = all_submissions(training)[0].fragment;
  for (const Tensor& tensor : forward->tensors) {
    if (tensor.scope != Scope::kMicrobatch) continue;
    fullest_of_each += tensor.bytes().value;
  }
  const ClassMemory memory = training.memory({1e9}).classes[0];
  of_one_rank = memory.after_pass[0].value - memory.after_pass.back().value;
  CHECK(of_one_rank < fullest_of_each);
  CHECK(of_one_rank > 0.5 * fullest_of_each);
}
