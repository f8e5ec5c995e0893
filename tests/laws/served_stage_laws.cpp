// Laws of stages that the layers of a served model stand on, one behind the other.
#include <numeric>

#include "../unit/training/small_job.h"
#include "row_cost.h"
#include "sim/sim_run.h"
#include "workloads/perform/perform.h"
#include "workloads/routing/random_stream.h"
#include "workloads/schedule/work.h"
#include "workloads/service/pools.h"
#include "workloads/service/rules.h"
#include "workloads/serving/lower.h"
#include "workloads/serving/system/pipeline_cost.h"

#include "tests/catch.h"

using namespace moebius;

namespace {

struct Work {
  double flops = 0, weights = 0;
  bool operator==(const Work&) const = default;
};

// One prompt through so many stages, all of their work together.
Work work_of(int stages, int tp) {
  ServingJob job;
  job.model = small_model();
  job.model.layers = 6;
  job.model.experts.routed = 0;
  job.model.first_dense = job.model.layers;
  job.model.tied_embeddings = false;
  job.plan.tp = tp;
  job.plan.pp = stages;
  job.plan.token_budget = 64;
  job.workload = {.requests = 1, .input = {64, 64}, .output = {1, 1}, .popularity = {}};
  const auto batch = std::make_shared<const Batch>(Batch{64, {{0, 64, 0, 64, {0}}}});
  const Model whole = job.model;
  Work work;
  int first = 0;
  for (const int layers : layers_of_stages(whole.layers, stages)) {
    job.model = stage_of(whole, first, layers);
    const ServingShape shape(job);
    const FragmentPtr fragment = lower_iteration(shape, {.batch = batch, .shard = {}, .route = {}});
    for (const Op& op : fragment->ops)
      if (!is_communication(op.kind)) work.flops += op_flops(op, *fragment).value;
    for (const Tensor& tensor : fragment->tensors)
      if (tensor.memory == MemoryKind::kWeights) work.weights += tensor.bytes().value;
    first += layers;
    ++job.plan.stage;
  }
  CHECK(first == whole.layers);
  return work;
}

class Constant : public StepCost {
 public:
  explicit Constant(double seconds) : seconds_(seconds) {}
  double seconds(std::span<const StepShape>) override { return seconds_; }

 private:
  double seconds_;
};

PipelineCost pipeline(std::vector<Constant>& stages, double hand_on) {
  std::vector<PipelineCost::Stage> all;
  for (Constant& stage : stages) all.push_back({&stage, [hand_on](std::int64_t) { return hand_on; }});
  return PipelineCost(std::move(all));
}

Outcome served(const std::vector<std::string>& sets) {
  const Library library("");
  Changes changes;
  changes.sets = sets;
  Job job =
      read_job(std::string(MOEBIUS_SOURCE_DIR) + "/scenarios/smoke/serve-stages.json", changes, library);
  return perform(job,
                 [](const Job& given, const Layout& layout, Recorder& recorder) {
                   return start_simulator(
                       given, layout, recorder,
                       {.data = "", .options = {NetworkDetail::kAlphaBeta, Driver::kPlain}});
                 },
                 {.wants_spans = false, .quiet = true});
}

// Prompts of up to nearly the whole cache of 64 pages, and answers that do not fit beside many others.
class LargeRequests : public TrafficStream {
 public:
  bool next(TrafficRequest& request) override {
    if (left_-- == 0) return false;
    request = {};
    request.arrival = now_ += Time{static_cast<std::int64_t>(1e8 * random_.unit())};
    request.input_tokens = 1 + random_.below(3500);
    request.output_tokens = 1 + random_.below(500);
    request.block_tokens = 64;
    for (std::int64_t i = 0; i * 64 < request.input_tokens; ++i)
      request.blocks.push_back(static_cast<std::uint64_t>(left_ / 4 * 1000 + i));
    return true;
  }

 private:
  int left_ = 300;
  RandomStream random_{7};
  Time now_;
};

}  // namespace

TEST_CASE("lanes that share a cache end all that fits in it, and never hold more") {
  RowCost cost;
  for (const int prefixes : {0, 64}) {
    for (const PoolRole role : {PoolRole::kBoth, PoolRole::kDecode}) {
      INFO(prefixes << " tokens are shared, role " << static_cast<int>(role));
      SystemRules rules;
      rules.pools = {paged_pool(role, cost, 6)};
      rules.pools[0].lanes = 3;
      ReplicaRules& replica = rules.pools[0].instance.replica;
      replica.pages = 64;
      replica.max_running = 16;
      if (role == PoolRole::kBoth) replica.shared_tokens = prefixes;
      OpenFeed feed(std::make_unique<LargeRequests>());
      ServingSystem system(rules, feed);
      while (system.advance()) CHECK(system.pools().front().peak_pages <= 64);
      CHECK(system.waiting() == 0);
      CHECK(system.metrics().figures().completed == 300);
      CHECK(system.pools().front().peak_pages > 60);
      CHECK(system.pools().front().preemptions > 0);
    }
  }
}

TEST_CASE("stages have all layers once, the ones left over before the last") {
  CHECK(layers_of_stages(61, 4) == std::vector<int>{15, 15, 16, 15});
  CHECK(layers_of_stages(80, 2) == std::vector<int>{40, 40});
  CHECK(layers_of_stages(7, 4) == std::vector<int>{2, 2, 2, 1});
  CHECK(layers_of_stages(5, 5) == std::vector<int>(5, 1));
}

TEST_CASE("layers of a stage are of the kinds that they are of in the whole model") {
  Model model = small_model();
  model.layers = 12;
  model.first_dense = 3;
  model.moe_step = 2;
  model.sliding_window = 128;
  model.full_attention_every = model.no_rotary_every = 4;
  int experts = 0;
  for (int first = 0; first < 12; first += 4) {
    const Model stage = stage_of(model, first, 4);
    experts += stage.num_moe_layers();
    for (int layer = 0; layer < 4; ++layer) {
      CHECK(stage.is_moe_layer(layer) == model.is_moe_layer(first + layer));
      CHECK(stage.window(layer) == model.window(first + layer));
      CHECK(stage.rotates(layer) == model.rotates(first + layer));
    }
  }
  CHECK(experts == model.num_moe_layers());
}

TEST_CASE("stages compute together what one computes alone, from as many weights") {
  for (const int tp : {1, 2}) {
    const Work whole = work_of(1, tp);
    CHECK(whole.flops > 0);
    CHECK(whole.weights > 0);
    for (const int stages : {2, 3, 6}) CHECK(work_of(stages, tp) == whole);
  }
}

// Two batches under way: each stage works all the time, and a batch comes out every 4 ms.
TEST_CASE("as many batches as stages keep equal stages busy") {
  std::vector<Constant> stages(2, Constant(2e-3));
  PipelineCost cost = pipeline(stages, 0);
  const std::vector<StepShape> shape{{.decode_sequences = 1, .decode_tokens = 1}};
  Time ends[2] = {Time{0}, Time{2'000'000}};  // of the last batch of each lane
  for (int i = 0; i < 20; ++i) {
    Time& lane = ends[i % 2];
    cost.begin(lane, true);
    const double lasts = cost.seconds(shape);
    CHECK(lasts == Approx(4e-3));
    lane += time_from_seconds(lasts);
  }
  CHECK(cost.totals().waited == Approx(0).margin(1e-9));
  CHECK(cost.totals().busy[0] == Approx(40e-3));
}

// The slowest sets the pace, whatever the others take.
TEST_CASE("batches wait before the stage that takes longest") {
  std::vector<Constant> stages{Constant(1e-3), Constant(3e-3)};
  PipelineCost cost = pipeline(stages, 0.5e-3);
  const std::vector<StepShape> shape{{.decode_sequences = 1, .decode_tokens = 1}};
  Time ends[2] = {};
  for (int i = 0; i < 100; ++i) {
    Time& lane = ends[i % 2];
    cost.begin(lane, true);
    lane += time_from_seconds(cost.seconds(shape));
  }
  CHECK(std::max(ends[0], ends[1]).seconds() == Approx(1e-3 + 0.5e-3 + 100 * 3e-3 + 0.5e-3));
  CHECK(cost.totals().handed_on == Approx(100 * 1e-3));
}

// n parts through p equal stages: n + p - 1 of their times.
TEST_CASE("parts of a prompt follow each other through the stages") {
  constexpr int kParts = 5, kStages = 4;
  std::vector<Constant> stages(kStages, Constant(1e-3));
  PipelineCost cost = pipeline(stages, 0);
  const std::vector<StepShape> shape{{.prefill_tokens = 64, .prefill_sequences = 1}};
  Time now;
  for (int part = 0; part < kParts; ++part) {
    cost.begin(now, part + 1 == kParts);
    now += time_from_seconds(cost.seconds(shape));
  }
  CHECK(now.seconds() == Approx((kParts + kStages - 1) * 1e-3));
}

// 1 ms of the host before the first batches of both lanes, then none: the first stage has one lane from 1 to
// 3 ms and from 5 to 7, the other from 3 to 5 and from 7 to 9; the second stage each of them 2 ms later.
TEST_CASE("a batch takes its stages from when the host is done with it") {
  std::vector<Constant> stages(2, Constant(2e-3));
  PipelineCost cost = pipeline(stages, 0);
  InstanceRules rules;
  rules.replica.pages = 100;
  rules.replica.token_budget = 64;
  rules.host.overlapped = true;
  rules.host.per_iteration = Time{1'000'000};
  Instance one(rules, &cost), other(rules, &cost);
  for (Instance* lane : {&one, &other}) lane->replica(0).enqueue({.prompt = 128, .output = 1});
  StepOutcome outcome;
  const auto end_of_next = [&](Instance& lane) {
    if (lane.busy()) lane.end(lane.until(), outcome);
    lane.begin(lane.until());
    return lane.until().seconds();
  };
  CHECK(end_of_next(one) == Approx(3e-3));
  CHECK(end_of_next(other) == Approx(5e-3));
  CHECK(end_of_next(one) == Approx(9e-3));
  CHECK(end_of_next(other) == Approx(11e-3));
}

TEST_CASE("a forecast takes no stage") {
  std::vector<Constant> stages(3, Constant(1e-3));
  PipelineCost cost = pipeline(stages, 0);
  const std::vector<StepShape> shape{{.decode_sequences = 1, .decode_tokens = 1}};
  cost.begin(Time{}, true);
  CHECK(cost.forecast(shape) == Approx(3e-3));
  CHECK(cost.forecast(shape) == Approx(3e-3));
  CHECK(cost.seconds(shape) == Approx(3e-3));
}

TEST_CASE("a forecast counts on a full pipeline: its slowest stage is met once for each batch") {
  std::vector<Constant> stages{Constant(1e-3), Constant(3e-3)};
  PipelineCost cost = pipeline(stages, 0);
  const std::vector<StepShape> shape{{.decode_sequences = 1, .decode_tokens = 1}};
  CHECK(cost.forecast(shape) == Approx(6e-3));
  cost.begin(Time{}, true);
  cost.seconds(shape);
  CHECK(cost.forecast(shape) == Approx(6e-3));
}

TEST_CASE("one stage is no pipeline") {
  const std::vector<std::string> few{"/workload/trace/requests=8", "/workload/users=4"};
  std::vector<std::string> one = few, none = few;
  one.emplace_back("/plan/decode/pp=1");
  none.emplace_back("/plan/decode/pp=0");
  const Outcome a = served(one), b = served(none);
  CHECK(a.report.serving->ttft.mean == b.report.serving->ttft.mean);
  CHECK(a.report.serving->tpot.p99 == b.report.serving->tpot.p99);
  CHECK(a.report.service->span == b.report.service->span);
  CHECK(!a.report.service->pools.front().pipeline);
}

// What does not divide is shared out all the same: no more run at once than the plan says, and as many.
TEST_CASE("lanes run together what a replica may run at once") {
  RowCost cost;
  for (const int running : {3, 7, 8}) {
    INFO(running << " on three lanes");
    SystemRules rules;
    rules.pools = {paged_pool(PoolRole::kBoth, cost, 3)};
    rules.pools[0].lanes = 3;
    rules.pools[0].running = running;
    rules.pools[0].instance.replica.pages = 640;
    OpenFeed feed(std::make_unique<LargeRequests>());
    ServingSystem system(rules, feed);
    std::int64_t most = 0;
    while (system.advance()) {
      std::int64_t now = 0;
      for (std::int32_t i = 0; i < 3; ++i) now += system.instance(i).replica(0).load().running;
      most = std::max(most, now);
    }
    CHECK(system.metrics().figures().completed == 300);
    CHECK(most == running);
  }
}

TEST_CASE("fewer sequences than stages are as many batches under way, and one is served as by one lane") {
  const std::vector<std::string> sets{"/workload/trace/requests=6", "/workload/trace/input=512",
                                      "/workload/trace/output=8", "/workload/users=6"};
  std::vector<std::string> one = sets, three = sets;
  one.emplace_back("/plan/decode/max_batch=1");
  three.emplace_back("/plan/decode/max_batch=3");
  const Outcome alone = served(one), beside = served(three);
  CHECK(alone.report.serving->completed == 6);
  CHECK(beside.report.serving->completed == 6);
  // Of two stages one stands idle at any time.
  CHECK(alone.report.service->pools.front().run.busy < 0.5);
  CHECK(beside.report.service->span < alone.report.service->span);
}

// Work conserving: a service of two stages answers all that it is asked, on twice the devices of one, between
// once and twice as fast; and its cache has room for more than twice the tokens, as weights are cut, too.
TEST_CASE("two stages are at most twice as fast as one") {
  const std::vector<std::string> sets{"/workload/trace/requests=24", "/workload/trace/input=8192",
                                      "/workload/users=24"};
  std::vector<std::string> alone = sets;
  alone.emplace_back("/plan/decode/pp=1");
  alone.emplace_back("/cluster/pools/0/nodes=1");
  const Outcome two = served(sets), one = served(alone);
  const ServicePoolFigures &of_two = two.report.service->pools.front(),
                           &of_one = one.report.service->pools.front();
  CHECK(two.report.serving->completed == 24);
  CHECK(of_two.devices == 2 * of_one.devices);
  CHECK(of_two.pages > of_one.pages);
  const double faster = one.report.service->span.seconds() / two.report.service->span.seconds();
  CHECK(faster > 1);
  CHECK(faster < 2);
  REQUIRE(of_two.pipeline);
  CHECK(of_two.run.busy > 0.5);
  CHECK(of_two.run.busy <= 1);
}

// Attention hides beside the other half batch until it is the longer: edges of keys lie close on all stages.
TEST_CASE("iterations of two half batches are told as well on stages behind the first one") {
  const Outcome outcome = served(
      {"/model=qwen3-30b-a3b", "/plan/framework=none", "/plan/precision/gemm=bf16", "/plan/precision/kv=bf16",
       R"(/plan/prefill={"token_budget": 4096, "two_batch_overlap": true, "ep": {"dispatch": "deepep"}})",
       R"(/plan/decode={"attention": {"dp": 8, "tp": 1}, "ep": {"degree": 8, "dispatch": "deepep"},
           "two_batch_overlap": true, "max_batch": 64, "pp": 2})",
       "/workload/trace/requests=512", "/workload/trace/input=2000", "/workload/users=512",
       R"(/workload/experts/popularity="balanced")"});
  CHECK(outcome.report.service->pools.front().surface.p50 < 0.01);
}

// Each stage has the NICs of its own node.
TEST_CASE("caches leave from the devices of all stages") {
  const auto rules_with = [](const std::string& stages) {
    const Library library("");
    Changes changes;
    changes.sets = {"/plan/decode/pp=" + stages};
    const Job job =
        read_job(std::string(MOEBIUS_SOURCE_DIR) + "/scenarios/smoke/serve-stages.json", changes, library);
    return pool_rules(job.scenario.service, service_pools(job.scenario).front());
  };
  const PoolRules one = rules_with("1"), two = rules_with("2");
  CHECK(one.sending_stages == 1);
  CHECK(two.sending_stages == 2);
  CHECK(two.transfer_rate.value == Approx(2 * one.transfer_rate.value));
}

// A model of 8 billion parameters guesses beside experts that eight ranks share.
TEST_CASE("making guesses takes as long whether tokens choose experts evenly or not") {
  const auto tpot = [](const std::string& popularity, const std::string& speculative) {
    return served({"/model=qwen3-30b-a3b", "/cluster/pools/0/nodes=1", "/workload/trace/requests=16",
                   "/workload/trace/input=512", "/workload/trace/output=20",
                   "/workload/experts/popularity=" + popularity,
                   R"(/plan/decode={"attention": {"dp": 8, "tp": 1}, "ep": {"degree": 8}, "max_batch": 8)" +
                       speculative + "}"})
        .report.serving->tpot.mean;
  };
  const auto guessing = [&](const std::string& popularity) {
    return tpot(popularity, R"(, "speculative": {"mtp": 1, "acceptance": 0, "model": "qwen3-8b"})") -
           tpot(popularity, "");
  };
  CHECK(guessing(R"({"zipf": 0})") == Approx(guessing(R"("balanced")")).epsilon(0.1));
}

TEST_CASE("what prompts take of stages counts on all of them, whatever their lane waits for") {
  std::vector<Constant> stages(2, Constant(0.01));
  PipelineCost cost = pipeline(stages, 0);
  StepShape prompt, token;
  prompt.prefill_tokens = 100, prompt.prefill_sequences = 1;
  token.decode_sequences = token.decode_tokens = 1;
  cost.begin({}, false);
  cost.seconds({&prompt, 1});
  cost.begin(time_from_seconds(1), true);
  cost.seconds({&token, 1});
  CHECK(cost.totals().prompts == Approx(0.02));
  CHECK(cost.totals().busy[0] + cost.totals().busy[1] == Approx(0.04));
}
