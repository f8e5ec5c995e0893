// The viewer's window on a display of its own, with mouse and keyboard as another program moves them
// (xdotool).
#include <catch2/catch.hpp>

#include <string>

#include "tests/unit/viz/drawn_run.h"

namespace {

using namespace moebius;
using namespace moebius::test;

// Opens `run` in a window, plays `hands` (shell lines that use $window) and waits till the viewer has ended.
Finished with_hands(const Scratch& scratch, const std::string& run, const std::string& hands) {
  const std::string display = scratch.path("display");
  return test::run("export XDG_CONFIG_HOME=" + scratch.path("") +
                   "; Xvfb -displayfd 3 -screen 0 1024x700x24 +extension GLX 3>" + display +
                   " 2>/dev/null & server=$!; for i in $(seq 100); do [ -s " + display +
                   " ] && break; sleep 0.1; done; export DISPLAY=:$(cat " + display + "); " + MOEBIUS_BINARY +
                   " view " + run + " --size 800x450 & viewer=$!; " +
                   "window=$(timeout 20 xdotool search --sync --onlyvisible --name moebius); " + hands +
                   "; (sleep 20; kill $viewer 2>/dev/null) & guard=$!; wait $viewer; status=$?; "
                   "kill $guard $server; exit $status");
}

TEST_CASE("keys and mouse of a desktop reach the window") {
  if (test::run("command -v Xvfb && command -v xdotool").exit_code != 0) {
    WARN("skipped: Xvfb or xdotool is not installed (xvfb, xdotool)");
    return;
  }
  const Scratch scratch;
  // T: light colours; 4: the memory screen; Q closes.
  const std::string run = write_run_as(scratch, "a", two_stages(), kReport);
  const Finished seen = with_hands(
      scratch, run,
      "sleep 1; xdotool windowfocus $window mousemove --window $window 400 200 click 4 click 4; sleep 0.3; "
      "xdotool key t; sleep 0.3; xdotool key 4; sleep 0.3; xdotool key q");
  INFO(seen.err);
  if (has(seen.err, "no window can be opened")) {
    WARN("skipped: " << seen.err);
    return;
  }
  CHECK(seen.exit_code == 0);
  const std::string remembered = text_of(scratch.path("moebius/viewer.json"));
  INFO(remembered);
  CHECK(has(remembered, "\"memory\""));
  CHECK(has(remembered, "\"dark\": 0,"));
}

}  // namespace
