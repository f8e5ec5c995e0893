// The order of the house: which room may know which, where libraries may be seen, how large and how named
// files are.
#include <catch2/catch.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "tests/process.h"
#include "tests/rules/source_root.h"

namespace {

namespace fs = std::filesystem;
using moebius::kRoot;

struct Source {
  std::string path;  // relative to the root: "hw/units.h"
  std::vector<std::string> lines;
  std::string room() const { return path.substr(0, path.find('/')); }
  bool header() const { return fs::path(path).extension() == ".h"; }
};

Source read(const fs::path& file) {
  Source source{fs::relative(file, kRoot).string(), {}};
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) source.lines.push_back(line);
  return source;
}

bool is_source(const fs::path& path) {
  static const std::set<std::string> kEndings{".h", ".cpp", ".cu", ".cuh"};
  return kEndings.count(path.extension().string()) > 0;
}

std::vector<Source> sources() {
  std::vector<Source> all{read(kRoot / "main.cpp")};
  for (const char* folder : {"hw", "models", "workloads", "sim", "real", "viz", "tests"}) {
    if (!fs::exists(kRoot / folder)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(kRoot / folder)) {
      if (entry.is_regular_file() && is_source(entry.path())) all.push_back(read(entry.path()));
    }
  }
  std::sort(all.begin(), all.end(), [](const Source& a, const Source& b) { return a.path < b.path; });
  return all;
}

// The includes of a file: what stands between the quotes or brackets.
std::vector<std::string> includes(const Source& source) {
  static const std::regex kInclude("^\\s*#\\s*include\\s*[<\"]([^>\"]+)[>\"].*");
  std::vector<std::string> found;
  for (const std::string& line : source.lines) {
    std::smatch match;
    if (std::regex_match(line, match, kInclude)) found.push_back(match[1]);
  }
  return found;
}

bool starts_with(const std::string& text, const std::string& start) {
  return text.rfind(start, 0) == 0;
}

}  // namespace

TEST_CASE("rooms include only what stands below them") {
  const std::map<std::string, std::set<std::string>> allowed{
      {"hw", {"hw"}},
      {"models", {"hw", "models"}},
      {"workloads", {"hw", "models", "workloads"}},
      {"sim", {"hw", "models", "workloads", "sim"}},
      {"real", {"hw", "models", "workloads", "real"}},
      {"viz", {"hw", "models", "workloads", "viz"}},
  };
  for (const Source& source : sources()) {
    const auto rule = allowed.find(source.room());
    if (rule == allowed.end()) continue;  // main.cpp and tests see all
    for (const std::string& include : includes(source)) {
      const std::string room = include.substr(0, include.find('/'));
      if (room == include || allowed.count(room) == 0) continue;
      INFO(source.path << " includes " << include);
      CHECK(rule->second.count(room) == 1);
    }
  }
}

TEST_CASE("each library is seen in its own place only") {
  struct Rule {
    std::string include;  // how the include starts
    std::regex place;     // where it may stand
  };
  const std::vector<Rule> rules{
      {"nlohmann/",
       std::regex("(hw/document.*|.*_json|.*_(load|save)|viz/import/.*_reader)\\.cpp|tests/.*\\.cpp")},
      {"simgrid/", std::regex("sim/simgrid/.*")},
      {"xbt/", std::regex("sim/simgrid/.*")},
      {"zlib", std::regex("workloads/(calibration/gzip|serving/traffic/line_reader)\\.cpp|viz/(picture/"
                          "png|import/characters)\\.cpp")},
      {"boost/", std::regex(".*\\.cpp")},
      {"CLI/", std::regex("main\\.cpp")},
      {"mimalloc", std::regex("workloads/command_line/throwing_new\\.h")},
      {"catch2/", std::regex("tests/.*")},
      {"cuda", std::regex("real/.*")},
      {"cublas", std::regex("real/.*")},
      {"nccl", std::regex("real/.*")},
      {"mpi.h", std::regex("real/mpi/mpi_transport\\.cpp")},
      {"liburing", std::regex("real/tiers/.*\\.cpp")},
      {"imgui", std::regex("viz/.*")},
      {"GLFW/", std::regex("viz/.*")},
  };
  for (const Source& source : sources()) {
    for (const std::string& include : includes(source)) {
      for (const Rule& rule : rules) {
        if (!starts_with(include, rule.include)) continue;
        INFO(source.path << " includes " << include);
        CHECK(std::regex_match(source.path, rule.place));
      }
    }
  }
}

TEST_CASE("no file is longer than 400 lines") {
  for (const Source& source : sources()) {
    INFO(source.path << " has " << source.lines.size() << " lines");
    CHECK(source.lines.size() <= 400);
  }
}

TEST_CASE("files are named in snake case after a noun, never after a leftover") {
  const std::set<std::string> leftovers{"utils", "util", "common", "misc", "helpers", "helper"};
  const std::regex name("[a-z][a-z0-9_]*");
  for (const Source& source : sources()) {
    const std::string stem = fs::path(source.path).stem().string();
    INFO(source.path);
    CHECK(std::regex_match(stem, name));
    CHECK(leftovers.count(stem) == 0);
  }
}

TEST_CASE("switches over closed sets have no default, so that the compiler names what is missing") {
  const std::regex label("^\\s*default\\s*:.*");
  for (const Source& source : sources()) {
    for (const std::string& line : source.lines) {
      INFO(source.path << ": " << line);
      CHECK_FALSE(std::regex_match(line, label));
    }
  }
}

TEST_CASE("the top level holds the files of the house and nothing else") {
  const std::set<std::string> allowed{
      "CMakeLists.txt", "CMakePresets.json", "main.cpp", "quickstart", "README.md", "LICENSE",   "hw",
      "models",         "workloads",         "sim",      "real",       "viz",       "scenarios", "tests"};
  const auto tracked = moebius::test::run("git -C " + kRoot.string() + " ls-files");
  if (tracked.exit_code != 0) {
    WARN("skipped: the sources are not in a git checkout");
    return;
  }
  std::istringstream files(tracked.out);
  for (std::string file; std::getline(files, file);) {
    const std::string top = file.substr(0, file.find('/'));
    INFO(file);
    CHECK((top[0] == '.' || allowed.count(top) == 1));
  }
}

// What a source includes first has compiled alone with it.
TEST_CASE("every header compiles alone") {
  const std::vector<Source> all = sources();
  std::set<std::string> compiled_first;
  for (const Source& source : all) {
    if (source.room() == "tests" || fs::path(source.path).extension() != ".cpp") continue;
    const std::vector<std::string> included = includes(source);
    if (!included.empty()) compiled_first.insert(included.front());
  }
  std::string headers;
  for (const Source& source : all) {
    if (!source.header() || starts_with(source.path, "tests/") || compiled_first.count(source.path)) continue;
    headers += source.path + "\\n";
  }
  // Two at a time; a header that needs another one before it fails by itself.
  const auto compiled = moebius::test::run("cd " + kRoot.string() + " && printf '" + headers +
                                           "' | xargs -P 2 -n 8 c++ -std=c++20 -fsyntax-only -w -I. -x c++");
  INFO(compiled.err);
  CHECK(compiled.exit_code == 0);
}
