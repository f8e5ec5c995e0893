#include "workloads/report/number_text.h"

#include <cmath>

#include <fmt/format.h>

#include "hw/units.h"

namespace moebius {

std::string grouped(std::int64_t number) {
  const std::string digits = std::to_string(number);
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

std::string rate_text(double value) {
  return value < 100 ? fmt::format("{:.3g}", value) : grouped(std::llround(value));
}

std::string figure_text(double value) {
  return fmt::format("{:.4g}", value);
}

std::string amount_text(double value) {
  return value >= 9999.5 && value < 1e15 ? grouped(std::llround(value)) : figure_text(value);
}

std::string bar(double share) {
  std::string text;
  for (int i = 0; i < static_cast<int>(std::lround(share * 40)); ++i) text += "█";
  return text;
}

}  // namespace moebius
