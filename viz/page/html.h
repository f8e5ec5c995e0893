// Text of an HTML page, put together from pieces that are safe as they are.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace moebius::viz {

// Text as it is read: <, >, & and quotes escaped.
std::string escaped(std::string_view text);

// A word with what it means, shown where the pointer rests; the word alone when the glossary has nothing.
std::string term(std::string_view word);

// A section with a heading. Empty when `body` is.
std::string section(std::string_view title, const std::string& body);

// A table that scrolls by itself where it is wider than the page. Cells are HTML; those after the first
// column are figures.
std::string table(const std::vector<std::string>& head, const std::vector<std::vector<std::string>>& rows);

// The whole page: head, styles and `body`.
std::string page(std::string_view title, const std::string& body);

}  // namespace moebius::viz
