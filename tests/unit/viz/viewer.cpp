// The viewer as a user has it: the binary, mouse and keyboard by script, screens as pictures.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/unit/viz/drawn_run.h"
#include "viz/picture/picture.h"

namespace {

using namespace moebius;
using namespace moebius::test;
namespace fs = std::filesystem;

bool no_viewer() {
  const Finished asked = run_moebius("view --no-window --ui-script /dev/null");
  const bool missing = asked.err.find("built without the viewer") != std::string::npos;
  if (missing) WARN("skipped: built without the viewer (libimgui-dev, libstb-dev)");
  return missing;
}

struct Played {
  int exit_code = 0;
  std::vector<std::string> said;  // a state for each "say"
  std::string err;
};

Played play(const Scratch& scratch, const std::string& arguments, const std::string& script) {
  const Finished run =
      run_moebius("view " + arguments + " --no-window --ui-script " + scratch.write("script", script));
  Played played{run.exit_code, {}, run.err};
  std::istringstream lines(run.out);
  for (std::string line; std::getline(lines, line);) played.said.push_back(line);
  INFO(run.err);
  return played;
}

// "window=1..2" of a state.
std::pair<double, double> window_of(const std::string& state) {
  const std::size_t at = state.find("window=") + 7, dots = state.find("..", at);
  return {std::stod(state.substr(at, dots - at)), std::stod(state.substr(dots + 2))};
}

// Of the pixels, the share that differs by more than a shade.
double difference(const viz::Picture& a, const viz::Picture& b) {
  if (a.width != b.width || a.height != b.height) return 1;
  std::size_t other = 0;
  for (std::size_t i = 0; i < a.pixels.size(); ++i) {
    int most = 0;
    for (int shift = 0; shift < 24; shift += 8)
      most = std::max(most, std::abs(static_cast<int>(a.pixels[i] >> shift & 0xff) -
                                     static_cast<int>(b.pixels[i] >> shift & 0xff)));
    if (most > 8) ++other;
  }
  return static_cast<double>(other) / static_cast<double>(a.pixels.size());
}

}  // namespace

// Regenerate one with MOEBIUS_GOLDENS=1 in the environment, and look at it.
TEST_CASE("screens look as they did") {
  if (no_viewer()) return;
  const Scratch scratch;
  const std::string run = write_run_as(scratch, "a", two_stages(), kReport);
  const std::string slower = write_run_as(scratch, "b", two_stages(50'000), kReport);
  const std::string service = write_run_as(scratch, "s", {}, kServiceReport);
  const std::vector<std::pair<std::string, std::string>> screens{
      {"timeline", run},    {"compare", run + " " + slower},
      {"network", run},     {"memory", run},
      {"serving", service}, {"experts", run},
      {"tiers", service}};
  for (const auto& [screen, runs] : screens) {
    INFO(screen);
    const std::string picture = scratch.path(screen + ".png");
    const Finished shot =
        run_moebius("view " + runs + " --screen " + screen + " --size 800x450 --screenshot " + picture);
    INFO(shot.err);
    REQUIRE(shot.exit_code == 0);
    const std::string golden = std::string(MOEBIUS_SOURCE_DIR) + "/tests/unit/viz/goldens/" + screen + ".png";
    if (std::getenv("MOEBIUS_GOLDENS") != nullptr)
      fs::copy_file(picture, golden, fs::copy_options::overwrite_existing);
    // Single precision and one rounding an operation: the same pixels are expected; a thousandth is left to
    // compilers.
    CHECK(difference(viz::picture_of_png(text_of(picture), picture),
                     viz::picture_of_png(text_of(golden), golden)) <= 0.001);
  }
}

TEST_CASE("the wheel zooms about the cursor and a drag pans as far as the mouse goes") {
  if (no_viewer()) return;
  const Scratch scratch;
  const auto played =
      play(scratch, write_run_as(scratch, "a", two_stages(), kReport),
           "say\nmove rows\nwheel 1\nsay\nwheel -1\nsay\nwheel 3\ndrag 80 0\nsay\ndrag -80 0\nsay\n");
  REQUIRE(played.said.size() == 5);
  const auto [b0, e0] = window_of(played.said[0]);
  const auto [b1, e1] = window_of(played.said[1]);
  CHECK(e1 - b1 == Approx(0.8 * (e0 - b0)).epsilon(1e-4));
  CHECK(b1 - b0 == Approx(e0 - e1).epsilon(0.01));  // the cursor is in the middle, to a pixel
  CHECK(window_of(played.said[2]).first == Approx(b0).margin(2));
  const auto [b3, e3] = window_of(played.said[3]);
  const auto [b4, e4] = window_of(played.said[4]);
  CHECK(b4 > b3);  // dragged to the right, earlier times came in; and back
  CHECK(e4 - b4 == Approx(e3 - b3));
}

TEST_CASE("a search counts what it leaves and a click selects the op under it") {
  if (no_viewer()) return;
  const Scratch scratch;
  const std::string run = write_run_as(scratch, "a", two_stages(), kReport);
  const auto played = play(
      scratch, run,
      "click search\ntype grouped\nsay\nkey all\ntype grouped microbatch:3\nsay\nkey escape\nkey escape\n"
      "click rows 30 6\nsay\nkey right\nsay\nkey escape\nsay\n");
  REQUIRE(played.exit_code == 0);
  REQUIRE(played.said.size() == 5);
  CHECK(has(played.said[0] + " ", "found=16 "));  // 8 microbatches, 2 stages
  CHECK(has(played.said[1] + " ", "found=2 "));
  CHECK(has(played.said[2], "selected=a \"attention L0\" 0..40000"));
  CHECK(has(played.said[3], "selected=a \"grouped_gemm expert_gate_up L0\" 70000..130000"));
  CHECK_FALSE(has(played.said[4], "selected"));
}

TEST_CASE("what an op waited for is a click away") {
  if (no_viewer()) return;
  const Scratch scratch;
  // The experts' GEMM begins when its tokens have arrived.
  const auto played = play(scratch, write_run_as(scratch, "a", two_stages(), kReport),
                           "click rows 30 6\nkey right\nclick \"waited for\"\nsay\n");
  REQUIRE(played.said.size() == 1);
  CHECK(has(played.said[0], "\"dispatch experts L0\" 40000..70000"));
}

TEST_CASE("the worst op of a comparison leads to its place") {
  if (no_viewer()) return;
  const Scratch scratch;
  const std::string a = write_run_as(scratch, "a", two_stages(), kReport),
                    b = write_run_as(scratch, "b", two_stages(50'000), kReport);
  const auto played =
      play(scratch, a + " " + b, "screen compare\nclick \"worst 1\"\nsay\nclick \"in run a\"\nsay\n");
  INFO(played.err);
  REQUIRE(played.said.size() == 2);
  CHECK(has(played.said[0], "screen=timeline"));
  CHECK(has(played.said[0], "selected=b \"gemm down L1\""));
  CHECK(has(played.said[1], "selected=a \"gemm down L1\""));
}

TEST_CASE("a scenario's value is changed and its new run stands beside the old one") {
  if (no_viewer()) return;
  const Scratch scratch;
  const std::string scenario = std::string(MOEBIUS_SOURCE_DIR) + "/scenarios/smoke/train-small.json";
  REQUIRE(run_moebius("run " + scenario + " --out " + scratch.path("first")).exit_code == 0);
  const auto played =
      play(scratch, scratch.path("first") + " --screen scenario --scenario " + scenario,
           "click \"find input\"\ntype global_batch\nclick \"input /workload/global_batch\"\nkey all\n"
           "type 32\nclick run\nwait done 60\nsay\nscreen compare\nframes 2\nsay\n");
  INFO(played.err);
  REQUIRE(played.said.size() == 2);
  CHECK(has(played.said[0], "screen=scenario runs=2"));
  CHECK(has(played.said[1], "screen=compare runs=2"));
}

TEST_CASE("a run that fails says why on the screen, and one may be cancelled") {
  if (no_viewer()) return;
  const Scratch scratch;
  const std::string scenario = std::string(MOEBIUS_SOURCE_DIR) + "/scenarios/smoke/train-small.json";
  const auto failed =
      play(scratch, "--screen scenario --scenario " + scenario,
           "click \"find input\"\ntype global_batch\nclick \"input /workload/global_batch\"\nkey all\n"
           "type none\nclick run\nwait failed 60\nsay\n");
  INFO(failed.err);
  REQUIRE(failed.said.size() == 1);
  CHECK(has(failed.said[0], "runs=0"));
  // Each op of many microbatches: long enough for a hand to reach the button.
  const std::string long_run =
      std::string(MOEBIUS_SOURCE_DIR) + "/scenarios/study/deepseek-v3-train-2048-h800.json";
  const auto cancelled =
      play(scratch, "--screen scenario --scenario " + long_run,
           "click \"find input\"\ntype global_batch\nclick \"input /workload/global_batch\"\nkey all\n"
           "type 1536000\nclick run\nwait cancel 20\nclick cancel\nwait cancelled 20\nsay\n");
  INFO(cancelled.err);
  REQUIRE(cancelled.said.size() == 1);
  CHECK(has(cancelled.said[0], "runs=0"));
}

TEST_CASE("every screen has something to say without a run, a report or a timeline") {
  if (no_viewer()) return;
  const Scratch scratch;
  const std::string bare = write_run_as(scratch, "bare", {}, "");
  const std::string damaged = write_run_as(scratch, "damaged", two_stages(), "{\"memory\": ");
  for (const char* screen :
       {"timeline", "compare", "network", "memory", "serving", "experts", "tiers", "scenario"}) {
    for (const std::string& run : {std::string(), bare, damaged, bare + " " + damaged}) {
      INFO(screen << " of " << run);
      const Finished shot = run_moebius("view " + run + " --screen " + screen +
                                        " --size 640x360 --screenshot " + scratch.path("x.png"));
      INFO(shot.err);
      CHECK(shot.exit_code == 0);
    }
  }
}

TEST_CASE("light colours and twice the size are another picture of the same size") {
  if (no_viewer()) return;
  const Scratch scratch;
  const std::string run = write_run_as(scratch, "a", two_stages(), kReport);
  const auto shot = [&](const std::string& options) {
    REQUIRE(run_moebius("view " + run + " --size 640x360 --screenshot " + scratch.path("x.png") + options)
                .exit_code == 0);
    return viz::picture_of_png(text_of(scratch.path("x.png")), "x");
  };
  const viz::Picture plain = shot(""), light = shot(" --light"), large = shot(" --scale 2");
  CHECK(difference(plain, plain) == 0);
  CHECK(difference(plain, light) > 0.5);
  CHECK(difference(plain, large) > 0.05);
  CHECK(difference(plain, shot("")) == 0);  // the same again
}

TEST_CASE("what view cannot do it refuses in a sentence") {
  if (no_viewer()) return;
  const Scratch scratch;
  const std::string run = write_run_as(scratch, "a", two_stages(), kReport);
  const auto refused = [&](const std::string& arguments, int exit_code, const std::string& sentence) {
    INFO(arguments);
    const Finished finished = run_moebius("view " + arguments);
    CHECK(finished.exit_code == exit_code);
    CHECK(has(finished.err, sentence));
  };
  const std::string shot = " --screenshot " + scratch.path("x.png");
  refused(run + " --screen memroy" + shot, 2, "found \"memroy\" (did you mean \"memory\"?)");
  refused(run + " --size 10x10" + shot, 2,
          "--size: expected WIDTHxHEIGHT in pixels, 200 to 8192 each, found \"10x10\"");
  refused(run + " --range 2..1" + shot, 2,
          "--range: expected two times such as \"1.2 s..1.4 s\", found \"2..1\"");
  refused(run + " --range \"0 us..100 us\" --screen memory" + shot, 2,
          "--range: expected the screen timeline, which alone shows a stretch of the run, found --screen "
          "memory");
  refused(run + " --scale 9" + shot, 2, "--scale: expected a number from 0.5 to 4, found \"9\"");
  refused("nowhere" + shot, 2, "expected a run's directory or timeline, found nothing");
  refused(scratch.write("garbage.mtl", "not a timeline at all, but long enough") + shot, 2,
          "not a timeline of moebius");
  refused(run + " --no-window", 2, "expected --ui-script FILE or --screenshot FILE");
  refused(run + " --no-window --ui-script " + scratch.write("s1", "clik rows\n"), 2,
          "s1:1: expected an action, found \"clik\" (did you mean \"click\"?)");
  refused(run + " --no-window --ui-script " + scratch.write("s2", "\nclick nothing\n"), 1,
          "s2:2: \"nothing\" is not on the screen");
}

TEST_CASE("without a display, view says what to do instead") {
  if (no_viewer()) return;
  const Scratch scratch;
  const Finished window = test::run("env -u DISPLAY -u WAYLAND_DISPLAY " + std::string(MOEBIUS_BINARY) +
                                    " view " + write_run_as(scratch, "a", two_stages(), kReport));
  CHECK(window.exit_code == 1);
  CHECK(has(window.err, "--screenshot FILE draws a screen without one"));
  CHECK(std::count(window.err.begin(), window.err.end(), '\n') == 1);
}

TEST_CASE("the binary names no library of the window") {
  const Finished libraries = test::run("ldd " + std::string(MOEBIUS_BINARY));
  for (const char* name : {"libglfw", "libGL", "libX11", "libEGL", "libwayland", "libstb", "libimgui"}) {
    INFO(name);
    CHECK_FALSE(has(libraries.out, name));
  }
}

TEST_CASE("the same script plays in a window") {
  if (no_viewer()) return;
  if (test::run("command -v Xvfb").exit_code != 0) {
    WARN("skipped: Xvfb is not installed (xvfb)");
    return;
  }
  const Scratch scratch;
  const std::string script = "click rows 30 6\nsay\nmove rows\nwheel 2\nsay\nscreen memory\nframes 2\nshot " +
                             scratch.path("x.png") + "\nsay\n";
  const std::string view = std::string(MOEBIUS_BINARY) + " view " +
                           write_run_as(scratch, "a", two_stages(), kReport) +
                           " --size 800x450 --ui-script " + scratch.write("script", script);
  const Finished window =
      test::run("export XDG_CONFIG_HOME=" + scratch.path("") +
                "; Xvfb -displayfd 3 -screen 0 1024x700x24 +extension GLX 3>" + scratch.path("display") +
                " 2>/dev/null & server=$!; for i in $(seq 100); do [ -s " + scratch.path("display") +
                " ] && break; sleep 0.1; done; DISPLAY=:$(cat " + scratch.path("display") + ") " + view +
                "; status=$?; kill $server; exit $status");
  INFO(window.err);
  if (has(window.err, "no window can be opened")) {
    WARN("skipped: " << window.err);
    return;
  }
  CHECK(window.exit_code == 0);
  CHECK(has(window.out, "screen=memory"));
  CHECK(has(window.out, "selected=a \"attention L0\""));
  REQUIRE(fs::exists(scratch.path("x.png")));
  CHECK(viz::picture_of_png(text_of(scratch.path("x.png")), "x").width == 800);
}
