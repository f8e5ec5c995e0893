#include "hw/reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "hw/error.h"
#include "hw/json_text.h"

namespace moebius {

namespace {

// One step of a JSON pointer (RFC 6901).
std::string escaped_token(std::string_view key) {
  std::string token;
  for (const char c : key) {
    if (c == '~') token += "~0";
    if (c == '/') token += "~1";
    if (c != '~' && c != '/') token += c;
  }
  return token;
}

std::string_view si_unit(Dimension dimension) {
  switch (dimension) {
    case Dimension::kTime:
      return " s";
    case Dimension::kBytes:
      return " B";
    case Dimension::kByteRate:
      return " B/s";
    case Dimension::kFlopRate:
      return " FLOP/s";
    case Dimension::kPower:
      return " W";
    case Dimension::kFrequency:
      return " Hz";
    case Dimension::kLength:
      return " m";
    case Dimension::kPrice:
      return " USD/h";
  }
  std::abort();
}

std::string at_least(double low, std::string_view unit) {
  return low == kAboveZero ? fmt::format("more than 0{}", unit) : fmt::format("at least {}{}", low, unit);
}

// " from 1 to 8", " of at least 1", or nothing when every number is allowed.
std::string describe(Range range) {
  const bool low = std::isfinite(range.low), high = std::isfinite(range.high);
  if (low && high && range.low != kAboveZero) return fmt::format(" from {} to {}", range.low, range.high);
  if (low && high) return fmt::format(" of more than 0 and at most {}", range.high);
  if (low) return " of " + at_least(range.low, "");
  return high ? fmt::format(" of at most {}", range.high) : "";
}

bool inside(double value, Range range) {
  return value >= range.low && value <= range.high;
}

[[noreturn]] void fail_expected(const Place& place, std::string_view expected, const Value& found) {
  place.fail(fmt::format("expected {}, found {}", expected, found.excerpt()));
}

// A double would round the largest of them.
bool inside(std::int64_t value, Range range) {
  const auto exact = static_cast<long double>(value);
  return exact >= range.low && exact <= range.high;
}

// 1e6 and 8.0 are integers too, as long as a double holds them exactly.
std::optional<std::int64_t> as_integer(const Value& value) {
  if (value.kind == Value::Kind::kInteger) return value.integer;
  const bool exact = value.kind == Value::Kind::kNumber && value.number == std::trunc(value.number) &&
                     std::abs(value.number) <= 0x1p53;
  return exact ? std::optional(static_cast<std::int64_t>(value.number)) : std::nullopt;
}

// Where a document was put together from several files, each value knows its own.
const std::string& file_of(const Value& value, const Place& around) {
  return value.origin ? *value.origin : around.file;
}

void require_object(const Value& value, const Place& place) {
  if (value.kind != Value::Kind::kObject) fail_expected(place, "an object", value);
}

// "1e300 Gb/s": number and unit are ones, their product is none.
bool is_beyond_numbers(const std::string& text, Dimension dimension) {
  const std::size_t space = std::min(text.find(' '), text.size());
  double number = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + space, number);
  return failure == std::errc() && end == text.data() + space && std::isfinite(number) &&
         parse_quantity("1" + text.substr(space), dimension).has_value();
}

}  // namespace

void Place::fail(const std::string& sentence) const {
  const std::string where = line > 0 ? fmt::format("{}:{}:", file, line) : fmt::format("{}: --set", file);
  throw input_error(pointer.empty() ? fmt::format("{} {}", where, sentence)
                                    : fmt::format("{} {}{}: {}", where, shown_pointer(pointer), of, sentence));
}

Reader::Reader(const Document& document)
    : Reader(document.root, {.file = document.root.origin ? *document.root.origin : document.file,
                             .pointer = "",
                             .line = document.root.line}) {}

Reader::Reader(const Value& value, Place place) : value_(&value), place_(std::move(place)) {
  require_object(value, place_);
}

bool Reader::has(std::string_view key) const {
  return value_->find(key) != nullptr;
}

Place Reader::place_of(std::string_view key) const {
  const Value* found = value_->find(key);
  return {.file = found ? file_of(*found, place_) : place_.file,
          .pointer = place_.pointer + "/" + escaped_token(key),
          .line = found ? found->line : place_.line};
}

void Reader::mark(std::string_view key) {
  if (std::find(known_.begin(), known_.end(), key) == known_.end()) known_.emplace_back(key);
}

const Value& Reader::value(std::string_view key) {
  mark(key);
  if (const Value* found = value_->find(key)) return *found;
  // A misspelt required key is missing before it is unknown; only keys that nobody asked for yet can be
  // meant.
  std::vector<std::string> unasked;
  std::ranges::copy_if(value_->keys, std::back_inserter(unasked), [this](const std::string& other) {
    return std::find(known_.begin(), known_.end(), other) == known_.end();
  });
  const std::string nearest = nearest_name(key, unasked);
  const std::string hint = nearest.empty() ? "" : fmt::format(" (is {} meant?)", json_string(nearest));
  place_.fail(fmt::format("expected key {}, found none{}", json_string(key), hint));
}

std::string Reader::text(std::string_view key) {
  const Value& found = value(key);
  if (found.kind != Value::Kind::kString) fail_expected(place_of(key), "a string", found);
  return found.text;
}

std::string Reader::text(std::string_view key, std::string otherwise) {
  mark(key);
  return has(key) ? text(key) : std::move(otherwise);
}

bool Reader::boolean(std::string_view key, std::optional<bool> otherwise) {
  mark(key);
  if (otherwise && !has(key)) return *otherwise;
  const Value& found = value(key);
  if (found.kind != Value::Kind::kBoolean) fail_expected(place_of(key), "true or false", found);
  return found.boolean;
}

std::int64_t Reader::integer(std::string_view key, Range range, std::optional<std::int64_t> otherwise) {
  mark(key);
  if (otherwise && !has(key)) return *otherwise;
  const Value& found = value(key);
  const auto integer = as_integer(found);
  if (!integer || !inside(*integer, range))
    fail_expected(place_of(key), "an integer" + describe(range), found);
  return *integer;
}

double Reader::number(std::string_view key, Range range, std::optional<double> otherwise) {
  mark(key);
  if (otherwise && !has(key)) return *otherwise;
  const Value& found = value(key);
  const bool numeric = found.kind == Value::Kind::kInteger || found.kind == Value::Kind::kNumber;
  if (!numeric || !inside(found.number, range))
    fail_expected(place_of(key), "a number" + describe(range), found);
  return found.number;
}

double Reader::quantity(std::string_view key, Dimension dimension, Range range,
                        std::optional<double> otherwise) {
  mark(key);
  if (otherwise && !has(key)) return *otherwise;
  const Value& found = value(key);
  const std::string expected(moebius::describe(dimension));
  const auto si = found.kind == Value::Kind::kString ? parse_quantity(found.text, dimension) : std::nullopt;
  if (!si && is_beyond_numbers(found.text, dimension))
    fail_expected(place_of(key), expected + ", at most 1.8e308" + std::string(si_unit(dimension)), found);
  if (!si) fail_expected(place_of(key), expected, found);
  const std::string_view unit = si_unit(dimension);
  if (*si < range.low) fail_expected(place_of(key), expected + ", " + at_least(range.low, unit), found);
  if (*si > range.high)
    fail_expected(place_of(key), fmt::format("{}, at most {}{}", expected, range.high, unit), found);
  return *si;
}

Time Reader::time(std::string_view key, std::optional<Time> otherwise) {
  mark(key);
  if (otherwise && !has(key)) return *otherwise;
  constexpr Range kRepresentable{0, 9.2e9};  // seconds; a Time ends at 292 years
  return time_from_seconds(quantity(key, Dimension::kTime, kRepresentable));
}

Bytes Reader::bytes(std::string_view key, std::optional<Bytes> otherwise, double low) {
  mark(key);
  if (otherwise && !has(key)) return *otherwise;
  return {quantity(key, Dimension::kBytes, {.low = low})};
}

ByteRate Reader::byte_rate(std::string_view key, std::optional<ByteRate> otherwise) {
  mark(key);
  if (otherwise && !has(key)) return *otherwise;
  return {quantity(key, Dimension::kByteRate, {.low = kAboveZero})};
}

Reader Reader::object(std::string_view key) {
  const Value& found = value(key);
  return Reader(found, place_of(key));
}

std::optional<Reader> Reader::optional_object(std::string_view key) {
  mark(key);
  if (!has(key)) return std::nullopt;
  return object(key);
}

std::vector<Reader> Reader::objects(std::string_view key) {
  const Value& array = value(key);
  const Place place = place_of(key);
  if (array.kind != Value::Kind::kArray) fail_expected(place, "an array of objects", array);
  std::vector<Reader> readers;
  readers.reserve(array.items.size());
  for (const Value& item : array.items)
    readers.emplace_back(item, Place{.file = file_of(item, place),
                                     .pointer = fmt::format("{}/{}", place.pointer, readers.size()),
                                     .line = item.line});
  return readers;
}

std::vector<std::string> Reader::texts(std::string_view key) {
  mark(key);
  if (!has(key)) return {};
  const Value& array = value(key);
  const Place place = place_of(key);
  if (array.kind != Value::Kind::kArray) fail_expected(place, "an array of strings", array);
  std::vector<std::string> result;
  for (const Value& item : array.items) {
    const Place at{file_of(item, place), fmt::format("{}/{}", place.pointer, result.size()), item.line};
    if (item.kind != Value::Kind::kString) fail_expected(at, "a string", item);
    result.push_back(item.text);
  }
  return result;
}

std::size_t Reader::choice_index(std::string_view key, const std::vector<std::string>& names) {
  const Value& found = value(key);
  const bool string = found.kind == Value::Kind::kString;
  const auto at = string ? std::find(names.begin(), names.end(), found.text) : names.end();
  if (at != names.end()) return static_cast<std::size_t>(at - names.begin());
  place_of(key).fail(fmt::format("expected one of \"{}\", found {}{}", fmt::join(names, "\", \""),
                                 found.excerpt(), string ? suggestion(found.text, names) : ""));
}

namespace {

// The nearest key, or all of them where none is near and they can be read at a glance.
std::string keys_meant(const std::string& key, std::vector<std::string> known) {
  constexpr std::size_t kMost = 24, kMostLetters = 480;
  const std::string nearest = suggestion(key, known);
  if (!nearest.empty() || known.empty() || known.size() > kMost) return nearest;
  std::sort(known.begin(), known.end());
  std::string all = "; known are ";
  for (const std::string& name : known) all += (&name == &known.front() ? "" : ", ") + json_excerpt(name);
  return all.size() <= kMostLetters ? all : nearest;
}

}  // namespace

void Reader::finish() const {
  for (const std::string& key : value_->keys)
    if (std::find(known_.begin(), known_.end(), key) == known_.end())
      place_of(key).fail(fmt::format("unknown key {}{}", json_excerpt(key), keys_meant(key, known_)));
}

}  // namespace moebius
