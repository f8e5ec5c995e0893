// Quantities: how they are read, computed with and printed.
#include "hw/units.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "hw/dtype.h"

using namespace moebius;
using namespace moebius::literals;

TEST_CASE("A duration in seconds is rounded up to the next nanosecond") {
  CHECK(time_from_seconds(0).ns == 0);
  CHECK(time_from_seconds(1e-9).ns == 1);
  CHECK(time_from_seconds(1.2e-9).ns == 2);
  CHECK(time_from_seconds(2.8e-6).ns == 2800);
}

TEST_CASE("A rounding error of the double does not cost a nanosecond") {
  CHECK(time_from_seconds(3.0000000001e-9).ns == 3);  // 1e-10 ns is below the tolerance of 1e-6 ns
  CHECK(time_from_seconds(3.00001e-9).ns == 4);       // 1e-5 ns is above it
  // Tenths of a second have no exact double; the product with 1e9 is off by at most one unit in the last
  // place.
  for (std::int64_t tenths = 1; tenths < 2'000'000; tenths += 37)
    REQUIRE(time_from_seconds(static_cast<double>(tenths) / 10).ns == tenths * 100'000'000);
}

TEST_CASE("The longest durations are kept: 292 years") {
  CHECK(time_from_seconds(9.2e9).ns == 9'200'000'000'000'000'000);
}

TEST_CASE("Time literals agree with each other") {
  CHECK(1_s == 1000_ms);
  CHECK(1_ms == 1000_us);
  CHECK(1_us == 1000_ns);
  CHECK((3_us + 500_ns).ns == 3500);
  CHECK((2_us).seconds() == Approx(2e-6));
}

TEST_CASE("Quantities of one dimension add, scale and divide") {
  const Bytes sum = Bytes{3} + Bytes{4};
  CHECK(sum.value == 7);
  CHECK((2 * sum).value == 14);
  CHECK(sum / Bytes{3.5} == 2);
  CHECK(Bytes{100} / ByteRate{50} == 2);      // seconds
  CHECK(std::isinf(Flops{1} / FlopRate{0}));  // never done
}

TEST_CASE("Times are read in every unit from a nanosecond to a day") {
  const auto [text, seconds] = GENERATE(table<std::string, double>({{"3 ns", 3e-9},
                                                                    {"2.8 us", 2.8e-6},
                                                                    {"1.5 ms", 1.5e-3},
                                                                    {"19.926 s", 19.926},
                                                                    {"10 min", 600},
                                                                    {"2 h", 7200},
                                                                    {"1 d", 86400}}));
  CHECK(parse_quantity(text, Dimension::kTime) == Approx(seconds).epsilon(1e-15));
}

TEST_CASE("Sizes: b is bit and B is byte, decimal prefixes are powers of 1000 and Ki, Mi, Gi, Ti of 1024") {
  CHECK(parse_quantity("141 GB", Dimension::kBytes) == 141e9);
  CHECK(parse_quantity("16 GiB", Dimension::kBytes) == 16.0 * 1024 * 1024 * 1024);
  CHECK(parse_quantity("512 B", Dimension::kBytes) == 512);
  CHECK(parse_quantity("1 KiB", Dimension::kBytes) == 1024);
  CHECK(parse_quantity("1 kB", Dimension::kBytes) == 1000);
  CHECK(parse_quantity("8 Gb", Dimension::kBytes) == 1e9);
  CHECK(parse_quantity("2 TiB", Dimension::kBytes) == 2 * 0x1p40);
}

TEST_CASE("Byte rates are read from bits and bytes a second") {
  CHECK(parse_quantity("400 Gb/s", Dimension::kByteRate) == 5e10);  // 400e9 / 8
  CHECK(parse_quantity("400 Gbps", Dimension::kByteRate) == 5e10);
  CHECK(parse_quantity("3.35 TB/s", Dimension::kByteRate) == 3.35e12);
  CHECK(parse_quantity("1 GiB/s", Dimension::kByteRate) == 0x1p30);
}

TEST_CASE("Rates of arithmetic may be called FLOP/s, FLOPS, OP/s or OPS") {
  for (const char* text : {"989 TFLOP/s", "989 TFLOPS", "989 TOP/s", "989 TOPS", "0.989 PFLOP/s"})
    CHECK(parse_quantity(text, Dimension::kFlopRate) == Approx(989e12).epsilon(1e-15));
}

TEST_CASE("Power, frequency, length and price have their units") {
  CHECK(parse_quantity("700 W", Dimension::kPower) == 700);
  CHECK(parse_quantity("1.2 MW", Dimension::kPower) == 1.2e6);
  CHECK(parse_quantity("1.83 GHz", Dimension::kFrequency) == 1.83e9);
  CHECK(parse_quantity("30 km", Dimension::kLength) == 30e3);
  CHECK(parse_quantity("5 cm", Dimension::kLength) == 0.05);
  CHECK(parse_quantity("2.0 USD/h", Dimension::kPrice) == 2);
}

TEST_CASE("A quantity may be negative or have an exponent, and the space is optional") {
  CHECK(parse_quantity("-3 us", Dimension::kTime) == Approx(-3e-6));
  CHECK(parse_quantity("5e9 B/s", Dimension::kByteRate) == 5e9);
  CHECK(parse_quantity("16GiB", Dimension::kBytes) == 16 * 0x1p30);
}

TEST_CASE("What is not one number and one unit of the dimension is no quantity") {
  const auto text =
      GENERATE(as<std::string>(), "", " ", "s", "3", "3 ", " 3 s", "3  s", "3 s ", "3 s 4 s", "3,5 s", ".5 s",
               "5. s", "+5 s", "0x10 s", "nan s", "inf s", "-inf s", "NaN", "1e400 s", "--1 s", "- 1 s",
               "3 S", "3 sec", "3 m", "3 GB", "3 Gs", "three s", std::string("3 s\0", 4));
  INFO(text);
  CHECK_FALSE(parse_quantity(text, Dimension::kTime));
}

TEST_CASE("A unit of another dimension is refused") {
  CHECK_FALSE(parse_quantity("400 Gb", Dimension::kByteRate));
  CHECK_FALSE(parse_quantity("400 Gb/s", Dimension::kBytes));
  CHECK_FALSE(parse_quantity("1 TFLOP", Dimension::kFlopRate));
  CHECK_FALSE(parse_quantity("1 m", Dimension::kTime));
  CHECK_FALSE(parse_quantity("1 min", Dimension::kLength));
  CHECK_FALSE(parse_quantity("3 USD", Dimension::kPrice));
  CHECK_FALSE(parse_quantity("3 mB", Dimension::kBytes));  // nobody means a thousandth of a byte
}

TEST_CASE("A value that leaves the range of a double is no quantity") {
  CHECK_FALSE(parse_quantity("1e300 EB", Dimension::kBytes));
  CHECK_FALSE(parse_quantity("1e-400 s", Dimension::kTime));
}

TEST_CASE("Each dimension's description names an example that parses") {
  for (int i = 0; i <= static_cast<int>(Dimension::kPrice); ++i) {
    const Dimension dimension = static_cast<Dimension>(i);
    const std::string words(describe(dimension));
    const std::size_t open = words.find('"');
    CHECK(parse_quantity(words.substr(open + 1, words.size() - open - 2), dimension));
  }
}

TEST_CASE("Times are printed with four digits and the fitting unit") {
  CHECK(to_text(0_ns) == "0 ns");
  CHECK(to_text(4_us) == "4 us");
  CHECK(to_text(Time{2'800'400}) == "2.8 ms");
  CHECK(to_text(Time{19'926'000'000}) == "19.93 s");
  CHECK(to_text(90_s) == "90 s");
  CHECK(to_text(600_s) == "10 min");
  CHECK(to_text(3600_s * 3) == "3 h");
  CHECK(to_text(86400_s * 54) == "54 d");
  CHECK(to_text(Time{-2500}) == "-2.5 us");
  CHECK(to_text(kForever) == "forever");
}

TEST_CASE("What rounds up to a thousand is one of the next unit") {
  CHECK(to_text(Time{999'960}) == "1 ms");
  CHECK(to_text(Time{999'940}) == "999.9 us");
  CHECK(to_text(Bytes{999'600}) == "1 MB");
  CHECK(to_text(Bytes{999'400}) == "999 kB");
}

TEST_CASE("Sizes and rates are printed with three digits and a decimal prefix") {
  CHECK(to_text(Bytes{0}) == "0 B");
  CHECK(to_text(Bytes{512}) == "512 B");
  CHECK(to_text(Bytes{1.42e9}) == "1.42 GB");
  CHECK(to_text(ByteRate{46.08e9}) == "46.1 GB/s");
  CHECK(to_text(FlopRate{989.4e12}) == "989 TFLOP/s");
  CHECK(to_text(Flops{2.664e24}) == "2.66 YFLOP");
  CHECK(to_text(Bytes{std::numeric_limits<double>::infinity()}) == "inf B");
}

TEST_CASE("What is printed reads back within its digits") {
  for (double value = 1; value < 1e19; value *= 7.3) {
    CHECK(parse_quantity(to_text(Bytes{value}), Dimension::kBytes) == Approx(value).epsilon(5e-3));
    CHECK(parse_quantity(to_text(ByteRate{value}), Dimension::kByteRate) == Approx(value).epsilon(5e-3));
  }
  for (double ns = 1; ns < 9e18; ns *= 7.3) {
    const Time time{static_cast<std::int64_t>(ns)};
    CHECK(parse_quantity(to_text(time), Dimension::kTime) == Approx(time.seconds()).epsilon(5e-4));
  }
}

TEST_CASE("Every number format has a name that reads back") {
  for (int i = 0; i < kNumDTypes; ++i) {
    const DType dtype = static_cast<DType>(i);
    CHECK(parse_dtype(to_string(dtype)) == dtype);
  }
  CHECK_FALSE(parse_dtype("fp12"));
  CHECK_FALSE(parse_dtype("FP8"));
}

TEST_CASE("Elements of scaled formats carry their share of the scales") {
  CHECK(element_bytes(DType::kBf16) == 2);
  CHECK(element_bytes(DType::kFp8) == 1.03125);  // 128 elements and one FP32 scale: 132 bytes
  CHECK(element_bytes(DType::kFp4) == 0.5625);   // 16 elements of half a byte and one FP8 scale: 9 bytes
  CHECK(element_bytes(DType::kInt4) ==
        0.515625);  // 128 elements of half a byte and one 16-bit scale: 66 bytes
}
