#include "hw/document.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "hw/error.h"
#include "hw/json_text.h"

namespace moebius {

namespace {

void append_integer(std::string& out, std::int64_t value) {
  fmt::format_to(std::back_inserter(out), "{}", value);
}

// The shortest text that reads back as the same double, and as a number that is not an integer.
void append_number(std::string& out, double value) {
  CHECK(std::isfinite(value), fmt::format("value={}", value));
  char digits[32];
  const char* end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  const std::string_view text(digits, static_cast<std::size_t>(end - digits));
  out += text;
  if (text.find_first_of(".e") == std::string_view::npos) out += ".0";
}

class Writer {
 public:
  void write(const Value& value) {
    switch (value.kind) {
      case Value::Kind::kNull:
        out += "null";
        return;
      case Value::Kind::kBoolean:
        out += value.boolean ? "true" : "false";
        return;
      case Value::Kind::kInteger:
        append_integer(out, value.integer);
        return;
      case Value::Kind::kNumber:
        append_number(out, value.number);
        return;
      case Value::Kind::kString:
        out += json_string(value.text);
        return;
      case Value::Kind::kArray:
        write_container(value, '[', ']');
        return;
      case Value::Kind::kObject:
        write_container(value, '{', '}');
        return;
    }
    std::abort();
  }

  std::string out;

 private:
  void write_container(const Value& value, char open, char close) {
    out += open;
    indent_ += 2;
    for (std::size_t i = 0; i < value.items.size(); ++i) {
      if (i > 0) out += ',';
      begin_line();
      if (value.kind == Value::Kind::kObject) out += json_string(value.keys[i]) + ": ";
      write(value.items[i]);
    }
    indent_ -= 2;
    if (!value.items.empty()) begin_line();
    out += close;
  }

  void begin_line() {
    out += '\n';
    out.append(indent_, ' ');
  }

  std::size_t indent_ = 0;
};

Error file_error(const std::string& path, std::string_view expected, std::string_view found) {
  return input_error(fmt::format("{}: expected {}, found {}", path, expected, found));
}

// The whole file, but never more than `limit` bytes of it: what cannot be a document is not read.
std::string read_file(const std::string& path, std::size_t limit) {
  std::error_code failure;
  const std::filesystem::file_status status = std::filesystem::status(path, failure);
  if (status.type() == std::filesystem::file_type::not_found) throw file_error(path, "a file", "none");
  if (std::filesystem::is_directory(status)) throw file_error(path, "a file", "a directory");
  const std::string too_large = fmt::format("at most {} bytes", limit);
  if (std::filesystem::is_regular_file(status)) {
    const std::uintmax_t size = std::filesystem::file_size(path, failure);
    if (!failure && size > limit) throw file_error(path, too_large, fmt::format("{}", size));
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) throw file_error(path, "a readable file", "one that cannot be opened");
  constexpr std::size_t kChunk = std::size_t{1} << 16;
  std::string text;
  while (file && text.size() <= limit) {  // devices and pipes have no size to ask for
    const std::size_t before = text.size();
    text.resize(before + std::min(kChunk, limit + 1 - before));
    file.read(text.data() + before, static_cast<std::streamsize>(text.size() - before));
    text.resize(before + static_cast<std::size_t>(file.gcount()));
  }
  if (file.bad()) throw file_error(path, "a readable file", "one that failed while it was read");
  if (text.size() > limit) throw file_error(path, too_large, "more");
  return text;
}

}  // namespace

const Value* Value::find(std::string_view key) const {
  CHECK(kind == Kind::kObject, std::string(kind_name()));
  const auto at = std::find(keys.begin(), keys.end(), key);
  return at == keys.end() ? nullptr : &items[static_cast<std::size_t>(at - keys.begin())];
}

std::string_view Value::kind_name() const {
  switch (kind) {
    case Kind::kNull:
      return "null";
    case Kind::kBoolean:
      return "a boolean";
    case Kind::kInteger:
      return "an integer";
    case Kind::kNumber:
      return "a number";
    case Kind::kString:
      return "a string";
    case Kind::kArray:
      return "an array";
    case Kind::kObject:
      return "an object";
  }
  std::abort();
}

std::string Value::excerpt() const {
  switch (kind) {
    case Kind::kArray:
    case Kind::kObject:
      return std::string(kind_name());
    case Kind::kString:
      return json_excerpt(text);
    case Kind::kNull:
    case Kind::kBoolean:
    case Kind::kInteger:
      return to_json(*this);
    case Kind::kNumber:
      return text.empty() ? to_json(*this) : text;
  }
  std::abort();
}

Document load_document(const std::string& path, DocumentLimits limits) {
  return parse_document(read_file(path, limits.bytes), path, limits);
}

std::string to_json(const Value& value) {
  Writer writer;
  writer.write(value);
  return std::move(writer.out);
}

}  // namespace moebius
