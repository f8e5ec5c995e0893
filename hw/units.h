// Quantities with a dimension. Time is an integer number of nanoseconds everywhere (292 years of range); rates and
// FLOP counts are doubles behind a type. Text forms are "2.8 us", "16 GiB", "400 Gb/s", "989 TFLOP/s".
#pragma once

#include <compare>
#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

namespace moebius {

struct Time {
  std::int64_t ns = 0;

  auto operator<=>(const Time&) const = default;
  constexpr double seconds() const { return static_cast<double>(ns) * 1e-9; }
};

inline constexpr Time kHour{3'600'000'000'000};
inline constexpr Time kForever{std::numeric_limits<std::int64_t>::max()};

constexpr Time operator+(Time a, Time b) { return {a.ns + b.ns}; }
constexpr Time operator-(Time a, Time b) { return {a.ns - b.ns}; }
constexpr Time operator*(Time a, std::int64_t n) { return {a.ns * n}; }
constexpr Time& operator+=(Time& a, Time b) { return a = a + b; }

// The one place where a duration in seconds becomes a Time: rounded up to the next nanosecond; negative, NaN and
// out-of-range values are our error (CHECK). A tolerance of 1e-6 ns, or of the last place of the product, keeps
// 3.0000000001 ns at 3 and 70.1 s at 70100000000 ns.
Time time_from_seconds(double seconds);

namespace literals {
constexpr Time operator""_ns(unsigned long long v) { return {static_cast<std::int64_t>(v)}; }
constexpr Time operator""_us(unsigned long long v) { return {static_cast<std::int64_t>(v) * 1'000}; }
constexpr Time operator""_ms(unsigned long long v) { return {static_cast<std::int64_t>(v) * 1'000'000}; }
constexpr Time operator""_s(unsigned long long v) { return {static_cast<std::int64_t>(v) * 1'000'000'000}; }
}  // namespace literals

// A double with a dimension: same-dimension arithmetic and scaling by a pure number only.
template <class Dimension>
struct Quantity {
  double value = 0;  // in the SI unit of the dimension

  auto operator<=>(const Quantity&) const = default;
  friend constexpr Quantity operator+(Quantity a, Quantity b) { return {a.value + b.value}; }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return {a.value - b.value}; }
  friend constexpr Quantity operator*(Quantity a, double s) { return {a.value * s}; }
  friend constexpr Quantity operator*(double s, Quantity a) { return {a.value * s}; }
  friend constexpr Quantity operator/(Quantity a, double s) { return {a.value / s}; }
  friend constexpr double operator/(Quantity a, Quantity b) { return a.value / b.value; }
  Quantity& operator+=(Quantity b) { return *this = *this + b; }
};

using Bytes = Quantity<struct BytesDimension>;            // bytes; exact to 2^53
using Flops = Quantity<struct FlopsDimension>;            // floating-point operations
using ByteRate = Quantity<struct ByteRateDimension>;      // bytes per second
using FlopRate = Quantity<struct FlopRateDimension>;      // floating-point operations per second
using Watts = Quantity<struct WattsDimension>;
using Hertz = Quantity<struct HertzDimension>;
using Metres = Quantity<struct MetresDimension>;
using UsdPerHour = Quantity<struct UsdPerHourDimension>;

// Seconds that `amount` takes at `rate`; infinity when the rate is zero and something is left to do.
constexpr double operator/(Bytes amount, ByteRate rate) { return amount.value / rate.value; }
constexpr double operator/(Flops amount, FlopRate rate) { return amount.value / rate.value; }

// Rounded up; of numbers from 0, divided by numbers from 1.
template <std::integral A, std::integral B>
constexpr std::common_type_t<A, B> ceil_div(A number, B by) {
  return (number + by - 1) / by;
}

// 0 of nothing.
constexpr double share(double part, double whole) { return whole > 0 ? part / whole : 0; }
constexpr double share(Time part, Time whole) { return share(part.seconds(), whole.seconds()); }

enum class Dimension { kTime, kBytes, kByteRate, kFlopRate, kPower, kFrequency, kLength, kPrice };

// "400 Gb/s" -> 5e10 for kByteRate: the value in SI units (seconds for kTime), or nothing when the text is not one
// number followed by a unit of that dimension. Decimal prefixes are powers of 1000, KiB/MiB/GiB/TiB of 1024; "b" is bit, "B" is byte.
std::optional<double> parse_quantity(std::string_view text, Dimension dimension);

// What parse_quantity takes, for error sentences: `a byte rate such as "400 Gb/s"`.
std::string_view describe(Dimension dimension);

// For people: three or four significant digits and the fitting prefix ("19.93 s", "1.42 GB", "46.1 GB/s").
std::string to_text(Time time);
std::string seconds_text(double seconds);  // the same of a difference, too
std::string to_text(Bytes bytes);
std::string to_text(ByteRate rate);
std::string to_text(FlopRate rate);
std::string to_text(Flops flops);

}  // namespace moebius
