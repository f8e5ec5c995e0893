// Checks of values on the command line. Each is given the text, may replace it, and returns what is wrong
// with it as a sentence; empty: nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "hw/error.h"

namespace moebius {

// Exact in a double, so that every JSON tool keeps it.
inline constexpr std::int64_t kLargestSeed = std::int64_t{1} << 53;

using OptionCheck = std::function<std::string(std::string&)>;

// A name out of a table, replaced by the number of its row's value.
template <class T>
OptionCheck one_of(const std::vector<std::pair<std::string, T>>& table) {
  return [&table](std::string& text) {
    std::vector<std::string> names;
    for (const auto& [name, value] : table) {
      if (name == text) {
        text = std::to_string(static_cast<int>(value));
        return std::string();
      }
      names.push_back(name);
    }
    return fmt::format("expected {}, found \"{}\"{}", fmt::join(names, ", "), text, suggestion(text, names));
  };
}

// The name of a value in such a table.
template <class T>
std::string name_of(const std::vector<std::pair<std::string, T>>& table, T value) {
  for (const auto& [name, row] : table)
    if (row == value) return name;
  return "";
}

std::string given_text(std::string& text);  // not empty
std::string existing_directory(std::string& text);
std::string in_existing_directory(std::string& text);  // a file that may be written there
std::string any_whole_number(std::string& text);       // of 64 bits
std::string any_number(std::string& text);             // finite
std::string no_value(std::string& text);               // of a flag, which is there or not
std::string whole_number(std::string& text);           // from 0
std::string seed_number(std::string& text);            // from 0 to kLargestSeed
std::string positive_number(std::string& text);
std::string device_name(std::string& text);  // "host", "cuda:0", ...

int device_index(const std::string& name);  // of "cuda:1": 1

// input_error with the sentence when an option that goes with something else was given.
void require_unset(const std::string& value, const std::string& sentence);

// What to say of a first argument that is none of `names`, or of none at all (empty); empty when it is one of
// them, or an option.
std::string unknown_command(const std::string& found, const std::vector<std::string>& names);

}  // namespace moebius
