#include "workloads/command_line/command_line.h"

#include <CLI/CLI.hpp>

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <new>
#include <string>

#include "hw/error.h"
#include "workloads/version.h"

namespace moebius {
namespace {

struct AddOption {
  CLI::App& app;
  const CommandOption& option;

  CLI::Option* operator()(std::monostate) const {
    return app.add_option_function<std::string>(
        option.name, [](const std::string&) {}, option.help);
  }
  CLI::Option* operator()(bool* flag) const { return app.add_flag(option.name, *flag, option.help); }
  CLI::Option* operator()(std::vector<std::string>* all) const {
    return app.add_option(option.name, *all, option.help)->take_all();
  }
  template <class T>
  CLI::Option* operator()(T* value) const {
    return app.add_option(option.name, *value, option.help);
  }
};

void add_command(CLI::App& app, const Command& command, std::function<int()>& chosen) {
  CLI::App* added = app.add_subcommand(command.name, command.help);
  added->callback([&] { chosen = command.run; });
  for (const CommandOption& option : command.options) {
    CLI::Option* made = std::visit(AddOption{*added, option}, option.target)->required(option.required);
    if (option.check) made->check(CLI::Validator(option.check, ""));
  }
  for (const CommandOption& option : command.options) {
    CLI::Option* made = added->get_option(option.name);
    for (const std::string& other : option.needs) made->needs(added->get_option(other));
    for (const std::string& other : option.excludes) made->excludes(added->get_option(other));
  }
}

// What is wrong with the command line, as a sentence.
std::string wrong_command_line(const std::string& first, const std::vector<Command>& commands,
                               const CLI::ParseError& error) {
  std::vector<std::string> names;
  for (const Command& command : commands) names.push_back(command.name);
  const std::string unknown = unknown_command(first, names);
  return unknown.empty() ? error.what() : unknown;
}

int told(int exit_code, std::string_view sentence) {
  fmt::print(stderr, "moebius: {}\n", sentence);
  return exit_code;
}

// What was printed may stand in a buffer until now.
int outcome_of(const std::function<int()>& run) {
  try {
    const int exit_code = run();
    flush_output();
    return exit_code;
  } catch (const Error& error) {
    return told(error.kind() == Error::Kind::kInput ? 2 : 1, error.what());
  } catch (const std::bad_alloc&) {
    return told(1, "this machine has no memory left for it");
  } catch (const std::filesystem::filesystem_error& error) {
    return told(1, fmt::format("{}: {}", error.path1().string(), error.code().message()));
  } catch (const std::exception& error) {
    return told(1, error.what());
  }
}

}  // namespace

int run_command_line(const std::vector<Command>& commands, int argc, char** argv) {
  CLI::App app("Simulates Mixture-of-Experts on any cluster and executes the same schedules.", "moebius");
  app.set_version_flag("--version", version_text());
  app.require_subcommand(1);
  std::function<int()> chosen;
  for (const Command& command : commands) add_command(app, command, chosen);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0)
      return told(2, wrong_command_line(argc < 2 ? "" : argv[1], commands, error));
    chosen = [&] { return app.exit(error); };  // --help, --version
  }
  return outcome_of(chosen);
}

}  // namespace moebius
