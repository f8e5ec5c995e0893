// Pages of real runs, as a browser shows them.
#include <catch2/catch.hpp>

#include <filesystem>
#include <regex>
#include <sstream>
#include <string>

#include "tests/process.h"
#include "tests/scenario_file.h"

namespace {

using namespace moebius;

std::string browser() {
  for (const char* name : {"chromium-headless-shell", "chromium", "google-chrome"}) {
    if (test::run(std::string("command -v ") + name).exit_code == 0) return name;
  }
  return "";
}

struct Shown {
  int width = 0, inner = 0;  // of what is there, and of the window
  std::string errors;        // of the console
};

// The page says at its end how wide it is.
Shown show(const test::Scratch& scratch, const std::string& page, int width) {
  const std::string measured = scratch.write(
      "measured.html", test::text_of(page) +
                           "<script>document.body.setAttribute('data-width', "
                           "document.documentElement.scrollWidth + ' of ' + innerWidth)</script>");
  const test::Finished run =
      test::run(browser() + " --headless --no-sandbox --disable-gpu --enable-logging=stderr " +
                "--window-size=" + std::to_string(width) + ",900 --dump-dom file://" + measured);
  Shown shown;
  std::smatch match;
  if (std::regex_search(run.out, match, std::regex("data-width=\"([0-9]+) of ([0-9]+)\"")))
    shown = {std::stoi(match[1]), std::stoi(match[2]), ""};
  std::istringstream lines(run.err);
  for (std::string line; std::getline(lines, line);) {
    if (line.find("CONSOLE") != std::string::npos) shown.errors += line + "\n";
  }
  return shown;
}

}  // namespace

TEST_CASE("pages of runs fit on a phone and on a screen and report no error") {
  if (browser().empty()) {
    WARN("skipped: there is no chromium-headless-shell");
    return;
  }
  const test::Scratch scratch;
  REQUIRE(test::run_moebius("run " + test::scenario_file("smoke/train-interleaved.json") + " --out " +
                            scratch.path("a"))
              .exit_code == 0);
  REQUIRE(test::run_moebius("run " + test::scenario_file("smoke/serve-apart.json") +
                            " --set /workload/trace/requests=100 --out " + scratch.path("c"))
              .exit_code == 0);
  REQUIRE(test::run_moebius("report " + scratch.path("a") + " --html " + scratch.path("a.html")).exit_code ==
          0);
  REQUIRE(test::run_moebius("report " + scratch.path("c") + " --html " + scratch.path("c.html")).exit_code ==
          0);
  REQUIRE(test::run_moebius("report " + scratch.path("a") + " " + scratch.path("c") + " --html " +
                            scratch.path("ac.html"))
              .exit_code == 0);
  for (const char* name : {"a.html", "c.html", "ac.html"}) {
    INFO(name);
    CHECK(std::filesystem::file_size(scratch.path(name)) < 2'000'000);
    for (const int width : {390, 1440}) {
      const Shown shown = show(scratch, scratch.path(name), width);
      CHECK(shown.inner == width);
      CHECK(shown.width <= width);
      CHECK(shown.errors == "");
    }
  }
}
