#include "workloads/command_line/outcome.h"

#include <filesystem>
#include <new>
#include <system_error>

#include "hw/error.h"
#include "tests/catch.h"

namespace moebius {
namespace {

TEST_CASE("whatever a command throws becomes a sentence and an exit code") {
  CHECK(outcome_of([] { return 0; }) == 0);
  CHECK(outcome_of([] { return 1; }) == 1);
  CHECK(outcome_of([]() -> int { throw input_error("wrong"); }) == 2);
  CHECK(outcome_of([]() -> int { throw run_error("failed"); }) == 1);
  CHECK(outcome_of([]() -> int { throw std::bad_alloc(); }) == 1);
  CHECK(outcome_of([]() -> int { throw std::system_error(EAGAIN, std::generic_category()); }) == 1);
  const auto removed = []() -> int { return std::filesystem::is_empty("/nowhere"); };
  CHECK(outcome_of(removed) == 1);
}

}  // namespace
}  // namespace moebius
