#include "hw/number_list.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "hw/json_text.h"

namespace moebius {

std::vector<double> read_number_list(std::string_view text, const Place& place, Range range) {
  std::vector<double> numbers;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    double& number = numbers.emplace_back();
    const auto [end, failed] = std::from_chars(word.data(), word.data() + word.size(), number);
    const bool whole = failed == std::errc() && end == word.data() + word.size();
    if (!whole || !(number >= range.low && number <= range.high))
      place.fail(fmt::format("expected numbers from {} to {}, found {}", range.low, range.high,
                             json_excerpt(std::string(word))));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
  }
  return numbers;
}

}  // namespace moebius
