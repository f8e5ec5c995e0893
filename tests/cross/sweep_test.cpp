// A study as a user carries it out: ended at any moment it goes on, and no point is there twice.
#include <catch2/catch.hpp>

#include <regex>
#include <string>

#include "real/mpi/mpi_transport.h"
#include "tests/process.h"

namespace {

using namespace moebius;

// 12 points a seed, of some 15 ms each.
class StudyFile {
 public:
  explicit StudyFile(int seeds = 10) {
    std::string all = "1";
    for (int seed = 2; seed <= seeds; ++seed) all += ", " + std::to_string(seed);
    const std::string base = std::string(MOEBIUS_SOURCE_DIR) + "/scenarios/smoke/alltoall-256.json";
    scratch_.write("s.json", R"({"moebius": 1, "kind": "study", "name": "s", "base": ")" + base + R"(",
      "vary": {"/workload/bytes": ["1 MB", "2 MB", "4 MB", "8 MB"], "/cluster/fabric/oversubscription": [1, 2, 4]},
      "seeds": [)" + all + R"(], "columns": ["collective.time_s"]})");
  }
  std::string arguments(const std::string& more) const {
    return "sweep " + scratch_.path("s.json") + " " + more;
  }
  std::string path(const std::string& name) const { return scratch_.path(name); }

 private:
  test::Scratch scratch_;
};

int carried_out(const std::string& text) {
  std::smatch match;
  return std::regex_search(text, match, std::regex("([0-9]+) points carried out now")) ? std::stoi(match[1])
                                                                                       : -1;
}

}  // namespace

TEST_CASE("a sweep that is killed goes on and carries out no finished point again") {
  const StudyFile study;
  for (const char* after : {"0.15", "0.3", "0.25", "0.35"})
    test::run("timeout -s KILL " + std::string(after) + " " + MOEBIUS_BINARY + " " + study.arguments(""));
  const test::Finished last = test::run_moebius(study.arguments("--csv " + study.path("all.csv")));
  INFO(last.err);
  REQUIRE(last.exit_code == 0);
  CHECK(last.out.find("120 points: 120 done, 0 failed") != std::string::npos);
  CHECK(carried_out(last.out) < 120);
  const std::string csv = test::text_of(study.path("all.csv"));
  CHECK(std::count(csv.begin(), csv.end(), '\n') == 121);  // a head, and each point once
  const test::Finished again = test::run_moebius(study.arguments(""));
  CHECK(carried_out(again.out) == 0);
}

TEST_CASE("points that cannot be carried out are results too and do not end a sweep") {
  const test::Scratch scratch;
  const std::string base = std::string(MOEBIUS_SOURCE_DIR) + "/scenarios/smoke/allreduce-1024.json";
  const std::string file = scratch.write(
      "s.json", R"({"moebius": 1, "kind": "study", "name": "s", "base": ")" + base +
                    R"(", "vary": {"/workload/ranks": [8, 1000000]}, "columns": ["collective.time_s"]})");
  const test::Finished run = test::run_moebius("sweep " + file);
  CHECK(run.exit_code == 0);
  CHECK(run.out.find("2 points: 1 done, 1 failed") != std::string::npos);
  CHECK(carried_out(run.out) == 2);
  CHECK(carried_out(test::run_moebius("sweep " + file).out) == 0);
  CHECK(carried_out(test::run_moebius("sweep " + file + " --retry").out) == 1);
}

TEST_CASE("points of a study are emulated each with its own ops") {
  const test::Scratch scratch;
  const std::string base = std::string(MOEBIUS_SOURCE_DIR) + "/scenarios/smoke/moe-layer.json";
  const std::string file = scratch.write(
      "s.json", R"({"moebius": 1, "kind": "study", "name": "s", "base": ")" + base +
                    R"(", "vary": {"/workload/sequence_length": [32, 64]}, "columns": ["step_time_s"]})");
  const test::Finished run = test::run_moebius("sweep " + file + " --executor emulate --workers 1");
  INFO(run.err);
  CHECK(run.out.find("2 points: 2 done, 0 failed") != std::string::npos);
}

TEST_CASE("a picture of a study is a whole SVG file") {
  const StudyFile study;
  const test::Finished run =
      test::run_moebius(study.arguments("--detail alpha-beta --plot " + study.path("p.svg")));
  REQUIRE(run.exit_code == 0);
  const std::string picture = test::text_of(study.path("p.svg"));
  CHECK(picture.find("<svg") != std::string::npos);
  CHECK(picture.find("collective.time_s") != std::string::npos);
  CHECK(picture.find("</svg>") != std::string::npos);
}

// The launcher is told to let the others live; the first process hands the lost one's point to another.
TEST_CASE("a sweep of several processes ends all points when one of them is killed") {
  if (!has_mpi() || test::run("mpirun --version").exit_code != 0) {
    WARN("skipped: this build has no MPI, or there is no mpirun");
    return;
  }
  const StudyFile study(40);
  const std::string kill_third =
      "( sleep 1; for p in $(pgrep -f '" + study.path("s.json") +
      "'); do tr '\\0' '\\n' 2>/dev/null </proc/$p/environ | grep -q '^OMPI_COMM_WORLD_RANK=2$' && "
      "kill -9 $p && echo one killed; done ) & ";
  const test::Finished run = test::run(
      kill_third +
      "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 timeout 120 mpirun --enable-recovery "
      "--oversubscribe -np 4 " +
      MOEBIUS_BINARY + " " + study.arguments("--workers 1"));
  INFO(run.err);
  CHECK(run.out.find("480 points: 480 done, 0 failed") != std::string::npos);
  CHECK(run.out.find("one killed") != std::string::npos);
  CHECK(run.out.find("with 3 processes elsewhere") != std::string::npos);
}
