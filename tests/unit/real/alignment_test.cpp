// Dumps of activations beside each other: what is said of each layer, which one is named first, what is
// refused.
#include "real/alignment.h"

#include "hw/error.h"
#include "models/weights/safetensors_writer.h"
#include "tests/process.h"

#include <cmath>
#include <limits>
#include "tests/catch.h"

namespace moebius::test {
namespace {

using Values = std::map<std::string, std::vector<float>>;

// A dump of rows of two columns in FP32.
std::string write(const Scratch& scratch, const std::string& name, const Values& values,
                  const std::map<std::string, std::string>& metadata = {}) {
  std::vector<StoredTensor> tensors;
  std::map<std::string, std::vector<std::byte>> bytes;
  for (const auto& [tensor, numbers] : values) {
    tensors.push_back({.name = tensor, .shape = {static_cast<std::int64_t>(numbers.size()) / 2, 2}});
    bytes[tensor] = from_floats(StoredType::kF32, numbers);
  }
  write_safetensors(scratch.path(name), tensors, bytes, metadata);
  return scratch.path(name);
}

std::string fault(const std::string& run, const std::string& reference) {
  try {
    align(run, reference);
  } catch (const Error& error) {
    CHECK(error.kind() == Error::Kind::kInput);
    return error.what();
  }
  return "no fault";
}

}  // namespace

TEST_CASE("a layer is judged by the mean difference over the mean magnitude of the reference") {
  const Scratch scratch;
  const Alignment alignment = align(write(scratch, "a", {{"model.layers.0", {1, 2, 3, 5}}}),
                                    write(scratch, "b", {{"model.layers.0", {1, 2, 3, 4}}}));
  REQUIRE(alignment.layers.size() == 1);
  const AlignedLayer& layer = alignment.layers[0];
  CHECK(layer.max_abs == 1);
  CHECK(layer.mean_relative == Approx(0.1));  // 1 over 1 + 2 + 3 + 4
  // 1 + 4 + 9 + 20 = 34 over the roots of 39 and 30.
  CHECK(layer.cosine == Approx(34 / std::sqrt(39.0 * 30.0)));
  CHECK(layer.drifts());
}

TEST_CASE("layers stand in the order of computation, and the first that drifts is named") {
  const Scratch scratch;
  const Values right{
      {"lm_head", {1, 2}},           {"model.norm", {1, 2}},         {"model.layers.10", {1, 2}},
      {"model.layers.2", {1, 2}},    {"model.layers.2.mlp", {1, 2}}, {"model.layers.2.self_attn", {1, 2}},
      {"model.embed_tokens", {1, 2}}};
  Values wrong = right;
  wrong["model.layers.10"] = wrong["lm_head"] = {1, 3};
  const Alignment alignment = align(write(scratch, "a", wrong), write(scratch, "b", right));
  std::vector<std::string> names;
  for (const AlignedLayer& layer : alignment.layers) names.push_back(layer.name);
  CHECK(names == std::vector<std::string>{"model.embed_tokens", "model.layers.2.self_attn",
                                          "model.layers.2.mlp", "model.layers.2", "model.layers.10",
                                          "model.norm", "lm_head"});
  REQUIRE(alignment.first_drift() != nullptr);
  CHECK(alignment.first_drift()->name == "model.layers.10");
  CHECK(to_text(alignment).find("model.layers.10 drifts first, beyond what fp32 allows\n") !=
        std::string::npos);
  CHECK(align(write(scratch, "a", right), write(scratch, "b", right)).first_drift() == nullptr);
}

TEST_CASE("the coarser arithmetic of the two says how far they may differ") {
  const Scratch scratch;
  const Values values{{"lm_head", {1, 2}}};
  const std::string plain = write(scratch, "plain", values);
  const std::string bf16 = write(scratch, "bf16", values, {{"precision", "bf16"}});
  const std::string fp8 = write(scratch, "fp8", values, {{"precision", "fp8"}});
  CHECK(align(plain, plain).precision == Precision::kFp32);
  CHECK(align(plain, bf16).precision == Precision::kBf16);
  CHECK(align(fp8, bf16).precision == Precision::kFp8);
  // After one block: four times the error of one; errors add up in squares, over blocks that grow alike.
  CHECK(tolerance(Precision::kBf16, 1) == 4 * 0x1p-8);
  CHECK(tolerance(Precision::kFp8, 1) == 4 * 0x1p-4);
  CHECK(tolerance(Precision::kFp32, 1) == 4 * 0x1p-17);
  CHECK(tolerance(Precision::kBf16, 64) == Approx(4 * 0x1p-8 * std::sqrt(1 + std::log(64.0))));
}

TEST_CASE("what is not a number drifts") {
  const Scratch scratch;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Alignment alignment =
      align(write(scratch, "a", {{"lm_head", {1, nan}}}), write(scratch, "b", {{"lm_head", {1, 2}}}));
  CHECK(alignment.layers[0].drifts());
  const Alignment first =
      align(write(scratch, "c", {{"lm_head", {nan, 1}}}), write(scratch, "d", {{"lm_head", {1, 2}}}));
  CHECK(std::isnan(first.layers[0].max_abs));
}

TEST_CASE("what only one of the two holds is said") {
  const Scratch scratch;
  const Alignment alignment = align(write(scratch, "a", {{"lm_head", {1, 2}}, {"model.norm", {1, 2}}}),
                                    write(scratch, "b", {{"lm_head", {1, 2}}, {"model.layers.0", {1, 2}}}));
  CHECK(alignment.only_in_run == std::vector<std::string>{"model.norm"});
  CHECK(alignment.only_in_reference == std::vector<std::string>{"model.layers.0"});
}

TEST_CASE("dumps that cannot be compared are refused") {
  const Scratch scratch;
  const std::string a = write(scratch, "a", {{"lm_head", {1, 2, 3, 4}}});
  CHECK(fault(a, write(scratch, "b", {{"lm_head", {1, 2}}})) ==
        scratch.path("b") + ": tensor \"lm_head\": expected shape [2, 2] as in " + a + ", found [1, 2]");
  CHECK(fault(a, write(scratch, "b", {{"head", {1, 2}}})) ==
        scratch.path("b") + ": expected activations named as in " + a +
            ", such as model.layers.0, found none of them");
  const std::string c = write(scratch, "c", {{"lm_head", {1, 2}}, {"input_ids", {1, 2}}});
  CHECK(fault(c, write(scratch, "b", {{"lm_head", {1, 2}}, {"input_ids", {1, 3}}})) ==
        scratch.path("b") + ": input_ids: expected the tokens of " + c + ", found others");
  CHECK(fault(a, scratch.path("none")) ==
        scratch.path("none") + ": cannot be read: No such file or directory");
}

}  // namespace moebius::test
