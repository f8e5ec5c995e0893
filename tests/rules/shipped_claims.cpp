// The published claims that ship: each is met, or a known miss that stays visible; their README lists them
// all.
#include <catch2/catch.hpp>

#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "tests/process.h"
#include "tests/rules/source_root.h"
#include "workloads/validation/claims/claim.h"

namespace {

using namespace moebius;
const std::string kClaims = (kRoot / "scenarios/baige").string();

// Our figures of every configuration, by claim and what it says, from the lines of a table of claims.
std::map<std::string, std::vector<double>> figures_of(const std::string& text) {
  enum Column { kClaim = 1, kSays, kPublished, kOurs, kColumns = 8 };
  std::map<std::string, std::vector<double>> figures;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::vector<std::string> cells(1);
    for (const char c : line) {
      if (c == '|')
        cells.emplace_back();
      else
        cells.back() += c;
    }
    if (cells.size() <= kColumns) continue;
    std::istringstream ours(cells[kOurs]);
    std::vector<double> of;
    for (double figure = 0; ours >> figure; ours.ignore(1)) of.push_back(figure);
    if (!of.empty()) figures[cells[kClaim] + cells[kSays]] = of;
  }
  return figures;
}

}  // namespace

// The best of three configurations may hide that another lost what it gained: the README is made anew where
// any of them moves.
TEST_CASE("every claim that ships is met or a known miss, each configuration as the README shows it") {
  const auto all = test::run_moebius("validate --markdown " + kClaims);
  INFO(all.out);
  INFO(all.err);
  CHECK(all.exit_code == 0);
  const auto shown = figures_of(test::text_of(kClaims + "/README.md")), now = figures_of(all.out);
  CHECK(now.size() == claims_of({kClaims}).size());
  for (const auto& [claim, figures] : now) {
    INFO(claim);
    const auto of = shown.find(claim);
    REQUIRE(of != shown.end());
    REQUIRE(of->second.size() == figures.size());
    for (std::size_t i = 0; i < figures.size(); ++i) CHECK(of->second[i] == Approx(figures[i]).epsilon(0.01));
  }
}

TEST_CASE("every claim of training is shown by three configurations that exist") {
  for (const Claim& claim : claims_of({kClaims})) {
    INFO(claim.file);
    CHECK(claim.configurations.size() >= 3);
    for (const ClaimConfiguration& configuration : claim.configurations) {
      INFO(configuration.scenario);
      CHECK(std::filesystem::exists(configuration.scenario));
      for (const std::string& baseline : configuration.baselines) CHECK(std::filesystem::exists(baseline));
    }
  }
}

TEST_CASE("the README of the claims has a row for each of them with what is published") {
  const std::string readme = test::text_of(kClaims + "/README.md");
  for (const Claim& claim : claims_of({kClaims})) {
    INFO(claim.file);
    const std::string row = "| " + claim.id + " | " + claim.says + " | " + claim.published.text() + " |";
    CHECK(readme.find(row) != std::string::npos);
  }
}

TEST_CASE("claims come in three forms and only one at a time") {
  const test::Scratch scratch;
  const std::string file =
      scratch.write("a.claim", R"({"claim": "a", "says": "x", "mechanism": "m", "source": "s",
    "figure": "collective.time_s", "published": {"at_most": 1}, "configurations": [{"name": "n", "scenario": "a.json"}]})");
  scratch.write("a.json", R"({"moebius": 1, "kind": "collective", "name": "one",
    "cluster": {"pools": [{"name": "a", "accelerator": "h100-sxm", "node": "hgx-8", "nodes": 1}],
                "fabric": {"type": "multi-plane-fat-tree", "planes": 8, "nic": "400 Gb/s"}},
    "workload": {"operation": "all-reduce", "bytes": "1 GiB", "ranks": 8}})");
  const auto text = test::run_moebius("validate " + file);
  CHECK(text.exit_code == 0);
  CHECK(text.out.find("1 claims: 1 pass, 0 known misses, 0 misses, 0 worse than known") != std::string::npos);
  const auto markdown = test::run_moebius("validate --markdown " + file);
  CHECK(markdown.out.find("| a | x | at most 1 |") != std::string::npos);
  const auto json = test::run_moebius("validate --json " + file);
  CHECK(json.out.find("\"verdict\": \"pass\"") != std::string::npos);
  CHECK(test::run_moebius("validate --json --markdown " + file).exit_code == 2);
}

TEST_CASE("a scenario that extends another is run with its changes and told with its file") {
  const test::Scratch scratch;
  scratch.write("base.json", R"({"moebius": 1, "kind": "collective", "name": "one",
    "cluster": {"pools": [{"name": "a", "accelerator": "h100-sxm", "node": "hgx-8", "nodes": 1}],
                "fabric": {"type": "multi-plane-fat-tree", "planes": 8, "nic": "400 Gb/s"}},
    "workload": {"operation": "all-reduce", "bytes": "1 GiB", "ranks": 8}})");
  const std::string half =
      scratch.write("half.json", R"({"extends": "base.json", "name": "half", "workload": {"ranks": 4}})");
  const auto run = test::run_moebius("check " + half);
  CHECK(run.exit_code == 0);
  const std::string wrong =
      scratch.write("wrong.json", "{\"extends\": \"base.json\",\n \"workload\": {\"rank\": 4}}");
  const auto refused = test::run_moebius("check " + wrong);
  CHECK(refused.exit_code == 2);
  CHECK(refused.err ==
        "moebius: " + wrong + ":2: /workload/rank: unknown key \"rank\" (did you mean \"ranks\"?)\n");
}
