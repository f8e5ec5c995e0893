// Many numbers as one text, "-0.02 0.01 0.3": files have thousands of them that every run reads.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "hw/reader.h"

namespace moebius {

// With one blank between two. input_error at `place` for what is no number of that range.
std::vector<double> read_number_list(std::string_view text, const Place& place, Range range);

}  // namespace moebius
