// What looking at a run costs. Counts are asserted; times and memory are recorded, never asserted: machines
// differ.
#include <time.h>
#include <catch2/catch.hpp>

#include <fstream>
#include <string>
#include <vector>

#include "tests/process.h"
#include "viz/export/chrome_trace.h"
#include "viz/export/perfetto_trace.h"
#include "viz/ui/headless.h"

namespace {

using namespace moebius;
using namespace moebius::viz;

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double resident_mb() {
  std::ifstream status("/proc/self/statm");
  double pages = 0, resident = 0;
  status >> pages >> resident;
  return resident * 4096e-6;
}

// The flagship with so many microbatches that its timeline has about that many spans.
std::string made_run(const test::Scratch& scratch, int microbatches) {
  const std::string directory = scratch.path("run");
  const auto run = test::run_moebius(
      "run " + std::string(MOEBIUS_SOURCE_DIR) +
      "/scenarios/study/deepseek-v3-train-2048-h800.json --set /workload/global_batch=" +
      std::to_string(128 * microbatches) + " --set '/timeline/max_bytes=\"4 GiB\"' --out " + directory);
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  return directory;
}

void look_at(int microbatches, std::size_t at_least) {
  const test::Scratch scratch;
  const std::string directory = made_run(scratch, microbatches);
  App app{Settings{}};
  Headless headless(app, 1600, 900, 1);
  const double before_mb = resident_mb(), opening = cpu_seconds();
  app.open(directory);
  const double opened = cpu_seconds() - opening;
  REQUIRE(app.open_trouble.empty());
  const RunData& run = *app.runs.front();
  CHECK(run.lanes.size() >= at_least);
  const double first = cpu_seconds();
  headless.frame();
  WARN(run.lanes.size() << " spans: opened in " << opened << " s of CPU, first frame "
                        << cpu_seconds() - first << " s, " << resident_mb() - before_mb
                        << " MB more resident");
  const double length = run.length();
  for (const double share : {1.0, 0.3, 0.1, 0.01, 0.001, 0.0001}) {
    app.timeline.window = {0.4 * length, (0.4 + 0.6 * share) * length};
    if (share == 1) app.fit();
    headless.frame();
    constexpr int kFrames = 20;
    const double start = cpu_seconds();
    for (int i = 0; i < kFrames; ++i) headless.frame();
    const double each = (cpu_seconds() - start) / kFrames;
    // A row has at most a stroke for each pixel and one more for each span that waits for peers.
    std::vector<Stroke> strokes;
    LevelOfDetail lod(run.lanes);
    for (std::size_t row = 0; row < 8; ++row) lod.draw(row, app.timeline.window, 1000, strokes);
    CHECK(strokes.size() <= 8 * 2 * 1000);
    WARN("  " << 100 * share << "% of the run: " << 1e3 * each << " ms of CPU a frame");
  }
}

}  // namespace

TEST_CASE("a million spans are drawn in strokes that follow the pixels") {
  look_at(148, 1'000'000);
}

TEST_CASE("ten million spans are drawn in strokes that follow the pixels") {
  look_at(1472, 10'000'000);
}

TEST_CASE("a million spans are exported as they are read") {
  const test::Scratch scratch;
  const SpanColumns run(made_run(scratch, 148) + "/timeline.mtl");
  REQUIRE(run.size() >= 1'000'000);
  double start = cpu_seconds();
  export_chrome(run, scratch.path("chrome"));
  WARN("Chrome: " << cpu_seconds() - start << " s of CPU for " << run.size() << " spans");
  start = cpu_seconds();
  export_perfetto(run, scratch.path("perfetto"));
  WARN("Perfetto: " << cpu_seconds() - start << " s of CPU");
  CHECK(std::filesystem::file_size(scratch.path("perfetto")) < 70 * run.size());
}
