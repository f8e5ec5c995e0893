// Which sequences of an iteration blow latents up, whatever order they stand in.
#include "workloads/serving/latent_parts.h"

#include <catch2/catch.hpp>

namespace moebius {
namespace {

Model latent_model() {
  Model model;
  model.attention = AttentionKind::kMla;
  model.mla = {.q_rank = 32, .kv_rank = 16, .nope_dim = 16, .rope_dim = 8, .v_dim = 16};
  return model;
}

Batch batch_of(const std::vector<std::pair<int, int>>& past_and_count) {
  Batch batch;
  for (const auto& [past, count] : past_and_count) {
    BatchSequence sequence;
    sequence.request = static_cast<std::int32_t>(batch.sequences.size());
    sequence.past = past, sequence.count = count;
    batch.sequences.push_back(sequence);
  }
  return batch;
}

std::size_t count(const BatchPtr& batch) {
  return batch ? batch->sequences.size() : 0;
}

}  // namespace

// Two prompts that the cache holds but for their last token stand before a whole one and one that decodes.
TEST_CASE("few tokens are put behind many, the rest in the order that it has") {
  const Model model = latent_model();
  Batch batch = batch_of({{31, 1}, {63, 1}, {0, 40}, {16, 40}, {100, 1}});
  put_blown_up_first(model, batch);
  std::vector<int> order;
  for (const BatchSequence& sequence : batch.sequences) order.push_back(sequence.request);
  CHECK(order == std::vector<int>{2, 3, 0, 1, 4});
  const LatentParts parts = latent_parts(model, batch);
  CHECK(count(parts.blown_up) == 2);
  CHECK(count(parts.absorbed) == 3);
  CHECK(parts.keys == 40 + 56);
}

TEST_CASE("where few tokens stand before many they are blown up with them") {
  const LatentParts parts = latent_parts(latent_model(), batch_of({{31, 1}, {0, 40}, {100, 1}}));
  CHECK(count(parts.blown_up) == 2);
  CHECK(count(parts.absorbed) == 1);
  CHECK(parts.keys == 32 + 40);
}

TEST_CASE("other attention keeps its order") {
  Model model = latent_model();
  model.attention = AttentionKind::kGqa;
  Batch batch = batch_of({{31, 1}, {0, 40}});
  put_blown_up_first(model, batch);
  CHECK(batch.sequences.front().request == 0);
}

// 20 and 5 tokens are before the first two, none before the third; the last one decodes.
TEST_CASE("a rule for all prompts of an iteration goes by the tokens before them, not by their own") {
  const Model model = latent_model();
  const Batch batch = batch_of({{20, 30}, {5, 2}, {0, 40}, {100, 1}});
  for (const std::int64_t below : {1, 25}) {
    const LatentParts parts = latent_parts(model, batch, {.below = below});
    CHECK(count(parts.blown_up) == 3);
    CHECK(count(parts.absorbed) == 1);
    CHECK(parts.keys == 50 + 7 + 40);
    CHECK_FALSE(parts.none);
  }
  const LatentParts parts = latent_parts(model, batch, {.below = 26});
  CHECK(parts.none);
  CHECK_FALSE(parts.given());
}

TEST_CASE("prompts that stand whole are blown up by either rule, unless it is said that they absorb") {
  const Model model = latent_model();
  const Batch whole = batch_of({{0, 40}, {0, 30}});
  CHECK_FALSE(latent_parts(model, whole, {.below = 1000}).none);
  CHECK(latent_parts(model, whole, {.below = 1000, .absorbed = true}).none);
  const LatentParts told = latent_parts(model, batch_of({{20, 30}}), {.below = 1000, .absorbed = false});
  CHECK(count(told.blown_up) == 1);
  // Where each sequence does what takes fewer products, nothing of an iteration is said.
  CHECK_FALSE(latent_parts(model, whole, {.absorbed = true}).none);
}

// Two guesses beside a token.
TEST_CASE("rows of guesses are no prompt") {
  const Batch batch = batch_of({{0, 40}, {100, 3}, {50, 3}});
  const LatentParts parts = latent_parts(latent_model(), batch, {.below = 1, .drafts = 2});
  CHECK(count(parts.blown_up) == 1);
  CHECK(count(parts.absorbed) == 2);
  CHECK(parts.keys == 40);
}

// A prompt of 12,000 tokens in parts of 4,096 begins with none before it, then with 4,096 and with 8,192.
TEST_CASE("of a prompt in parts those absorb that begin behind few tokens") {
  CHECK(absorbed_tokens(8192, 0, 12000, 8192) == 0);
  CHECK(absorbed_tokens(8192, 0, 12000, 4096) == 4096);
  CHECK(absorbed_tokens(8192, 64, 12000, 4096) == 8192);
  CHECK(absorbed_tokens(8192, 64, 100, 4096) == 100);
  CHECK(absorbed_tokens(8192, 8192, 100, 4096) == 0);
  CHECK(absorbed_tokens(16384, 0, 12000, 4096) == 12000 - 4096);
  for (const int below : {0, 1}) CHECK(absorbed_tokens(below, 64, 12000, 4096) == 0);
}

}  // namespace moebius
