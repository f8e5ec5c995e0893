#include "workloads/command_line/outcome.h"

#include <filesystem>
#include <new>
#include <system_error>

#include "hw/error.h"
#include "tests/catch.h"
#include "tests/process.h"

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

TEST_CASE("help on a command that there is not is wrong, and names the nearest") {
  const std::vector<Command> commands{{.name = "run", .help = "", .options = {}, .run = {}},
                                      {.name = "sweep", .help = "", .options = {}, .run = {}}};
  CHECK(wrong_topic({"help", "sweeep"}, commands) == "unknown command \"sweeep\" (did you mean \"sweep\"?)");
  CHECK(wrong_topic({"foo", "--help"}, commands) == wrong_topic({"help", "foo"}, commands));
  for (const std::vector<std::string>& right : std::vector<std::vector<std::string>>{
           {"help"}, {"--help"}, {"help", "run"}, {"run", "--help"}, {"run", "foo", "--help"}, {"--version"}})
    CHECK(wrong_topic(right, commands).empty());
  CHECK(wrong_topic({"help", "run", "sweep"}, commands) ==
        "help: expected one command, found \"sweep\" behind run");
  CHECK(wrong_topic({"help", "run", "--set"}, commands) ==
        "help: expected one command, found \"--set\" behind run");
  const test::Finished asked = test::run_moebius("help foo");
  CHECK(asked.exit_code == 2);
  CHECK(asked.out.empty());
  const test::Finished help = test::run_moebius("help help");
  CHECK(help.exit_code == 0);
  CHECK(help.out.find("moebius help [OPTIONS] [COMMAND]") != std::string::npos);
  CHECK(test::run_moebius("help run sweep").exit_code == 2);
}

}  // namespace
}  // namespace moebius
