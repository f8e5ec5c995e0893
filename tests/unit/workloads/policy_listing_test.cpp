// Policies are listed as their keys describe them: none without a word about what it does.
#include "workloads/listing/policy_listing.h"

#include <sstream>
#include <string>

#include <catch2/catch.hpp>

namespace moebius {
namespace {

TEST_CASE("every policy is listed with what it does") {
  std::istringstream lines(policies_text());
  int keys = 0, names = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.empty()) continue;
    INFO(line);
    if (line[0] != ' ') {
      ++keys;
      CHECK(line.find(": ") != std::string::npos);
      continue;
    }
    ++names;
    CHECK(line.size() > 19);
    CHECK(line.find_first_not_of(' ', 18) != std::string::npos);
  }
  CHECK(keys == 14);
  CHECK(names >= 40);
}

TEST_CASE("a policy stands under its key") {
  const std::string text = policies_text();
  const auto router = text.find("serving /plan/router: to which instance a request goes\n");
  REQUIRE(router != std::string::npos);
  CHECK(text.find("  least-requests   to whom has the fewest requests\n", router) != std::string::npos);
}

}  // namespace
}  // namespace moebius
