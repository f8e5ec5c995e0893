#include "workloads/command_line/outcome.h"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <new>

#include "hw/error.h"

namespace moebius {

std::string wrong_command_line(const std::string& first, const std::vector<Command>& commands,
                               const std::string& error) {
  std::vector<std::string> names;
  for (const Command& command : commands) names.push_back(command.name);
  const std::string unknown = unknown_command(first, names);
  return unknown.empty() ? error : unknown;
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

}  // namespace moebius
