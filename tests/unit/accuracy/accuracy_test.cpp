// Intervals of figures from errors that were seen before, and whether they hold.
#include <catch2/catch.hpp>

#include <cmath>

#include "workloads/accuracy/accuracy_page.h"
#include "workloads/accuracy/coverage.h"
#include "workloads/calibration/page/accuracy_table.h"

namespace {

using namespace moebius;

AccuracySource source_of(const std::string& name, const std::vector<double>& errors, double parts = 0) {
  AccuracySource source;
  source.figure = "step time", source.name = name;
  for (const double error : errors) source.points.push_back({name, error, parts});
  source.rows = static_cast<std::int64_t>(errors.size());
  return source;
}

std::vector<const AccuracySource*> all_of(const std::vector<AccuracySource>& sources) {
  std::vector<const AccuracySource*> list;
  for (const AccuracySource& source : sources) list.push_back(&source);
  return list;
}

}  // namespace

TEST_CASE("a quantile of weighted points is linear between the middles of their weights") {
  // Weights 1, 2, 1 of 4: middles at 1/8, 1/2, 7/8.
  const std::vector<WeightedPoint> points{{10, 1}, {20, 2}, {40, 1}};
  CHECK(weighted_quantile(points, 0.5) == 20);
  CHECK(weighted_quantile(points, 0.05) == 10);
  CHECK(weighted_quantile(points, 0.99) == 40);
  CHECK(weighted_quantile(points, 5.0 / 16) == Approx(15));   // half-way from 1/8 to 1/2
  CHECK(weighted_quantile(points, 11.0 / 16) == Approx(30));  // and from 1/2 to 7/8
}

TEST_CASE("Student's ninth decile is that of the tables and becomes the normal one") {
  CHECK(student_ninth_decile(1) == Approx(3.078).margin(0.001));
  CHECK(student_ninth_decile(2) == Approx(1.886).margin(0.001));
  CHECK(student_ninth_decile(3) == Approx(1.638).epsilon(0.002));
  CHECK(student_ninth_decile(10) == Approx(1.372).margin(0.001));
  CHECK(student_ninth_decile(100000) == Approx(1.2816).margin(0.0001));
}

TEST_CASE("sources that agree within themselves give an interval of what lies between them") {
  // Medians -0.1, 0, 0.1: mean 0, deviation 0.1, no spread within: 0.1 sqrt(1 + 1/3), t of 2 degrees 1.886.
  const std::vector<AccuracySource> sources{source_of("a", {-0.1, -0.1}), source_of("b", {0}),
                                            source_of("c", {0.1, 0.1, 0.1})};
  const auto spread = spread_of(all_of(sources));
  REQUIRE(spread);
  CHECK(spread->centre == Approx(0).margin(1e-12));
  CHECK(spread->deviation == Approx(0.1 * std::sqrt(4.0 / 3)));
  CHECK(band_of(*spread, 0).high == Approx(1.8856 * 0.1 * std::sqrt(4.0 / 3)).epsilon(1e-4));
  CHECK(spread->rows == 6);
}

// Rows at -0.1 and 0.1 about medians of 0 and 0.05: within 0.1 / 1.2816, whose half square, that of a median
// of two, is more than the square of what the medians differ by. What is left between is that of the mean.
TEST_CASE("what the scatter of few rows makes of their medians does not lie between sources") {
  const std::vector<AccuracySource> sources{source_of("a", {-0.1, 0.1}), source_of("b", {-0.05, 0.15})};
  const auto spread = spread_of(all_of(sources));
  REQUIRE(spread);
  const double within = 0.1 / 1.2815515655446004, between = 0.05 * 0.05 / 2;
  CHECK(spread->deviation == Approx(std::sqrt(within * within + between / 2)));
  CHECK(spread->degrees > 2);
}

TEST_CASE("what the parts of the rows explain is taken off and those of the new row are put on") {
  const std::vector<AccuracySource> sources{source_of("a", {-0.1}, 0.05), source_of("b", {0}, 0.05),
                                            source_of("c", {0.1}, 0.05)};
  const auto spread = spread_of(all_of(sources));
  REQUIRE(spread);
  // A row whose parts are as known as theirs has the interval of the sources; one told worse a wider one.
  CHECK(band_of(*spread, 0.05).high == Approx(student_ninth_decile(2) * spread->deviation));
  const double squares = spread->deviation * spread->deviation - 0.05 * 0.05 + 0.3 * 0.3;
  CHECK(band_of(*spread, 0.3).high == Approx(student_ninth_decile(2) * std::sqrt(squares)));
}

TEST_CASE("one source tells no interval and calibration tells none at all") {
  AccuracyRecord record;
  record.replace(source_of("a", {0.1, 0.2}));
  CHECK_FALSE(spread_of(record.tests(AccuracyClass::kTraining, "step time")));
  AccuracySource fitted = source_of("b", {0.3});
  fitted.calibration = true;
  record.replace(fitted);
  CHECK(record.tests(AccuracyClass::kTraining, "step time").size() == 1);
}

TEST_CASE("a source takes the place of the one with its name and many rows become quantiles") {
  AccuracyRecord record;
  record.replace(source_of("a", {0.1}));
  record.replace(source_of("a", {0.2}));
  REQUIRE(record.sources.size() == 1);
  CHECK(record.sources.front().points.front().error == 0.2);
  AccuracySource many;
  for (int i = 0; i < 400; ++i) many.points.push_back({"row", i * 0.01, 0.3});
  condense(many);
  const std::vector<AccuracyPoint>& points = many.points;
  CHECK(many.rows == 400);
  CHECK(many.worst == Approx(std::expm1(3.99)));
  CHECK(errors_of(many).worst == Approx(std::expm1(3.99)));
  REQUIRE(points.size() == kMostPoints);
  CHECK(points[0].error == Approx(0.05));  // the sixth of each ten
  CHECK(points[39].error == Approx(3.95));
  CHECK(points[7].parts == Approx(0.3));
}

TEST_CASE("a record is read as it was written") {
  AccuracyRecord record{"2026-11-22", "abc", {}};
  AccuracySource source = source_of("a \"quoted\" one", {0.125, -0.25}, 0.5);
  source.chips = {"h800-sxm"}, source.devices = 2048, source.link = "scenarios/validate/x";
  record.replace(source);
  const std::string text = record_text(record);
  CHECK(record_text(read_record(parse_document(text, "r"))) == text);
  CHECK_THROWS_WITH(
      read_record(parse_document(R"({"format": "x", "date": "", "commit": "", "sources": []})", "r")),
      "r:1: /format: expected \"moebius-accuracy-1\", found \"x\"");
}

TEST_CASE("errors alone are one text, whose words are numbers in their range") {
  AccuracyRecord record{"2026-11-23", "abc", {}};
  record.replace(source_of("a", {0.125, -0.25, 0}));
  for (AccuracyPoint& point : record.sources.front().points) point.name.clear();
  std::string text = record_text(record);
  CHECK(text.find(R"("quantiles":"0.125 -0.25 0")") != std::string::npos);
  CHECK(read_record(parse_document(text, "r")).sources.front().errors() == record.sources.front().errors());
  text.replace(text.find("-0.25"), 5, "-25.x");
  CHECK_THROWS_WITH(read_record(parse_document(text, "r")),
                    "r:3: /sources/0/quantiles: expected numbers from -20 to 20, found \"-25.x\"");
}

TEST_CASE("four in five measured rows of every class lie inside the intervals that others give") {
  const std::vector<ClassCoverage> classes = coverage_of(shipped_record());
  REQUIRE(classes.size() == accuracy_classes().size());
  for (const ClassCoverage& coverage : classes) {
    INFO(to_string(coverage.of));
    const std::optional<double> share = coverage.share();
    // Caches alone have too few sources to leave one out.
    REQUIRE(share.has_value() == (coverage.of != AccuracyClass::kCache));
    if (!share) continue;
    CHECK(*share >= 0.72);
    CHECK(*share <= 0.88);
  }
}

TEST_CASE("the README of the project and the page of all rows are those of the record that ships") {
  const std::string root = MOEBIUS_SOURCE_DIR;
  CHECK(read_section(root + "/README.md", "accuracy") == accuracy_section(shipped_record()));
  CHECK(read_section(root + "/scenarios/validate/ACCURACY.md", "accuracy-rows") ==
        accuracy_rows(shipped_record(), "../../"));
}
