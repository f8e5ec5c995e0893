#include "models/constants.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>

#include <fmt/format.h>

#include "hw/reader.h"

namespace moebius {
namespace {

constexpr Range kBase{1, 1e12}, kFactor{1, 1e6}, kSmall{0, 1e6};

// An object of the configuration; absent and null are the same.
class Keys {
 public:
  Keys(const Value& value, Place place) : value_(&value), reader_(value, std::move(place)) {}

  bool has(std::string_view key) const {
    const Value* found = value_->find(key);
    return found != nullptr && found->kind != Value::Kind::kNull;
  }
  double number(std::string_view key, Range range, double otherwise) {
    return has(key) ? reader_.number(key, range) : otherwise;
  }
  std::string text(std::string_view key, const std::string& otherwise) {
    return has(key) ? reader_.text(key) : otherwise;
  }
  std::optional<Keys> object(std::string_view key) {
    if (!has(key)) return std::nullopt;
    const Value& value = reader_.value(key);
    if (value.kind != Value::Kind::kObject)
      reader_.place_of(key).fail("expected an object, found " + value.excerpt());
    return Keys(value, reader_.place_of(key));
  }

 private:
  const Value* value_;
  Reader reader_;
};

// YaRN's equation 17 and section 3.4; `weight` is DeepSeek's mscale.
double yarn_magnitude(double factor, double weight) {
  return factor <= 1 ? 1 : 0.1 * weight * std::log(factor) + 1;
}

// The pair that turns `turns` times in the trained length.
double pair_of_turns(double turns, double rotated, double base, double length) {
  return rotated * std::log(length / (turns * 2 * std::numbers::pi)) / (2 * std::log(base));
}

struct Frame {
  double rotated = 0;    // columns that turn, of each head
  double positions = 0;  // max_position_embeddings
};

void read_yarn(Keys& keys, const Frame& frame, Constants& constants) {
  Rotary& rotary = constants.rotary;
  const double length = keys.number("original_max_position_embeddings", {1, 1e9}, frame.positions);
  const double fast = keys.number("beta_fast", {1e-3, 1e6}, 32),
               slow = keys.number("beta_slow", {1e-3, 1e6}, 1);
  rotary.factor = keys.number("factor", kFactor, 1);
  rotary.low = std::max(0.0, std::floor(pair_of_turns(fast, frame.rotated, rotary.base, length)));
  rotary.high =
      std::min(frame.rotated - 1, std::ceil(pair_of_turns(slow, frame.rotated, rotary.base, length)));
  if (rotary.high <= rotary.low) rotary.high = rotary.low + 1e-3;  // as the publishers' code has it
  const double weight = keys.number("mscale", kSmall, 0),
               weight_all = keys.number("mscale_all_dim", kSmall, 0);
  const double ratio = weight > 0 && weight_all > 0
                           ? yarn_magnitude(rotary.factor, weight) / yarn_magnitude(rotary.factor, weight_all)
                           : yarn_magnitude(rotary.factor, 1);
  rotary.magnitude = keys.number("attention_factor", kSmall, ratio);
  // DeepSeek scales the scores of the whole head, of which only a part turns.
  if (weight_all > 0) constants.score_scale = std::pow(yarn_magnitude(rotary.factor, weight_all), 2);
}

void read_scaling(Keys& keys, const Frame& frame, Constants& constants) {
  const std::string type = keys.text("rope_type", keys.text("type", "default"));
  if (type == "default") return;
  if (type == "yarn") return read_yarn(keys, frame, constants);
  if (type != "linear") {
    constants.unsupported = fmt::format("positions scaled by rope_type \"{}\"", type);
    return;
  }
  constants.rotary.factor = keys.number("factor", kFactor, 1);
  constants.rotary.low = -2, constants.rotary.high = -1;  // every pair is stretched
}

// What changes results and no run computes. Multipliers are Granite's; Gemma's embedding is scaled and its
// norms multiply by 1 + weight, which its file does not say.
std::string other_arithmetic(Keys& keys) {
  if (keys.text("model_type", "").starts_with("gemma"))
    return "embeddings times the root of hidden_size, and norms of 1 + weight";
  for (const auto key : {"embedding_multiplier", "residual_multiplier", "logits_scaling"}) {
    const double multiplier = keys.number(key, kSmall, 1);
    if (multiplier != 1) return fmt::format("{} {}", key, multiplier);
  }
  if (keys.has("attention_multiplier"))
    return fmt::format("attention_multiplier {}", keys.number("attention_multiplier", kSmall, 1));
  for (const auto key : {"hidden_act", "hidden_activation"}) {
    const std::string activation = keys.text(key, "silu");
    if (activation != "silu" && activation != "swish") return fmt::format("{} \"{}\"", key, activation);
  }
  return "";
}

Constants read(Keys keys) {
  if (!keys.has("hidden_size") && keys.has("text_config")) return read(*keys.object("text_config"));
  Constants constants;
  constants.unsupported = other_arithmetic(keys);
  constants.norm_epsilon = keys.number("rms_norm_eps", {0, 1}, constants.norm_epsilon);
  constants.rotary.base = keys.number("rope_theta", kBase, constants.rotary.base);
  Frame frame;
  const double heads = keys.number("num_attention_heads", {1, 1e6}, 1);
  frame.rotated =
      keys.number("qk_rope_head_dim", kSmall,
                  keys.number("head_dim", kSmall, keys.number("hidden_size", {1, 1e9}, 1) / heads));
  frame.positions = keys.number("max_position_embeddings", {1, 1e9}, 4096);
  frame.rotated *= keys.number("partial_rotary_factor", {0, 1}, 1);
  frame.rotated = keys.number("rotary_dim", kSmall, frame.rotated);
  if (std::optional<Keys> scaling = keys.object("rope_scaling")) read_scaling(*scaling, frame, constants);
  if (std::optional<Keys> parameters = keys.object("rope_parameters")) {
    constants.rotary.base = parameters->number("rope_theta", kBase, constants.rotary.base);
    read_scaling(*parameters, frame, constants);
  }
  return constants;
}

}  // namespace

double rotary_frequency(const Rotary& rotary, std::int64_t pair, std::int64_t rotated) {
  const auto i = static_cast<double>(pair);
  const double stretched = std::clamp((i - rotary.low) / (rotary.high - rotary.low), 0.0, 1.0);
  return std::pow(rotary.base, -2 * i / static_cast<double>(rotated)) *
         (1 - stretched + stretched / rotary.factor);
}

Constants constants_from_hf_config(const Document& config) {
  return read(Keys(config.root, {.file = config.file, .pointer = "", .line = config.root.line}));
}

}  // namespace moebius
