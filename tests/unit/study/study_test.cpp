// Studies: what a file means, which points it has, what its results say.
#include "workloads/study/study.h"

#include <set>

#include "hw/error.h"
#include "tests/catch.h"
#include "tests/process.h"
#include "workloads/job.h"
#include "workloads/study/results_file.h"
#include "workloads/study/study_points.h"
#include "workloads/study/study_table.h"

namespace moebius {
namespace {

constexpr const char* kBase = R"({"moebius": 1, "kind": "collective", "name": "base", "seed": 7,
  "cluster": {"pools": [{"name": "a", "accelerator": "h100-sxm", "node": "hgx-8", "nodes": 1}],
              "fabric": {"type": "rail-optimised-clos", "nic": "400 Gb/s"}},
  "workload": {"operation": "all-reduce", "bytes": "1 MB", "ranks": 8}})";

class Files {
 public:
  Files() { scratch_.write("base.json", kBase); }
  Study study(const std::string& keys) const {
    return load_study(scratch_.write("s.json",
                                     R"({"moebius": 1, "kind": "study", "name": "s", "base": "base.json",
      "columns": ["time"], )" + keys + "}"));
  }
  std::string refusal(const std::string& keys) const {
    try {
      study(keys);
    } catch (const Error& error) {
      CHECK(error.kind() == Error::Kind::kInput);
      return std::string(error.what()).substr(scratch_.path("s.json").size() + 1);
    }
    return "";
  }
  std::string path(const std::string& name) const { return scratch_.path(name); }

 private:
  test::Scratch scratch_;
};

std::string settings_of(const Study& study) {
  std::string text;
  for (std::int64_t i = 0; i < study.points(); ++i) {
    const StudyPoint point = point_of(study, i);
    text += settings_json(point) + " " + std::to_string(point.seed) + "\n";
  }
  return text;
}

TEST_CASE("a study has every combination of values and cases, seeds fastest") {
  const Study study =
      Files().study(R"("vary": {"/a": [1, 2]}, "cases": [{"/b": "x"}, {"/c": [3]}], "seeds": [5, 6])");
  CHECK(settings_of(study) == R"({"/a": 1, "/b": "x"} 5
{"/a": 1, "/b": "x"} 6
{"/a": 1, "/c": [3]} 5
{"/a": 1, "/c": [3]} 6
{"/a": 2, "/b": "x"} 5
{"/a": 2, "/b": "x"} 6
{"/a": 2, "/c": [3]} 5
{"/a": 2, "/c": [3]} 6
)");
}

TEST_CASE("without seeds a study has the seed of its base") {
  CHECK(Files().study(R"("vary": {"/a": [1]})").seeds == std::vector<std::uint64_t>{7});
}

TEST_CASE("a point is the base with its values and its seed") {
  const Study study = Files().study(R"("vary": {"/workload/bytes": ["2 MB"]}, "seeds": [9])");
  const Document scenario = scenario_of(study, point_of(study, 0));
  CHECK(scenario.root.find("workload")->find("bytes")->text == "2 MB");
  CHECK(scenario.root.find("workload")->find("ranks")->integer == 8);
  CHECK(scenario.root.find("seed")->integer == 9);
}

// With n draws each n-th of the range has one of them, in every combination the same.
TEST_CASE("draws of an uncertain value spread over its range") {
  const Study study = Files().study(
      R"("vary": {"/a": [1, 2]}, "uncertain": {"/workload/bytes": {"low": "1 MB", "high": "9 MB"}}, "samples": 8)");
  REQUIRE(study.points() == 16);
  std::set<int> parts;
  for (std::int64_t i = 0; i < 8; ++i) {
    const std::string value = point_of(study, i).settings.back().value;
    CHECK(value == point_of(study, 8 + i).settings.back().value);
    CHECK(value.find(" MB\"") != std::string::npos);
    parts.insert(static_cast<int>(std::stod(value.substr(1))));
  }
  CHECK(parts == std::set<int>{1, 2, 3, 4, 5, 6, 7, 8});
}

TEST_CASE("a key changes with the scenario and with who carries it out") {
  const Study study = Files().study(R"("vary": {"/workload/bytes": ["2 MB", "3 MB"]})");
  const Document a = scenario_of(study, point_of(study, 0)), b = scenario_of(study, point_of(study, 1));
  CHECK(key_of(a, "sim fluid") == key_of(a, "sim fluid"));
  CHECK(key_of(a, "sim fluid") != key_of(b, "sim fluid"));
  CHECK(key_of(a, "sim fluid") != key_of(a, "sim alpha-beta"));
}

TEST_CASE("a scenario is no study and a study no scenario") {
  const test::Scratch scratch;
  const std::string scenario = scratch.write("base.json", kBase);
  CHECK_THROWS_WITH(load_study(scenario),
                    Catch::EndsWith(R"(/kind: expected one of "study", found "collective")"));
  const std::string study = scratch.write(
      "s.json", R"({"moebius": 1, "kind": "study", "name": "s", "base": "base.json", "columns": ["time"]})");
  CHECK_THROWS_WITH(
      read_job(study, {}, Library("")),
      Catch::EndsWith("1: /kind: expected a scenario, found a study: `moebius sweep` carries it out"));
}

TEST_CASE("what is wrong with a study is said in one sentence") {
  const Files files;
  CHECK(files.refusal(R"("vary": {"a": [1]})") ==
        R"(2: /vary/a: expected a JSON pointer such as "/plan/pp/degree", found "a")");
  CHECK(files.refusal(R"("vary": {"/a": []})") ==
        "2: /vary/~1a: expected an array of values to try, found an empty one");
  CHECK(files.refusal(R"("vary": {"/a": [1]}, "cases": [{"/a": 2}])") ==
        R"(2: /cases/0/~1a: "/a" is varied already)");
  CHECK(
      files.refusal(R"("uncertain": {"/a": {"low": "1 GB", "high": "2 MB"}}, "samples": 4)") ==
      R"(2: /uncertain/~1a: expected a low value below a high one in the same unit, found "1 GB" and "2 MB")");
  CHECK(files.refusal(R"("samples": 4)") == "2: /samples: expected 1: nothing is `uncertain`");
  CHECK(files.refusal(R"("vary": {"/seed": [1, 2]})") ==
        "2: /vary/~1seed: expected seeds under /seeds, which set it for each point");
  CHECK(files.refusal(R"("seeds": [1, 1])") == "2: /seeds: expected different seeds");
  CHECK(files.refusal(R"("vari": {"/a": [1]})") == R"(2: /vari: unknown key "vari" (did you mean "vary"?))");
  CHECK(files.refusal(R"("samples": 1000000, "uncertain": {"/a": {"low": 1, "high": 2}}, "seeds": [1, 2])") ==
        "1: expected at most 1000000 points, found 2000000");
}

// ---- results ----

StudyRow row(std::int64_t point, const std::string& key) {
  return {point, key, 1, "{}"};
}

TEST_CASE("results stay in their file and failed ones are tried again when asked for") {
  const Files files;
  const std::string path = files.path("r.sqlite");
  const std::vector<std::string> keys{"a", "b", "c", "b"};
  const auto rows = [&](std::int64_t i) { return row(i, keys[i]); };
  {
    ResultsFile results(path);
    const std::int64_t study = results.begin_study("s", "f", "sim", 4, rows);
    // Points 1 and 3 are the same scenario.
    CHECK(results.missing(study, false) == std::vector<std::int64_t>{0, 1, 2});
    results.record({"a", true, R"({"time": 1})", 0.5});
    results.record({"c", false, "too large", 0.1});
  }
  ResultsFile results(path);
  const std::int64_t study = results.begin_study("s", "f", "sim", 4, rows);
  CHECK(results.missing(study, false) == std::vector<std::int64_t>{1});
  CHECK(results.missing(study, true) == std::vector<std::int64_t>{1, 2});
  results.record({"c", true, R"({"time": 3})", 0.2});
  results.record({"a", true, R"({"time": 99})", 0.5});
  std::string seen;
  results.for_each(study, [&](const StudyRow& point, const StudyResult& result) {
    seen += std::to_string(point.point) + result.text;
  });
  CHECK(seen == R"(0{"time": 1}2{"time": 3})");
}

TEST_CASE("results of one study serve another that has the same points") {
  const Files files;
  ResultsFile results(files.path("r.sqlite"));
  results.begin_study("small", "f", "sim", 1, [](std::int64_t i) { return row(i, "a"); });
  results.record({"a", true, "{}", 0});
  const auto rows = [](std::int64_t i) { return row(i, i == 0 ? "new" : "a"); };
  const std::int64_t large = results.begin_study("large", "f", "sim", 2, rows);
  CHECK(results.missing(large, false) == std::vector<std::int64_t>{0});
}

TEST_CASE("a file that holds something else is not taken for results") {
  const Files files;
  const auto refused = [](const std::string& path) {
    try {
      ResultsFile results(path);
    } catch (const Error& error) {
      return std::string(error.what()).substr(path.size());
    }
    return std::string();
  };
  CHECK(refused(files.path("base.json")) == ": expected a file of results, found file is not a database");
  CHECK(refused(files.path("")) == ": expected a file of results, found a directory");
}

// ---- tables ----

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

// time = 3, 1 and 2 along a: from 3 to 2 is -1 of a mean of 2, and a third less than 3. Cases have no order:
// from 1 to 3.
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
