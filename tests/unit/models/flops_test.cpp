// Laws of the FLOP count, and the published utilisation of a real training run.
#include <catch2/catch.hpp>

#include "models/model.h"

namespace moebius {
namespace {

// Training FLOPs per GPU and second of a step: forward once, backward twice.
double training_rate(const Model& model, std::int64_t length, double tokens, double seconds, int gpus,
                     bool causal) {
  return 3 * forward_flops_per_token(model, length, causal).value * tokens / seconds / gpus;
}

}  // namespace

TEST_CASE("forward FLOPs are about 2 per active parameter and the attention over the sequence") {
  const ModelCatalog catalog;
  for (const std::string& id : catalog.ids()) {
    Model model = catalog.model(id);
    model.mtp_layers = 0;
    const double weights = 2 * active_parameters(model, CountedTables::kHead);
    // A matrix for each value head: it decays, and is multiplied by a key, an error and a query.
    const DeltaNet& delta = model.delta;
    const double states =
        7.0 * delta.key_dim * delta.value_columns() * (model.layers - model.num_attention_layers());
    INFO(id);
    // One token: what remains beside the weights are norms, biases and learned positions, which compute no
    // product.
    CHECK(forward_flops_per_token(model, 1, true).value == Approx(weights + states).epsilon(0.005));
  }
}

TEST_CASE("attention FLOPs of full attention grow in proportion to the sequence") {
  const Model model = ModelCatalog().model("llama-3.1-8b");
  const double weights = forward_flops_per_token(model, 1, false).value - 4.0 * 32 * 4096;
  const double at_4k = forward_flops_per_token(model, 4096, false).value - weights;
  // 32 layers, 2 products over heads x head_dim = 4096 columns, 2 FLOPs
  CHECK(at_4k == Approx(4096 * 4.0 * 32 * 4096));
  CHECK(forward_flops_per_token(model, 8192, false).value - weights == Approx(2 * at_4k));
  // Causal: (s + 1) / 2 pairs a token instead of s.
  CHECK(forward_flops_per_token(model, 4096, true).value - weights == Approx(at_4k * 4097 / 8192));
}

TEST_CASE("Megatron's FLOP formula for GPT agrees") {
  // Narayanan et al. 2021, eq. 3, without recomputation: 72 B s l h^2 (1 + s/6h + V/12lh) for forward and
  // backward; the attention counts the whole square.
  const Model model = ModelCatalog().model("gpt-3-175b");
  const double h = 12288, l = 96, s = 2048, v = 51200;
  const double per_token = 72 * l * h * h * (1 + s / (6 * h) + v / (12 * l * h));
  CHECK(3 * forward_flops_per_token(model, 2048, false).value == Approx(per_token).epsilon(1e-9));
}

TEST_CASE(
    "DeepSeek-V3 at 19.926 s a step: 432 TFLOP/s per GPU non-causal and 385 causal, without the MTP module") {
  // "Insights into DeepSeek-V3" (ISCA 2025), Table 4: 15,360 sequences of 4,096 tokens on 2,048 GPUs. Without
  // MTP: 36.6e9 products in weights and 2*128*320 FLOPs a pair and layer: 93.7 GFLOP forward a token
  // non-causal, 83.5 causal.
  Model model = ModelCatalog().model("deepseek-v3");
  const double tokens = 15360.0 * 4096;
  const double with_mtp = training_rate(model, 4096, tokens, 19.926, 2048, false);
  model.mtp_layers = 0;
  const double square = training_rate(model, 4096, tokens, 19.926, 2048, false);
  CHECK(square == Approx(432e12).epsilon(0.02));
  CHECK(training_rate(model, 4096, tokens, 19.926, 2048, true) == Approx(385e12).epsilon(0.02));
  // The module (a layer, a projection and the head again) is real work that the published figure leaves out:
  // +3.8%.
  CHECK(with_mtp / square == Approx(1.038).epsilon(0.002));
}

}  // namespace moebius
