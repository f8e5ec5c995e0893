// Words of random bits, counted all together and one by one.
#include <catch2/catch.hpp>

#include <random>

#include "workloads/routing/bit_counts.h"

namespace moebius {
namespace {

TEST_CASE("bits of words are counted as one by one, however many words there are") {
  std::mt19937_64 random(7);
  BitCounts counts;  // one for all: it begins anew each time
  for (const int words : {0, 1, 5, 8, 9, 16, 23, 64, 1000, 4096, 5003}) {
    INFO(words);
    std::vector<std::int32_t> expected(BitCounts::kBits, 0), found(BitCounts::kBits, -1);
    for (int i = 0; i < words; ++i) {
      const std::uint64_t word = i % 7 == 0 ? ~std::uint64_t{0} : random() & random();
      counts.add(word);
      for (int b = 0; b < BitCounts::kBits; ++b) expected[b] += static_cast<std::int32_t>(word >> b & 1);
    }
    counts.take(BitCounts::kBits, found.data());
    CHECK(found == expected);
  }
}

}  // namespace
}  // namespace moebius
