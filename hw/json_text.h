// How a string looks inside a JSON text and inside an error sentence.
#pragma once

#include <string>
#include <string_view>

namespace moebius {

// `text` between double quotes, control characters, quotes and backslashes escaped; other bytes as they are.
std::string json_string(std::string_view text);

// At most 40 bytes of `text`, cut between characters and ended with "..." when something is missing.
std::string shortened(std::string_view text);

// shortened(json_string(text)), without a copy of the whole when `text` is long.
std::string json_excerpt(std::string_view text);

}  // namespace moebius
