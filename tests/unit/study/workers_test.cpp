// Worker processes: every job ends once, whoever dies.
#include <sys/stat.h>

#include <csignal>
#include <map>
#include <numeric>

#include "hw/error.h"
#include "tests/process.h"
#include "workloads/study/workers/worker_processes.h"
#include "tests/catch.h"

namespace moebius {
namespace {

std::vector<std::int64_t> jobs(int count) {
  std::vector<std::int64_t> all(count);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

TEST_CASE("every job is carried out once and its result comes back whole") {
  const auto long_text = [](std::int64_t job) {
    return std::string(100'000, static_cast<char>('a' + job % 26));
  };
  WorkerProcesses workers(3, [&](std::int64_t job) { return JobOutcome{true, long_text(job), 0.25}; });
  std::map<std::int64_t, int> seen;
  workers.work(jobs(50), [&](std::int64_t job, const JobOutcome& outcome) {
    ++seen[job];
    CHECK(outcome.done);
    CHECK(outcome.text == long_text(job));
    CHECK(outcome.cpu_s == 0.25);
  });
  CHECK(seen.size() == 50);
  for (const auto& [job, times] : seen) CHECK(times == 1);
}

// The first who gets job 7 leaves a mark and dies; the second one finds it.
TEST_CASE("a job whose worker is killed goes to another") {
  const test::Scratch scratch;
  const std::string mark = scratch.path("mark");
  WorkerProcesses workers(2, [&](std::int64_t job) {
    if (job == 7 && mkdir(mark.c_str(), 0700) == 0) raise(SIGKILL);
    return JobOutcome{true, std::to_string(job), 0};
  });
  int done = 0;
  workers.work(jobs(20), [&](std::int64_t job, const JobOutcome& outcome) {
    done += outcome.done ? 1 : 0;
    CHECK(outcome.text == std::to_string(job));
  });
  CHECK(done == 20);
}

TEST_CASE("a job that kills whoever gets it fails with a sentence and the others end") {
  WorkerProcesses workers(2, [](std::int64_t job) {
    if (job == 3) raise(SIGKILL);
    return JobOutcome{true, "", 0};
  });
  int done = 0;
  workers.work(jobs(10), [&](std::int64_t job, const JobOutcome& outcome) {
    done += outcome.done ? 1 : 0;
    if (job == 3)
      CHECK(outcome.text == "2 processes that carried it out died, the last one of signal 9 (Killed)");
  });
  CHECK(done == 9);
}

}  // namespace
}  // namespace moebius
