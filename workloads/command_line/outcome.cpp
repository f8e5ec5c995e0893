#include "workloads/command_line/outcome.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <new>

#include "hw/error.h"

namespace moebius {

namespace {

// Names are the user's, of any length: of one that no terminal shows, the beginning.
std::string with_short_words(std::string_view sentence) {
  constexpr std::size_t kMost = 4096, kKept = 60;  // as long as paths are
  std::string text;
  while (!sentence.empty()) {
    const std::size_t length = std::min(sentence.find_first_of(" \n") + 1, sentence.size());
    const std::size_t word = length == 0 ? sentence.size() : length;
    text += word <= kMost ? std::string(sentence.substr(0, word))
                          : fmt::format("{}... ({} characters) ", sentence.substr(0, kKept), word);
    sentence.remove_prefix(word);
  }
  return text;
}

}  // namespace

std::string wrong_command_line(const std::string& first, const std::vector<Command>& commands,
                               const std::string& error) {
  std::vector<std::string> names;
  for (const Command& command : commands) names.push_back(command.name);
  const std::string unknown = unknown_command(first, names);
  return unknown.empty() ? error : unknown;
}

int told(int exit_code, std::string_view sentence) {
  fmt::print(stderr, "moebius: {}\n", with_short_words(sentence));
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
