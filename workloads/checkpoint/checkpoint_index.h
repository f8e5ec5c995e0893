// What a checkpoint holds and where: the weights under their Hugging Face names, whole (Hugging Face) or cut
// over the files of ranks (ours; workloads/checkpoint/README.md says how that looks on disk).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "models/model.h"
#include "models/weights/stored_type.h"
#include "models/weights/weight_check.h"

namespace moebius {

// Parallel degrees that a checkpoint is cut for.
struct Degrees {
  int tp = 1, pp = 1, ep = 1;
  bool operator==(const Degrees&) const = default;
};
std::string to_text(const Degrees& degrees);  // "tp=2,pp=2,ep=4"

// Rows or columns [first, last) of a weight, in one file.
struct Shard {
  std::int32_t file = 0;
  std::int64_t first = 0, last = 0;
  bool operator==(const Shard&) const = default;
};

// A weight as a matrix [rows, columns] (one dimension: [rows, 1]). Shards ascend along the axis (0 rows, 1
// columns) and cover it; those of block scales may overlap, where a cut goes through a block.
struct StoredWeight {
  StoredType type = StoredType::kF32;
  std::vector<std::int64_t> shape;
  int axis = 0;
  std::vector<Shard> shards;
  std::int64_t rows() const { return shape.empty() ? 1 : shape[0]; }
  std::int64_t columns() const;
};

// A block of a weight's matrix.
struct Region {
  std::int64_t first_row = 0, rows = 0, first_column = 0, columns = 0;
};
Region whole(const StoredWeight& weight);
Region region_of(const StoredWeight& weight, const Shard& shard);

// The plan that an optimizer's state is kept for (workloads/checkpoint/optimizer_state.h).
struct StateLayout {
  Degrees degrees;
  int cp = 1, dp = 1, zero = 0;
  bool operator==(const StateLayout&) const = default;
};
std::string to_text(const StateLayout& layout);  // "tp=2,pp=2,ep=4,cp=1,dp=4,zero=1"

struct StateFiles {
  StateLayout layout;
  std::vector<std::string> files;  // by rank; "": it wrote none
};

struct CheckpointIndex {
  std::optional<Degrees> layout;  // none: Hugging Face
  std::optional<Model> model;
  std::int64_t step = 0;  // optimizer steps behind it
  std::vector<std::string> files;
  std::map<std::string, StoredWeight> weights;
  std::optional<StateFiles> state;  // of the optimizer

  std::vector<std::string> names() const;
  std::map<std::string, FoundWeight> found() const;  // for check_weights()
  double bytes() const;                              // of all shards
};

inline constexpr const char* kIndexName = "moebius-checkpoint.json";
inline constexpr const char* kHfIndexName = "model.safetensors.index.json";
inline constexpr const char* kHfFileName = "model.safetensors";

// The text of moebius-checkpoint.json (layout and model are set), and of model.safetensors.index.json.
std::string index_text(const CheckpointIndex& index);
std::string hf_index_text(const CheckpointIndex& index);

// Reads the index files; every name of a file is a plain one, every shard lies inside its weight. input_error
// otherwise.
CheckpointIndex load_index(const std::string& path);
std::map<std::string, std::string> load_hf_weight_map(const std::string& path);  // weight -> file

}  // namespace moebius
