#include "workloads/serving/traffic/row_json.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "hw/error.h"
#include "hw/json_text.h"

namespace moebius {
namespace {

// "/request/replay/x" of "request.replay.x".
std::string pointer_of(std::string_view path) {
  std::string pointer = "/" + std::string(path);
  std::replace(pointer.begin(), pointer.end(), '.', '/');
  return pointer;
}

// Keys are the file's: of any length, with any characters.
std::string shown(const std::string& pointer) {
  constexpr std::size_t kLongest = 80;
  const bool plain = pointer.size() <= kLongest && json_string(pointer).size() == pointer.size() + 2;
  return plain ? pointer : json_excerpt(pointer);
}

}  // namespace

std::string JsonRow::excerpt(const Scalar& value) {
  if (const std::string* text = std::get_if<std::string>(&value)) return json_excerpt(*text);
  if (const bool* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  const double* number = std::get_if<double>(&value);
  return number != nullptr ? fmt::format("{}", *number) : "null";
}

// The events of nlohmann's SAX interface. What stands in arrays is passed over, but for the ids.
class JsonRow::Handler {
 public:
  explicit Handler(JsonRow& row) : row_(row) {}

  bool null() { return add({}); }
  bool boolean(bool value) { return add(value); }
  bool number_integer(std::int64_t value) {
    if (arrays_ == 1 && in_ids_)
      row_.fail(row_.ids_path_, fmt::format("expected ids of at least 0, found {}", value));
    return add(static_cast<double>(value));
  }
  bool number_unsigned(std::uint64_t value) {
    if (arrays_ == 0 || !in_ids_) return add(static_cast<double>(value));
    row_.ids_.push_back(value);
    return true;
  }
  bool number_float(double value, const std::string&) { return add(value); }
  bool string(const std::string& value) { return add(value); }
  bool binary(std::vector<std::uint8_t>&) { return false; }  // JSON texts hold none
  bool start_object(std::size_t) {
    if (in_ids_) refuse_id();
    if (arrays_ > 0) return true;
    constexpr int kDeepest = 64;
    if (depth_ == kDeepest) row_.lines_.fail(fmt::format("expected objects at most {} deep", kDeepest));
    if (depth_++ > 0) path_ += '.';
    marks_.push_back(path_.size());
    return true;
  }
  bool key(const std::string& name) {
    if (arrays_ > 0) return true;
    path_.resize(marks_.back());
    path_ += name;
    return true;
  }
  bool end_object() {
    if (arrays_ > 0) return true;
    path_.resize(marks_.back() - (depth_ > 1 ? 1 : 0));
    marks_.pop_back();
    --depth_;
    return true;
  }
  bool start_array(std::size_t) {
    if (depth_ == 0) refuse_row();
    if (in_ids_) refuse_id();
    if (arrays_++ > 0) return true;
    in_ids_ = path_ == row_.ids_path_;
    if (in_ids_) row_.has_ids_ = true;
    enter({});
    return true;
  }
  bool end_array() {
    --arrays_;
    in_ids_ = false;
    return true;
  }
  bool parse_error(std::size_t at, const std::string&, const nlohmann::json::exception&) {
    row_.lines_.fail(fmt::format("expected a JSON object, found something else at column {}", at));
  }

 private:
  bool add(Scalar value) {
    if (in_ids_) refuse_id();
    if (arrays_ > 0) return true;
    if (depth_ == 0) refuse_row();
    enter(std::move(value));
    return true;
  }
  void enter(Scalar value) {
    constexpr std::size_t kMostKeys = 1 << 10;
    if (row_.entries_.size() == kMostKeys)
      row_.lines_.fail(fmt::format("expected at most {} keys in a row, found more", kMostKeys));
    if (row_.find(path_) != nullptr) row_.fail(path_, "the key stands twice");
    row_.entries_.push_back({path_, std::move(value)});
  }
  [[noreturn]] void refuse_id() const { row_.fail(row_.ids_path_, "expected whole numbers of at least 0"); }
  [[noreturn]] void refuse_row() const { row_.lines_.fail("expected a JSON object, found another value"); }

  JsonRow& row_;
  std::string path_;
  std::vector<std::size_t> marks_;
  int depth_ = 0, arrays_ = 0;
  bool in_ids_ = false;
};

void JsonRow::parse(const std::string& line) {
  entries_.clear();
  ids_.clear();
  has_ids_ = false;
  Handler handler(*this);
  if (const std::size_t zero = line.find('\0'); zero != std::string::npos)
    lines_.fail(fmt::format("expected a JSON object, found a zero byte at column {}", zero + 1));
  nlohmann::json::sax_parse(line, &handler);
  const Scalar* ids = has_ids_ ? nullptr : find(ids_path_);
  if (ids != nullptr && !std::holds_alternative<std::monostate>(*ids))
    fail(ids_path_, fmt::format("expected an array of whole numbers, found {}", excerpt(*ids)));
}

const JsonRow::Scalar* JsonRow::find(std::string_view path) const {
  for (const Entry& entry : entries_)
    if (entry.path == path) return &entry.value;
  return nullptr;
}

std::optional<double> JsonRow::number(std::string_view path, double low, double high) const {
  const Scalar* found = find(path);
  if (found == nullptr || std::holds_alternative<std::monostate>(*found)) return std::nullopt;
  const double* number = std::get_if<double>(found);
  if (number == nullptr)
    fail(path, fmt::format("expected a number from {} to {}, found {}", low, high, excerpt(*found)));
  if (!(*number >= low && *number <= high))
    fail(path, fmt::format("expected a number from {} to {}, found {}", low, high, *number));
  return *number;
}

std::optional<std::int64_t> JsonRow::whole(std::string_view path, double low, double high) const {
  const std::optional<double> found = number(path, low, high);
  if (!found) return std::nullopt;
  if (*found != std::trunc(*found))
    fail(path, fmt::format("expected a whole number from {} to {}, found {}", low, high, *found));
  return static_cast<std::int64_t>(*found);
}

std::string_view JsonRow::text(std::string_view path) const {
  const Scalar* found = find(path);
  const std::string* text = found == nullptr ? nullptr : std::get_if<std::string>(found);
  return text == nullptr ? std::string_view() : *text;
}

bool JsonRow::flag(std::string_view path) const {
  const Scalar* found = find(path);
  const bool* flag = found == nullptr ? nullptr : std::get_if<bool>(found);
  return flag != nullptr && *flag;
}

std::string JsonRow::name(std::string_view path) const {
  const Scalar* found = find(path);
  if (found == nullptr) return "";
  if (const double* number = std::get_if<double>(found)) return fmt::format("{}", *number);
  return std::string(text(path));
}

void JsonRow::refuse_misspelt(const std::vector<std::string>& known) const {
  for (const Entry& entry : entries_) {
    if (entry.path.find('.') != std::string::npos) continue;
    if (std::find(known.begin(), known.end(), entry.path) != known.end()) continue;
    const std::string meant = suggestion(entry.path, known);
    if (!meant.empty()) fail(entry.path, fmt::format("unknown key \"{}\"{}", entry.path, meant));
  }
}

void JsonRow::fail(std::string_view path, const std::string& sentence) const {
  lines_.fail(fmt::format("{}: {}", shown(pointer_of(path)), sentence));
}

}  // namespace moebius
