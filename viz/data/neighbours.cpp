#include "viz/data/neighbours.h"

#include <algorithm>
#include <tuple>

namespace moebius::viz {
namespace {

std::optional<Place> place_of(const RunData& run, std::size_t span) {
  Place place;
  if (!run.lanes.find(run.columns, span, place.row, place.slot)) return std::nullopt;
  return place;
}

// The spans of a submission: first and one beyond the last.
std::pair<std::size_t, std::size_t> spans_of(const RunData& run, std::int32_t sequence) {
  const auto first_from = [&run](std::int64_t wanted) {
    std::size_t low = 0, high = run.columns.size();
    while (low < high) {
      const std::size_t middle = low + (high - low) / 2;
      (run.columns.sequence(middle) < wanted ? low : high) =
          run.columns.sequence(middle) < wanted ? middle + 1 : middle;
    }
    return low;
  };
  return {first_from(sequence), first_from(std::int64_t{sequence} + 1)};
}

std::vector<std::size_t> spans_of_op(const RunData& run, std::int32_t sequence, std::int32_t op) {
  std::vector<std::size_t> spans;
  const auto [first, last] = spans_of(run, sequence);
  for (std::size_t span = first; span < last; ++span)
    if (run.columns.op(span) == op) spans.push_back(span);
  return spans;
}

// Collects candidates and keeps that which ended last.
struct Latest {
  const RunData& run;
  std::optional<Waited> best = {};

  void take(std::optional<Place> place, Reason reason) {
    if (!place) return;
    if (!best || run.lanes.end(place->slot) > run.lanes.end(best->place.slot)) best = Waited{*place, reason};
  }
};

std::optional<Waited> by_dependencies(const RunData& run, Place place) {
  const Timeline& tables = run.tables();
  const std::uint32_t own = run.lanes.span(place.slot);
  const SubmissionRow& submission = tables.submissions[run.columns.sequence(own)];
  const OpRow& op = tables.ops[run.lanes.op_row(place.slot)];
  Latest latest{run};
  const auto [first, last] = spans_of(run, submission.sequence);
  for (std::size_t span = first; span < last; ++span) {
    const auto begin = tables.dependencies.begin() + op.first_dependency;
    if (std::find(begin, begin + op.num_dependencies, run.columns.op(span)) != begin + op.num_dependencies)
      latest.take(place_of(run, span), Reason::kDependency);
  }
  const auto follows = std::equal_range(
      tables.follows.begin(), tables.follows.end(), FollowRow{.sequence = submission.sequence},
      [](const FollowRow& a, const FollowRow& b) { return a.sequence < b.sequence; });
  for (auto row = follows.first; row != follows.second; ++row) {
    if (row->op != run.columns.op(own)) continue;
    for (const std::size_t span : spans_of_op(run, row->before_sequence, row->before_op))
      latest.take(place_of(run, span), Reason::kDependency);
  }
  for (std::int32_t i = 0; i < submission.num_after; ++i) {
    const auto [from, until] = spans_of(run, tables.afters[submission.first_after + i]);
    std::size_t end = from;
    for (std::size_t span = from; span < until; ++span)
      if (run.columns.end(span) >= run.columns.end(end)) end = span;
    if (from < until) latest.take(place_of(run, end), Reason::kDependency);
  }
  if (place.slot > run.lanes.rows()[place.row].first)
    latest.take(Place{place.row, place.slot - 1}, Reason::kLane);
  return latest.best;
}

std::optional<Waited> by_times(const RunData& run, Place place) {
  const LaneSpans& lanes = run.lanes;
  const std::int64_t begin = run.work_start(place.slot);
  const LaneRow& own = lanes.rows()[place.row];
  std::optional<Waited> best;
  std::tuple<std::int64_t, bool, bool> best_rank{-1, false, false};
  for (std::size_t r = 0; r < lanes.rows().size(); ++r) {
    const LaneRow& row = lanes.rows()[r];
    std::size_t slot = lanes.first_ending_after(row, begin);  // the one before it ended by then
    if (r == place.row) slot = std::min(slot, place.slot);
    if (slot == row.first) continue;
    const bool same_class = row.rank_class == own.rank_class;
    const std::tuple rank{lanes.end(slot - 1), same_class && row.lane == own.lane, same_class};
    if (rank > best_rank) best_rank = rank, best = Waited{{r, slot - 1}, Reason::kMoment};
  }
  return best;
}

std::vector<Place> dependents(const RunData& run, Place place, std::size_t most) {
  const Timeline& tables = run.tables();
  const std::uint32_t own = run.lanes.span(place.slot);
  const std::int32_t sequence = run.columns.sequence(own), op = run.columns.op(own);
  std::vector<Place> found;
  const auto take = [&](std::size_t span) {
    if (const auto there = place_of(run, span); there && found.size() < most) found.push_back(*there);
  };
  const auto [first, last] = spans_of(run, sequence);
  bool is_last = true;  // of its submission
  for (std::size_t span = first; span < last; ++span) {
    const OpRow& other = tables.ops[run.columns.checked_row(span)];
    const auto begin = tables.dependencies.begin() + other.first_dependency;
    if (std::find(begin, begin + other.num_dependencies, op) != begin + other.num_dependencies) take(span);
    if (run.columns.end(span) > run.columns.end(own)) is_last = false;
  }
  for (const FollowRow& row : tables.follows) {
    if (row.before_sequence != sequence || row.before_op != op) continue;
    for (const std::size_t span : spans_of_op(run, row.sequence, row.op)) take(span);
  }
  if (!is_last) return found;
  for (const std::int32_t next : run.submissions_after(sequence)) {
    const auto [from, until] = spans_of(run, next);
    if (from < until) take(from);
  }
  return found;
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

}  // namespace

std::string_view to_string(Reason reason) {
  switch (reason) {
    case Reason::kDependency:
      return "it depends on it";
    case Reason::kLane:
      return "its lane was taken";
    case Reason::kPeer:
      return "it came later than this side";
    case Reason::kMoment:
      return "it ended at that moment";
  }
  return "unknown";
}

std::optional<Waited> waited_for(const RunData& run, Place place) {
  if (const auto peer = other_side(run, place))
    if (run.lanes.start(peer->slot) > run.lanes.start(place.slot)) return Waited{*peer, Reason::kPeer};
  const auto moment = by_times(run, place);
  if (!run.has_dependencies() || run.work_start(place.slot) > run.lanes.start(place.slot)) return moment;
  const auto known = by_dependencies(run, place);
  const auto end_of = [&](const Waited& waited) { return run.lanes.end(waited.place.slot); };
  const std::int64_t start = run.lanes.start(place.slot);
  const bool other = moment && end_of(*moment) == start && known && end_of(*known) < start;
  return other ? moment : known;
}

std::vector<Place> waited_for_it(const RunData& run, Place place, std::size_t most) {
  return run.has_dependencies() ? dependents(run, place, most) : began_at_end_of(run, place, most);
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
