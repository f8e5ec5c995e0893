// One line of a JSONL trace: the scalars of an object and of the objects in it by path ("request.replay.x"),
// and one array of ids. Ids keep their 64 bits, which numbers of JSON readers do not.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "workloads/serving/traffic/line_reader.h"

namespace moebius {

class JsonRow {
 public:
  // `lines`: where sentences say that something is wrong; `ids`: the path of the array.
  JsonRow(const LineReader& lines, std::string ids) : lines_(lines), ids_path_(std::move(ids)) {}

  void parse(const std::string& line);  // input_error: no object, a key twice, ids that are none

  bool has(std::string_view path) const { return find(path) != nullptr; }
  // Nothing where it is absent; input_error where it is something else or out of range.
  std::optional<double> number(std::string_view path, double low, double high) const;
  std::optional<std::int64_t> whole(std::string_view path, double low, double high) const;
  std::string_view text(std::string_view path) const;  // empty where there is none
  bool flag(std::string_view path) const;              // true only where it says so
  // A text as it is, a number as its digits: how rows name sessions.
  std::string name(std::string_view path) const;
  bool has_ids() const { return has_ids_; }
  const std::vector<std::uint64_t>& ids() const { return ids_; }

  // Refuses keys of the outer object that are nearly one of these: mistakes, not others' additions.
  void refuse_misspelt(const std::vector<std::string>& known) const;
  [[noreturn]] void fail(std::string_view path, const std::string& sentence) const;

 private:
  class Handler;
  using Scalar = std::variant<std::monostate, bool, double, std::string>;  // monostate: null or an array
  struct Entry {
    std::string path;
    Scalar value;
  };

  static std::string excerpt(const Scalar& value);
  const Scalar* find(std::string_view path) const;

  const LineReader& lines_;
  std::string ids_path_;
  std::vector<Entry> entries_;
  std::vector<std::uint64_t> ids_;
  bool has_ids_ = false;
};

}  // namespace moebius
