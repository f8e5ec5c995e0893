#include "workloads/command_line/command.h"

#include <fmt/format.h>
#include <algorithm>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "hw/error.h"

namespace moebius {
namespace {

[[noreturn]] void cannot_print() {
  throw run_error(fmt::format("standard output: cannot be written: {}", std::strerror(errno)));
}

}  // namespace

CommandOptions joined(std::initializer_list<CommandOptions> parts) {
  CommandOptions all;
  for (const CommandOptions& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

OptionCheck check_of(const CommandOption::Target& target) {
  struct Check {
    OptionCheck operator()(std::monostate) const { return {}; }
    OptionCheck operator()(std::string*) const { return given_text; }
    OptionCheck operator()(std::vector<std::string>*) const { return {}; }
    OptionCheck operator()(bool*) const { return no_value; }
    OptionCheck operator()(double*) const { return any_number; }
    OptionCheck operator()(std::optional<double>*) const { return any_number; }
    OptionCheck operator()(std::optional<std::int64_t>*) const { return any_whole_number; }
    OptionCheck operator()(std::optional<std::uint64_t>*) const { return seed_number; }
  };
  return std::visit(Check{}, target);
}

CommandOption data_option(std::string& data) {
  return {"--data", &data, "directory with catalogs and profiles that extend or override the built-in ones"};
}

std::vector<std::string> last_word_first(int argc, const char* const* argv) {
  std::vector<std::string> words(argv + std::min(1, argc), argv + argc);
  if (!words.empty() && words.front() == "help") {
    words.erase(words.begin());
    words.emplace_back("--help");
  }
  std::reverse(words.begin(), words.end());
  return words;
}

void print(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) cannot_print();
}

void flush_output() {
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) cannot_print();
}

}  // namespace moebius
