#include "workloads/serving/balancing/expert_moves.h"

#include <algorithm>
#include <span>
#include <tuple>

namespace moebius {
namespace {

using SlotView = std::span<const std::int32_t>;

bool holds(SlotView slots, std::int32_t expert) {
  return std::find(slots.begin(), slots.end(), expert) != slots.end();
}

// The wanted experts of a rank: what stands there stays in its slot, the rest fills the other slots in order.
void arrange_rank(SlotView now, SlotView wanted, std::span<std::int32_t> result) {
  std::vector<std::int32_t> left(wanted.begin(), wanted.end());
  std::vector<bool> kept(now.size(), false);
  for (std::size_t s = 0; s < now.size(); ++s) {
    const auto same = std::find(left.begin(), left.end(), now[s]);
    if (same == left.end()) continue;
    result[s] = *same;
    kept[s] = true;
    left.erase(same);
  }
  std::size_t next = 0;
  for (std::size_t s = 0; s < now.size(); ++s)
    if (!kept[s]) result[s] = left[next++];
}

}  // namespace

Rearrangement rearrange(const SlotExperts& now, const SlotExperts& wanted, int ranks, int ranks_per_node) {
  const std::size_t of_rank = now.size() / ranks;
  Rearrangement result{SlotExperts(now.size()), {}};
  std::vector<std::int32_t> sent(ranks, 0);
  const auto at = [&](const SlotExperts& slots, int rank) {
    return SlotView(slots).subspan(rank * of_rank, of_rank);
  };
  const auto sender = [&](std::int32_t expert, int to) {
    std::tuple<bool, std::int32_t, int> best{true, INT32_MAX, -1};
    for (int rank = 0; rank < ranks; ++rank)
      if (holds(at(now, rank), expert))
        best = std::min(best, {rank / ranks_per_node != to / ranks_per_node, sent[rank], rank});
    return std::get<2>(best);
  };
  for (int rank = 0; rank < ranks; ++rank) {
    const auto slots = std::span(result.expert_of_slot).subspan(rank * of_rank, of_rank);
    arrange_rank(at(now, rank), at(wanted, rank), slots);
    for (std::size_t s = 0; s < of_rank; ++s) {
      if (holds(at(now, rank), slots[s]) || holds(SlotView(slots).first(s), slots[s])) continue;
      const int from = sender(slots[s], rank);
      ++sent[from];
      result.moves.push_back({slots[s], from, rank});
    }
  }
  return result;
}

ExpertTransfer::Layer transfer_of(int layer, const SlotExperts& now, const Rearrangement& change, int ranks) {
  const auto of_rank = static_cast<std::int32_t>(now.size()) / ranks;
  const auto slot_on = [&](int rank, std::int32_t expert) {
    const auto first = now.begin() + static_cast<std::ptrdiff_t>(rank) * of_rank;
    return static_cast<std::int32_t>(std::find(first, first + of_rank, expert) - first);
  };
  const auto sender = [&](int to, std::int32_t expert) {
    for (const ExpertMove& move : change.moves)
      if (move.to == to && move.expert == expert) return move.from;
    return to;
  };
  ExpertTransfer::Layer transfer{.number = layer, .arrivals = {}, .placings = {}};
  std::vector<std::pair<ExpertTransfer::Arrival, std::int32_t>> placed;  // into which slot
  for (int rank = 0; rank < ranks; ++rank) {
    for (std::int32_t slot = 0; slot < of_rank; ++slot) {
      const std::int32_t expert = change.expert_of_slot[rank * of_rank + slot];
      if (expert == now[rank * of_rank + slot]) continue;
      const int from = sender(rank, expert);
      placed.push_back({{rank, from, slot_on(from, expert)}, slot});
      transfer.arrivals.push_back(placed.back().first);
    }
  }
  std::vector<ExpertTransfer::Arrival>& arrivals = transfer.arrivals;
  std::sort(arrivals.begin(), arrivals.end());
  arrivals.erase(std::unique(arrivals.begin(), arrivals.end()), arrivals.end());
  for (const auto& [arrival, slot] : placed) {
    const auto mine = transfer.arrivals_at(arrival.to);
    const auto place = std::find(mine.begin(), mine.end(), arrival) - mine.begin();
    transfer.placings.push_back({arrival.to, static_cast<std::int32_t>(place), slot});
  }
  return transfer;
}

}  // namespace moebius
