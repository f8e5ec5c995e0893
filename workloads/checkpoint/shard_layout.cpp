#include "workloads/checkpoint/shard_layout.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <string>

#include <fmt/format.h>

#include "hw/error.h"
#include "models/weights/weight_names.h"
#include "workloads/training/pipeline/slicing.h"

namespace moebius {
namespace {

constexpr std::int64_t kSlicingTokens = 4096;

[[noreturn]] void bad_layout(const std::string& text, const std::string& why) {
  throw input_error(
      fmt::format("--to: expected \"hf\" or degrees such as tp=2,pp=2,ep=4, found \"{}\"{}", text, why));
}

int* degree_named(const std::string& name, Degrees& degrees) {
  return name == "tp" ? &degrees.tp : name == "pp" ? &degrees.pp : name == "ep" ? &degrees.ep : nullptr;
}

void parse_degree(const std::string& part, const std::string& text, std::set<std::string>& given,
                  Degrees& degrees) {
  const std::size_t equals = part.find('=');
  if (equals == std::string::npos) bad_layout(text, "");
  const std::string name = part.substr(0, equals);
  int* degree = degree_named(name, degrees);
  if (degree == nullptr) bad_layout(text, fmt::format(": unknown degree \"{}\"", name));
  if (!given.insert(name).second) bad_layout(text, fmt::format(": {} is given twice", name));
  const char* end = part.data() + part.size();
  const auto [stop, failure] = std::from_chars(part.data() + equals + 1, end, *degree);
  if (failure != std::errc() || stop != end || *degree < 1 || *degree > (1 << 20))
    bad_layout(text, fmt::format(": {} is an integer from 1 to 1048576", name));
}

// The place of every weight of one model in one layout.
class Placement {
 public:
  Placement(const Model& model, const Degrees& degrees)
      : model_(model),
        degrees_(degrees),
        slices_(slice_balanced(model, kSlicingTokens, degrees.pp)),
        files_per_stage_(std::max(degrees.tp, degrees.ep)) {}

  int num_files() const { return degrees_.pp * files_per_stage_; }

  // `block` elements of the cut axis are one element of the companion's (block scales); 1 for weights
  // themselves.
  void place(const Weight& weight, std::int64_t block, StoredWeight& stored) const {
    const int first_file = stage_of(weight) * files_per_stage_;
    const WeightCut cut = degrees_.tp > 1 ? cut_of(weight.part) : WeightCut::kNone;
    stored.axis = cut == WeightCut::kColumns ? 1 : 0;
    stored.shards.clear();
    if (cut == WeightCut::kNone) {
      stored.shards.push_back({first_file + expert_member(weight), 0, stored.rows()});
      return;
    }
    const std::int64_t part = weight.shape[static_cast<std::size_t>(stored.axis)] / degrees_.tp;
    for (int t = 0; t < degrees_.tp; ++t) {
      stored.shards.push_back({first_file + t, t * part / block, ((t + 1) * part + block - 1) / block});
    }
  }

 private:
  int stage_of(const Weight& weight) const {
    const bool tail = weight.layer >= model_.layers || weight.part == WeightPart::kFinalNorm ||
                      weight.part == WeightPart::kHead;
    if (tail) return degrees_.pp - 1;
    for (std::size_t stage = 0; stage < slices_.size(); ++stage) {
      if (weight.layer < slices_[stage].first_layer + slices_[stage].num_layers)
        return static_cast<int>(stage);
    }
    return degrees_.pp - 1;
  }

  int expert_member(const Weight& weight) const {
    return weight.expert < 0 ? 0 : weight.expert / (model_.experts.routed / degrees_.ep);
  }

  const Model& model_;
  Degrees degrees_;
  std::vector<StageSlice> slices_;
  int files_per_stage_;
};

}  // namespace

std::optional<Degrees> parse_layout(const std::string& text) {
  if (text == "hf") return std::nullopt;
  Degrees degrees;
  std::set<std::string> given;
  for (std::size_t start = 0; start <= text.size();) {
    const std::size_t comma = std::min(text.find(',', start), text.size());
    parse_degree(text.substr(start, comma - start), text, given, degrees);
    start = comma + 1;
  }
  return degrees;
}

void require_divides(const Degrees& degrees, const Model& model) {
  const auto divides = [&](std::string_view name, int degree, std::int64_t number, std::string_view what) {
    if (number % degree == 0) return;
    throw input_error(
        fmt::format("--to {}={}: does not divide the {} {} of {}", name, degree, number, what, model.id));
  };
  divides("tp", degrees.tp, model.heads, "attention heads");
  if (model.attention == AttentionKind::kGqa) divides("tp", degrees.tp, model.kv_heads, "key-value heads");
  divides("tp", degrees.tp, model.vocabulary, "words of the vocabulary");
  divides("tp", degrees.tp, model.dense_width, "columns of a dense MLP");
  divides("tp", degrees.tp, model.experts.shared_width, "columns of the shared experts");
  if (model.experts.routed == 0 && degrees.ep > 1)
    throw input_error(fmt::format("--to ep={}: {} has no experts", degrees.ep, model.id));
  if (model.experts.routed > 0) divides("ep", degrees.ep, model.experts.routed, "experts");
  if (degrees.pp > model.layers)
    throw input_error(
        fmt::format("--to pp={}: more stages than the {} layers of {}", degrees.pp, model.layers, model.id));
}

CheckpointIndex sharded_index(const CheckpointIndex& from, const Model& model, const Degrees& degrees) {
  const Placement placement(model, degrees);
  CheckpointIndex index{
      .layout = degrees, .model = model, .step = from.step, .files = {}, .weights = {}, .state = {}};
  for (int file = 0; file < placement.num_files(); ++file)
    index.files.push_back(fmt::format("rank-{:05}.safetensors", file));
  for (const Weight& weight : weights_of(model, naming_of(from.names()))) {
    for (const auto& [suffix, block] :
         {std::pair<std::string, std::int64_t>{"", 1}, {kScaleSuffix, kScaleBlock}}) {
      const auto found = from.weights.find(weight.name + suffix);
      if (found == from.weights.end()) continue;
      StoredWeight stored = found->second;
      placement.place(weight, block, stored);
      index.weights[found->first] = std::move(stored);
    }
  }
  CHECK(index.weights.size() == from.weights.size(),
        fmt::format("{} of {} weights", index.weights.size(), from.weights.size()));
  return index;
}

CheckpointIndex hf_index(const CheckpointIndex& from, double most_bytes) {
  CheckpointIndex index;
  index.step = from.step;
  double filled = 0;
  std::int32_t file = 0;
  for (const auto& [name, stored] : from.weights) {
    StoredWeight weight = stored;
    const double bytes = static_cast<double>(weight.rows() * weight.columns()) * stored_bytes(weight.type);
    if (filled > 0 && filled + bytes > most_bytes) ++file, filled = 0;
    filled += bytes;
    weight.axis = 0;
    weight.shards = {{file, 0, weight.rows()}};
    index.weights[name] = std::move(weight);
  }
  for (int i = 0; i <= file; ++i)
    index.files.push_back(file == 0 ? kHfFileName
                                    : fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, file + 1));
  return index;
}

}  // namespace moebius
