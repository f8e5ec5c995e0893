#include "hw/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <span>

#include "hw/error.h"

namespace moebius {

namespace {

// A unit is worth `times / over` SI units: both are exact in a double, so one rounding is all that happens.
struct Unit {
  std::string_view name;
  double times = 1;
  double over = 1;
};

constexpr std::array kTimeUnits{Unit{"ns", 1, 1e9}, Unit{"us", 1, 1e6}, Unit{"ms", 1, 1e3}, Unit{"s"},
                                Unit{"min", 60},    Unit{"h", 3600},    Unit{"d", 86400}};
constexpr std::array kSizeUnits{Unit{"B"}, Unit{"b", 1, 8}};
constexpr std::array kFlopRateUnits{Unit{"FLOP/s"}, Unit{"FLOPS"}, Unit{"OP/s"}, Unit{"OPS"}};
constexpr std::array kPowerUnits{Unit{"mW", 1, 1e3}, Unit{"W"}, Unit{"kW", 1e3}, Unit{"MW", 1e6}};
constexpr std::array kFrequencyUnits{Unit{"Hz"}, Unit{"kHz", 1e3}, Unit{"MHz", 1e6}, Unit{"GHz", 1e9}};
constexpr std::array kLengthUnits{Unit{"mm", 1, 1e3}, Unit{"cm", 1, 1e2}, Unit{"m"}, Unit{"km", 1e3}};
constexpr std::array kPriceUnits{Unit{"USD/h"}};
constexpr std::array kPrefixes{Unit{""},           Unit{"k", 1e3},     Unit{"K", 1e3},
                               Unit{"M", 1e6},     Unit{"G", 1e9},     Unit{"T", 1e12},
                               Unit{"P", 1e15},    Unit{"E", 1e18},    Unit{"Ki", 0x1p10},
                               Unit{"Mi", 0x1p20}, Unit{"Gi", 0x1p30}, Unit{"Ti", 0x1p40}};

std::optional<Unit> find_unit(std::string_view name, std::span<const Unit> units) {
  for (const Unit& unit : units)
    if (unit.name == name) return unit;
  return std::nullopt;
}

// A prefix, then one of `units`: "GiB", "TFLOP/s".
std::optional<Unit> find_prefixed(std::string_view name, std::span<const Unit> units) {
  for (const Unit& unit : units) {
    if (!name.ends_with(unit.name)) continue;
    const auto prefix = find_unit(name.substr(0, name.size() - unit.name.size()), kPrefixes);
    if (prefix) return Unit{name, prefix->times, unit.over};
  }
  return std::nullopt;
}

// "400 Gb/s" and "400 Gbps" are both in use for links.
std::optional<Unit> find_byte_rate(std::string_view name) {
  if (name.ends_with("/s") || name.ends_with("ps"))
    return find_prefixed(name.substr(0, name.size() - 2), kSizeUnits);
  return std::nullopt;
}

std::optional<Unit> unit_of(std::string_view name, Dimension dimension) {
  switch (dimension) {
    case Dimension::kTime:
      return find_unit(name, kTimeUnits);
    case Dimension::kBytes:
      return find_prefixed(name, kSizeUnits);
    case Dimension::kByteRate:
      return find_byte_rate(name);
    case Dimension::kFlopRate:
      return find_prefixed(name, kFlopRateUnits);
    case Dimension::kPower:
      return find_unit(name, kPowerUnits);
    case Dimension::kFrequency:
      return find_unit(name, kFrequencyUnits);
    case Dimension::kLength:
      return find_unit(name, kLengthUnits);
    case Dimension::kPrice:
      return find_unit(name, kPriceUnits);
  }
  std::abort();
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// The number at the front of `text`, which it is cut off from: a JSON number, so no "inf", ".5", "5." or
// "+5".
std::optional<double> take_number(std::string_view& text) {
  const std::size_t first = text.starts_with('-') ? 1 : 0;
  if (first >= text.size() || !is_digit(text[first])) return std::nullopt;
  double number = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failure != std::errc() || !std::isfinite(number) || !is_digit(end[-1])) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

// `value` with `digits` significant digits, without trailing zeros and without an exponent from 1e-4 up.
std::string significant(double value, int digits) {
  return fmt::format("{:.{}g}", value, digits);
}

// The largest prefix that leaves at least 1 after rounding, so that 999.96 of something is 1 of the next.
std::string with_prefix(double value, int digits, std::string_view unit) {
  static constexpr std::array kSteps{"", "k", "M", "G", "T", "P", "E", "Z", "Y"};
  const double carry = 1000 - 0.5 * std::pow(10.0, 3 - digits);  // what rounds to 1000
  std::size_t step = 0;
  while (std::isfinite(value) && std::abs(value) >= carry && step + 1 < kSteps.size()) {
    value /= 1000;
    ++step;
  }
  return fmt::format("{} {}{}", significant(value, digits), kSteps[step], unit);
}

}  // namespace

Time time_from_seconds(double seconds) {
  CHECK(seconds >= 0 && seconds * 1e9 < 0x1p63, fmt::format("seconds={}", seconds));
  const double ns = seconds * 1e9;
  const double nearest = std::round(ns);
  const double tolerance =
      std::max(1e-6, ns * 0x1p-52);  // the product is off by up to one unit in the last place
  return {static_cast<std::int64_t>(std::abs(ns - nearest) <= tolerance ? nearest : std::ceil(ns))};
}

std::optional<double> parse_quantity(std::string_view text, Dimension dimension) {
  const auto number = take_number(text);
  if (!number) return std::nullopt;
  if (text.starts_with(' ')) text.remove_prefix(1);
  const auto unit = unit_of(text, dimension);
  if (!unit) return std::nullopt;
  const double value = *number * unit->times / unit->over;
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

std::string_view describe(Dimension dimension) {
  switch (dimension) {
    case Dimension::kTime:
      return "a time such as \"2.8 us\"";
    case Dimension::kBytes:
      return "a size such as \"16 GiB\"";
    case Dimension::kByteRate:
      return "a byte rate such as \"400 Gb/s\"";
    case Dimension::kFlopRate:
      return "a FLOP rate such as \"989 TFLOP/s\"";
    case Dimension::kPower:
      return "a power such as \"700 W\"";
    case Dimension::kFrequency:
      return "a frequency such as \"1.83 GHz\"";
    case Dimension::kLength:
      return "a length such as \"30 km\"";
    case Dimension::kPrice:
      return "a price such as \"2.0 USD/h\"";
  }
  std::abort();
}

std::string to_text(Time time) {
  if (time == kForever) return "forever";
  struct Step {
    double ns;
    double below;  // in this unit; more is told in the next
    std::string_view name;
  };
  static constexpr std::array kSteps{Step{1, 999.95, "ns"},  Step{1e3, 999.95, "us"}, Step{1e6, 999.95, "ms"},
                                     Step{1e9, 120, "s"},    Step{60e9, 120, "min"},  Step{3600e9, 48, "h"},
                                     Step{86400e9, 1e9, "d"}};
  const double ns = static_cast<double>(time.ns);
  const auto fits = [ns](const Step& step) { return std::abs(ns) / step.ns < step.below; };
  const Step& step = *std::find_if(kSteps.begin(), kSteps.end() - 1, fits);
  return fmt::format("{} {}", significant(ns / step.ns, 4), step.name);
}

std::string seconds_text(double seconds) {
  // Sums over many devices may be longer than clocks run.
  if (std::abs(seconds) >= 9.2e9) return fmt::format("{} d", significant(seconds / 86400, 4));
  return fmt::format("{}{}", seconds < 0 ? "-" : "", to_text(time_from_seconds(std::abs(seconds))));
}

std::string to_text(Bytes bytes) {
  return with_prefix(bytes.value, 3, "B");
}
std::string to_text(ByteRate rate) {
  return with_prefix(rate.value, 3, "B/s");
}
std::string to_text(FlopRate rate) {
  return with_prefix(rate.value, 3, "FLOP/s");
}
std::string to_text(Flops flops) {
  return with_prefix(flops.value, 3, "FLOP");
}

}  // namespace moebius
