#include "workloads/report/wrapped_text.h"

#include <algorithm>

namespace moebius {
namespace {

// Where further lines of one begin.
std::size_t indent_of(std::string_view line, std::size_t columns) {
  const std::size_t begin = std::min(line.find_first_not_of(' '), line.size());
  const std::size_t name_end = line.find("  ", begin);
  const std::size_t value =
      name_end == std::string_view::npos ? name_end : line.find_first_not_of(' ', name_end);
  const bool below_value = value != std::string_view::npos && value <= columns / 2;
  return below_value ? text_width(line.substr(0, value)) : begin + 2;
}

// The last single space at which what is before it fits; npos: none behind the first word.
std::size_t break_of(std::string_view line, std::size_t columns) {
  std::size_t last = std::string_view::npos;
  for (std::size_t at = line.find_first_not_of(' '); (at = line.find(' ', at)) != std::string_view::npos;
       ++at) {
    if (last != std::string_view::npos && text_width(line.substr(0, at)) > columns) break;
    const bool single = line[at - 1] != ' ' && at + 1 < line.size() && line[at + 1] != ' ';
    if (single) last = at;
  }
  return last;
}

std::string wrapped_line(std::string_view line, std::size_t columns) {
  std::string all, rest(line);
  const std::string indent(indent_of(line, columns), ' ');
  while (text_width(rest) > columns) {
    const std::size_t at = break_of(rest, columns);
    if (at == std::string::npos || at < indent.size()) break;
    all.append(rest, 0, at).append("\n");
    rest = indent + rest.substr(at + 1);
  }
  return all + rest;
}

}  // namespace

// The bytes that begin a character.
std::size_t text_width(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

std::string wrapped(std::string_view text, std::size_t columns) {
  std::string all;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    all += wrapped_line(text.substr(0, end), columns);
    if (end == std::string_view::npos) break;
    all += '\n';
    text.remove_prefix(end + 1);
  }
  return all;
}

}  // namespace moebius
