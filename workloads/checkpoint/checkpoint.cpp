#include "workloads/checkpoint/checkpoint.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <set>

#include <fmt/format.h>

#include "hw/error.h"

namespace moebius {
namespace {

namespace fs = std::filesystem;

bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

struct Block {
  const std::byte* data = nullptr;
  Region region;
};

// What `from` holds of `to`'s rows and columns.
void copy_common(const Block& from, std::byte* to, const Region& wanted, std::size_t width) {
  const Region& source = from.region;
  const std::int64_t top = std::max(source.first_row, wanted.first_row);
  const std::int64_t bottom = std::min(source.first_row + source.rows, wanted.first_row + wanted.rows);
  const std::int64_t left = std::max(source.first_column, wanted.first_column);
  const std::int64_t right =
      std::min(source.first_column + source.columns, wanted.first_column + wanted.columns);
  if (left >= right) return;
  const auto at = [&](const Region& region, std::int64_t row) {
    const std::int64_t element = (row - region.first_row) * region.columns + left - region.first_column;
    return static_cast<std::size_t>(element) * width;
  };
  for (std::int64_t row = top; row < bottom; ++row) {
    std::memcpy(to + at(wanted, row), from.data + at(source, row),
                static_cast<std::size_t>(right - left) * width);
  }
}

bool inside(const Region& region, const StoredWeight& weight) {
  return region.first_row >= 0 && region.first_column >= 0 &&
         region.first_row + region.rows <= weight.rows() &&
         region.first_column + region.columns <= weight.columns();
}

std::vector<std::int64_t> shard_shape(const StoredWeight& weight, const Shard& shard) {
  std::vector<std::int64_t> shape = weight.shape;
  if (!shape.empty()) shape[static_cast<std::size_t>(weight.axis)] = shard.last - shard.first;
  return shape;
}

}  // namespace

void require_checkpoint(const std::string& path) {
  if (!is_there(path)) throw input_error(fmt::format("{}: expected a checkpoint, found nothing", path));
  std::error_code error;
  if (!fs::is_directory(path, error)) return;
  for (const std::string_view name : {kIndexName, kHfIndexName, kHfFileName})
    if (is_there(fs::path(path) / name)) return;
  throw input_error(fmt::format("{}: expected {}, {} or {}, found none of them", path, kIndexName,
                                kHfIndexName, kHfFileName));
}

Checkpoint::Checkpoint(const std::string& path) : path_(path), directory_(path) {
  require_checkpoint(path);
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    directory_ = fs::path(path).parent_path().string();
    open_file(fs::path(path).filename().string());
  } else if (is_there(beside(kIndexName))) {
    open_ours();
  } else if (is_there(beside(kHfIndexName))) {
    open_mapped();
  } else {
    open_file(kHfFileName);
  }
  naming_ = naming_of(index_.names());
  check_shards();
}

std::string Checkpoint::beside(const std::string& file) const {
  return (fs::path(directory_) / file).string();
}

std::string Checkpoint::config_path() const {
  const std::string path = beside("config.json");
  return is_there(path) ? path : "";
}

void Checkpoint::open_ours() {
  index_ = load_index(beside(kIndexName));
  for (const std::string& file : index_.files)
    files_.push_back(std::make_unique<SafetensorsFile>(beside(file)));
}

void Checkpoint::open_file(const std::string& file) {
  index_.files.push_back(file);
  files_.push_back(std::make_unique<SafetensorsFile>(beside(file)));
  for (const StoredTensor& tensor : files_.back()->tensors()) {
    StoredWeight weight{.type = tensor.type, .shape = tensor.shape, .axis = 0, .shards = {}};
    weight.shards = {{static_cast<std::int32_t>(files_.size()) - 1, 0, weight.rows()}};
    const bool added = index_.weights.emplace(tensor.name, weight).second;
    if (!added)
      throw input_error(
          fmt::format("{}: tensor \"{}\" stands in another file too", beside(file), tensor.name));
  }
}

void Checkpoint::open_mapped() {
  const std::map<std::string, std::string> map = load_hf_weight_map(beside(kHfIndexName));
  std::set<std::string> files;
  for (const auto& [name, file] : map) files.insert(file);
  for (const std::string& file : files) open_file(file);
  for (const auto& [name, file] : map) {
    const auto found = index_.weights.find(name);
    if (found != index_.weights.end() && index_.files[found->second.shards[0].file] == file) continue;
    throw input_error(fmt::format("{}: tensor \"{}\" of {} is not here", beside(file), name, kHfIndexName));
  }
  for (const auto& [name, weight] : index_.weights) {
    if (map.count(name) > 0) continue;
    throw input_error(fmt::format("{}: tensor \"{}\" of {} is not in its weight_map", beside(kHfIndexName),
                                  name, index_.files[weight.shards[0].file]));
  }
}

const StoredTensor& Checkpoint::shard_tensor(const std::string& name, const StoredWeight& weight,
                                             const Shard& shard) const {
  const SafetensorsFile& file = *files_[static_cast<std::size_t>(shard.file)];
  const StoredTensor* tensor = file.find(name);
  const std::vector<std::int64_t> shape = shard_shape(weight, shard);
  if (tensor == nullptr || tensor->shape != shape || tensor->type != weight.type) {
    const std::string found = tensor == nullptr
                                  ? std::string("none")
                                  : fmt::format("{} {}", to_string(tensor->type), shape_text(tensor->shape));
    throw input_error(fmt::format("{}: tensor \"{}\": expected {} {} as {} says, found {}", file.path(), name,
                                  to_string(weight.type), shape_text(shape), kIndexName, found));
  }
  return *tensor;
}

void Checkpoint::check_shards() const {
  for (const auto& [name, weight] : index_.weights) {
    for (const Shard& shard : weight.shards) shard_tensor(name, weight, shard);
  }
}

std::vector<std::byte> Checkpoint::read(const std::string& name, const Region& region) const {
  const StoredWeight& weight = index_.weights.at(name);
  CHECK(inside(region, weight), name);
  const auto width = static_cast<std::size_t>(stored_bytes(weight.type));
  std::vector<std::byte> bytes(static_cast<std::size_t>(region.rows * region.columns) * width);
  for (const Shard& shard : weight.shards) {
    const SafetensorsFile& file = *files_[static_cast<std::size_t>(shard.file)];
    const StoredTensor& tensor = shard_tensor(name, weight, shard);
    copy_common({file.bytes(tensor).data(), region_of(weight, shard)}, bytes.data(), region, width);
    file.forget(tensor);
  }
  return bytes;
}

std::vector<float> Checkpoint::read_floats(const std::string& name, const Region& region) const {
  const StoredWeight& weight = index_.weights.at(name);
  const auto scale = index_.weights.find(name + kScaleSuffix);
  const bool scaled = weight.type == StoredType::kFp8E4m3;
  if (!is_floating(weight.type) || (scaled && scale == index_.weights.end())) {
    throw input_error(fmt::format("{}: tensor \"{}\": expected BF16, F16, F32 or F8_E4M3 with {}, found {}",
                                  path_, name, name + kScaleSuffix, to_string(weight.type)));
  }
  std::vector<float> values = to_floats(weight.type, read(name, region));
  if (!scaled) return values;
  const StoredWeight& factors = scale->second;
  const std::vector<float> scales = to_floats(factors.type, read(scale->first, whole(factors)));
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(values.size()); ++i) {
    const std::int64_t row = region.first_row + i / region.columns,
                       column = region.first_column + i % region.columns;
    values[static_cast<std::size_t>(i)] *=
        scales[static_cast<std::size_t>(row / kScaleBlock * factors.columns() + column / kScaleBlock)];
  }
  return values;
}

}  // namespace moebius
