#include "workloads/validation/claims/claim_formula.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <sstream>
#include <string_view>

#include <fmt/format.h>

namespace moebius {

namespace {

constexpr std::string_view kBaseline = "baseline.";

std::optional<double> number_of(const std::string& word) {
  double number = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  const bool whole = error == std::errc() && end == word.data() + word.size();
  return whole && std::isfinite(number) ? std::optional(number) : std::nullopt;
}

bool is_sign(const std::string& word) {
  return word == "*" || word == "/" || word == "-";
}

bool is_operand(const std::string& word) {
  return !is_sign(word) && (number_of(word) || std::isalpha(static_cast<unsigned char>(word[0])) != 0);
}

}  // namespace

ClaimFormula::Factor ClaimFormula::factor_of(const std::string& word, char by) {
  Factor factor{.by = by, .number = number_of(word), .path = word};
  factor.of_baseline = !factor.number && word.rfind(kBaseline, 0) == 0;
  if (factor.of_baseline) factor.path.erase(0, kBaseline.size());
  return factor;
}

ClaimFormula::ClaimFormula(std::string text, const Place& place) : text_(std::move(text)) {
  std::istringstream stream(text_);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  bool right = words.size() % 2 == 1;
  for (std::size_t i = 0; i < words.size() && right; ++i)
    right = i % 2 == 0 ? is_operand(words[i]) : is_sign(words[i]);
  if (!right)
    place.fail(fmt::format(
        "expected figures of a report and numbers with *, / or - between them, found \"{}\"", text_));
  for (std::size_t i = 0; i < words.size(); i += 2)
    factors_.push_back(factor_of(words[i], i > 0 ? words[i - 1].front() : '*'));
}

std::optional<double> ClaimFormula::value(const Lookup& ours, const Lookup& baseline) const {
  double result = 1;
  for (const Factor& factor : factors_) {
    const std::optional<double> number =
        factor.number ? factor.number : (factor.of_baseline ? baseline : ours)(factor.path);
    if (!number) return std::nullopt;
    if (factor.by == '-') result -= *number;
    if (factor.by == '*') result *= *number;
    if (factor.by == '/') result /= *number;
  }
  return std::isfinite(result) ? std::optional(result) : std::nullopt;
}

bool ClaimFormula::asks_baseline() const {
  return std::any_of(factors_.begin(), factors_.end(),
                     [](const Factor& factor) { return factor.of_baseline; });
}

}  // namespace moebius
