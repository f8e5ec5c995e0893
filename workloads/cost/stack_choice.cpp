#include "workloads/cost/stack_choice.h"

#include <algorithm>

#include <fmt/format.h>

#include "hw/error.h"
#include "hw/trimmed.h"

namespace moebius {
namespace {

StackChoice::Exception exception_of(std::string_view text) {
  const std::size_t slash = text.find('/'), equals = text.find('=');
  if (slash == std::string_view::npos || equals == std::string_view::npos || equals < slash)
    throw input_error(
        fmt::format("expected KIND/DTYPE=STACK (\"gemm/fp8=trtllm-1.3.0rc20\"), found \"{}\"", text));
  return {std::string(trimmed(text.substr(0, slash))),
          std::string(trimmed(text.substr(slash + 1, equals - slash - 1))),
          std::string(trimmed(text.substr(equals + 1)))};
}

}  // namespace

std::vector<std::string> StackChoice::named() const {
  std::vector<std::string> stacks;
  if (!base.empty()) stacks.push_back(base);
  for (const Exception& other : exceptions) stacks.push_back(other.stack);
  return stacks;
}

std::string_view StackChoice::of(const ProfileTable& table) const {
  for (const Exception& other : exceptions)
    if (to_string(table.dtype) == other.dtype &&
        std::find(table.kinds.begin(), table.kinds.end(), other.kind) != table.kinds.end())
      return other.stack;
  return base;
}

StackChoice stack_choice(std::string_view text) {
  const std::size_t end = text.find(';');
  StackChoice choice{std::string(trimmed(text.substr(0, end)))};
  while (text.find(';') != std::string_view::npos) {
    text.remove_prefix(text.find(';') + 1);
    choice.exceptions.push_back(exception_of(trimmed(text.substr(0, text.find(';')))));
  }
  return choice;
}

}  // namespace moebius
