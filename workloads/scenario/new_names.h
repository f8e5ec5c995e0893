// Rows by whose names others know them, reports above all: each name once.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "hw/json_text.h"
#include "hw/reader.h"

namespace moebius {

// It goes to terminals.
inline void require_one_line(const std::string& name, const Place& place) {
  const auto controls = [](unsigned char c) { return c < ' ' || c == 0x7f; };
  if (std::any_of(name.begin(), name.end(), controls))
    place.fail("expected one line without control characters, found " + json_excerpt(name));
}

// A row of that name comes to `rows`; input error at `place` if one has it already.
template <class Row>
void require_new_name(const std::vector<Row>& rows, const std::string& name, const Place& place,
                      std::string_view noun) {
  require_one_line(name, place);
  for (const Row& row : rows)
    if (row.name == name) place.fail(fmt::format("two {} named \"{}\"", noun, name));
}

}  // namespace moebius
