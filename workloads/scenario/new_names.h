// Rows by whose names others know them, reports above all: each name once.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "hw/reader.h"

namespace moebius {

// A row of that name comes to `rows`; input error at `place` if one has it already.
template <class Row>
void require_new_name(const std::vector<Row>& rows, const std::string& name, const Place& place,
                      std::string_view noun) {
  for (const Row& row : rows)
    if (row.name == name) place.fail(fmt::format("two {} named \"{}\"", noun, name));
}

}  // namespace moebius
