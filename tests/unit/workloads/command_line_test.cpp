#include "workloads/command_line/command_line.h"

#include <filesystem>
#include <new>
#include <system_error>

#include "hw/error.h"
#include "tests/catch.h"

namespace moebius {
namespace {

int exit_code_of(const std::function<int()>& body) {
  char name[] = "moebius", command[] = "work";
  char* arguments[] = {name, command};
  return run_command_line({{"work", "", {}, body}}, 2, arguments);
}

TEST_CASE("whatever a command throws becomes a sentence and an exit code") {
  CHECK(exit_code_of([] { return 0; }) == 0);
  CHECK(exit_code_of([] { return 1; }) == 1);
  CHECK(exit_code_of([]() -> int { throw input_error("wrong"); }) == 2);
  CHECK(exit_code_of([]() -> int { throw run_error("failed"); }) == 1);
  CHECK(exit_code_of([]() -> int { throw std::bad_alloc(); }) == 1);
  CHECK(exit_code_of([]() -> int { throw std::system_error(EAGAIN, std::generic_category()); }) == 1);
  const auto removed = []() -> int { return std::filesystem::is_empty("/nowhere"); };
  CHECK(exit_code_of(removed) == 1);
}

}  // namespace
}  // namespace moebius
