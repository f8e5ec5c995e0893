#include "workloads/checkpoint/parameters.h"

#include <algorithm>
#include <tuple>

#include <fmt/format.h>

#include "hw/error.h"
#include "workloads/checkpoint/convert.h"
#include "workloads/checkpoint/new_directory.h"
#include "workloads/checkpoint/pieces.h"

namespace moebius {
namespace {

// The smallest block that holds all of them; they fill it.
Region union_of(const std::vector<Piece>& pieces) {
  std::int64_t top = pieces[0].from.first_row, left = pieces[0].from.first_column, bottom = 0, right = 0;
  for (const Piece& piece : pieces) {
    top = std::min(top, piece.from.first_row);
    left = std::min(left, piece.from.first_column);
    bottom = std::max(bottom, piece.from.first_row + piece.from.rows);
    right = std::max(right, piece.from.first_column + piece.from.columns);
  }
  return {top, bottom - top, left, right - left};
}

// The weights of a finished run, to be read block by block.
class HeldParts {
 public:
  HeldParts(const SaveRequest& request, std::span<const HeldParameter> parameters) : request_(request) {
    const WeightNaming naming = request.source ? request.source->naming() : usual_naming(request.model);
    weights_ = weights_of(request.model, naming);
    for (const Weight& weight : weights_) by_name_[weight.name] = &weight;
    index_.layout = request.degrees;
    index_.model = request.model;
    index_.step = request.step;
    const int files = request.degrees.pp * std::max(request.degrees.tp, request.degrees.ep);
    for (int file = 0; file < files; ++file)
      index_.files.push_back(fmt::format("rank-{:05}.safetensors", file));
    for (const HeldParameter& held : parameters) add(held, naming);
    if (request.source) carry();
    for (auto& [name, weight] : index_.weights) {
      std::sort(weight.shards.begin(), weight.shards.end(),
                [](const Shard& a, const Shard& b) { return a.first < b.first; });
    }
  }

  const CheckpointIndex& index() const { return index_; }

  std::vector<std::byte> read(const std::string& name, const Region& region) const {
    const auto found = sources_.find({name, region.first_row, region.first_column});
    if (found == sources_.end()) return request_.source->read(name, region);
    const HeldParameter* source = found->second.first;
    const std::vector<Piece>& pieces = found->second.second;
    std::vector<float> values(static_cast<std::size_t>(region.rows * region.columns));
    for (const Piece& piece : pieces) {
      for_each_element(
          piece, source->tensor, [&](std::size_t in_parameter, std::int64_t row, std::int64_t column) {
            const std::int64_t at = (row - region.first_row) * region.columns + column - region.first_column;
            values[static_cast<std::size_t>(at)] = source->values[in_parameter];
          });
    }
    return from_floats(index_.weights.at(name).type, values);
  }

 private:
  using Key = std::tuple<std::string, std::int64_t, std::int64_t>;  // name, first row, first column

  // A table that two stages hold is written once.
  void add(const HeldParameter& held, WeightNaming naming) {
    std::map<std::string, std::vector<Piece>> by_weight;
    for (const Piece& piece : pieces_of(held.tensor, request_.model, naming))
      by_weight[piece.name].push_back(piece);
    for (const auto& [name, pieces] : by_weight) {
      StoredWeight& weight = index_.weights[name];
      weight.type = held.tensor.dtype == DType::kFp8 ? StoredType::kF32 : StoredType::kBf16;
      weight.shape = by_name_.at(name)->shape;
      const Region region = union_of(pieces);
      if (!sources_.try_emplace({name, region.first_row, region.first_column}, &held, pieces).second)
        continue;
      weight.axis = region.columns < weight.columns() ? 1 : 0;
      const std::int64_t first = weight.axis == 1 ? region.first_column : region.first_row;
      weight.shards.push_back({held.file, first, first + (weight.axis == 1 ? region.columns : region.rows)});
    }
  }

  // What a step does not change but the model needs.
  void carry() {
    for (const auto& [name, weight] : request_.source->index().weights) {
      const auto known = by_name_.find(name);
      if (known == by_name_.end()) continue;
      const WeightPart part = known->second->part;
      if (part != WeightPart::kRouterBias && part != WeightPart::kRotaryFrequencies) continue;
      index_.weights[name] = {weight.type, weight.shape, 0, {{0, 0, weight.rows()}}};
    }
  }

  const SaveRequest& request_;
  std::vector<Weight> weights_;
  std::map<std::string, const Weight*> by_name_;
  CheckpointIndex index_;
  std::map<Key, std::pair<const HeldParameter*, std::vector<Piece>>> sources_;
};

}  // namespace

std::vector<double> load_parameter(const Checkpoint& checkpoint, const Model& model,
                                   const Tensor& parameter) {
  std::vector<double> values(
      static_cast<std::size_t>(std::max(parameter.experts, 1) * parameter.rows * parameter.columns));
  for (const Piece& piece : pieces_of(parameter, model, checkpoint.naming())) {
    const std::vector<float> block = checkpoint.read_floats(piece.name, piece.from);
    for_each_element(piece, parameter, [&](std::size_t in_parameter, std::int64_t row, std::int64_t column) {
      const std::int64_t at =
          (row - piece.from.first_row) * piece.from.columns + column - piece.from.first_column;
      values[in_parameter] = block[static_cast<std::size_t>(at)];
    });
  }
  return values;
}

std::string uncomputed(const Model& model) {
  return model.biases != Biases::kNone && !model.adds_qkv_bias() ? "biases" : "";
}

// Llama's "attention_bias" gives the output map one too, Qwen's maps have none.
bool has_output_bias(const Checkpoint& checkpoint, const Model& model) {
  const std::vector<Weight> weights = weights_of(model, checkpoint.naming());
  return std::any_of(weights.begin(), weights.end(), [&](const Weight& weight) {
    return weight.part == WeightPart::kOutputBias && checkpoint.index().weights.count(weight.name) > 0;
  });
}

void require_executable(const Checkpoint& checkpoint, const Model& model) {
  check_checkpoint(checkpoint, model);
  std::string part = uncomputed(model);
  if (part.empty() && has_output_bias(checkpoint, model)) part = "the bias of an output map";
  if (part.empty()) return;
  throw input_error(fmt::format("{}: no run computes {}: these weights of {} can be converted, not executed",
                                checkpoint.path(), part, model.id));
}

void require_savable(const std::string& directory, const Model& model, bool replace) {
  require_mapped(directory, model);
  if (!replace) require_new_directory(directory);
  const std::string part = uncomputed(model);
  if (part.empty()) return;
  throw input_error(fmt::format("{}: a training step does not compute {}: a checkpoint of {} would lack them",
                                directory, part, model.id));
}

void save_parameters(const SaveRequest& request, std::span<const HeldParameter> parameters) {
  const HeldParts held(request, parameters);
  write_checkpoint({.directory = request.directory,
                    .config = request.config,
                    .plan = {.replace = request.replace},
                    .beside = request.beside},
                   held.index(),
                   [&](const std::string& name, const Region& region) { return held.read(name, region); });
}

}  // namespace moebius
