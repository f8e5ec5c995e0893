#include "real/alignment.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <span>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "hw/error.h"
#include "models/weights/safetensors.h"
#include "real/activation_dump.h"

namespace moebius {
namespace {

constexpr std::string_view kLayers = "model.layers.";

// Where an activation stands in the computation.
struct Position {
  int layer = std::numeric_limits<int>::max();  // behind all layers
  int part = 0;
  std::string name;
  bool operator<(const Position& other) const {
    return std::tie(layer, part, name) < std::tie(other.layer, other.part, other.name);
  }
};

int part_of(std::string_view rest) {
  constexpr std::string_view kParts[] = {".self_attn", ".mlp", "", ".shared_head.norm", ".shared_head.head"};
  return static_cast<int>(std::find(std::begin(kParts), std::end(kParts), rest) - std::begin(kParts));
}

Position position_of(const std::string& name) {
  Position position{.name = name};
  if (name == "model.embed_tokens") position.layer = -1;
  if (name == "lm_head") position.part = 1;
  if (name.rfind(kLayers, 0) != 0) return position;
  const char* end = name.data() + name.size();
  const auto [stop, failure] = std::from_chars(name.data() + kLayers.size(), end, position.layer);
  if (failure == std::errc()) position.part = part_of({stop, static_cast<std::size_t>(end - stop)});
  return position;
}

// Blocks that the activation has gone through; `layers` is the number of layers.
int blocks_before(const Position& position, int layers) {
  if (position.layer < 0) return 1;
  if (position.layer > layers) return 2 * layers + 1;
  return 2 * position.layer + (position.part == 0 ? 1 : 2);
}

std::vector<std::int64_t> without_leading_ones(const std::vector<std::int64_t>& shape) {
  const auto first = std::find_if(shape.begin(), shape.end(), [](std::int64_t size) { return size != 1; });
  return {first, shape.end()};
}

std::vector<float> values_of(const SafetensorsFile& file, const StoredTensor& tensor) {
  if (!is_floating(tensor.type)) {
    throw input_error(fmt::format("{}: tensor \"{}\": expected F32, BF16, F16 or F8_E4M3, found {}",
                                  file.path(), tensor.name, to_string(tensor.type)));
  }
  return to_floats(tensor.type, file.bytes(tensor));
}

struct Pair {
  const SafetensorsFile& run;
  const SafetensorsFile& reference;
};

void require_same_shape(const Pair& files, const StoredTensor& a, const StoredTensor& b) {
  if (without_leading_ones(a.shape) == without_leading_ones(b.shape)) return;
  throw input_error(fmt::format("{}: tensor \"{}\": expected shape {} as in {}, found {}",
                                files.reference.path(), a.name, shape_text(a.shape), files.run.path(),
                                shape_text(b.shape)));
}

void require_same_tokens(const Pair& files) {
  const StoredTensor *a = files.run.find(kTokenIds), *b = files.reference.find(kTokenIds);
  if (a == nullptr || b == nullptr) return;
  require_same_shape(files, *a, *b);
  const auto first = files.run.bytes(*a), second = files.reference.bytes(*b);
  const std::string path = files.reference.path();
  if (a->type != b->type) {
    throw input_error(fmt::format("{}: {}: expected {}, found {}", path, kTokenIds, to_string(a->type),
                                  to_string(b->type)));
  }
  if (!std::equal(first.begin(), first.end(), second.begin(), second.end())) {
    throw input_error(
        fmt::format("{}: {}: expected the tokens of {}, found others", path, kTokenIds, files.run.path()));
  }
}

AlignedLayer compare_values(const std::string& name, std::span<const float> run,
                            std::span<const float> reference) {
  AlignedLayer layer{.name = name};
  double dot = 0, square_run = 0, square_reference = 0, difference = 0, magnitude = 0;
  for (std::size_t i = 0; i < run.size(); ++i) {
    const double a = run[i], b = reference[i], far = std::abs(a - b);
    dot += a * b;
    square_run += a * a;
    square_reference += b * b;
    difference += far;
    magnitude += std::abs(b);
    if (far > layer.max_abs || std::isnan(far)) layer.max_abs = far;  // keeps what is not a number
  }
  const double norms = std::sqrt(square_run) * std::sqrt(square_reference);
  layer.cosine = norms > 0 ? dot / norms : square_run == square_reference ? 1 : 0;
  layer.mean_relative = difference == 0 ? 0 : difference / magnitude;
  return layer;
}

// A file says what its products were computed in; what its numbers are kept in is a bound.
Precision precision_of(const SafetensorsFile& file, const StoredTensor& tensor) {
  const auto said = file.metadata().find(kPrecisionKey);
  const std::string text = said == file.metadata().end() ? "" : said->second;
  if (text == "fp8" || tensor.type == StoredType::kFp8E4m3) return Precision::kFp8;
  const bool half = tensor.type == StoredType::kBf16 || tensor.type == StoredType::kF16;
  return text == "bf16" || half ? Precision::kBf16 : Precision::kFp32;
}

std::string row_text(const AlignedLayer& layer) {
  return fmt::format("{:<36} {:>12.9f} {:>12.4g} {:>12.4g} {:>12.4g}   {}\n", layer.name, layer.cosine,
                     layer.max_abs, layer.mean_relative, layer.allowed,
                     layer.drifts() ? "drifts" : "aligned");
}

std::string only_text(std::string_view where, const std::vector<std::string>& names) {
  return names.empty() ? "" : fmt::format("only in the {}: {}\n", where, fmt::join(names, ", "));
}

}  // namespace

std::string_view to_string(Precision precision) {
  switch (precision) {
    case Precision::kFp32:
      return "fp32";
    case Precision::kBf16:
      return "bf16";
    case Precision::kFp8:
      return "fp8";
  }
  return "";
}

double tolerance(Precision precision, int blocks) {
  constexpr double kOneBlock[] = {0x1p-17, 0x1p-8, 0x1p-4};
  return 4 * kOneBlock[static_cast<int>(precision)] * std::sqrt(1 + std::log(std::max(blocks, 1)));
}

const AlignedLayer* Alignment::first_drift() const {
  const auto found =
      std::find_if(layers.begin(), layers.end(), [](const AlignedLayer& layer) { return layer.drifts(); });
  return found == layers.end() ? nullptr : &*found;
}

Alignment align(const std::string& run_path, const std::string& reference_path) {
  const SafetensorsFile run(run_path), reference(reference_path);
  const Pair files{run, reference};
  require_same_tokens(files);
  // From here both are of the same tokens, as far as they say.
  Alignment alignment;
  std::vector<Position> common;
  int layers = 0;
  for (const StoredTensor& tensor : run.tensors()) {
    if (tensor.name == kTokenIds) continue;
    const StoredTensor* other = reference.find(tensor.name);
    if (other == nullptr) {
      alignment.only_in_run.push_back(tensor.name);
      continue;
    }
    require_same_shape(files, tensor, *other);
    common.push_back(position_of(tensor.name));
    if (common.back().layer < std::numeric_limits<int>::max())
      layers = std::max(layers, common.back().layer + 1);
    alignment.precision =
        std::max({alignment.precision, precision_of(run, tensor), precision_of(reference, *other)});
  }
  for (const StoredTensor& tensor : reference.tensors()) {
    if (tensor.name != kTokenIds && run.find(tensor.name) == nullptr)
      alignment.only_in_reference.push_back(tensor.name);
  }
  if (common.empty()) {
    throw input_error(
        fmt::format("{}: expected activations named as in {}, such as model.layers.0, found none of them",
                    reference_path, run_path));
  }
  std::sort(common.begin(), common.end());
  for (const Position& position : common) {
    const std::vector<float> a = values_of(run, *run.find(position.name));
    const std::vector<float> b = values_of(reference, *reference.find(position.name));
    alignment.layers.push_back(compare_values(position.name, a, b));
    alignment.layers.back().allowed = tolerance(alignment.precision, blocks_before(position, layers));
  }
  return alignment;
}

std::string to_text(const Alignment& alignment) {
  std::string text = fmt::format("{:<36} {:>12} {:>12} {:>12} {:>12}\n", "activation", "cosine", "max abs",
                                 "mean rel", "allowed");
  for (const AlignedLayer& layer : alignment.layers) text += row_text(layer);
  text += only_text("run", alignment.only_in_run) + only_text("reference", alignment.only_in_reference);
  const AlignedLayer* drift = alignment.first_drift();
  return text + (drift == nullptr
                     ? fmt::format("aligned, within what {} allows\n", to_string(alignment.precision))
                     : fmt::format("{} drifts first, beyond what {} allows\n", drift->name,
                                   to_string(alignment.precision)));
}

}  // namespace moebius
