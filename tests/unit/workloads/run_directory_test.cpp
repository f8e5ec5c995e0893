// Directories of runs: what is written there is all of one run.
#include "workloads/report/run_directory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "tests/catch.h"
#include "tests/process.h"
#include "tests/unit/workloads/small_timeline.h"

namespace moebius {
namespace {

TEST_CASE("who writes a run waits until another has written all of its own there") {
  const test::Scratch scratch;
  const std::string run = scratch.path("run");
  std::filesystem::create_directory(run);
  const int other = open(run.c_str(), O_RDONLY | O_DIRECTORY);
  REQUIRE(flock(other, LOCK_EX) == 0);
  std::thread writer([&] { write_run(run, {"{}", "text"}, small_timeline()); });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  CHECK(std::filesystem::is_empty(run));
  close(other);
  writer.join();
  for (const char* name : {"report.json", "report.txt", "timeline.mtl"})
    CHECK(std::filesystem::exists(run + "/" + name));
}

TEST_CASE("directories that were made for results go away where no result came") {
  const test::Scratch scratch;
  std::filesystem::create_directory(scratch.path("there"));
  {
    const auto made = require_run_directory(scratch.path("there/a/b"));
    CHECK(std::filesystem::is_directory(scratch.path("there/a/b")));
  }
  CHECK(std::filesystem::is_empty(scratch.path("there")));
  {
    const auto made = require_run_directory(scratch.path("there/a/b"));
    write_run(scratch.path("there/a/b"), {"{}", "text"}, small_timeline());
  }
  CHECK(std::filesystem::exists(scratch.path("there/a/b/report.json")));
}

TEST_CASE("no option of export or report writes over a file of the run that it reads") {
  const test::Scratch scratch;
  const std::string run = scratch.path("run");
  write_run(run, {"{}", "text"}, small_timeline());
  for (const char* command : {"export {} --chrome {}/{}", "export {} --perfetto {}/{}",
                              "export {}/timeline.mtl --chrome {}/{}", "report {} --html {}/{}"})
    for (const char* name : {"timeline.mtl", "report.json", "report.txt"}) {
      const std::string line = fmt::format(fmt::runtime(command), run, run, name);
      INFO(line);
      const std::string before = test::text_of(run + "/" + name);
      const test::Finished refused = test::run_moebius(line);
      CHECK(refused.exit_code == 2);
      CHECK_THAT(refused.err,
                 Catch::Contains(fmt::format(": expected another file than {}/{}, found ", run, name)));
      CHECK(test::text_of(run + "/" + name) == before);
    }
}

TEST_CASE("what a search, a sweep and a drawing read they do not write over") {
  const test::Scratch scratch;
  const std::string base =
      R"({"moebius": 1, "kind": "collective", "name": "c", "cluster": {"pools": [{"name": "a",
    "accelerator": "h100-sxm", "node": "hgx-8", "nodes": 2}], "fabric": {"type": "rail-optimised-clos"}},
    "workload": {"operation": "all-reduce", "bytes": "1 MB", "ranks": 16}})";
  const std::string scenario = scratch.write("c.json", base);
  const std::string training = scratch.write(
      "t.json",
      R"({"moebius": 1, "kind": "training", "name": "t", "model": {"base": "llama-3.1-8b", "layers": 2},
    "cluster": {"pools": [{"name": "a", "accelerator": "h100-sxm", "node": "hgx-8", "nodes": 1}],
    "fabric": {"type": "rail-optimised-clos"}}, "workload": {"sequence_length": 512, "global_batch": 8}})");
  const std::string study =
      scratch.write("s.study.json", R"({"moebius": 1, "kind": "study", "name": "s", "base": "c.json",
    "vary": {"/workload/bytes": ["1 MB"]}, "columns": ["collective.time_s"]})");
  for (const std::string& line :
       {"show " + scenario + " --draw " + scenario, "sweep " + study + " --csv " + scenario,
        "search " + training + " --plot " + training, "search " + training + " --write " + training})
    CHECK(test::run_moebius(line).exit_code == 2);
  CHECK(test::text_of(scenario) == base);
}

TEST_CASE("options that would do nothing are refused") {
  const std::string study = std::string(MOEBIUS_SOURCE_DIR) + "/scenarios/study/oversubscription.study.json";
  const test::Scratch scratch;
  for (const std::string& line :
       {std::string("show h800-sxm --kernel gemm --n 7168 --k 2048 --nodes 4"),
        "calibrate --device host --out " + scratch.path("c.json") + " --budget 1 --fit links",
        "sweep " + study + " --db " + scratch.path("s.sqlite") + " --executor host --detail alpha-beta"}) {
    INFO(line);
    CHECK(test::run_moebius(line).exit_code == 2);
  }
}

}  // namespace
}  // namespace moebius
