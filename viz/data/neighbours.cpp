#include "viz/data/neighbours.h"

#include <algorithm>
#include <tuple>

namespace moebius::viz {
std::optional<Place> waited_for(const RunData& run, Place place) {
  const LaneSpans& lanes = run.lanes;
  const std::int64_t begin = run.work_start(place.slot);
  const LaneRow& own = lanes.rows()[place.row];
  std::optional<Place> best;
  std::tuple<std::int64_t, bool, bool> best_rank{-1, false, false};
  for (std::size_t r = 0; r < lanes.rows().size(); ++r) {
    const LaneRow& row = lanes.rows()[r];
    std::size_t slot = lanes.first_ending_after(row, begin);  // the one before it ended by then
    if (r == place.row) slot = std::min(slot, place.slot);
    if (slot == row.first) continue;
    const bool same_class = row.rank_class == own.rank_class;
    const std::tuple rank{lanes.end(slot - 1), same_class && row.lane == own.lane, same_class};
    if (rank > best_rank) best_rank = rank, best = Place{r, slot - 1};
  }
  return best;
}

std::vector<Place> began_at_end_of(const RunData& run, Place place, std::size_t most) {
  const LaneSpans& lanes = run.lanes;
  const std::int64_t end = lanes.end(place.slot);
  std::vector<Place> found;
  for (std::size_t r = 0; r < lanes.rows().size() && found.size() < most; ++r) {
    const LaneRow& row = lanes.rows()[r];
    const std::size_t slot = lanes.first_ending_after(row, end);
    if (slot < row.last() && lanes.start(slot) == end) found.push_back({r, slot});
  }
  return found;
}

std::optional<Place> other_side(const RunData& run, Place place) {
  const std::uint32_t span = run.lanes.span(place.slot);
  const OpKind kind = run.tables().ops[run.lanes.op_row(place.slot)].kind;
  if (kind != OpKind::kSend && kind != OpKind::kRecv) return std::nullopt;
  for (const Transfer& transfer : run.transfers()) {
    if ((kind == OpKind::kSend ? transfer.send : transfer.recv) != span) continue;
    Place other;
    const std::uint32_t there = kind == OpKind::kSend ? transfer.recv : transfer.send;
    if (run.lanes.find(run.columns, there, other.row, other.slot)) return other;
  }
  return std::nullopt;
}

}  // namespace moebius::viz
