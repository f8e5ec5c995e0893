#include "hw/json_text.h"

#include <fmt/format.h>

#include <algorithm>
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

// Of the character at the front of `text`; 0: it is ill-formed, or a control character of two bytes.
std::size_t character_bytes(std::string_view text) {
  const auto byte = [text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t size = first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
  if (size == 0 || text.size() < size) return 0;
  for (std::size_t i = 1; i < size; ++i)
    if (!continues_character(text[i])) return 0;
  const unsigned char low = first == 0xe0   ? 0xa0
                            : first == 0xf0 ? 0x90
                            : first == 0xc2 ? 0xa0
                                            : 0x80,
                      high = first == 0xed   ? 0x9f
                             : first == 0xf4 ? 0x8f
                                             : 0xbf;
  return byte(1) >= low && byte(1) <= high ? size : 0;
}

}  // namespace

std::string shown_characters(std::string_view text) {
  std::string shown;
  while (!text.empty()) {
    const std::size_t size = character_bytes(text);
    shown += size > 0 ? text.substr(0, size) : "\uFFFD";
    text.remove_prefix(std::max<std::size_t>(size, 1));
  }
  return shown;
}

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

std::string shown_pointer(std::string_view pointer) {
  constexpr std::size_t kLongest = 200;
  const bool plain =
      json_string(pointer).size() == pointer.size() + 2 && shown_characters(pointer) == pointer;
  return plain && pointer.size() <= kLongest ? std::string(pointer) : json_excerpt(pointer);
}

std::string json_excerpt(std::string_view text) {
  return shortened(json_string(shown_characters(text.substr(0, kLongestExcerpt + 8))));
}

}  // namespace moebius
