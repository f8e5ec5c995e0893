#pragma once

#include "hw/error.h"

#include <string>
#include "tests/catch.h"

namespace moebius {

// What a reader says of bad input, "no error" when it takes it.
template <class Action>
std::string sentence_of(const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    REQUIRE(error.kind() == Error::Kind::kInput);
    return error.what();
  }
  return "no error";
}

}  // namespace moebius
