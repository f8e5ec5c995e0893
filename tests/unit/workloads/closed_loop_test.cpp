// What requests saw of a service that was simulated and executed, as distributions.
#include <catch2/catch.hpp>

#include "workloads/crosscheck/closed_loop.h"
#include "workloads/serving/carried/prompt_book.h"

namespace moebius {

// Shares below or at a value: of {1, 2, 3, 4} a quarter more each, of {3, 4, 5, 6} none until 3. At 2 they
// are a half and none.
TEST_CASE("the distance of two distributions is the most by which their shares differ") {
  CHECK(distribution_distance({1, 2, 3, 4}, {1, 2, 3, 4}) == 0);
  CHECK(distribution_distance({4, 2, 1, 3}, {6, 3, 5, 4}) == 0.5);
  CHECK(distribution_distance({1, 2}, {7, 8, 9}) == 1);
  CHECK(distribution_distance({}, {}) == 0);
  CHECK(distribution_distance({}, {1}) == 1);
}

// First tokens 2 and 3 s after arrival; 4 s for two further tokens, so 2 s each; a request of one token has
// no time between tokens.
TEST_CASE("latencies count from a request's own arrival") {
  const auto at = [](double seconds) { return time_from_seconds(seconds); };
  const std::vector<RequestTimes> times{{5, 3, {at(12), at(14), at(16)}, at(10)}, {5, 1, {at(23)}, at(20)}};
  const ClosedLoop loop = compare_latencies(times, times);
  REQUIRE(loop.latencies.size() == 3);
  CHECK(loop.latencies[0].executed.mean == Approx(2.5));
  CHECK(loop.latencies[1].executed.mean == Approx(2));
  CHECK(loop.latencies[2].executed.mean == Approx(4.5));
  CHECK(loop.latencies[0].distance == 0);
}

// Blocks of 4 tokens: two requests share the first; the second's prompt has 9 tokens, of which 8 are blocks.
TEST_CASE("positions of prompts that begin alike have one name") {
  std::vector<TrafficRequest> requests(2);
  for (TrafficRequest& request : requests) request.block_tokens = 4;
  requests[0].input_tokens = 6;
  requests[0].blocks = {70, 71};  // the second one is partial
  requests[1].input_tokens = 9;
  requests[1].blocks = {70, 72, 73};
  const PromptBook book(requests);
  const auto names = [&](std::int32_t request, std::int32_t first, std::int32_t count) {
    std::vector<std::int32_t> names;
    for (const NamedPiece& piece : book.pieces(request, first, count))
      names.insert(names.end(), piece.count, piece.name);
    return names;
  };
  constexpr std::int32_t kBlock = PromptBook::kBlocks;
  CHECK(names(0, 2, 4) == std::vector<std::int32_t>{kBlock, kBlock, 0, 0});
  CHECK(names(1, 3, 3) == std::vector<std::int32_t>{kBlock, kBlock + 1, kBlock + 1});
  CHECK(names(1, 8, 2) == std::vector<std::int32_t>{1, 1});  // its own, and what was generated
  CHECK(names(-1, 0, 1) == std::vector<std::int32_t>{-1});
}

}  // namespace moebius
