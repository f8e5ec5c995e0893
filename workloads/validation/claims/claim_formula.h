// A figure of a claim as a formula over reports: "tokens_per_s / baseline.tokens_per_s".
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "hw/reader.h"

namespace moebius {

// Numbers and figures with *, / or - between them, from left to right. A figure is a dotted path into a
// report's JSON; one that begins with "baseline." is that of the baseline.
class ClaimFormula {
 public:
  // input_error at `place` for words that are not in this form.
  ClaimFormula(std::string text, const Place& place);

  using Lookup = std::function<std::optional<double>(const std::string& path)>;
  // Nothing when either report lacks a figure, or the result is not finite. Paths come without "baseline.".
  std::optional<double> value(const Lookup& ours, const Lookup& baseline) const;

  bool asks_baseline() const;
  const std::string& text() const { return text_; }

 private:
  struct Factor {
    char by = '*';  // what joins it to those before: * / -
    std::optional<double> number;
    std::string path;  // of a figure
    bool of_baseline = false;
  };
  static Factor factor_of(const std::string& word, char by);

  std::string text_;
  std::vector<Factor> factors_;
};

}  // namespace moebius
