#include "workloads/schedule/critical_path.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>

namespace moebius {
namespace {

constexpr std::size_t kOpsTold = 10;

// Spans by their ends, to walk back through.
class Walk {
 public:
  explicit Walk(const MappedTimeline& run) : run_(run), by_end_(run.num_spans()), ends_(run.num_spans()) {
    for (std::size_t i = 0; i < ends_.size(); ++i) ends_[i] = run.span(i).end;
    std::iota(by_end_.begin(), by_end_.end(), 0);
    std::stable_sort(by_end_.begin(), by_end_.end(),
                     [&](std::uint32_t x, std::uint32_t y) { return ends_[x] < ends_[y]; });
  }

  CriticalPath path() const {
    CriticalPath path;
    if (by_end_.empty()) return path;
    std::size_t at = by_end_.size() - 1;
    Span span = run_.span(by_end_[at]);
    path.makespan = span.end;
    Time to = span.end;
    while (true) {
      const Time from = std::min(begin_of(span), to);
      path.pieces.push_back({span, from, to});
      const std::size_t before = predecessor(at, span, from);
      if (before == at) {
        path.gaps += from;
        break;
      }
      at = before;
      span = run_.span(by_end_[at]);
      to = std::min(span.end, from);
      path.gaps += from - to;
    }
    std::reverse(path.pieces.begin(), path.pieces.end());
    return path;
  }

 private:
  static bool waited(const Span& span, const OpRow& op) {
    return is_communication(op.kind) && span.transfer_start() > span.start;
  }
  Time begin_of(const Span& span) const {
    return is_communication(run_.op_of(span).kind) ? span.transfer_start() : span.start;
  }

  // Where in by_end_ the op stands that the op at `at` followed; `at` itself when there is none. Always one
  // that stands before it, so that ops without duration do not lead around in a circle.
  std::size_t predecessor(std::size_t at, const Span& span, Time from) const {
    const auto later = std::upper_bound(by_end_.begin(), by_end_.begin() + static_cast<std::ptrdiff_t>(at),
                                        from, [&](Time t, std::uint32_t x) { return t < ends_[x]; });
    if (later == by_end_.begin()) return at;
    const auto last = static_cast<std::size_t>(later - by_end_.begin()) - 1;
    const bool peers = waited(span, run_.op_of(span));
    std::size_t best = last;
    int best_rank = -1;
    for (std::size_t i = last + 1; i-- > 0 && ends_[by_end_[i]] == ends_[by_end_[last]];) {
      const Span other = run_.span(by_end_[i]);
      const bool same_rank = other.rank_class == span.rank_class;
      const int rank = peers ? !same_rank : same_rank + (same_rank && other.lane == span.lane);
      if (rank > best_rank) best_rank = rank, best = i;
    }
    return best;
  }

  const MappedTimeline& run_;
  std::vector<std::uint32_t> by_end_;
  std::vector<Time> ends_;
};

// Ranks of one stage have fragments of one name that differ in their loads alone.
using OpKey = std::tuple<std::string, std::int32_t, OpKind, Role>;  // fragment, index

class PathJoiner {
 public:
  PathDifference run(const MappedTimeline& a, const MappedTimeline& b) {
    const CriticalPath path_a = critical_path(a), path_b = critical_path(b);
    result_.makespan_a = path_a.makespan.seconds();
    result_.makespan_b = path_b.makespan.seconds();
    result_.gaps_a = path_a.gaps.seconds();
    result_.gaps_b = path_b.gaps.seconds();
    add(a, path_a, &PathOp::a, &PathOp::times_a, &PathShare::a);
    add(b, path_b, &PathOp::b, &PathOp::times_b, &PathShare::b);
    sum_up();
    return std::move(result_);
  }

 private:
  void add(const MappedTimeline& run, const CriticalPath& path, double PathOp::*seconds,
           std::int64_t PathOp::*times, double PathShare::*share) {
    for (const PathPiece& piece : path.pieces) {
      const OpRow& row = run.op_of(piece.span);
      const std::string& fragment = run.tables().fragments[row.fragment];
      PathOp& op = ops_[{fragment, row.index, row.kind, row.role}];
      if (op.times_a + op.times_b == 0) op.op = row;
      op.fragment = fragment;
      const double length = (piece.to - piece.from).seconds();
      op.*seconds += length;
      ++(op.*times);
      kinds_[row.kind].kind = row.kind;
      kinds_[row.kind].*share += length;
    }
  }

  void sum_up() {
    for (const auto& [kind, share] : kinds_) result_.kinds.push_back(share);
    std::stable_sort(result_.kinds.begin(), result_.kinds.end(), [](const PathShare& x, const PathShare& y) {
      return std::max(x.a, x.b) > std::max(y.a, y.b);
    });
    for (const auto& [key, op] : ops_) result_.ops.push_back(op);
    std::stable_sort(result_.ops.begin(), result_.ops.end(), [](const PathOp& x, const PathOp& y) {
      return std::abs(x.b - x.a) > std::abs(y.b - y.a);
    });
    for (std::size_t i = kOpsTold; i < result_.ops.size(); ++i)
      result_.rest += result_.ops[i].b - result_.ops[i].a;
    if (result_.ops.size() > kOpsTold) result_.ops.resize(kOpsTold);
  }

  PathDifference result_;
  std::map<OpKey, PathOp> ops_;
  std::map<OpKind, PathShare> kinds_;
};

}  // namespace

CriticalPath critical_path(const MappedTimeline& run) {
  return Walk(run).path();
}

PathDifference compare_paths(const MappedTimeline& a, const MappedTimeline& b) {
  return PathJoiner().run(a, b);
}

}  // namespace moebius
