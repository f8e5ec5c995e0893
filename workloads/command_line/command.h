// A command of the command line as data: rooms say what their commands take and do, main.cpp hands the lines
// to whoever parses them. An option writes where it points to, which lives as long as the command's body.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "workloads/option_checks.h"

namespace moebius {

struct CommandOption {
  using Target =
      std::variant<std::monostate, std::string*, std::vector<std::string>*, bool*, double*,
                   std::optional<double>*, std::optional<std::int64_t>*, std::optional<std::uint64_t>*>;

  std::string name;  // "--out"; without dashes it is known by its position
  Target target;     // a flag's is bool; monostate: the check keeps the value
  std::string help;
  OptionCheck check = {};  // of the text
  bool required = false;
  std::vector<std::string> needs = {}, excludes = {};  // names of other options of the command
  std::vector<std::string> values = {};                // all that it takes; empty: any
  std::vector<std::string> catalogs = {};              // of `moebius list`, whose names it takes
};
using CommandOptions = std::vector<CommandOption>;

struct Command {
  std::string name, help;
  CommandOptions options;
  std::function<int()> run;  // returns the exit code; throws Error
};

// Of every value that is written there, before it is.
OptionCheck check_of(const CommandOption::Target& target);

// One value out of a table of names.
template <class E, class Kept>  // E itself, or an optional one
CommandOption choice(const std::string& name, Kept& value,
                     const std::vector<std::pair<std::string, E>>& table, const std::string& help) {
  const auto keep = [&value, known = one_of(table)](std::string& text) {
    std::string wrong = known(text);
    if (wrong.empty()) value = static_cast<E>(std::stoi(text));
    return wrong;
  };
  CommandOption option{.name = name, .target = {}, .help = help, .check = keep};
  for (const auto& [value_name, row] : table) option.values.push_back(value_name);
  return option;
}

// The words of a command line as CLI11 takes them, the last one first. `help COMMAND` is `COMMAND --help`.
std::vector<std::string> last_word_first(int argc, const char* const* argv);

CommandOptions joined(std::initializer_list<CommandOptions> parts);

// `--data`, the same for every command.
CommandOption data_option(std::string& data);

// To standard output, as it is. run_error where that takes no more.
void print(const std::string& text);
void flush_output();

}  // namespace moebius
