// What a new placement moves, slot by slot.
#include <map>
#include <vector>

#include <catch2/catch.hpp>

#include "workloads/routing/random_stream.h"
#include "workloads/serving/balancing/expert_moves.h"

namespace moebius {
namespace {

// The experts of all slots after a transfer, put together from what stood there before.
SlotExperts after(const SlotExperts& now, const ExpertTransfer::Layer& transfer, int ranks) {
  const auto of_rank = static_cast<int>(now.size()) / ranks;
  SlotExperts slots = now;
  for (const ExpertTransfer::Placing& placing : transfer.placings) {
    const ExpertTransfer::Arrival& arrival = transfer.arrivals_at(placing.to)[placing.arrival];
    slots[placing.to * of_rank + placing.slot] = now[arrival.from * of_rank + arrival.slot];
  }
  return slots;
}

}  // namespace

TEST_CASE("an expert that a rank lacks comes from another, one that it has from its own slot") {
  // Two ranks of three slots. Rank 0 keeps 0, gets 4, and has 1 a second time; rank 1 swaps nothing but 5
  // for 2.
  const SlotExperts now{0, 1, 2, 3, 4, 5}, wanted{0, 1, 1, 3, 4, 2};
  const Rearrangement change = rearrange(now, wanted, 2, 2);
  const ExpertTransfer::Layer transfer = transfer_of(7, now, change, 2);
  CHECK(transfer.number == 7);
  CHECK(transfer.arrivals == std::vector<ExpertTransfer::Arrival>{{0, 0, 1}, {1, 0, 2}});
  CHECK(transfer.placings == std::vector<ExpertTransfer::Placing>{{0, 0, 2}, {1, 0, 2}});
  CHECK(transfer.most_arrivals() == 1);
  CHECK(transfer.arrivals_at(1).size() == 1);
}

TEST_CASE("a transfer makes every placement of any other, and sends what the moves say") {
  RandomStream random(3);
  for (int round = 0; round < 2000; ++round) {
    const int ranks = 2 + static_cast<int>(random.below(4)), each = 1 + static_cast<int>(random.below(4));
    const int slots = ranks * each, experts = 1 + static_cast<int>(random.below(slots));
    const auto drawn = [&] {
      SlotExperts places;
      for (int s = 0; s < slots; ++s)
        places.push_back(s < experts ? s : static_cast<int>(random.below(experts)));
      for (int s = slots - 1; s > 0; --s) std::swap(places[s], places[random.below(s + 1)]);
      return places;
    };
    const SlotExperts now = drawn();
    const Rearrangement change = rearrange(now, drawn(), ranks, 2);
    ExpertTransfer transfer;
    transfer.layers.push_back(transfer_of(0, now, change, ranks));
    REQUIRE(after(now, transfer.layers[0], ranks) == change.expert_of_slot);
    std::map<std::pair<int, int>, int> moves;
    for (const ExpertMove& move : change.moves) ++moves[{move.from, move.to}];
    for (int from = 0; from < ranks; ++from)
      for (int to = 0; to < ranks; ++to)
        if (from != to) REQUIRE(transfer.count(from, to) == moves[{from, to}]);
  }
}

}  // namespace moebius
