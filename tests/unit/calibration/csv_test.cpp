#include "workloads/calibration/csv.h"

#include "tests/catch.h"
#include "tests/process.h"

namespace moebius {
namespace {

std::string refusal(const std::string& text) {
  const test::Scratch scratch;
  const std::string path = scratch.write("t.csv", text);
  try {
    const Csv table(path);
    for (const CsvRow& row : table.rows()) table.number(row, "ms");
  } catch (const std::exception& error) {
    return std::string(error.what()).substr(path.size());
  }
  return "";
}

TEST_CASE("tables of other systems: a byte order mark, line ends of two bytes, a blank last line") {
  const test::Scratch scratch;
  const Csv table(scratch.write("t.csv", "\xEF\xBB\xBFms,n\r\n1,2\r\n\r\n"));
  CHECK(table.columns() == std::vector<std::string>{"ms", "n"});
  REQUIRE(table.rows().size() == 1);
  CHECK(table.number(table.rows()[0], "n") == 2);
}

TEST_CASE("a wrong cell is told with its line and column, as a terminal can show it") {
  CHECK(refusal("n,ms\n1,2\n1,two\n") == ":3: ms: expected a number, found \"two\"");
  CHECK(refusal("ms\n\x1b[1m\xff\n") == ":2: ms: expected a number, found \"\\u001b[1m\uFFFD\"");
  CHECK(refusal("ms,n,ms\n1,2,3\n") == ":1: expected each column once, found \"ms\" again");
}

TEST_CASE("a whole number is one from the least on") {
  const test::Scratch scratch;
  const std::string path = scratch.write("t.csv", "n\n8\n0\n1.5\n1e30\n");
  const Csv table(path);
  CHECK(table.whole(table.rows()[0], "n", 1) == 8);
  CHECK(table.whole(table.rows()[1], "n") == 0);
  const std::string range = ": n: expected a whole number from 1 to 2147483647, found ";
  CHECK_THROWS_WITH(table.whole(table.rows()[1], "n", 1), path + ":3" + range + "\"0\"");
  CHECK_THROWS_WITH(table.whole(table.rows()[2], "n", 1), path + ":4" + range + "\"1.5\"");
  CHECK_THROWS_WITH(table.whole(table.rows()[3], "n", 1), path + ":5" + range + "\"1e30\"");
}

TEST_CASE("a table that cannot be read says why") {
  CHECK_THROWS_WITH(Csv("/nowhere.csv"), "/nowhere.csv: No such file or directory");
  CHECK_THROWS_WITH(Csv("/"), "/: Is a directory");
}

}  // namespace
}  // namespace moebius
