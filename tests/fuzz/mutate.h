// Inputs that are nearly right: one of the seeds, changed a few times. Every input follows from (seed, index)
// alone, so that one that broke something can be made again.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace moebius::fuzz {

std::string make_input(const std::vector<std::string>& seeds, std::uint64_t seed, std::uint64_t index);

}  // namespace moebius::fuzz
