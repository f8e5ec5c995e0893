// What is opened at run time, and what is said where it is missing.
#include <catch2/catch.hpp>

#include "real/cuda/shared_library.h"

namespace moebius::cuda {

TEST_CASE("a library that is nowhere is a sentence with the names that were tried") {
  CHECK_THROWS_WITH(SharedLibrary({"libnowhere.so.1", "/nowhere/libnowhere.so"}),
                    "none of libnowhere.so.1, /nowhere/libnowhere.so can be opened");
}

TEST_CASE("a function that a library does not have is a sentence with both names") {
  const SharedLibrary library({"libnowhere.so.1", "libc.so.6"});
  CHECK(library.name() == "libc.so.6");
  void (*missing)() = nullptr;
  CHECK_THROWS_WITH(library.find("no_such_function", missing), "libc.so.6 has no no_such_function");
  decltype(::abs)* absolute = nullptr;
  library.find("abs", absolute);
  CHECK(absolute(-3) == 3);
}

}  // namespace moebius::cuda
