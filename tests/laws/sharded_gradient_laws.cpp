// Laws of gradients that go into shards in every microbatch (ZeRO 2 and 3).
#include <catch2/catch.hpp>

#include <algorithm>
#include <map>
#include <tuple>

#include "tests/laws/simulated_step.h"

using namespace moebius;

namespace {

// Sums travel slower than passes compute.
TrainingJob sharded(PipelineKind kind, int chunks, int zero, int prefetch) {
  TrainingJob job = dense_job();
  job.model.layers = 16;
  job.plan.pp = 2;
  job.plan.schedule = kind;
  job.plan.chunks = chunks;
  job.plan.zero = zero;
  job.plan.prefetch = prefetch;
  job.workload.global_batch = 4 * 6;
  return job;
}

bool is_whole_gradient(const Tensor& tensor) {
  return tensor.memory == MemoryKind::kGradients && tensor.scope == Scope::kFragment;
}

// By whole gradient of a fragment: the first and the last op that touches it.
std::map<std::int32_t, std::pair<std::int32_t, std::int32_t>> lives_of_gradients(const Fragment& fragment) {
  std::map<std::int32_t, std::pair<std::int32_t, std::int32_t>> lives;
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(fragment.ops.size()); ++i) {
    const Op& op = fragment.ops[i];
    for (int j = 0; j < op.num_inputs + op.num_outputs; ++j) {
      const std::int32_t tensor = fragment.operands[op.first_tensor + j];
      if (!is_whole_gradient(fragment.tensors[tensor])) continue;
      lives.try_emplace(tensor, i, i).first->second.second = i;
    }
  }
  return lives;
}

// The most bytes at one time, of what is there from its first time to its last.
template <class T>
double most_at_once(const std::vector<std::tuple<T, T, double>>& lives) {
  std::vector<std::pair<T, double>> changes;
  for (const auto& [from, until, bytes] : lives)
    changes.emplace_back(from, bytes), changes.emplace_back(until, -bytes);
  std::sort(changes.begin(), changes.end());  // what goes, before what comes
  double now = 0, most = 0;
  for (const auto& [at, bytes] : changes) most = std::max(most, now += bytes);
  return most;
}

// Of whole gradients at once: what memory counts in the fullest pass; what stands in the fullest moment of
// rank class 0.
struct Fullest {
  double counted = 0, stands = 0;
};

Fullest fullest(const TrainingJob& job) {
  Training training(job);
  Recorder recorder(training.layout(), {});
  const NamedCost cost({{OpKind::kAttention, {1e-5}}, {OpKind::kAttentionGrad, {2e-5}}});
  World world{.per_node = 8, .link = 1e9};
  const Cluster cluster = make_cluster(world);
  auto executor = make_sim_executor(cluster, training.layout(), {&cost}, recorder, {});
  execute(training, *executor, recorder);
  std::map<std::pair<int, int>, const Span*> spans;
  for (const Span& span : recorder.timeline().spans) spans[{span.sequence, span.op}] = &span;

  Fullest fullest;
  std::vector<std::tuple<Time, Time, double>> stand;
  Training again(job);
  for (const Submission& submission : all_submissions(again)) {
    if (submission.rank_class != 0) continue;
    const Fragment& fragment = *submission.fragment;
    std::vector<std::tuple<int, int, double>> counted;
    for (const auto& [tensor, life] : lives_of_gradients(fragment)) {
      const double bytes = fragment.tensors[tensor].bytes().value;
      counted.emplace_back(life.first, life.second + 1, bytes);
      stand.emplace_back(spans.at({submission.sequence, life.first})->start,
                         spans.at({submission.sequence, life.second})->end, bytes);
    }
    fullest.counted = std::max(fullest.counted, most_at_once(counted));
  }
  fullest.stands = most_at_once(stand);
  return fullest;
}

}  // namespace

TEST_CASE("no more whole gradients wait for their sums than memory counts, whatever the schedule") {
  struct Case {
    PipelineKind kind;
    int chunks;
  };
  for (const Case& c :
       {Case{PipelineKind::kGpipe, 1}, Case{PipelineKind::k1F1B, 1}, Case{PipelineKind::kZbH1, 1},
        Case{PipelineKind::kInterleaved, 2}, Case{PipelineKind::kInterleaved, 8}, Case{PipelineKind::kZbV, 2},
        Case{PipelineKind::kDualPipeV, 2}}) {
    for (const int zero : {2, 3}) {
      for (const int prefetch : {0, 1, 3}) {
        CAPTURE(static_cast<int>(c.kind), c.chunks, zero, prefetch);
        const Fullest of = fullest(sharded(c.kind, c.chunks, zero, prefetch));
        CHECK(of.counted > 0);
        CHECK(of.stands <= of.counted * (1 + 1e-12));
      }
    }
  }
}

TEST_CASE("where sums travel slowly a step that sums whole gradients once ends earlier, folded or not") {
  const NamedCost cost({{OpKind::kAttention, {1e-5}}, {OpKind::kAttentionGrad, {2e-5}}});
  const World world{.per_node = 8, .link = 1e9};
  for (const int zero : {2, 3}) {
    TrainingJob job = sharded(PipelineKind::k1F1B, 1, zero, 1);
    const double each = simulate(job, world, cost).seconds;
    job.plan.accumulation = Accumulation::kWhole;
    const double once = simulate(job, world, cost).seconds;
    CHECK(once < each);
    job.plan.fold = false;
    CHECK(simulate(job, world, cost).seconds == Approx(once).epsilon(0.005));
  }
}

TEST_CASE("where gathers travel slowly a step ends the earlier the longer weights stay gathered") {
  const NamedCost cost({{OpKind::kAttention, {1e-5}}, {OpKind::kAttentionGrad, {2e-5}}});
  const World world{.per_node = 8, .link = 1e9};
  TrainingJob job = sharded(PipelineKind::k1F1B, 1, 3, 1);
  job.plan.accumulation = Accumulation::kWhole;
  const double each = simulate(job, world, cost).seconds;
  job.plan.regather = 1;
  const double until_backward = simulate(job, world, cost).seconds;
  job.plan.free_after_backward = false;
  const double once = simulate(job, world, cost).seconds;
  CHECK(until_backward < each);
  CHECK(once < until_backward);
  job.plan.fold = false;
  CHECK(simulate(job, world, cost).seconds == Approx(once).epsilon(0.005));
}

// Under sequence parallelism the gradients of norms are summed over the tensor group first: not on the lane
// of the sums into shards, which are put off and would wait behind those of the layers that follow.
TEST_CASE("sums into shards do not wait for sums of later layers, whichever are cut") {
  for (const ShardBuffers buffers : {ShardBuffers::kInPlace, ShardBuffers::kCopied}) {
    TrainingJob job = sharded(PipelineKind::k1F1B, 1, 2, 1);
    job.plan.pp = 1;
    job.plan.tp = 2;
    job.plan.sequence_parallel = true;
    job.plan.shard_buffers = buffers;
    Training training(job);
    int whole = 0, cut = 0;
    for (const Submission& submission : all_submissions(training)) {
      if (submission.fragment->phase != Phase::kBackward) continue;
      for (const Op& op : submission.fragment->ops) {
        if (op.phase != Phase::kGradients) continue;
        whole += op.kind == OpKind::kAllReduce ? 1 : 0;
        cut += op.kind == OpKind::kReduceScatter ? 1 : 0;
        if (op.kind == OpKind::kAllReduce) CHECK(op.lane == Lane::kTensorComm);
      }
    }
    CHECK(whole > 0);
    CHECK(cut > 0);
  }
}
