#include "hw/profile_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "hw/error.h"
#include "hw/json_text.h"

namespace moebius {
namespace {

constexpr std::size_t kMostSites = 65536, kMostPoints = 4096;
constexpr std::size_t kMostAxes = 3, kMostSiteKeys = 8, kMostNames = 64, kMostText = 2000;
constexpr Range kSizes{1e-6, 1e15}, kMicroseconds{1e-3, 1e9};

using KeyRow = std::pair<std::string_view, ProfileKey>;
const std::vector<KeyRow>& key_table() {
  static const std::vector<KeyRow> table = {{"m", ProfileKey::kM},
                                            {"n", ProfileKey::kN},
                                            {"k", ProfileKey::kK},
                                            {"rows", ProfileKey::kRows},
                                            {"groups", ProfileKey::kGroups},
                                            {"heads", ProfileKey::kHeads},
                                            {"kv_heads", ProfileKey::kKvHeads},
                                            {"head_dim", ProfileKey::kHeadDim},
                                            {"v_dim", ProfileKey::kVDim},
                                            {"queries", ProfileKey::kQueries},
                                            {"kv", ProfileKey::kKv},
                                            {"window", ProfileKey::kWindow}};
  return table;
}

Place item(const Place& place, std::size_t index, const Value& value) {
  return {place.file, fmt::format("{}/{}", place.pointer, index), value.line};
}

const std::vector<Value>& array(const Value& value, const Place& place, std::size_t least, std::size_t most) {
  if (value.kind != Value::Kind::kArray)
    place.fail(fmt::format("expected an array, found {}", value.kind_name()));
  if (value.items.size() < least || value.items.size() > most)
    place.fail(fmt::format("expected {} to {} elements, found {}", least, most, value.items.size()));
  return value.items;
}

// An element of an array of numbers; where it stands is spelled out only when it is wrong.
double number(const Value& value, const Place& array, std::size_t index, Range range) {
  if (value.kind != Value::Kind::kNumber && value.kind != Value::Kind::kInteger)
    item(array, index, value).fail(fmt::format("expected a number, found {}", value.kind_name()));
  if (!(value.number >= range.low && value.number <= range.high))
    item(array, index, value)
        .fail(fmt::format("expected a number from {} to {}, found {}", range.low, range.high, value.number));
  return value.number;
}

ProfileKey key_of(const Value& value, const Place& place) {
  if (value.kind != Value::Kind::kString)
    place.fail(fmt::format("expected a string, found {}", value.kind_name()));
  std::vector<std::string> names;
  for (const auto& [name, key] : key_table()) {
    if (name == value.text) return key;
    names.emplace_back(name);
  }
  place.fail(fmt::format("expected one of {}, found {}{}", fmt::join(names, ", "), json_excerpt(value.text),
                         suggestion(value.text, names)));
}

ProfileAxis read_axis(Reader reader) {
  ProfileAxis axis;
  axis.key = key_of(reader.value("key"), reader.place_of("key"));
  const Value& points = reader.value("points");
  const Place place = reader.place_of("points");
  for (const Value& point : array(points, place, 1, kMostPoints)) {
    const double before = axis.points.empty() ? 0 : axis.points.back();
    const double here = number(point, place, axis.points.size(), kSizes);
    if (here <= before)
      item(place, axis.points.size(), point)
          .fail(fmt::format("expected more than {}, found {}", before, here));
    axis.points.push_back(here);
  }
  reader.finish();
  return axis;
}

ProfileRange read_range(Reader reader) {
  ProfileRange range;
  range.key = key_of(reader.value("key"), reader.place_of("key"));
  range.low = reader.number("low", {0, 1e15});
  range.high = reader.number("high", {range.low, 1e15});
  reader.finish();
  return range;
}

void read_sites(Reader& reader, ProfileTable& table) {
  const Value& value = reader.value("sites");
  const Place place = reader.place_of("sites");
  for (const Value& site : array(value, place, 1, kMostSites)) {
    const Place here = item(place, table.sites.size(), site);
    std::vector<double> numbers;
    for (const Value& part : array(site, here, table.site_keys.size(), table.site_keys.size()))
      numbers.push_back(number(part, here, numbers.size(), {0, 1e15}));
    if (std::find(table.sites.begin(), table.sites.end(), numbers) != table.sites.end())
      here.fail("expected every site once, found one again");
    table.sites.push_back(std::move(numbers));
  }
}

// The next word of a row, "12.3" or "-" for a hole; empty at its end.
std::string_view next_word(std::string_view& row) {
  const std::size_t start = std::min(row.find_first_not_of(' '), row.size());
  const std::size_t end = std::min(row.find(' ', start), row.size());
  const std::string_view word = row.substr(start, end - start);
  row.remove_prefix(end);
  return word;
}

float value_of(std::string_view word, const Place& row, std::size_t column) {
  if (word == "-") return std::numeric_limits<float>::quiet_NaN();
  double us = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), us);
  if (error != std::errc() || end != word.data() + word.size())
    row.fail(
        fmt::format("value {}: expected a number or -, found {}", column, json_excerpt(std::string(word))));
  if (!(us >= kMicroseconds.low && us <= kMicroseconds.high))
    row.fail(fmt::format("value {}: expected a number from {} to {}, found {}", column, kMicroseconds.low,
                         kMicroseconds.high, us));
  return static_cast<float>(us);
}

// A row is one text, "20 - 35.5": as a hundred thousand JSON numbers they would take most of a start.
void read_row(const Value& text, const Place& here, std::size_t grid, std::vector<float>& values) {
  if (text.kind != Value::Kind::kString)
    here.fail(fmt::format("expected a string, found {}", text.kind_name()));
  std::string_view row = text.text;
  std::size_t column = 0, measured = 0;
  for (std::string_view word = next_word(row); !word.empty(); word = next_word(row)) {
    if (column == grid) here.fail(fmt::format("expected {} values, found more", grid));
    values.push_back(value_of(word, here, column++));
    measured += std::isnan(values.back()) ? 0 : 1;
  }
  if (column < grid) here.fail(fmt::format("expected {} values, found {}", grid, column));
  if (measured == 0) here.fail("expected at least one measured value, found none");
}

void read_values(Reader& reader, ProfileTable& table, std::size_t& left) {
  const Value& value = reader.value("microseconds");
  const Place place = reader.place_of("microseconds");
  const std::size_t grid = table.grid_size();
  std::size_t row = 0;
  for (const Value& values : array(value, place, table.sites.size(), table.sites.size())) {
    const Place here = item(place, row++, values);
    if (left < grid) here.fail(fmt::format("expected at most {} values in all", kMostProfileValues));
    left -= grid;
    read_row(values, here, grid, table.microseconds);
  }
}

std::vector<std::string> read_names(Reader& reader, std::string_view key) {
  std::vector<std::string> names = reader.texts(key);
  if (names.empty() || names.size() > kMostNames)
    reader.place_of(key).fail(fmt::format("expected 1 to {} names, found {}", kMostNames, names.size()));
  return names;
}

}  // namespace

std::string short_text(Reader& reader, std::string_view key, const std::string& otherwise) {
  std::string text = otherwise.empty() && !reader.has(key) ? reader.text(key) : reader.text(key, otherwise);
  if (text.size() > kMostText)
    reader.place_of(key).fail(
        fmt::format("expected at most {} characters, found {}", kMostText, text.size()));
  return text;
}

std::vector<HeldOutPart> read_parts(Reader& reader) {
  std::vector<HeldOutPart> parts;
  if (!reader.has("parts")) return parts;
  for (Reader& part : reader.objects("parts")) {
    parts.push_back({short_text(part, "name"), static_cast<int>(part.integer("rows", {1, 1e9})),
                     part.number("median", {0, 1e6}), part.number("p90", {0, 1e6})});
    part.finish();
  }
  return parts;
}

HeldOut read_held_out(Reader reader) {
  HeldOut held_out;
  held_out.rows = static_cast<int>(reader.integer("rows", {0, 1e9}));
  held_out.mean = reader.number("mean", {0, 1e6});
  held_out.worst = reader.number("worst", {0, 1e6});
  held_out.median = reader.number("median", {0, 1e6});
  held_out.p90 = reader.number("p90", {0, 1e6});
  held_out.parts = read_parts(reader);
  reader.finish();
  return held_out;
}

std::vector<RejectedRows> read_rejected(Reader& reader) {
  std::vector<RejectedRows> rejected;
  if (!reader.has("rejected")) return rejected;
  for (Reader& row : reader.objects("rejected")) {
    rejected.push_back({static_cast<int>(row.integer("rows", {1, 1e9})), short_text(row, "reason")});
    row.finish();
  }
  return rejected;
}

std::string read_source_key(Reader& reader, const std::vector<ProfileSource>& sources) {
  std::string key = reader.text("source");
  if (std::none_of(sources.begin(), sources.end(), [&](const auto& s) { return s.key == key; }))
    reader.place_of("source").fail(fmt::format("expected a key of \"sources\", found {}", json_excerpt(key)));
  return key;
}

DType read_dtype(Reader& reader, std::string_view key) {
  const std::string name = reader.text(key);
  const auto dtype = parse_dtype(name);
  if (!dtype)
    reader.place_of(key).fail(
        fmt::format("expected a number format such as \"fp8\", found {}", json_excerpt(name)));
  return *dtype;
}

ProfileTable read_profile_table(Reader reader, const std::vector<ProfileSource>& sources,
                                std::size_t& values_left) {
  ProfileTable table;
  table.name = short_text(reader, "name");
  table.kinds = read_names(reader, "kinds");
  table.dtype = read_dtype(reader, "dtype");
  if (reader.has("stored")) table.stored = read_dtype(reader, "stored");
  if (reader.has("includes")) table.includes = read_names(reader, "includes");
  table.stack = short_text(reader, "stack");
  table.source = read_source_key(reader, sources);
  table.cores = static_cast<int>(reader.integer("cores", {1, 1e6}));
  table.sustained = reader.choice<bool>("clocks", {{"burst", false}, {"sustained", true}});
  table.limited_from = reader.number("power_limited_from_us", {0, 1e12}, 0.0);
  table.fitted = reader.choice<bool>("values", {{"measured", false}, {"fitted", true}});
  table.hot = reader.boolean("hot", false);
  table.when_named = reader.boolean("when_named", false);
  table.in_sample = reader.boolean("in_sample", false);
  table.spread = reader.number("spread", {0, 1e6}, 0.0);
  table.fit_error = reader.number("fit_error", {0, 1e6}, 0.0);
  table.note = reader.text("note", "");
  if (reader.has("where"))
    for (Reader& range : reader.objects("where")) table.where.push_back(read_range(std::move(range)));
  const Value& keys = reader.value("site");
  for (const Value& key : array(keys, reader.place_of("site"), 0, kMostSiteKeys))
    table.site_keys.push_back(key_of(key, item(reader.place_of("site"), table.site_keys.size(), key)));
  for (Reader& axis : reader.objects("axes")) table.axes.push_back(read_axis(std::move(axis)));
  if (table.axes.empty() || table.axes.size() > kMostAxes)
    reader.place_of("axes").fail(
        fmt::format("expected 1 to {} axes, found {}", kMostAxes, table.axes.size()));
  if (table.grid_size() > kMostProfileValues)
    reader.place_of("axes").fail(fmt::format("expected at most {} values", kMostProfileValues));
  read_sites(reader, table);
  read_values(reader, table, values_left);
  table.held_out = read_held_out(reader.object("held_out"));
  table.rejected = read_rejected(reader);
  reader.finish();
  return table;
}

std::string_view to_string(ProfileKey key) {
  return key_table()[static_cast<std::size_t>(key)].first;
}

std::size_t ProfileTable::grid_size() const {
  std::size_t size = 1;
  for (const ProfileAxis& axis : axes) size *= axis.points.size();
  return size;
}

}  // namespace moebius
