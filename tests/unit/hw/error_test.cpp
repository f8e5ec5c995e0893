// Errors, the suggestions in them, and what a violated invariant says.
#include "hw/error.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include "tests/catch.h"

using namespace moebius;

namespace {

const std::vector<std::string> kChips{"a100-sxm", "h100-sxm", "h200", "h800-sxm", "mi300x", "kunlun-p800"};

struct Death {
  int signal = 0;
  std::string said;
};

// What a child prints to stderr and the signal that it dies of.
template <class Action>
Death death_of(const Action& action) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGABRT, SIG_DFL);  // the test framework would report it
    dup2(ends[1], STDERR_FILENO);
    action();
    _exit(0);
  }
  close(ends[1]);
  Death death;
  char chunk[256];
  for (ssize_t n; (n = read(ends[0], chunk, sizeof chunk)) > 0;)
    death.said.append(chunk, static_cast<std::size_t>(n));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) death.signal = WTERMSIG(status);
  return death;
}

}  // namespace

TEST_CASE("An error keeps its kind and its sentence") {
  CHECK_THAT(input_error("x.json:1: wrong").what(), Catch::Equals("x.json:1: wrong"));
  CHECK(input_error("").kind() == Error::Kind::kInput);
  CHECK(run_error("").kind() == Error::Kind::kRun);
}

TEST_CASE("A misspelt name finds the one that was meant") {
  CHECK(nearest_name("degre", {"dense", "degree", "zero"}) == "degree");            // one letter missing
  CHECK(nearest_name("microbatchs", {"microbatch", "recompute"}) == "microbatch");  // one too many
  CHECK(nearest_name("sede", {"seed", "name"}) == "seed");                          // two swapped
  CHECK(nearest_name("exectuor", {"executor", "detail"}) == "executor");
}

TEST_CASE("Case and separators do not count as typing errors") {
  CHECK(nearest_name("H800_SXM", kChips) == "h800-sxm");
  CHECK(nearest_name("MI300X", kChips) == "mi300x");
  CHECK(nearest_name("Kunlun P800", kChips) == "kunlun-p800");
}

TEST_CASE("A name left unfinished at a word's end is nearer than another with one wrong letter") {
  CHECK(nearest_name("h800", kChips) == "h800-sxm");
  CHECK(nearest_name("h100", {"h200", "h100-sxm"}) == "h100-sxm");
}

TEST_CASE("A part of a name finds the whole, the shortest first") {
  CHECK(nearest_name("p800", kChips) == "kunlun-p800");
  CHECK(nearest_name("deepseek", {"deepseek-v3-base", "deepseek-v3", "mixtral"}) == "deepseek-v3");
}

TEST_CASE("A name that resembles nothing has no nearest one") {
  CHECK(nearest_name("banana", kChips).empty());
  CHECK(nearest_name("", kChips).empty());
  CHECK(nearest_name("h100", {}).empty());
  CHECK(nearest_name(std::string(1 << 20, 'h'), kChips).empty());
}

TEST_CASE("What is longer than any name is not suggested, though it holds the name") {
  CHECK(suggestion("twice", {std::string("twice") + std::string(1000, 'x')}).empty());
}

TEST_CASE("A suggestion shows control characters escaped") {
  CHECK(suggestion("degre", {"deg\nree"}) == " (did you mean \"deg\\nree\"?)");
}

TEST_CASE("Names of one or two letters are not guessed at: tp is no misspelt ep") {
  CHECK(nearest_name("tp", {"ep", "pp"}).empty());
  CHECK(nearest_name("EP", {"ep", "pp"}) == "ep");
}

TEST_CASE("The first of equally near names is taken") {
  CHECK(nearest_name("bat", {"cat", "rat"}) == "cat");
}

TEST_CASE("A suggestion is a clause to append, or nothing") {
  CHECK(suggestion("degre", {"degree"}) == " (did you mean \"degree\"?)");
  CHECK(suggestion("banana", kChips).empty());
}

TEST_CASE("A violated invariant prints place, condition and values, and aborts") {
  const Death death = death_of([] { check_failed("sim/chips.cpp", 42, "held <= count", "held=3 count=2"); });
  CHECK(death.signal == SIGABRT);
  CHECK(death.said == "sim/chips.cpp:42: CHECK(held <= count) failed: held=3 count=2\n");
}
