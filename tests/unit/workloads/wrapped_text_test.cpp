// Reports fit in the columns of a terminal.
#include "workloads/report/wrapped_text.h"

#include "tests/catch.h"
#include "workloads/listing/table_text.h"
#include "workloads/report/number_text.h"

namespace moebius {
namespace {

TEST_CASE("long lines go on below their value, or further in where they have no name") {
  CHECK(wrapped("  cost   of one two three\nshort\n", 18) == "  cost   of one\n         two three\nshort\n");
  CHECK(wrapped("  decode: one two three four", 15) == "  decode: one\n    two three\n    four");
  CHECK(wrapped("as it is", 8) == "as it is");
}

TEST_CASE("amounts have four digits, and from ten thousand on no power of ten") {
  CHECK(amount_text(0.33214) == "0.3321");
  CHECK(amount_text(9999.4) == "9999");
  CHECK(amount_text(9999.6) == "10,000");
  CHECK(amount_text(30667.6) == "30,668");
}

TEST_CASE("words stay whole, columns of tables together, and characters of several bytes count once") {
  CHECK(wrapped("  name   averylongword", 12) == "  name   averylongword");
  CHECK(wrapped("  a    b    c    d    e", 12) == "  a    b    c    d    e");
  const std::string bar = "  \u2588\u2588\u2588\u2588 x";
  CHECK(wrapped(bar, 8) == bar);
}

TEST_CASE("of a table that is wider than a terminal one column goes on below itself") {
  const std::vector<TextColumn> columns{
      {.head = "op"}, {.head = "shape", .folds = true}, {.head = "time", .right = true}};
  CHECK(fitted(columns, {{"gemm", "m 8 n 8", "1 us"}, {"add", "m 8", "10 us"}}) ==
        "  op    shape     time\n  gemm  m 8 n 8   1 us\n  add   m 8      10 us\n");
  const std::string name(100, 'x');
  CHECK(fitted(columns, {{name, "one two three", "\u00b11%"}}) ==
        "  op" + std::string(98, ' ') + " shape        time\n  " + name + " one two       \u00b11%\n" +
            std::string(103, ' ') + "three\n");
}

}  // namespace
}  // namespace moebius
