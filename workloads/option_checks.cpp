#include "workloads/option_checks.h"

#include <algorithm>
#include <filesystem>

namespace moebius {

std::string existing_directory(std::string& text) {
  return std::filesystem::is_directory(text) ? "" : fmt::format("expected a directory, found \"{}\"", text);
}

std::string whole_number(std::string& text) {
  const bool digits = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
  return digits ? "" : fmt::format("expected a whole number from 0, found \"{}\"", text);
}

void require_unset(const std::string& value, const std::string& sentence) {
  if (!value.empty()) throw input_error(sentence);
}

std::string unknown_command(const std::string& found, const std::vector<std::string>& names) {
  if (!found.empty() && found[0] == '-') return "";
  if (std::find(names.begin(), names.end(), found) != names.end()) return "";
  return fmt::format("unknown command \"{}\"{}", found, suggestion(found, names));
}

}  // namespace moebius
