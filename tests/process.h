// Runs a command the way a user does, and keeps what it said.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace moebius::test {

inline std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// A directory of this process that goes away with the object.
class Scratch {
 public:
  Scratch() {
    std::string name = (std::filesystem::temp_directory_path() / "moebius-test-XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~Scratch() { std::filesystem::remove_all(path_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  std::string path(const std::string& name) const { return (path_ / name).string(); }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ / name, std::ios::binary) << text;
    return path(name);
  }

 private:
  std::filesystem::path path_;
};

struct Finished {
  int exit_code = -1;  // -1: killed by a signal
  std::string out, err;
};

// `command` goes through the shell.
inline Finished run(const std::string& command) {
  const Scratch scratch;
  const std::string line =
      "( " + command + "\n) >" + scratch.path("out") + " 2>" + scratch.path("err") + " </dev/null";
  const int status = std::system(line.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, text_of(scratch.path("out")),
          text_of(scratch.path("err"))};
}

// The binary under test with arguments.
inline Finished run_moebius(const std::string& arguments) {
  return run(std::string(MOEBIUS_BINARY) + " " + arguments);
}

}  // namespace moebius::test
