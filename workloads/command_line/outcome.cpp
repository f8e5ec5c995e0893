#include "workloads/command_line/outcome.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <new>

#include "hw/error.h"
#include "hw/json_text.h"

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

std::vector<std::string> names_of(const std::vector<Command>& commands) {
  std::vector<std::string> names;
  for (const Command& command : commands) names.push_back(command.name);
  return names;
}

// The first word that looks like an option and is none of the command's.
std::string unknown_option(const std::vector<std::string>& words, const Command& command) {
  std::vector<std::string> known{"--help"};
  for (const CommandOption& option : command.options)
    if (option.name.starts_with("-")) known.push_back(option.name);
  for (const std::string& word : words) {
    const std::string name = word.substr(0, word.find('='));
    if (!name.starts_with("--") || std::ranges::find(known, name) != known.end()) continue;
    return fmt::format("{}: unknown option {}{}", command.name, json_excerpt(name), suggestion(name, known));
  }
  return {};
}

// An option behind which its value is missing, or that is given again though it has one value.
std::string misused_option(const std::vector<std::string>& words, const Command& command) {
  std::vector<std::string> seen;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string name = words[i].substr(0, words[i].find('='));
    const auto option = std::ranges::find(command.options, name, &CommandOption::name);
    if (!name.starts_with("-") || option == command.options.end()) continue;
    if (std::holds_alternative<bool*>(option->target)) continue;
    const bool many = std::holds_alternative<std::vector<std::string>*>(option->target);
    if (!many && std::ranges::find(seen, name) != seen.end())
      return fmt::format("{}: expected it once, found it again", name);
    seen.push_back(name);
    if (name != words[i]) continue;
    if (++i == words.size()) return fmt::format("{}: expected a value, found none", name);
  }
  return {};
}

}  // namespace

std::string wrong_topic(const std::vector<std::string>& words, const std::vector<Command>& commands) {
  const bool by_name = !words.empty() && words.front() == "help";
  const auto asks = [](const std::string& word) { return word == "-h" || word == "--help"; };
  std::string topic;
  for (std::size_t i = by_name ? 1 : 0; i < words.size(); ++i) {
    if (topic.empty() && words[i].starts_with("-")) continue;
    if (by_name && !topic.empty() && !asks(words[i]))
      return fmt::format("help: expected one command, found {} behind {}", json_excerpt(words[i]), topic);
    if (!topic.empty()) continue;
    topic = words[i];
    if (std::string unknown = unknown_command(topic, names_of(commands)); !unknown.empty()) return unknown;
  }
  return "";
}

std::string wrong_command_line(const std::vector<std::string>& words, const std::vector<Command>& commands,
                               const std::string& error) {
  const std::string first = words.empty() ? "" : words.front();
  const std::string unknown = unknown_command(first, names_of(commands));
  if (!unknown.empty()) return unknown;
  if (first.starts_with("-")) return fmt::format("expected a command, found {}", json_excerpt(first));
  const auto of = std::ranges::find(commands, first, &Command::name);
  if (of == commands.end()) return error;
  const std::vector<std::string> behind(words.begin() + 1, words.end());
  for (const auto find : {unknown_option, misused_option})
    if (std::string sentence = find(behind, *of); !sentence.empty()) return sentence;
  return error;
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
