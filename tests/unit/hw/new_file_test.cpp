#include "hw/new_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "hw/error.h"
#include "tests/catch.h"
#include "tests/process.h"

namespace moebius {
namespace {

namespace fs = std::filesystem;

using test::text_of;

long entries(const test::Scratch& scratch) {
  return std::distance(fs::directory_iterator(scratch.path("")), fs::directory_iterator());
}

TEST_CASE("a file has its name when it is finished, and what stood there until then") {
  const test::Scratch scratch;
  const std::string path = scratch.write("a", "old");
  {
    NewFile file(path);
    file.write("new");
    CHECK(text_of(path) == "old");
    file.finish();
    CHECK(text_of(path) == "new");
    NewFile dropped(path);
    dropped.write("half");
  }
  CHECK(text_of(path) == "new");
  CHECK(entries(scratch) == 1);
}

TEST_CASE("links stay links, and the file behind them is written") {
  const test::Scratch scratch;
  scratch.write("file", "old");
  fs::create_directory(scratch.path("folder"));
  fs::create_symlink("../file", scratch.path("folder/link"));
  fs::create_symlink("folder/link", scratch.path("first"));
  fs::create_symlink("none", scratch.path("dangling"));
  fs::create_symlink("ring", scratch.path("ring"));
  write_file(scratch.path("first"), "new");
  CHECK(text_of(scratch.path("file")) == "new");
  CHECK(fs::is_symlink(scratch.path("first")));
  CHECK(fs::is_symlink(scratch.path("folder/link")));
  write_file(scratch.path("dangling"), "made");
  CHECK(text_of(scratch.path("none")) == "made");
  CHECK_THROWS_WITH(write_file(scratch.path("ring"), ""),
                    scratch.path("ring") + ": cannot be written: Too many levels of symbolic links");
}

TEST_CASE("a pipe is written to, and stays a pipe") {
  const test::Scratch scratch;
  const std::string path = scratch.path("pipe");
  REQUIRE(mkfifo(path.c_str(), 0600) == 0);
  const int reader = open(path.c_str(), O_RDWR);
  require_writable(path);
  write_file(path, "seen");
  char seen[8] = {};
  CHECK(read(reader, seen, sizeof seen) == 4);
  CHECK(std::string(seen) == "seen");
  close(reader);
  CHECK(fs::is_fifo(path));
  CHECK(entries(scratch) == 1);
}

TEST_CASE("what cannot be written is told with the reason, before the work too") {
  const test::Scratch scratch;
  const std::string folder = scratch.path("folder"), none = scratch.path("none/a");
  fs::create_directory(folder);
  for (const auto write : {+[](const std::string& path) { write_file(path, "x"); }, &require_writable}) {
    CHECK_THROWS_WITH(write(folder), folder + ": cannot be written: Is a directory");
    CHECK_THROWS_WITH(write(none), none + ": cannot be written: No such file or directory");
  }
  require_writable(scratch.path("a"));
  CHECK(entries(scratch) == 1);
}

TEST_CASE("an option does not write over what is read, by whatever name") {
  const test::Scratch scratch;
  const std::string path = scratch.write("a", "kept");
  fs::create_symlink(path, scratch.path("link"));
  for (const std::string& same : {path, scratch.path("link"), scratch.path("./a")})
    CHECK_THROWS_WITH(require_apart("--out", same, path),
                      "--out: expected another file than " + path + ", found " + same);
  require_apart("--out", scratch.path("b"), path);
  require_apart("--out", "", path);
  require_apart("--out", path, "");
  require_apart("--out", "/dev/null", "/dev/null");
}

TEST_CASE("an interrupted process removes what it has not finished, and has a last word") {
  const test::Scratch scratch;
  const std::string path = scratch.write("a", "old");
  const pid_t child = fork();
  if (child == 0) {
    dup2(open(scratch.path("said").c_str(), O_WRONLY | O_CREAT, 0600), STDERR_FILENO);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) std::signal(signal, SIG_DFL);
    tidy_up_when_interrupted();
    const LastWords words("interrupted; it goes on from here");
    const NewFile file(path);
    raise(SIGTERM);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  REQUIRE(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGTERM);
  CHECK(text_of(path) == "old");
  CHECK(text_of(scratch.path("said")) == "moebius: interrupted; it goes on from here\n");
  CHECK(entries(scratch) == 2);
}

TEST_CASE(
    "who has no last word of its own says all the same that it was interrupted, and leaves no empty "
    "directory") {
  const test::Scratch scratch;
  const pid_t child = fork();
  if (child == 0) {
    dup2(open(scratch.path("said").c_str(), O_WRONLY | O_CREAT, 0600), STDERR_FILENO);
    std::signal(SIGINT, SIG_DFL);
    tidy_up_when_interrupted();
    for (const char* made : {"empty", "full"}) mkdir(scratch.path(made).c_str(), 0700);
    const UnfinishedFile empty(scratch.path("empty")), full(scratch.path("full"));
    const NewFile file(scratch.path("empty/file"));
    scratch.write("full/done", "kept");
    raise(SIGINT);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  REQUIRE(WIFSIGNALED(status));
  CHECK(text_of(scratch.path("said")) == "moebius: interrupted: what was not finished is not there\n");
  CHECK_FALSE(std::filesystem::exists(scratch.path("empty")));
  CHECK(text_of(scratch.path("full/done")) == "kept");
}

}  // namespace
}  // namespace moebius
