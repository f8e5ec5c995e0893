#include "hw/json_text.h"

#include <fmt/format.h>

#include <iterator>

namespace moebius {

namespace {

constexpr std::size_t kLongestExcerpt = 40;

void append_escaped(std::string& out, char c) {
  switch (c) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
  }
  const auto byte = static_cast<unsigned char>(c);
  if (byte < 0x20 || byte == 0x7f) {
    fmt::format_to(std::back_inserter(out), "\\u{:04x}", byte);
  } else {
    out += c;
  }
}

bool continues_character(char c) {
  return (static_cast<unsigned char>(c) & 0xc0) == 0x80;
}

}  // namespace

std::string json_string(std::string_view text) {
  std::string out;
  out.reserve(text.size() + 2);
  out += '"';
  for (const char c : text) append_escaped(out, c);
  out += '"';
  return out;
}

std::string shortened(std::string_view text) {
  if (text.size() <= kLongestExcerpt) return std::string(text);
  std::size_t end = kLongestExcerpt - 3;
  while (end > 0 && continues_character(text[end])) --end;
  return std::string(text.substr(0, end)) + "...";
}

std::string json_excerpt(std::string_view text) {
  return shortened(json_string(text.substr(0, kLongestExcerpt + 8)));
}

}  // namespace moebius
