// A type has one definition: two of a name in one namespace are one for the linker, which keeps either's
// code.
#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "tests/rules/source_root.h"

namespace {

namespace fs = std::filesystem;

// Types of a file that others could see: in a namespace with a name, at its outermost level.
std::set<std::string> types_in(const fs::path& path) {
  static const std::regex kOpen("^namespace ([\\w:]*) *\\{.*"), kClose("^\\}  // namespace.*"),
      kType("^(?:struct|class|enum class) (\\w+)(?: final)? *(?::[^:].*|\\{.*|)$");
  std::set<std::string> types;
  std::vector<std::string> spaces;
  std::ifstream file(path);
  std::smatch match;
  for (std::string line; std::getline(file, line);) {
    if (std::regex_match(line, match, kOpen)) {
      spaces.push_back(match[1]);
    } else if (std::regex_match(line, kClose)) {
      if (!spaces.empty()) spaces.pop_back();
    } else if (std::regex_match(line, match, kType)) {
      std::string name;
      bool seen = !spaces.empty();
      for (const std::string& space : spaces) {
        seen = seen && !space.empty();
        name += space + "::";
      }
      if (seen) types.insert(name + match[1].str());
    }
  }
  return types;
}

}  // namespace

// The rehearsal of CUDA's launches is compiled in their place, never beside them.
TEST_CASE("a type is defined once") {
  std::map<std::string, std::string> places;
  int types = 0;
  for (const char* room : {"hw", "models", "workloads", "sim", "real", "viz"}) {
    for (const auto& entry : fs::recursive_directory_iterator(moebius::kRoot / room)) {
      const std::string kind = entry.path().extension().string();
      if ((kind != ".h" && kind != ".cpp") || entry.path().filename() == "rehearsal.h") continue;
      for (const std::string& type : types_in(entry.path())) {
        ++types;
        const auto [at, first] = places.emplace(type, entry.path().string());
        INFO(type << " in " << at->second << " and " << entry.path());
        CHECK(first);
      }
    }
  }
  // Headers of tests are linked with the rooms; two tests of different programs may share a name.
  for (const auto& entry : fs::recursive_directory_iterator(moebius::kRoot / "tests")) {
    if (entry.path().extension() != ".h") continue;
    for (const std::string& type : types_in(entry.path())) {
      INFO(type << " in " << entry.path());
      CHECK(places.count(type) == 0);
    }
  }
  CHECK(types > 500);
}
