#include "workloads/option_checks.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>

namespace moebius {

std::string given_text(std::string& text) {
  return text.empty() ? "expected a name, found \"\"" : "";
}

std::string existing_directory(std::string& text) {
  std::error_code none;
  return std::filesystem::is_directory(text, none) ? ""
                                                   : fmt::format("expected a directory, found \"{}\"", text);
}

std::string in_existing_directory(std::string& text) {
  std::string folder = std::filesystem::path(text).parent_path().string();
  return folder.empty() ? "" : existing_directory(folder);
}

std::string any_whole_number(std::string& text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc::result_out_of_range)
    return fmt::format("expected a number of at most 64 bits, found \"{}\"", text);
  const bool good = error == std::errc() && end == text.data() + text.size();
  return good ? "" : fmt::format("expected a whole number, found \"{}\"", text);
}

std::string any_number(std::string& text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool good = error == std::errc() && end == text.data() + text.size() && std::isfinite(number);
  return good ? "" : fmt::format("expected a number, found \"{}\"", text);
}

std::string no_value(std::string& text) {
  return text == "true" ? "" : fmt::format("expected no value, found \"{}\"", text);
}

std::string whole_number(std::string& text) {
  const bool digits = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
  return digits ? "" : fmt::format("expected a whole number from 0, found \"{}\"", text);
}

std::string seed_number(std::string& text) {
  std::int64_t number = 0;
  const std::errc error = std::from_chars(text.data(), text.data() + text.size(), number).ec;
  const bool good = whole_number(text).empty() && error == std::errc() && number <= kLargestSeed;
  return good ? "" : fmt::format("expected a whole number from 0 to {}, found \"{}\"", kLargestSeed, text);
}

void require_unset(const std::string& value, const std::string& sentence) {
  if (!value.empty()) throw input_error(sentence);
}

std::string positive_number(std::string& text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool good = error == std::errc() && end == text.data() + text.size() && number > 0 && number < 1e9;
  return good ? "" : fmt::format("expected a number above 0, found \"{}\"", text);
}

std::string device_name(std::string& text) {
  std::string index = text.starts_with("cuda:") ? text.substr(5) : "";
  if (text == "host" || (index.size() < 5 && whole_number(index).empty())) return "";
  return fmt::format("expected host or cuda:N, found \"{}\"", text);
}

int device_index(const std::string& name) {
  return std::stoi(name.substr(name.find(':') + 1));
}

std::string unknown_command(const std::string& found, const std::vector<std::string>& names) {
  if (found.empty()) return fmt::format("expected a command: {}", fmt::join(names, ", "));
  if (found[0] == '-') return "";
  if (std::find(names.begin(), names.end(), found) != names.end()) return "";
  return fmt::format("unknown command \"{}\"{}", found, suggestion(found, names));
}

}  // namespace moebius
