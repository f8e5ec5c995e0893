// Whose measured kernels a run is told: "STACK", or "STACK; KIND/DTYPE=STACK; ...", where the kernels of one
// kind and type are another stack's. A server may run one library's products and another one's experts.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hw/profile.h"

namespace moebius {

struct StackChoice {
  struct Exception {
    std::string kind;   // of an op, as to_string(OpKind) names it
    std::string dtype;  // of its arithmetic
    std::string stack;
  };
  std::string base;  // empty: all stacks
  std::vector<Exception> exceptions = {};

  std::vector<std::string> named() const;  // stacks
  // The stack that this table's kernels have to be of; empty: any.
  std::string_view of(const ProfileTable& table) const;
};

// input_error for an exception that is none.
StackChoice stack_choice(std::string_view text);

}  // namespace moebius
