// Lists of numbers in one text.
#include "hw/number_list.h"

#include "tests/catch.h"
#include "tests/unit/hw/sentence_of.h"

namespace moebius {
namespace {

std::vector<double> read(const char* text) {
  return read_number_list(text, {"x.json", "/errors", 2}, {-20, 20});
}

}  // namespace

TEST_CASE("numbers stand with one blank between two, each in its range") {
  CHECK(read("-0.3 1e-2 20") == std::vector<double>{-0.3, 0.01, 20});
  CHECK(read("").empty());
  const std::string before = "x.json:2: /errors: expected numbers from -20 to 20, found ";
  const std::pair<const char*, const char*> wrong[] = {{"0.1 x", R"("x")"},
                                                       {"0.1  2", R"("")"},
                                                       {"nan", R"("nan")"},
                                                       {"1 21", R"("21")"},
                                                       {"1,2", R"("1,2")"}};
  for (const auto& [text, word] : wrong) {
    INFO(text);
    CHECK(sentence_of([&] { read(text); }) == before + word);
  }
}

}  // namespace moebius
