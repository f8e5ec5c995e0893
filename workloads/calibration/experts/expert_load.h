// How many rows each expert of one rank gets in the routings that published expert kernels were timed with:
// AIConfigurator's collector (collector/helper.py, Apache-2.0) says how they are made.
#pragma once

#include <cstdint>
#include <vector>

namespace moebius {

struct ExpertGroup {
  std::int64_t tokens = 0;  // of all ranks together
  int active = 1;           // experts of a token
  int experts = 1;          // of all ranks; a multiple of `ranks`
  int ranks = 1;
  int slots = 0;  // for experts and their copies, of all ranks, where loads are rebalanced; 0: one an expert
};

// Round robin: a token's experts stand experts/active apart, the next token's are the next ones; tokens too
// few to go round are spread over the distance. Rows of the first rank's experts.
std::vector<std::int32_t> balanced_load(const ExpertGroup& group);

// Loads drawn from a truncated power law with this exponent, between 1 and 0.8 of the tokens (0.01 and 2
// where there are fewer assignments than experts), scaled to the assignments and rounded; no expert has more
// rows than there are tokens. Rows of the experts of the most loaded rank. The same for the same seed.
std::vector<std::int32_t> power_law_load(const ExpertGroup& group, double exponent, std::uint64_t seed);

// The same after expert load balancing (EPLB): each spare slot goes to the expert of most rows a copy, and
// slots are placed by falling rows on the rank that has least. Rows of the slots of the most loaded rank.
std::vector<std::int32_t> rebalanced_load(const ExpertGroup& group, double exponent, std::uint64_t seed);

}  // namespace moebius
