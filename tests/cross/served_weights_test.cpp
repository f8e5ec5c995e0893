// Requests are answered from checkpoints: with the tokens of the published modelling code, through prefill,
// cache and decode alike, and with what a run has learned.
#include <algorithm>
#include <map>

#include "hw/error.h"
#include "real/host/host_run.h"
#include "real/token_stream.h"
#include "tests/cross/reference_model.h"
#include "tests/cross/resumed_runs.h"
#include "tests/cross/small_serving.h"
#include "workloads/checkpoint/parameters.h"

#include "tests/catch.h"

namespace moebius::test {
namespace {

// The reference predicts one token alone.
Model without_mtp(Model model) {
  model.mtp_layers = 0;
  return model;
}

struct Service {
  Model model;
  Constants constants = {};
  int tp = 1, dp = 1, ep = 1, expert_tp = 1;
};

// Each token of each answer must be the one that the reference finds likeliest behind prompt and answer up to
// there; the first comes from a prefill, the others through the cache.
void require_reference_answers(const Service& service) {
  const Scratch scratch;
  const Tensors weights = executable_tensors(service.model, usual_naming(service.model), 21);
  write_tensors(scratch.path("in.safetensors"), weights);
  const Checkpoint checkpoint(scratch.path("in.safetensors"));
  ServingJob job = small_service(service.model);
  job.plan.tp = service.tp;
  job.plan.dp = service.dp;
  job.plan.ep = service.ep;
  job.plan.expert_tp = service.expert_tp;
  job.workload.output = {6, 6};
  HostOptions options = exact_options(job.workload.seed);
  options.constants = service.constants;
  options.weights = [&](const Tensor& parameter) {
    return load_parameter(checkpoint, service.model, parameter);
  };
  const Tokens served = answers<double>(job, options);
  for (int request = 0; request < job.workload.requests; ++request) {
    INFO("request " << request);
    const int prompt = lengths_of(job.workload, request).input;
    const auto drawn = token_sequence({job.workload.seed, 0, request}, prompt, service.model.vocabulary);
    std::vector<int> text(drawn.begin(), drawn.end());
    text.insert(text.end(), served[request].begin(), served[request].end());
    ReferenceModel reference(service.model, service.constants, weights);
    const Rows logits = reference.run(text).at("lm_head");
    for (std::size_t i = 0; i < served[request].size(); ++i) {
      const std::vector<double>& row = logits[prompt - 1 + i];
      CHECK(served[request][i] == std::max_element(row.begin(), row.end()) - row.begin());
    }
  }
}

// What the smoke scenario of serving answers, changed.
Outcome serve_small(const std::vector<std::string>& sets) {
  const Library library("");
  Changes changes;
  changes.sets = sets;
  Job job = read_job(std::string(MOEBIUS_SOURCE_DIR) + "/scenarios/smoke/serve-small.json", changes, library);
  return perform(job, on_host(), {});
}

// The model that the smoke scenario of training trains, asked eight times for twelve tokens.
const std::vector<std::string> kOfTrained{"/model/layers=4",
                                          "/model/vocabulary=64",
                                          "/workload/experts/popularity=balanced",
                                          "/workload/trace/requests=8",
                                          "/workload/trace/input=9",
                                          "/workload/trace/output=12"};

// How often each token follows each in the language.
std::map<std::pair<int, int>, int> successions(std::uint64_t seed, int vocabulary) {
  std::map<std::pair<int, int>, int> counts;
  for (int sequence = 0; sequence < 400; ++sequence) {
    const auto tokens = token_sequence({seed, 0, sequence}, 100, vocabulary);
    for (std::size_t i = 1; i < tokens.size(); ++i) ++counts[{tokens[i - 1], tokens[i]}];
  }
  return counts;
}

// The share of answered tokens that follow the one before them as the language's likeliest successor does.
double share_of_likeliest(const Tokens& answered, std::uint64_t seed) {
  const auto counts = successions(seed, 64);
  int likeliest = 0, all = 0;
  for (const std::vector<std::int32_t>& tokens : answered) {
    for (std::size_t i = 1; i < tokens.size(); ++i, ++all) {
      int best = 0;
      for (int next = 1; next < 64; ++next) {
        const auto count = [&](int token) {
          const auto found = counts.find({tokens[i - 1], token});
          return found == counts.end() ? 0 : found->second;
        };
        if (count(next) > count(best)) best = next;
      }
      likeliest += tokens[i] == best ? 1 : 0;
    }
  }
  return static_cast<double>(likeliest) / all;
}

}  // namespace

TEST_CASE("answers from Hugging Face weights are those of their modelling code: grouped-query attention") {
  require_reference_answers({.model = grouped_model()});
  require_reference_answers({.model = grouped_model(), .tp = 2});
}

TEST_CASE("the same answers: attention and MLP side by side, of one norm and of two") {
  for (const ParallelBlock block : {ParallelBlock::kOneNorm, ParallelBlock::kTwoNorms})
    for (const int tp : {1, 2}) require_reference_answers({.model = parallel_model(block), .tp = tp});
}

TEST_CASE("the same answers: Qwen3's norms of heads and a base of a million and another epsilon") {
  Model qwen = grouped_model();
  qwen.qk_norm = QkNorm::kPerHead;
  const Constants constants{.rotary = {.base = 1e6}, .norm_epsilon = 1e-2};
  require_reference_answers({qwen, constants});
  require_reference_answers({qwen, constants, 2});
}

TEST_CASE("the same answers: every other layer turns neither queries nor keys, as SmolLM3's fourth") {
  Model model = grouped_model();
  REQUIRE(model.layers > 1);
  model.no_rotary_every = 2;
  for (const int tp : {1, 2}) require_reference_answers({.model = model, .tp = tp});
}

// A rank has some heads of each row, whose mean square it takes with the others.
TEST_CASE("the same answers: norms of all heads together, OLMoE's and MiniMax-M2's") {
  Model olmoe = grouped_model();
  olmoe.qk_norm = QkNorm::kPerLayer;
  const Constants constants{.rotary = {.base = 1e6}, .norm_epsilon = 1e-2};
  for (const int tp : {1, 2}) require_reference_answers({olmoe, constants, tp});
  olmoe.attention = AttentionKind::kMha;
  olmoe.kv_heads = olmoe.heads;
  require_reference_answers({olmoe, constants, olmoe.heads});
}

// Each of two ranks sends half of the rows of its replica to experts on four.
TEST_CASE("the same answers: replicas of two ranks that share experts") {
  const Model latent = without_mtp(all_experts(latent_model()));
  for (const Model& model : {grouped_model(), gated_model(), latent}) {
    INFO(model.id << ", " << model.experts.routed << " experts");
    require_reference_answers({.model = model, .tp = 2, .dp = 2, .ep = 4});
  }
}

// Replicas gather each other's rows and have a share of the columns of every expert; of two ranks each, each
// has half of the rows of its replica.
TEST_CASE("the same answers: replicas whose ranks share each expert by columns") {
  const Model latent = without_mtp(all_experts(latent_model()));
  for (const Model& model : {grouped_model(), gated_model(), latent}) {
    INFO(model.id << ", " << model.experts.routed << " experts");
    require_reference_answers({.model = model, .dp = 4, .expert_tp = 4});
    require_reference_answers({.model = model, .tp = 2, .dp = 2, .expert_tp = 4});
  }
}

// Two ranks have half of the shared expert's columns each, and the gate applies to either part of its sum.
TEST_CASE("the same answers: Qwen2-MoE's shared expert with its gate") {
  require_reference_answers({.model = gated_model()});
  require_reference_answers({.model = gated_model(), .tp = 2});
}

TEST_CASE("the same answers: Qwen2's biases of queries, keys and values, and Qwen2-MoE's") {
  for (const Model& model : {biased(grouped_model()), biased(gated_model())}) {
    require_reference_answers({.model = model});
    require_reference_answers({.model = model, .tp = 2});
  }
}

TEST_CASE("the same answers: latent attention with positions that YaRN stretches and its scale of scores") {
  const Constants constants{.rotary = {.base = 100, .factor = 4, .low = 0, .high = 2, .magnitude = 1.2},
                            .score_scale = 1.5};
  require_reference_answers({without_mtp(all_experts(latent_model())), constants});
  // Two ranks of one replica: half of the heads, and of the columns of each expert.
  require_reference_answers({without_mtp(all_experts(latent_model())), constants, 2});
}

// The likeliest successor comes with 0.6, the second with 0.2; drawn weights answer at one in 64.
TEST_CASE("a trained model answers in the language that it learned") {
  const Scratch scratch;
  train_small(on_host(), {"/workload/steps=60", "/plan/save=" + scratch.path("trained")});
  std::vector<std::string> trained = kOfTrained;
  trained.push_back("/plan/weights=" + scratch.path("trained"));
  const Outcome learned = serve_small(trained), drawn = serve_small(kOfTrained);
  CHECK(share_of_likeliest(learned.report.facts.tokens, 1) > 0.7);
  CHECK(share_of_likeliest(drawn.report.facts.tokens, 1) < 0.2);
}

TEST_CASE("weights of another model are refused before the run") {
  const Scratch scratch;
  train_small(on_host(), {"/workload/steps=1", "/plan/save=" + scratch.path("trained")});
  CHECK_THROWS_WITH(serve_small({"/plan/weights=" + scratch.path("trained")}),
                    Catch::EndsWith("expected shape [128, 64], found [64, 64]"));
}

TEST_CASE("a model with parts that no run computes is simulated but not executed") {
  CHECK_THROWS_WITH(serve_small({"/model/biases=all"}),
                    Catch::Contains("/model: no run computes biases: ") &&
                        Catch::EndsWith(" can be served in simulation alone"));
}

}  // namespace moebius::test
