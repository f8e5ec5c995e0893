#include "hw/profile_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <limits>
#include <optional>

#include "hw/error.h"
#include "hw/json_text.h"
#include "hw/number_list.h"

namespace moebius {
namespace {

constexpr std::size_t kMostSites = 65536, kMostPoints = 4096;
constexpr std::size_t kMostAxes = 3, kMostSiteKeys = 8, kMostNames = 64, kMostText = 2000;
constexpr Range kSizes{1e-6, 1e15}, kMicroseconds{1e-3, 1e9}, kLogErrors{-20, 20};

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

// The next word of a text such as "12.3 - 4"; empty at its end.
std::string_view next_word(std::string_view& text) {
  std::size_t start = 0;
  while (start < text.size() && text[start] == ' ') ++start;
  std::size_t end = start;
  while (end < text.size() && text[end] != ' ') ++end;
  const std::string_view word = text.substr(start, end - start);
  text.remove_prefix(end);
  return word;
}

// A word of a text that is an item of an array: what is wrong with it is said with the item's place.
struct Word {
  std::string_view text;
  const Place& array;
  std::size_t item;
  const Value& value;
  std::size_t column;
  std::string_view wanted = "a number";

  [[noreturn]] void fail(const std::string& sentence) const {
    moebius::item(array, item, value).fail(fmt::format("value {}: {}", column, sentence));
  }
  double number(Range range) const;
};

// The nearest double. What has few digits is a whole number over a power of ten that both are exact, so that
// the quotient is the nearest (Clinger 1990); the rest is read by the library. Not a number: nothing.
std::optional<double> nearest(std::string_view word) {
  constexpr double kTens[] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14};
  std::int64_t digits = 0;
  std::size_t point = word.size(), at = 0;
  for (; at < word.size() && word.size() <= std::size(kTens); ++at) {
    if (word[at] >= '0' && word[at] <= '9') {
      digits = 10 * digits + (word[at] - '0');
    } else if (word[at] == '.' && point == word.size() && at > 0) {
      point = at;
    } else {
      break;
    }
  }
  if (at > 0 && at == word.size())
    return static_cast<double>(digits) / kTens[point == word.size() ? 0 : word.size() - point - 1];
  double number = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;
  return number;
}

double Word::number(Range range) const {
  const std::optional<double> number = nearest(text);
  if (!number) fail(fmt::format("expected {}, found {}", wanted, json_excerpt(std::string(text))));
  if (!(*number >= range.low && *number <= range.high))
    fail(fmt::format("expected a number from {} to {}, found {}", range.low, range.high, *number));
  return *number;
}

// A site is one text, "4096 7168", or an array of its numbers.
std::vector<double> read_site(const Value& site, const Place& place, std::size_t index, std::size_t keys) {
  constexpr Range kParts{0, 1e15};
  std::vector<double> numbers;
  numbers.reserve(keys);
  if (site.kind != Value::Kind::kString) {
    const Place here = item(place, index, site);
    for (const Value& part : array(site, here, keys, keys))
      numbers.push_back(number(part, here, numbers.size(), kParts));
    return numbers;
  }
  std::string_view text = site.text;
  for (std::string_view word = next_word(text); !word.empty(); word = next_word(text))
    numbers.push_back(Word{word, place, index, site, numbers.size()}.number(kParts));
  if (numbers.size() != keys)
    item(place, index, site).fail(fmt::format("expected {} numbers, found {}", keys, numbers.size()));
  return numbers;
}

void read_sites(Reader& reader, ProfileTable& table) {
  const Value& value = reader.value("sites");
  const Place place = reader.place_of("sites");
  for (const Value& site : array(value, place, 1, kMostSites)) {
    std::vector<double> numbers = read_site(site, place, table.sites.size(), table.site_keys.size());
    if (std::find(table.sites.begin(), table.sites.end(), numbers) != table.sites.end())
      item(place, table.sites.size(), site).fail("expected every site once, found one again");
    table.sites.push_back(std::move(numbers));
  }
}

// A row is one text, "20 - 35.5": as a hundred thousand JSON numbers they would take most of a start.
void read_row(const Value& text, const Place& place, std::size_t index, std::size_t grid,
              std::vector<float>& values) {
  const auto fail = [&](const std::string& sentence) { item(place, index, text).fail(sentence); };
  if (text.kind != Value::Kind::kString) fail(fmt::format("expected a string, found {}", text.kind_name()));
  std::string_view row = text.text;
  std::size_t column = 0, measured = 0;
  for (std::string_view word = next_word(row); !word.empty(); word = next_word(row), ++column) {
    if (column == grid) fail(fmt::format("expected {} values, found more", grid));
    const bool hole = word == "-";
    values.push_back(hole ? std::numeric_limits<float>::quiet_NaN()
                          : static_cast<float>(Word{word, place, index, text, column, "a number or -"}.number(
                                kMicroseconds)));
    measured += hole ? 0 : 1;
  }
  if (column < grid) fail(fmt::format("expected {} values, found {}", grid, column));
  if (measured == 0) fail("expected at least one measured value, found none");
}

void read_values(Reader& reader, ProfileTable& table, std::size_t& left) {
  const Value& value = reader.value("microseconds");
  const Place place = reader.place_of("microseconds");
  const std::size_t grid = table.grid_size();
  std::size_t row = 0;
  for (const Value& values : array(value, place, table.sites.size(), table.sites.size())) {
    if (left < grid)
      item(place, row, values).fail(fmt::format("expected at most {} values in all", kMostProfileValues));
    left -= grid;
    read_row(values, place, row++, grid, table.microseconds);
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
  held_out.bias = reader.number("bias", {-1, 1e6}, 0.0);
  if (reader.has("quantiles"))
    held_out.quantiles = read_number_list(reader.text("quantiles"), reader.place_of("quantiles"), kLogErrors);
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
