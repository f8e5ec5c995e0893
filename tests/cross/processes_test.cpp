// Through mpirun, as a user starts it: several processes leave what one leaves.
#include <catch2/catch.hpp>

#include <regex>
#include <string>

#include "real/mpi/mpi_transport.h"
#include "tests/process.h"
#include "tests/scenario_file.h"

namespace {

using namespace moebius;

const std::string kFourLayers = test::scenario_file("smoke/moe-4-layer.json");

// Why tests with mpirun are skipped; empty where it is.
std::string no_launcher() {
  if (!has_mpi()) return "this build has no MPI";
  return test::run("mpirun --version").exit_code == 0 ? "" : "there is no mpirun";
}

#define NEEDS_LAUNCHER()                                           \
  if (const std::string reason = no_launcher(); !reason.empty()) { \
    WARN("skipped: " << reason);                                   \
    return;                                                        \
  }                                                                \
  static_cast<void>(0)

test::Finished launch_words(int processes, const std::string& words) {
  return test::run(
      "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 timeout 120 mpirun --oversubscribe -np " +
      std::to_string(processes) + " " + words);
}

test::Finished launch(int processes, const std::string& arguments) {
  return launch_words(processes, MOEBIUS_BINARY + (" " + arguments));
}

// "losses": [...] of a report.
std::string losses_of(const std::string& report) {
  std::smatch match;
  return std::regex_search(report, match, std::regex(R"re("loss[a-z]*": \[[^\]]*\])re")) ? match[0].str()
                                                                                         : "";
}

int count(const std::string& text, const std::string& part) {
  int found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

}  // namespace

TEST_CASE(
    "two and three processes print one report with the losses of one process and leave its checkpoint") {
  NEEDS_LAUNCHER();
  const test::Scratch scratch;
  const std::string run = "run " + kFourLayers + " --executor host --json --set /workload/steps=2 ";
  const auto alone = test::run_moebius(run + "--set /plan/save=" + scratch.path("one"));
  REQUIRE(alone.exit_code == 0);
  REQUIRE(!losses_of(alone.out).empty());
  for (const int processes : {2, 3}) {
    const std::string saved = scratch.path(std::to_string(processes));
    const auto together = launch(processes, run + "--set /plan/save=" + saved);
    INFO(together.err);
    REQUIRE(together.exit_code == 0);
    CHECK(losses_of(together.out) == losses_of(alone.out));
    CHECK(count(together.out, "\"executor\": \"host\"") == 1);
    CHECK(count(together.out, std::to_string(processes) + " by Open MPI") == 1);
    CHECK(test::run("diff -r " + scratch.path("one") + " " + saved).exit_code == 0);
  }
}

// A scheduler tells each process, one after the other; somebody may tell only one of them.
TEST_CASE("two and four processes that are interrupted stop behind one step and leave its checkpoint") {
  NEEDS_LAUNCHER();
  struct Told {
    int processes;
    std::string who;  // a shell command of each, after which it is told
  };
  const Told last{2, "[ $OMPI_COMM_WORLD_RANK = 1 ]"};
  const Told all_the_first_at_last{4, "sleep 0.$((3 - OMPI_COMM_WORLD_RANK))"};
  for (const Told& told : {last, all_the_first_at_last}) {
    const test::Scratch scratch;
    const std::string saved = scratch.path("saved"), alone = scratch.path("alone");
    const std::string run = std::string(MOEBIUS_BINARY) + " run " + kFourLayers + " --executor host ";
    const std::string course =
        run + "--set /workload/steps=300 --set /plan/save_every=20 --set /plan/save=" + saved +
        " & child=$!; while [ ! -e " + saved + " ]; do sleep 0.1; done; " + told.who +
        " && kill -TERM $child; wait $child";
    const auto together = launch_words(told.processes, "sh -c '" + course + "'");
    INFO(together.err);
    CHECK(together.exit_code == 1);
    CHECK(count(together.err, "moebius: ") == 1);
    std::smatch step;
    REQUIRE(std::regex_search(together.err, step, std::regex("interrupted after step ([0-9]+) of 300: ")));
    const std::string steps = "--set /workload/steps=" + step[1].str();
    REQUIRE(test::run(run + steps + " --set /plan/save=" + alone).exit_code == 0);
    CHECK(test::run("diff -r " + alone + " " + saved).exit_code == 0);
  }
}

TEST_CASE("crosscheck in two processes agrees and says so once") {
  NEEDS_LAUNCHER();
  const auto crosscheck = launch(2, "crosscheck " + kFourLayers);
  INFO(crosscheck.err);
  CHECK(crosscheck.exit_code == 0);
  CHECK(count(crosscheck.out, "ops, order and bytes agree") == 1);
}

TEST_CASE("two processes that cannot start say so once with the exit code of one") {
  NEEDS_LAUNCHER();
  const auto missing = launch(2, "run nowhere.json --executor host");
  CHECK(missing.exit_code == 2);
  CHECK(count(missing.err, "moebius: nowhere.json: expected a file, found none") == 1);
  const auto too_many = launch(9, "run " + kFourLayers + " --executor host");
  CHECK(too_many.exit_code == 1);
  CHECK(count(too_many.err, "moebius: 9 processes for 8 ranks: each needs at least one") == 1);
}

TEST_CASE("a simulation in two processes is refused") {
  NEEDS_LAUNCHER();
  const auto refused = launch(2, "run " + kFourLayers);
  CHECK(refused.exit_code == 1);
  CHECK(refused.err.find("only --executor host runs in more than one") != std::string::npos);
}

TEST_CASE("several processes of a build without MPI are one sentence") {
  if (has_mpi()) {
    WARN("skipped: this build has MPI");
    return;
  }
  const auto refused = test::run("OMPI_COMM_WORLD_SIZE=2 " + std::string(MOEBIUS_BINARY) + " run " +
                                 kFourLayers + " --executor host");
  CHECK(refused.exit_code == 1);
  CHECK(refused.err == "moebius: this moebius was built without MPI: run it in one process\n");
}
