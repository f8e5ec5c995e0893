// What a fuzz target gives: the entry point of libFuzzer, and inputs to start from for our own driver.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

// Returns 0. A broken promise of the code under test ends the process: a CHECK, a sanitizer, an exception
// that gets out.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace moebius::fuzz {

// Valid inputs of every shape and some that are nearly valid; never empty.
std::vector<std::string> seed_inputs();

}  // namespace moebius::fuzz
