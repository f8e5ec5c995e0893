// Laws of whole serving runs on the simulator.
#include <catch2/catch.hpp>

#include <map>
#include <numeric>
#include <optional>

#include "../unit/training/small_job.h"
#include "hw/catalog.h"
#include "models/layer_math.h"
#include "small_world.h"
#include "workloads/schedule/recorder.h"
#include "workloads/serving/serving.h"

using namespace moebius;

namespace {

ServingJob job_of(int requests, int input, int output) {
  ServingJob job;
  job.model = small_model();
  job.plan.max_batch = 4;
  job.plan.token_budget = 16;
  job.plan.block_tokens = 4;
  job.workload = {
      .requests = requests, .input = {input, input}, .output = {output, output}, .popularity = {}};
  return job;
}

ServingFigures simulate_serving(const ServingJob& job, const World& world, const CostSource& cost) {
  const Cluster cluster = make_cluster(world);
  Serving serving(job);
  Recorder recorder(serving.layout(), {.detail = Detail::kNone});
  auto executor = make_sim_executor(cluster, serving.layout(), {&cost}, recorder,
                                    {NetworkDetail::kFluid, Driver::kPlain});
  execute(serving, *executor, recorder);
  return serving.figures({});
}

}  // namespace

// Two prompts of 8 fit into a budget of 16: prefill of 0 and 1, prefill of 2 and 3, then two decodes of all
// four. With p and d the times of an iteration of each kind, the first pair's tokens come at p, 2p + d, 2p +
// 2d, the other's at 2p, 2p + d, 2p + 2d.
TEST_CASE("tokens come when their iterations end") {
  constexpr double kPrompts = 1e-3, kDecode = 1e-4;
  ServingJob job = job_of(4, 8, 3);
  job.model.experts = {};
  const double p = job.model.layers * kPrompts, d = job.model.layers * kDecode;
  const NamedCost cost({{OpKind::kAttention, {kPrompts}}, {OpKind::kPagedAttention, {kDecode}}});
  const ServingFigures figures = simulate_serving(job, {.nodes = 1, .per_node = 1}, cost);
  CHECK(figures.completed == 4);
  CHECK(figures.iterations == 4);
  CHECK(figures.prefills == 2);
  CHECK(figures.ttft.mean == Approx(1.5 * p).epsilon(1e-3));
  CHECK(figures.e2e.mean == Approx(2 * p + 2 * d).epsilon(1e-3));
  CHECK(figures.tpot.mean == Approx(((p + 2 * d) / 2 + d) / 2).epsilon(1e-3));
  CHECK(figures.itl.p50 == Approx(d).epsilon(1e-3));  // six of the eight gaps are d
  CHECK(figures.output_tokens_per_s == Approx(12 / (2 * p + 2 * d)).epsilon(1e-3));
}

TEST_CASE("folded and unfolded serving of a routed model agree") {
  for (const double exponent : {0.0, 0.8}) {
    ServingJob job = job_of(32, 8, 4);
    job.plan.dp = job.plan.ep = 4;
    job.ranks_per_node = 2;
    if (exponent > 0) job.workload.popularity = {PopularityKind::kZipf, exponent, false};
    World world{.nodes = 2, .per_node = 2};
    world.nic = 1e8;  // slow enough that communication decides
    const NamedCost cost({{OpKind::kAttention, {1e-5}}, {OpKind::kGroupedGemm, {1e-6, 0, true}}});
    const ServingFigures folded = simulate_serving(job, world, cost);
    job.plan.fold = false;
    const ServingFigures unfolded = simulate_serving(job, world, cost);
    CHECK(folded.e2e.mean == Approx(unfolded.e2e.mean).epsilon(0.005));
    CHECK(folded.ttft.p99 == Approx(unfolded.ttft.p99).epsilon(0.005));
  }
}

// Every decode reads all weights of its layers and head, all keys and values before it, and the states of
// delta networks, which it also writes.
TEST_CASE("no token comes sooner than the memory gives weights, cache and states") {
  const Catalog catalog;
  const Accelerator chip = catalog.accelerator("h100-sxm");
  const auto cost = make_cost_source(chip);
  ServingJob job = job_of(4, 4000, 4);
  job.model.hidden = 2048;
  job.model.heads = 16;
  job.model.kv_heads = 8;
  job.model.head_dim = 128;
  job.model.attention = AttentionKind::kGqa;
  job.model.experts = {};
  job.model.dense_width = 8192;
  job.model.vocabulary = 32000;
  job.plan.token_budget = 16000;
  job.plan.block_tokens = 64;
  for (const DeltaNet& delta : {DeltaNet{}, DeltaNet{16, 64, 128, 128, 4}}) {
    job.model.delta = delta;
    job.model.full_attention_every = delta.given() ? 4 : 0;
    const ServingFigures figures = simulate_serving(job, {.nodes = 1, .per_node = 1}, *cost);
    Serving serving(job);
    const double weights =
        serving.memory({}).classes[0].at_peak[static_cast<int>(MemoryKind::kWeights)].value -
        2.0 * 32000 * 2048;  // of the embedding, a few rows are read
    const double cache = 4 * 4000 * kv_elements_per_token(job.model) * 2;
    const double states = 2 * 4 * state_bytes_per_sequence(job.model).value;
    const double bound = (weights + cache + states) / chip.memory_rate.value;
    INFO("TPOT " << figures.tpot.mean << " s, bound " << bound << " s");
    CHECK(figures.tpot.mean > bound);
    CHECK(figures.tpot.mean < 3 * bound);  // and not far above: a few launches a layer
  }
}

// Remembers what attention was asked for, over the cache if nothing else is said.
class Listener : public CostSource {
 public:
  Cost cost(const CostQuery& query) const override {
    if (query.kind == OpKind::kAttention) of_prompts = query.dtype;
    if (query.kind == OpKind::kPagedAttention) {
      of_answers = query.dtype;
      stored = query.stored;
      keys.assign(query.rows.begin(), query.rows.end());
      if (keys.empty()) keys.assign(query.shape.groups, static_cast<std::int32_t>(query.shape.kv));
    }
    return {};
  }
  std::string description() const override { return "listens"; }
  mutable std::optional<DType> stored, of_prompts, of_answers;
  mutable std::vector<std::int32_t> keys;  // of the last one
};

TEST_CASE("an FP8 cache takes half the memory and is priced as one") {
  ServingJob job = job_of(8, 3000, 3);
  job.model.attention = AttentionKind::kGqa;
  job.model.head_dim = 128;
  const auto cache_bytes = [&] {
    return Serving(job).memory({}).classes[0].at_peak[static_cast<int>(MemoryKind::kCache)].value;
  };
  const double wide = cache_bytes();
  job.plan.kv = DType::kFp8;
  CHECK(cache_bytes() ==
        Approx(wide * (1 + 4.0 / 128) / 2).epsilon(1e-4));  // one byte, a scale for 128 elements
  const Listener listener;
  simulate_serving(job, {.nodes = 1, .per_node = 1}, listener);
  CHECK(listener.stored == DType::kFp8);
}

TEST_CASE("prompts attend in 8 bits where the plan says so, and what decodes reads 8 bits as before") {
  ServingJob job = job_of(8, 12, 3);
  job.model.attention = AttentionKind::kGqa;
  job.model.head_dim = 128;
  job.plan.kv = DType::kFp8;
  const Listener wide, narrow;
  simulate_serving(job, {.nodes = 1, .per_node = 1}, wide);
  CHECK(wide.of_prompts == DType::kBf16);
  job.plan.attention = DType::kFp8;
  simulate_serving(job, {.nodes = 1, .per_node = 1}, narrow);
  CHECK(narrow.of_prompts == DType::kFp8);
  for (const Listener* heard : {&wide, &narrow}) {
    CHECK(heard->of_answers == DType::kBf16);
    CHECK(heard->stored == DType::kFp8);
  }
}

// The last decode of prompts of 3 .. 20 tokens that are answered with 3: each sees its prompt, one answered
// token and itself.
TEST_CASE("attention is priced with the keys of every sequence") {
  ServingJob job = job_of(4, 1, 3);
  job.workload.input = {3, 20};
  job.plan.token_budget = 100;
  const Listener listener;
  simulate_serving(job, {.nodes = 1, .per_node = 1}, listener);
  std::vector<std::int32_t> expected;
  for (int request = 0; request < 4; ++request)
    expected.push_back(lengths_of(job.workload, request).input + 2);
  CHECK(listener.keys == expected);
}

// Of two ranks that share the heads of two dense layers, tokens decode one by one: a layer has two sums
// behind all-reduces, each of which then starts no kernel, and reads nothing of a few bytes.
TEST_CASE("sums in their all-reduces save a kernel each") {
  ServingJob job = job_of(2, 8, 2);
  job.model.experts = {};
  job.plan.tp = 2;
  const World world{.nodes = 1, .per_node = 2};
  const double floor = make_cluster(world).pools.front().accelerator.kernel_floor.seconds();
  const NamedCost cost({{OpKind::kAdd, {100e-6}}});
  const ServingFigures apart = simulate_serving(job, world, cost);
  job.plan.fused_reduction = true;
  const ServingFigures joined = simulate_serving(job, world, cost);
  CHECK(apart.itl.p50 - joined.itl.p50 == Approx(2 * job.model.layers * floor).epsilon(1e-3));
}
