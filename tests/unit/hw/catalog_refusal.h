#pragma once

#include "hw/error.h"

#include <string>
#include "tests/catch.h"

namespace moebius {

// What a reader of the catalogs says of bad input, "none" when it takes it.
template <class Function>
std::string catalog_refusal(Function function) {
  try {
    function();
  } catch (const Error& error) {
    REQUIRE(error.kind() == Error::Kind::kInput);
    return error.what();
  }
  return "none";
}

}  // namespace moebius
