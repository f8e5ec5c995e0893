// What a model answers does not depend on how it is served: one prefill or many decodes, pages of any size,
// any number of ranks.
#include <algorithm>
#include <numeric>
#include <set>

#include <catch2/catch.hpp>

#include "real/initial_values.h"
#include "real/token_stream.h"
#include "tests/cross/small_serving.h"

namespace moebius {
namespace {

ServingJob with_lengths(ServingJob job, int input, int output) {
  job.workload.input = {input, input};
  job.workload.output = {output, output};
  return job;
}

// Whether the first `count` tokens that a request was answered with are those that follow `n` tokens of its
// prompt's language, so that a prompt of n + count tokens is what decoding had seen.
bool follows_language(const ServingJob& job, int request, int n, const std::vector<std::int32_t>& answer,
                      int count) {
  const auto language = token_sequence({job.workload.seed, 0, request}, n + count, job.model.vocabulary);
  return std::equal(answer.begin(), answer.begin() + count, language.begin() + n);
}

}  // namespace

// A vocabulary of two words, so that answers are what the language says every other time: then a prefill of
// the longer prompt must give the token that decoding came to, through the cache and, with latent attention,
// absorbed maps.
TEST_CASE("decoding token by token comes to what a prefill of all the tokens comes to") {
  for (Model model : small_models_of_each_attention()) {
    model.vocabulary = 2;
    constexpr int kPrompt = 7, kDecoded = 5;
    int compared = 0;
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
      ServingJob job = small_service(model);
      job.workload.seed = seed;
      const Tokens decoded = exact_answers(with_lengths(job, kPrompt, kDecoded + 1));
      for (int count = 1; count <= kDecoded; ++count) {
        const Tokens prefilled = exact_answers(with_lengths(job, kPrompt + count, 1));
        for (int request = 0; request < job.workload.requests; ++request) {
          if (!follows_language(job, request, kPrompt, decoded[request], count)) continue;
          CHECK(decoded[request][count] == prefilled[request][0]);
          ++compared;
        }
      }
    }
    INFO("pairs compared: " << compared);
    CHECK(compared >= 4);
  }
}

TEST_CASE("answers have the lengths that were asked for and are of the vocabulary") {
  const ServingJob job = small_service(small_model(AttentionKind::kGqa));
  const Tokens tokens = exact_answers(job);
  REQUIRE(tokens.size() == 8);
  std::set<std::int32_t> distinct;
  for (int request = 0; request < 8; ++request) {
    CHECK(static_cast<int>(tokens[request].size()) == lengths_of(job.workload, request).output);
    for (const std::int32_t token : tokens[request]) {
      CHECK((token >= 0 && token < job.model.vocabulary));
      distinct.insert(token);
    }
  }
  CHECK(distinct.size() > 4);  // an answer of one token for everything would pass every comparison
}

TEST_CASE("the size of pages changes no answer") {
  for (const Model& model : small_models_of_each_attention()) {
    ServingJob job = small_service(model);
    const Tokens expected = exact_answers(job);
    for (const int tokens : {1, 3, 64}) {  // 64: a sequence is on one page
      job.plan.block_tokens = tokens;
      CHECK(exact_answers(job) == expected);
    }
  }
}

TEST_CASE("batch and token budget change no answer") {
  ServingJob job = small_service(small_model(AttentionKind::kMla));
  const Tokens expected = exact_answers(job);
  job.plan.max_batch = 8;
  job.plan.token_budget = 1000;
  CHECK(exact_answers(job) == expected);
  job.plan.max_batch = 1;
  CHECK(exact_answers(job) == expected);
}

// Requests go to other replicas, and experts stand on other ranks; a rank that has no request left pads.
TEST_CASE("experts over one and two and four ranks give the same answers") {
  ServingJob job = small_service(small_model(AttentionKind::kGqa));
  job.workload.requests = 7;
  const Tokens expected = exact_answers(job);
  for (const int ranks : {2, 4}) {
    job.plan.dp = job.plan.ep = ranks;
    CHECK(exact_answers(job) == expected);
  }
}

TEST_CASE(
    "shared experts with a gate over one and two and four ranks give the same answers, others without it") {
  ServingJob job = small_service(with_shared_gate(small_model(AttentionKind::kGqa)));
  const Tokens expected = exact_answers(job);
  for (const int ranks : {2, 4}) {
    job.plan.dp = job.plan.ep = ranks;
    CHECK(exact_answers(job) == expected);
  }
  job.model.experts.shared_gate = false;
  CHECK(exact_answers(job) != expected);
}

// Of [q | k | v] and [gate | up] a rank holds its share of each part. Starting values are drawn by row of its
// own matrix, so here they are drawn by the row that they are in the whole one.
StartingValues same_weights(const Model& model, std::uint64_t seed) {
  return [&model, seed](const Tensor& parameter) {
    const std::int64_t q = model.heads * model.head_dim, kv = model.kv_heads * model.head_dim;
    std::vector<std::int64_t> parts{parameter.rows};
    if (parameter.role == Role::kQkv) parts = {q, kv, kv};
    if (parameter.role == Role::kGateUp) parts = {model.dense_width, model.dense_width};
    const std::int64_t whole = std::accumulate(parts.begin(), parts.end(), std::int64_t{0});
    const bool fused = parts.size() > 1;
    std::vector<double> values;
    std::int64_t first = 0;
    for (const std::int64_t part : parts) {
      Tensor share = parameter;
      share.rows = part * parameter.rows / whole;
      if (fused) share.first_row = first + parameter.first_row * part / whole;
      const std::vector<double> of_part = initial_values(share, seed);
      values.insert(values.end(), of_part.begin(), of_part.end());
      first += part;
    }
    return values;
  };
}

// As drawn they are small, so here they are as large as what they are added to.
TEST_CASE(
    "biases of queries, keys and values give the same answers on one and two ranks, others without them") {
  Model model = with_biases(small_model(AttentionKind::kGqa));
  model.experts = {};
  ServingJob job = small_service(model);
  HostOptions options = exact_options(job.workload.seed);
  options.weights = [drawn = same_weights(model, options.seed)](const Tensor& parameter) {
    std::vector<double> values = drawn(parameter);
    if (is_bias(parameter))
      for (double& value : values) value *= 50;
    return values;
  };
  const Tokens expected = answers<double>(job, options);
  job.plan.tp = 2;
  CHECK(answers<double>(job, options) == expected);
  job.plan.dp = 2;
  CHECK(answers<double>(job, options) == expected);
  job.model.biases = Biases::kNone;
  CHECK(answers<double>(job, options) != expected);
}

TEST_CASE("heads over one and two ranks give the same answers") {
  for (Model model : small_models_of_each_attention()) {
    model.experts = {};
    ServingJob job = small_service(model);
    HostOptions options = exact_options(job.workload.seed);
    options.weights = same_weights(model, options.seed);
    const Tokens expected = answers<double>(job, options);
    job.plan.tp = 2;
    CHECK(answers<double>(job, options) == expected);
    job.plan.sampling = Sampling::kGathered;
    CHECK(answers<double>(job, options) == expected);
    job.plan.dp = 2;
    CHECK(answers<double>(job, options) == expected);
  }
}

// What was decoded comes out of a prefill of all the tokens before it, too.
void check_decoded_as_prefilled(const Model& model) {
  const ServingJob job = small_service(model);
  const Tokens decoded = exact_answers(with_lengths(job, 7, 4));
  int compared = 0;
  for (int count = 1; count <= 3; ++count) {
    const Tokens prefilled = exact_answers(with_lengths(job, 7 + count, 1));
    for (int request = 0; request < job.workload.requests; ++request) {
      if (!follows_language(job, request, 7, decoded[request], count)) continue;
      CHECK(decoded[request][count] == prefilled[request][0]);
      ++compared;
    }
  }
  CHECK(compared >= 2);
}

TEST_CASE("a window shorter than the sequence hides its beginning in prefill and decode alike") {
  Model model = small_model(AttentionKind::kGqa);
  model.vocabulary = 2;
  model.sliding_window = 3;
  check_decoded_as_prefilled(model);
}

TEST_CASE("layers that attend in chunks hide what is before them in prefill and decode alike") {
  Model model = small_model(AttentionKind::kGqa);
  model.vocabulary = 2;
  model.attention_chunk = 4;  // a page
  check_decoded_as_prefilled(model);
  model.full_attention_every = 2;
  check_decoded_as_prefilled(model);
}

TEST_CASE("chunks that hold whole sequences change no answer, and shorter ones do") {
  const ServingJob whole = small_service(small_model(AttentionKind::kGqa));
  ServingJob chunked = whole;
  chunked.model.attention_chunk = 64;
  CHECK(exact_answers(chunked) == exact_answers(whole));
  chunked.model.attention_chunk = 4;
  CHECK(exact_answers(chunked) != exact_answers(whole));
}

TEST_CASE("an indexer that chooses every key changes no answer, and one that leaves some out does") {
  Model sparse = small_sparse_model();
  const Tokens of_few = exact_answers(small_service(sparse));
  const Tokens of_all = exact_answers(small_service(small_model(AttentionKind::kMla)));
  sparse.indexer.top = 64;
  CHECK(exact_answers(small_service(sparse)) == of_all);
  CHECK(of_few != of_all);
}

TEST_CASE("the formats that a plan stores change answers only where they are coarse") {
  ServingJob job = small_service(small_model(AttentionKind::kMla));
  job.plan.gemm = DType::kFp8;
  job.plan.kv = DType::kFp8;
  HostOptions rounded;
  rounded.seed = job.workload.seed;
  const Tokens tokens = answers<float>(job, rounded);
  CHECK(tokens.size() == 8);
  CHECK(answers<float>(job, rounded) == tokens);  // and the same again
}

}  // namespace moebius
