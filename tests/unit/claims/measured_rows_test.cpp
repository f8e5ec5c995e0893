// Tables of measured rows as the scenarios that they fill.
#include "workloads/validation/measured_rows.h"

#include "tests/catch.h"
#include "tests/process.h"

namespace moebius {

TEST_CASE("a figure of a table is any number above 0, and the name of its row has characters alone") {
  const test::Scratch scratch;
  const std::string mapping =
      scratch.write("m.mapping", R"({"name": "m", "row": ["name"], "scenario": {"moebius": 1}, "set": {},
        "expect": [{"metric": "mfu", "value": "mfu", "tolerance": 0.1, "source": "s"}]})");
  const std::vector<ValidationCase> cases =
      measured_cases(scratch.write("t.csv", "name,mfu\na\xff,.5\nb,007\n"), mapping);
  REQUIRE(cases.size() == 2);
  CHECK(cases[0].name == "a\uFFFD");
  const auto expected = [&](std::size_t i) {
    return cases[i].scenario.root.find("expect")->items.at(0).find("value")->number;
  };
  CHECK(expected(0) == 0.5);
  CHECK(expected(1) == 7);
}

}  // namespace moebius
