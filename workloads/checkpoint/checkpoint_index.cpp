#include "workloads/checkpoint/checkpoint_index.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "hw/json_text.h"
#include "hw/reader.h"
#include "models/weights/architecture_text.h"

namespace moebius {
namespace {

// A thousand layers of a thousand experts are millions of values.
constexpr DocumentLimits kIndexLimits{
    .bytes = std::size_t{1} << 30, .depth = 16, .values = std::size_t{64} << 20};
constexpr double kLargestSize = 0x1p40;
constexpr std::int64_t kMostElements = std::int64_t{1} << 48;

// A file beside the index, never one elsewhere.
std::string plain_file_name(const Value& value, const Place& place) {
  const bool text = value.kind == Value::Kind::kString;
  const bool plain = text && !value.text.empty() && value.text[0] != '.' &&
                     value.text.find('/') == std::string::npos && value.text.find('\0') == std::string::npos;
  if (!plain)
    place.fail(fmt::format("expected the name of a file in the same directory, found {}", value.excerpt()));
  return value.text;
}

std::int64_t size_in(const Value& value, double high, const Place& place) {
  const bool fits =
      value.kind == Value::Kind::kInteger && value.integer >= 0 && static_cast<double>(value.integer) <= high;
  if (!fits) place.fail(fmt::format("expected an integer from 0 to {:.0f}, found {}", high, value.excerpt()));
  return value.integer;
}

const std::vector<Value>& array(const Value& value, const Place& place) {
  if (value.kind != Value::Kind::kArray)
    place.fail(fmt::format("expected an array, found {}", value.excerpt()));
  return value.items;
}

std::vector<std::int64_t> read_shape(const Value& value, const Place& place) {
  std::vector<std::int64_t> shape;
  std::int64_t left = kMostElements;  // divided, so that no product overflows
  for (const Value& item : array(value, place)) {
    shape.push_back(size_in(item, kLargestSize, place));
    left /= std::max<std::int64_t>(1, shape.back());
    if (shape.size() > 8 || left == 0) place.fail("expected at most 8 sizes and 2^48 elements, found more");
  }
  return shape;
}

Shard read_shard(const Value& value, std::size_t num_files, std::int64_t length, const Place& place) {
  const std::vector<Value>& numbers = array(value, place);
  if (numbers.size() != 3) place.fail(fmt::format("expected [file, first, last], found {}", value.excerpt()));
  Shard shard;
  shard.file = static_cast<std::int32_t>(size_in(numbers[0], static_cast<double>(num_files) - 1, place));
  shard.first = size_in(numbers[1], static_cast<double>(length), place);
  shard.last = size_in(numbers[2], static_cast<double>(length), place);
  if (shard.first > shard.last)
    place.fail(fmt::format("expected first at most last, found {} and {}", shard.first, shard.last));
  return shard;
}

void require_cover(const StoredWeight& weight, std::int64_t length, const Place& place) {
  std::int64_t covered = 0;
  for (const Shard& shard : weight.shards) {
    if (shard.first > covered) break;
    covered = std::max(covered, shard.last);
  }
  if (covered < length || weight.shards.empty())
    place.fail(
        fmt::format("expected shards that ascend and cover {}, found them to end at {}", length, covered));
}

StoredWeight read_weight(Reader reader, std::size_t num_files) {
  StoredWeight weight;
  std::vector<std::pair<std::string_view, StoredType>> types;
  for (int i = 0; i < kNumStoredTypes; ++i)
    types.emplace_back(to_string(static_cast<StoredType>(i)), static_cast<StoredType>(i));
  weight.type = reader.choice<StoredType>("dtype", types);
  weight.shape = read_shape(reader.value("shape"), reader.place_of("shape"));
  const double last_axis = weight.shape.size() > 1 ? 1 : 0;
  weight.axis = static_cast<int>(reader.integer("axis", {0, last_axis}, 0));
  const std::int64_t length = weight.axis == 0 ? weight.rows() : weight.columns();
  const Place place = reader.place_of("shards");
  for (const Value& shard : array(reader.value("shards"), place))
    weight.shards.push_back(read_shard(shard, num_files, length, place));
  require_cover(weight, length, place);
  reader.finish();
  return weight;
}

Degrees read_degrees(Reader& reader) {
  const auto degree = [&](std::string_view key) {
    return static_cast<int>(reader.integer(key, {1, 1 << 20}));
  };
  return {degree("tp"), degree("pp"), degree("ep")};
}

StateFiles read_state(Reader reader) {
  StateFiles state;
  Reader layout = reader.object("layout");
  state.layout.degrees = read_degrees(layout);
  state.layout.cp = static_cast<int>(layout.integer("cp", {1, 1 << 20}));
  state.layout.dp = static_cast<int>(layout.integer("dp", {1, 1 << 20}));
  state.layout.zero = static_cast<int>(layout.integer("zero", {0, 3}));
  layout.finish();
  const Place place = reader.place_of("files");
  for (const Value& file : array(reader.value("files"), place)) {
    const bool none = file.kind == Value::Kind::kString && file.text.empty();
    state.files.push_back(none ? "" : plain_file_name(file, place));
  }
  reader.finish();
  return state;
}

std::string state_text(const StateFiles& state) {
  const StateLayout& layout = state.layout;
  std::vector<std::string> files;
  for (const std::string& file : state.files) files.push_back(json_string(file));
  return fmt::format(
      "  \"optimizer\": {{\"layout\": {{\"tp\": {}, \"pp\": {}, \"ep\": {}, \"cp\": {}, \"dp\": {}, "
      "\"zero\": {}}}, \"files\": [{}]}},\n",
      layout.degrees.tp, layout.degrees.pp, layout.degrees.ep, layout.cp, layout.dp, layout.zero,
      fmt::join(files, ", "));
}

}  // namespace

std::string to_text(const Degrees& degrees) {
  return fmt::format("tp={},pp={},ep={}", degrees.tp, degrees.pp, degrees.ep);
}

std::string to_text(const StateLayout& layout) {
  return fmt::format("{},cp={},dp={},zero={}", to_text(layout.degrees), layout.cp, layout.dp, layout.zero);
}

std::int64_t StoredWeight::columns() const {
  std::int64_t columns = 1;
  for (std::size_t i = 1; i < shape.size(); ++i) columns *= shape[i];
  return columns;
}

Region whole(const StoredWeight& weight) {
  return {0, weight.rows(), 0, weight.columns()};
}

Region region_of(const StoredWeight& weight, const Shard& shard) {
  Region region = whole(weight);
  if (weight.axis == 0) {
    region.first_row = shard.first;
    region.rows = shard.last - shard.first;
  } else {
    region.first_column = shard.first;
    region.columns = shard.last - shard.first;
  }
  return region;
}

std::vector<std::string> CheckpointIndex::names() const {
  std::vector<std::string> names;
  for (const auto& [name, weight] : weights) names.push_back(name);
  return names;
}

std::map<std::string, FoundWeight> CheckpointIndex::found() const {
  std::map<std::string, FoundWeight> found;
  for (const auto& [name, weight] : weights) found[name] = {weight.type, weight.shape};
  return found;
}

double CheckpointIndex::bytes() const {
  double bytes = 0;
  for (const auto& [name, weight] : weights) {
    for (const Shard& shard : weight.shards) {
      const Region region = region_of(weight, shard);
      bytes +=
          static_cast<double>(region.rows) * static_cast<double>(region.columns) * stored_bytes(weight.type);
    }
  }
  return bytes;
}

std::string index_text(const CheckpointIndex& index) {
  std::vector<std::string> files, weights;
  for (const std::string& file : index.files) files.push_back(json_string(file));
  for (const auto& [name, weight] : index.weights) {
    std::vector<std::string> shards;
    for (const Shard& shard : weight.shards)
      shards.push_back(fmt::format("[{}, {}, {}]", shard.file, shard.first, shard.last));
    weights.push_back(fmt::format(R"(    {}: {{"dtype": "{}", "shape": [{}], "axis": {}, "shards": [{}]}})",
                                  json_string(name), to_string(weight.type), fmt::join(weight.shape, ", "),
                                  weight.axis, fmt::join(shards, ", ")));
  }
  return fmt::format(
      "{{\n  \"format\": \"moebius checkpoint\",\n  \"version\": 1,\n  \"step\": {},\n"
      "  \"layout\": {{\"tp\": {}, \"pp\": {}, \"ep\": {}}},\n  \"model\": {},\n"
      "  \"files\": [{}],\n{}  \"weights\": {{\n{}\n  }}\n}}\n",
      index.step, index.layout->tp, index.layout->pp, index.layout->ep, architecture_text(*index.model),
      fmt::join(files, ", "), index.state ? state_text(*index.state) : "", fmt::join(weights, ",\n"));
}

std::string hf_index_text(const CheckpointIndex& index) {
  std::vector<std::string> rows;
  for (const auto& [name, weight] : index.weights)
    rows.push_back(
        fmt::format("    {}: {}", json_string(name), json_string(index.files[weight.shards[0].file])));
  return fmt::format(
      "{{\n  \"metadata\": {{\n    \"total_size\": {:.0f}\n  }},\n  \"weight_map\": {{\n{}\n  }}\n}}\n",
      index.bytes(), fmt::join(rows, ",\n"));
}

CheckpointIndex load_index(const std::string& path) {
  const Document document = load_document(path, kIndexLimits);
  Reader reader(document);
  CheckpointIndex index;
  reader.choice<int>("format", {{"moebius checkpoint", 0}});
  reader.integer("version", {1, 1});
  index.step = reader.integer("step", {0, 1e15});
  Reader layout = reader.object("layout");
  index.layout = read_degrees(layout);
  layout.finish();
  index.model = architecture_of(reader.value("model"), reader.place_of("model"));
  const Place files = reader.place_of("files");
  for (const Value& file : array(reader.value("files"), files))
    index.files.push_back(plain_file_name(file, files));
  if (std::optional<Reader> state = reader.optional_object("optimizer")) index.state = read_state(*state);
  reader.object("weights");
  const Value& entries = reader.value("weights");
  for (std::size_t i = 0; i < entries.keys.size(); ++i) {
    Place place = reader.place_of("weights");
    place.pointer += "/" + entries.keys[i];
    place.line = entries.items[i].line;
    if (entries.items[i].kind != Value::Kind::kObject)
      place.fail("expected an object, found " + entries.items[i].excerpt());
    index.weights[entries.keys[i]] = read_weight(Reader(entries.items[i], place), index.files.size());
  }
  reader.finish();
  return index;
}

std::map<std::string, std::string> load_hf_weight_map(const std::string& path) {
  const Document document = load_document(path, kIndexLimits);
  Reader reader(document);
  const Value& map = reader.value("weight_map");
  const Place place = reader.place_of("weight_map");
  if (map.kind != Value::Kind::kObject)
    place.fail(fmt::format("expected an object, found {}", map.excerpt()));
  std::map<std::string, std::string> files;
  for (std::size_t i = 0; i < map.keys.size(); ++i) {
    Place at = place;
    at.pointer += "/" + map.keys[i];
    at.line = map.items[i].line;
    files[map.keys[i]] = plain_file_name(map.items[i], at);
  }
  return files;
}

}  // namespace moebius
