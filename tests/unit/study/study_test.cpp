// Studies: what a file means, which points it has, what its results say.
#include "workloads/study/study.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <set>
#include <thread>

#include "hw/error.h"
#include "tests/catch.h"
#include "tests/process.h"
#include "tests/unit/study/study_files.h"
#include "workloads/job.h"
#include "workloads/study/results_file.h"
#include "workloads/study/study_points.h"
#include "workloads/study/sweep.h"

namespace moebius {
namespace {

using test::Files;
using test::kBase;
using test::row;

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

TEST_CASE("studies that begin together on a new file of results share its tables") {
  for (int round = 0; round < 20; ++round) {
    const test::Scratch scratch;
    std::atomic<int> opened = 0;
    std::vector<std::thread> together;
    for (int i = 0; i < 8; ++i)
      together.emplace_back([&] {
        try {
          const ResultsFile file(scratch.path("results.db"));
          ++opened;
        } catch (const Error& error) {
          WARN(error.what());
        }
      });
    for (std::thread& one : together) one.join();
    REQUIRE(opened == 8);
  }
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

// Whoever corrects a chip there expects other results; a folder that has moved says what it said.
TEST_CASE("what a folder of data says is told by its contents") {
  const test::Scratch scratch;
  std::filesystem::create_directories(scratch.path("a/profiles"));
  std::filesystem::create_directories(scratch.path("b/profiles"));
  scratch.write("a/accelerators.json", "1");
  scratch.write("b/accelerators.json", "1");
  CHECK(data_mark("").empty());
  CHECK(data_mark(scratch.path("a")) == data_mark(scratch.path("b")));
  scratch.write("b/profiles/own.json", "2");
  CHECK(data_mark(scratch.path("a")) != data_mark(scratch.path("b")));
  scratch.write("a/profiles/own.json", "3");
  CHECK(data_mark(scratch.path("a")) != data_mark(scratch.path("b")));
}

TEST_CASE("what was carried out with a folder of data is not carried out again after it has moved") {
  const Files files;
  const Study study = files.study(R"("vary": {"/workload/bytes": ["2 MB", "3 MB"]})");
  ResultsFile results(files.path("r.sqlite"));
  SweepRequest request{.study = study,
                       .means = "sim fluid",
                       .data = "a",
                       .data_mark = " data 1",
                       .run = [](const Document&) { return std::string(R"({"time": 1})"); }};
  CHECK(sweep(request, results).carried == 2);
  request.data = "b";
  CHECK(sweep(request, results).carried == 0);
  request.data_mark = " data 2";
  CHECK(sweep(request, results).carried == 2);
}

// Four numbers from 1 to 4, one draw in each quarter.
TEST_CASE("whole numbers are drawn where they are asked for") {
  const Study study =
      Files().study(R"("uncertain": {"/a": {"low": 1, "high": 4, "whole": true}}, "samples": 4)");
  std::set<std::string> drawn;
  for (std::int64_t i = 0; i < 4; ++i) drawn.insert(point_of(study, i).settings.back().value);
  CHECK(drawn == std::set<std::string>{"1", "2", "3", "4"});
  CHECK(Files().refusal(R"("uncertain": {"/a": {"low": 1, "high": 2.5, "whole": true}}, "samples": 4)") ==
        "2: /uncertain/~1a: expected whole numbers to draw whole ones between, found 1 and 2.5");
}

TEST_CASE("a string that reads as something else is told from it") {
  CHECK(plain("true") == "true");
  CHECK(plain("\"true\"") == "\"true\"");
  CHECK(plain("\"4\"") == "\"4\"");
  CHECK(plain("\"400 Gb/s\"") == "400 Gb/s");
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
  CHECK(files.refusal(R"("vary": {"/a": [{}], "/a/b": [1]})") ==
        R"(2: /vary/~1a~1b: "/a", which holds "/a/b", is varied already)");
  CHECK(files.refusal(R"("vary": {"/a/b": [1], "/a": [{}]})") ==
        R"(2: /vary/~1a: "/a/b", which "/a" holds, is varied already)");
  CHECK(files.refusal(R"("vary": {"/a/b": [1], "/a/bc": [1]}, "cases": [{"/c": {}}, {"/c/d": 1}])").empty());
  CHECK(files.refusal(R"("cases": [{"/c": {}, "/c/d": 1}])") ==
        R"(2: /cases/0/~1c~1d: "/c", which holds "/c/d", is varied already)");
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

TEST_CASE("a study is carried out by one process at a time, and by another once that has ended") {
  const Files files;
  const std::string path = files.path("r.sqlite");
  const auto rows = [](std::int64_t i) { return row(i, "a"); };
  int ready[2], end[2];
  REQUIRE((pipe(ready) == 0 && pipe(end) == 0));
  const pid_t other = fork();
  if (other == 0) {
    ResultsFile results(path);
    results.begin_study("s", "f", "sim", 1, rows);
    char byte = 0;
    const bool told = write(ready[1], &byte, 1) == 1;
    _exit(told && read(end[0], &byte, 1) == 1 ? 0 : 1);  // without tidying up: as one that was killed
  }
  char byte = 0;
  REQUIRE(read(ready[0], &byte, 1) == 1);
  {
    ResultsFile results(path);
    CHECK_THROWS_WITH(results.begin_study("s", "f", "sim", 1, rows),
                      Catch::StartsWith(fmt::format("{}: process {} on ", path, other)) &&
                          Catch::EndsWith(" carries out this study: expected it to end, or another --db"));
  }
  {
    ResultsFile results(path);
    CHECK(results.missing(results.begin_study("other", "f", "sim", 1, rows), false).size() == 1);
  }
  REQUIRE(write(end[1], &byte, 1) == 1);
  waitpid(other, nullptr, 0);
  {
    ResultsFile results(path);
    CHECK(results.missing(results.begin_study("s", "f", "sim", 1, rows), false).size() == 1);
  }
  for (const auto& left : std::filesystem::directory_iterator(std::filesystem::path(path).parent_path()))
    CHECK(left.path().extension() != ".lock");
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

}  // namespace
}  // namespace moebius
