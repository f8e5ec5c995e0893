// The handbook's commands do what it says: each is run as it stands.
#include <catch2/catch.hpp>

#include <fstream>
#include <string>
#include <vector>

#include "tests/process.h"

namespace {

using namespace moebius;
const std::string kRoot = MOEBIUS_SOURCE_DIR;
const std::string kHere = kRoot + "/tests/handbook";

// Lines of the blocks that are for a shell, by this binary and into a folder that goes away.
std::vector<std::string> commands(const std::string& runs) {
  std::ifstream page(kHere + "/README.md");
  std::vector<std::string> found;
  bool inside = false;
  const auto put = [](std::string& line, const std::string& from, const std::string& to) {
    for (std::size_t at = line.find(from); at != std::string::npos; at = line.find(from, at + to.size()))
      line.replace(at, from.size(), to);
  };
  for (std::string line; std::getline(page, line);) {
    if (line.rfind("```", 0) == 0) {
      inside = line == "```sh";
    } else if (inside) {
      put(line, "./build/moebius", MOEBIUS_BINARY);
      put(line, "runs/", runs + "/");
      found.push_back(line);
    }
  }
  return found;
}

double step_time(const std::string& run) {
  const std::string report = test::text_of(run + "/report.json"), key = "\"step_time_s\": ";
  const std::size_t at = report.find(key);
  return at == std::string::npos ? 0 : std::stod(report.substr(at + key.size()));
}

}  // namespace

TEST_CASE("every command of the handbook runs") {
  const test::Scratch scratch;
  const std::vector<std::string> lines = commands(scratch.path("."));
  CHECK(lines.size() == 13);
  for (const std::string& line : lines) {
    INFO(line);
    const auto run = test::run("cd " + kRoot + " && " + line);
    INFO(run.err);
    CHECK(run.exit_code == 0);
  }
  // The two networks beside each other are not the same: experts are spread over nodes that the one joins.
  CHECK(step_time(scratch.path("handbook-a")) > 1.3 * step_time(scratch.path("handbook-b")));
}

TEST_CASE("the chip and the network of the handbook are what they say") {
  const std::string data = " --data " + kHere + "/data";
  CHECK(test::run_moebius("show offered-200gb" + data).out.find("200 GB") != std::string::npos);
  CHECK(test::run_moebius("show offered-4to1" + data).out.find("oversubscription") != std::string::npos);
  CHECK(test::run_moebius("show offered-200gb").exit_code == 2);  // not without the folder
}
