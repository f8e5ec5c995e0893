// Directories of runs: what is written there is all of one run.
#include "workloads/report/run_directory.h"

#include <fcntl.h>
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

}  // namespace
}  // namespace moebius
