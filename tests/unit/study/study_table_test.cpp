// What is told of the results of a study.
#include "workloads/study/study_table.h"

#include <stdexcept>

#include <fmt/format.h>

#include "tests/unit/study/study_files.h"
#include "workloads/study/study_points.h"

namespace moebius {
namespace {

using test::Files;
using test::row;

// time = 10 a + b: of the variance of 11, 12, 21, 22 (25 + 0.25) a accounts for 25.
TEST_CASE("a table tells which value moves a column") {
  const Files files;
  const Study study = files.study(R"("vary": {"/a": [1, 2], "/b": [1, 2]})");
  ResultsFile results(files.path("r.sqlite"));
  const auto rows = [&](std::int64_t i) { return row(i, std::to_string(i)); };
  const std::int64_t number = results.begin_study("s", "f", "sim", 4, rows);
  const double times[] = {11, 12, 21, 22};
  for (int i = 0; i < 4; ++i)
    results.record({std::to_string(i), true, "{\"time\": " + std::to_string(times[i]) + "}", 0});
  const StudyTable table = table_of(study, results, number);
  REQUIRE(table.rows.size() == 4);
  CHECK(table.rows[2].values[0].mean == 21);
  REQUIRE(table.influences[0].size() == 2);
  CHECK(table.influences[0][0].pointer == "/a");
  CHECK(table.influences[0][0].share == Approx(25 / 25.25));
  CHECK(table.influences[0][0].effect == Approx(10 / 16.5));
  CHECK(table.influences[0][1].share == Approx(0.25 / 25.25));
  CHECK(to_csv(study, results, number).substr(0, 69) ==
        "point,/a,/b,seed,status,time,error\n0,1,1,1,done,11,\n1,1,2,1,done,12,\n");
}

struct Told {
  StudyTable table;
  std::string text;
};

// Of a study whose points take these times, in order; below 0: they failed.
Told told(const Files& files, const std::string& keys, const std::vector<double>& times) {
  const Study study = files.study(keys);
  ResultsFile results(files.path("told.sqlite"));
  const auto rows = [&](std::int64_t i) { return row(i, keys + std::to_string(i)); };
  const std::int64_t number = results.begin_study(keys, "f", "sim", study.points(), rows);
  for (std::size_t i = 0; i < times.size(); ++i)
    results.record({keys + std::to_string(i), times[i] >= 0, fmt::format("{{\"time\": {}}}", times[i]), 0});
  const StudyTable table = table_of(study, results, number);
  return {table, to_text(study, table, 10)};
}

const Influence& of(const Told& told, const std::string& pointer) {
  for (const Influence& influence : told.table.influences[0])
    if (influence.pointer == pointer) return influence;
  throw std::runtime_error("nothing is told of " + pointer);
}

// time = 10 a + b, where the last of four points failed: a by itself would move it by 9.5 and b by -4.
TEST_CASE("what moves a column is told for all values together where points fail") {
  const Told seen = told(Files(), R"("vary": {"/a": [1, 2], "/b": [1, 2]})", {11, 12, 21, -1});
  const double mean = 44.0 / 3;
  CHECK(of(seen, "/a").effect == Approx(10 / mean));
  CHECK(of(seen, "/b").effect == Approx(1 / mean));
  CHECK(of(seen, "/a").share + of(seen, "/b").share == Approx(1));
}

// Four draws of two values go together by chance; time = 2 - 0.01 x + y.
TEST_CASE("what is drawn is told apart from what is drawn beside it") {
  const Files files;
  const std::string keys =
      R"("uncertain": {"/x": {"low": 0, "high": 1}, "/y": {"low": 0, "high": 1}}, "samples": 4)";
  const Study study = files.study(keys);
  std::vector<double> times;
  double sum = 0;
  for (std::int64_t i = 0; i < 4; ++i) {
    const StudyPoint point = point_of(study, i);
    times.push_back(2 - 0.01 * std::stod(point.settings[0].value) + std::stod(point.settings[1].value));
    sum += times.back();
  }
  const Told seen = told(files, keys, times);
  CHECK(of(seen, "/x").effect == Approx(-0.01 / (sum / 4)));
  CHECK(of(seen, "/y").effect == Approx(1 / (sum / 4)));
  CHECK(of(seen, "/y").share > 0.99);
  CHECK(of(seen, "/x").share + of(seen, "/y").share == Approx(1));
}

TEST_CASE("values that only change together are not told apart") {
  const Told seen = told(Files(), R"("vary": {"/a": [1, 2], "/b": [1, 2]})", {11, -1, -1, 22});
  CHECK(!of(seen, "/a").apart);
  CHECK(!of(seen, "/b").apart);
  CHECK(seen.text.find("not told apart from the others by these points") != std::string::npos);
}

TEST_CASE("nothing is said to move a column whose values differ by rounding alone") {
  const Told seen = told(Files(), R"("vary": {"/a": [1, 2]})", {0.1 + 0.2, 0.3});
  CHECK(seen.table.influences[0].empty());
  CHECK(seen.text.find("what moves") == std::string::npos);
}

TEST_CASE("a column that the first report lacks is told with the nearest that it has") {
  const Study study = Files().study(R"("vary": {"/a": [1, 2]})");
  CHECK_THAT(
      missing_column(study, R"({"times": 1})"),
      Catch::EndsWith(R"(/columns/0: the first report is without a number "time" (did you mean "times"?))"));
  CHECK(missing_column(study, R"({"time": null})").empty());
}

// time = 3, 1 and 2 along a: from 3 to 2 is -1 of a mean of 2. Cases have no order: from 1 to 3.
TEST_CASE("what a value moves has the sign that it has along its values") {
  const Files files;
  const double times[] = {3, 1, 2};
  const auto effect = [&](const std::string& file, const std::string& keys) {
    const Study study = files.study(keys);
    ResultsFile results(files.path(file));
    const auto rows = [&](std::int64_t i) { return row(i, std::to_string(i)); };
    const std::int64_t number = results.begin_study("s", "f", "sim", 3, rows);
    for (int i = 0; i < 3; ++i)
      results.record({std::to_string(i), true, "{\"time\": " + std::to_string(times[i]) + "}", 0});
    const StudyTable table = table_of(study, results, number);
    return std::pair(table.influences[0][0].effect, to_text(study, table, 10));
  };
  const auto [along, text] = effect("vary.sqlite", R"("vary": {"/a": [20, 3, 100]})");
  CHECK(along == Approx(-0.5));
  CHECK(text.find("-33.3% from its first value to its last") != std::string::npos);
  const auto [apart, cases] = effect("cases.sqlite", R"("cases": [{"/a": 20}, {"/a": 3}, {"/a": 100}])");
  CHECK(apart == Approx(1));
  CHECK(cases.find(", 100.0% of the mean between them") != std::string::npos);
}

TEST_CASE("a column that no report has is refused with the nearest that one has") {
  const Files files;
  const auto refused = [&](const std::string& file, const std::vector<std::string>& reports) {
    const Study study = files.study(R"("vary": {"/a": [1, 2]})");
    ResultsFile results(files.path(file));
    const auto rows = [&](std::int64_t i) { return row(i, std::to_string(i)); };
    const std::int64_t number = results.begin_study("s", "f", "sim", 2, rows);
    for (std::size_t i = 0; i < reports.size(); ++i) results.record({std::to_string(i), true, reports[i], 0});
    try {
      table_of(study, results, number);
    } catch (const Error& error) {
      CHECK(error.kind() == Error::Kind::kInput);
      return std::string(error.what()).substr(files.path("s.json").size());
    }
    return std::string();
  };
  const std::string other = R"({"times": 1, "a": {"b": 2}})";
  CHECK(refused("none.sqlite", {other, other}) ==
        R"(:2: /columns/0: no report has a number "time" (did you mean "times"?))");
  CHECK(refused("one.sqlite", {other, R"({"time": 1})"}).empty());
  CHECK(refused("null.sqlite", {other, R"({"time": null})"}).empty());
  CHECK(refused("unfinished.sqlite", {other}).empty());
}

// time = 5 x for a drawn x: a straight line accounts for all of it, and moves it by 5 times the range.
TEST_CASE("a table tells how much a drawn value moves a column") {
  const Files files;
  const Study study = files.study(R"("uncertain": {"/x": {"low": 10, "high": 30}}, "samples": 20)");
  ResultsFile results(files.path("r.sqlite"));
  const auto rows = [&](std::int64_t i) { return row(i, std::to_string(i)); };
  const std::int64_t number = results.begin_study("s", "f", "sim", 20, rows);
  double sum = 0;
  for (int i = 0; i < 20; ++i) {
    const double x = std::stod(point_of(study, i).settings[0].value);
    sum += 5 * x;
    results.record({std::to_string(i), true, "{\"time\": " + std::to_string(5 * x) + "}", 0});
  }
  const StudyTable table = table_of(study, results, number);
  REQUIRE(table.rows.size() == 1);
  CHECK(table.rows[0].values[0].count == 20);
  CHECK(table.influences[0][0].share == Approx(1));
  CHECK(table.influences[0][0].effect == Approx(5 * 20 / (sum / 20)));
}

TEST_CASE("pointers are shown by the end that tells them apart") {
  CHECK(short_names({"/plan/pp/degree", "/plan/ep/degree", "/workload/bytes"}) ==
        std::vector<std::string>{"pp/degree", "ep/degree", "bytes"});
}

// Names of curves: what tells them apart, however long, and nothing else.
TEST_CASE("a picture names what differs between curves and is as wide as its names") {
  Study study;
  study.name = "s";
  StudyTable table;
  table.columns = {"time"};
  table.done = table.points = 4;
  const std::string long_name(60, 'x');
  for (const char* bytes : {"1", "2"}) {
    for (const std::string& kind : {std::string("short"), long_name}) {
      CombinationRow row;
      row.settings = {{"/bytes", bytes}, {"/fixed", "always"}, {"/kind", kind}};
      row.values = {{1, 1, 1, 1}};
      table.rows.push_back(row);
    }
  }
  const std::string picture = to_svg(study, table);
  CHECK(picture.find(">kind short<") != std::string::npos);
  CHECK(picture.find(">kind " + long_name + "<") != std::string::npos);
  CHECK(picture.find("always") == std::string::npos);
  // 640 to the left of names, which begin 30 further right.
  const std::size_t at = picture.find(" width=\"") + 8;
  CHECK(std::stod(picture.substr(at)) > 610 + 30 + 6 * 65);
}

}  // namespace
}  // namespace moebius
