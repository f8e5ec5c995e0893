// The two ways to fail. `Error` is the user's: a wrong input (exit 2) or a run that could not succeed (exit 1); it is
// thrown, and only main catches it. `CHECK` is ours: it prints what was violated and aborts.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace moebius {

class Error : public std::runtime_error {
 public:
  enum class Kind { kInput, kRun };

  Error(Kind kind, const std::string& sentence) : std::runtime_error(sentence), kind_(kind) {}
  Kind kind() const { return kind_; }

 private:
  Kind kind_;
};

// The input is wrong: exit code 2. `sentence` says file, JSON pointer, what was expected and what was found.
Error input_error(const std::string& sentence);

// The input is right, but the run or an expectation failed: exit code 1.
Error run_error(const std::string& sentence);

// The candidate closest to `name` in edit distance (case-insensitive), or empty when none is near enough to be meant.
std::string nearest_name(std::string_view name, const std::vector<std::string>& candidates);

// ` (did you mean "x"?)`, or nothing when no candidate is near.
std::string suggestion(std::string_view name, const std::vector<std::string>& candidates);

[[noreturn]] void check_failed(const char* file, int line, const char* condition, const std::string& values);

}  // namespace moebius

// Our invariant: CHECK(a < b, fmt::format("a={} b={}", a, b)). The second argument is a std::string, evaluated on failure only.
#define CHECK(condition, values) \
  ((condition) ? static_cast<void>(0) : ::moebius::check_failed(__FILE__, __LINE__, #condition, (values)))
