// The strict reader: one line per parameter gives its name, type, range and default, and every key that
// nobody asked for is an error. All errors read `FILE:LINE: /json/pointer: expected X, found Y (did you mean
// "z"?)`.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hw/document.h"
#include "hw/units.h"

namespace moebius {

struct Range {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
};

// As the low end of a Range: more than 0, and said so.
inline constexpr double kAboveZero = std::numeric_limits<double>::min();

// A position in a document: enough to say where something is wrong after the reading is over.
struct Place {
  std::string file;
  std::string pointer;
  int line = 0;         // 0: set from the command line
  std::string of = {};  // who says what does not stand there, for people: ", of framework "x""

  // input_error "FILE:LINE: POINTER: sentence", or "FILE: --set POINTER: sentence" for line 0.
  [[noreturn]] void fail(const std::string& sentence) const;
};

// Reads one JSON object, which must outlive it. Call finish() when every key has been asked for; it rejects
// the rest.
class Reader {
 public:
  explicit Reader(const Document& document);  // the root must be an object
  Reader(const Value& value, Place place);    // `value` must be an object

  bool has(std::string_view key) const;
  const Value& value(std::string_view key);  // required, any type
  const Place& place() const { return place_; }
  Place place_of(std::string_view key) const;

  // Required when no default is given. Each call marks the key as known.
  std::string text(std::string_view key);
  std::string text(std::string_view key, std::string otherwise);
  bool boolean(std::string_view key, std::optional<bool> otherwise = {});
  // 1e6 and 8.0 are integers too.
  std::int64_t integer(std::string_view key, Range range, std::optional<std::int64_t> otherwise = {});
  double number(std::string_view key, Range range, std::optional<double> otherwise = {});
  // A string with number and unit, "400 Gb/s"; `range` and the result are in SI units.
  double quantity(std::string_view key, Dimension dimension, Range range,
                  std::optional<double> otherwise = {});
  Time time(std::string_view key, std::optional<Time> otherwise = {});               // >= 0
  Bytes bytes(std::string_view key, std::optional<Bytes> otherwise = {}, double low = kAboveZero);
  ByteRate byte_rate(std::string_view key, std::optional<ByteRate> otherwise = {});  // > 0

  Reader object(std::string_view key);  // required object
  std::optional<Reader> optional_object(std::string_view key);
  std::vector<Reader> objects(std::string_view key);     // required array of objects
  std::vector<std::string> texts(std::string_view key);  // array of strings; empty when absent

  // One of a closed table of names; the error lists them all and suggests the nearest.
  template <class T>
  T choice(std::string_view key, const std::vector<std::pair<std::string_view, T>>& table,
           std::optional<T> otherwise = {}) {
    if (otherwise && !has(key)) {
      mark(key);
      return *otherwise;
    }
    std::vector<std::string> names;
    for (const auto& row : table) names.emplace_back(row.first);
    return table[choice_index(key, names)].second;
  }

  // Rejects every key that was not asked for: `unknown key "x" (did you mean "y"?)`.
  void finish() const;

 private:
  void mark(std::string_view key);
  std::size_t choice_index(std::string_view key, const std::vector<std::string>& names);

  const Value* value_;
  Place place_;
  std::vector<std::string> known_;
};

}  // namespace moebius
