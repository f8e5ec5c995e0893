// How a string looks inside a JSON text and inside an error sentence.
#pragma once

#include <string>
#include <string_view>

namespace moebius {

// `text` between double quotes, control characters, quotes and backslashes escaped; other bytes as they are.
std::string json_string(std::string_view text);

// Text of files that nothing has checked: what is no UTF-8, which a terminal could not show, is replaced.
std::string shown_characters(std::string_view text);

// A JSON pointer as it stands, or as an excerpt in quotes where it is very long or would garble the terminal.
std::string shown_pointer(std::string_view pointer);

// At most 40 bytes of `text`, cut between characters and ended with "..." when something is missing.
std::string shortened(std::string_view text);

// shortened(json_string(text)), without a copy of the whole when `text` is long.
std::string json_excerpt(std::string_view text);

}  // namespace moebius
