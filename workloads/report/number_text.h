// Numbers as the text report shows them.
#pragma once

#include <cstdint>
#include <string>

namespace moebius {

std::string grouped(std::int64_t number);  // 2048 -> "2,048"
std::string rate_text(double value);       // of things a second: three significant digits at least
std::string figure_text(double value);     // any metric, whatever its unit: four significant digits
std::string amount_text(double value);     // of money and energy: four digits, whole from 10,000: "30,668"
std::string bar(double share);             // of 40 blocks

}  // namespace moebius
