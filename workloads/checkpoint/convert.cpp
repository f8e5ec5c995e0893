#include "workloads/checkpoint/convert.h"

#include <filesystem>

#include <fmt/format.h>

#include "hw/error.h"
#include "models/hf_config.h"
#include "models/weights/hf_config_text.h"
#include "models/weights/weight_check.h"
#include "workloads/checkpoint/checkpoint_writer.h"
#include "workloads/checkpoint/shard_layout.h"

namespace moebius {

Model model_of(const Checkpoint& checkpoint, const std::string& name, const ModelCatalog& catalog) {
  if (!name.empty()) return catalog.model(name);
  if (checkpoint.index().model) return *checkpoint.index().model;
  const std::string config = checkpoint.config_path();
  if (config.empty()) {
    throw input_error(
        fmt::format("{}: expected config.json beside the weights, found none: name the model with --model",
                    checkpoint.path()));
  }
  return model_from_hf_config(load_document(config));
}

void check_checkpoint(const Checkpoint& checkpoint, const Model& model) {
  require_mapped(checkpoint.path(), model);
  check_weights(checkpoint.path(), model, weights_of(model, checkpoint.naming()), checkpoint.index().found());
}

// What goes in, by size and time of change, and what comes out.
std::string journal_of(const Checkpoint& checkpoint, const CheckpointIndex& index) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path in(checkpoint.path()), directory = fs::is_directory(in, error) ? in : in.parent_path();
  std::string journal = fmt::format("conversion of {}\n", fs::absolute(in, error).string());
  for (const std::string& file : checkpoint.index().files) {
    const fs::path path = directory / file;
    journal += fmt::format("{} {} {}\n", file, fs::file_size(path, error),
                           fs::last_write_time(path, error).time_since_epoch().count());
  }
  return journal + (index.layout ? index_text(index) : hf_index_text(index));
}

std::string convert(const ConvertRequest& request, const ModelCatalog& catalog) {
  const std::optional<Degrees> degrees = parse_layout(request.to);
  const Checkpoint checkpoint(request.in);
  const Model model = model_of(checkpoint, request.model, catalog);
  check_checkpoint(checkpoint, model);
  if (degrees) require_divides(*degrees, model);
  // From here every weight is there, of the shape that the model says, and the layout divides it.
  const CheckpointIndex index = degrees ? sharded_index(checkpoint.index(), model, *degrees)
                                        : hf_index(checkpoint.index(), request.most_file_bytes);
  const auto read = [&](const std::string& name, const Region& region) {
    return checkpoint.read(name, region);
  };
  const std::string journal = journal_of(checkpoint, index), config = checkpoint.config_path();
  const bool silent = !degrees && config.empty();  // nothing says whose weights they are
  const std::string config_text = silent ? hf_config_text(model, checkpoint.naming()) : "";
  write_checkpoint(
      {.directory = request.out, .config = config, .config_text = config_text, .plan = {.journal = journal}},
      index, read);
  return fmt::format("{}: {} tensors, {}, in {} files ({}){}\n", request.out, index.weights.size(),
                     to_text(Bytes{index.bytes()}), index.files.size(),
                     degrees ? to_text(*degrees) : std::string("Hugging Face"),
                     silent && config_text.empty()
                         ? "; no config.json: no family that is known has this architecture, so that --model "
                           "names it"
                         : "");
}

}  // namespace moebius
