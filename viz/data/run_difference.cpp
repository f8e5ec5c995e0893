#include "viz/data/run_difference.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>

#include "workloads/schedule/compare.h"

namespace moebius::viz {
namespace {

struct Side {
  explicit Side(const RunData& given) : run(given) { load(); }

  void load() {
    if (at >= run.columns.size()) return;
    span = run.columns.span(at);
    op = &run.columns.op_of(span);
    seconds = (span.end - (is_communication(op->kind) ? span.transfer_start() : span.start)).seconds();
  }
  bool over() const { return at >= run.columns.size(); }
  void next() { ++at, load(); }
  auto key() const { return std::tuple{span.sequence, span.op, run.tables().class_ranks[span.rank_class]}; }

  const RunData& run;
  std::size_t at = 0;
  Span span;
  const OpRow* op = nullptr;
  double seconds = 0;
};

// Seconds of a kind: of an import what its report counts, since slices inside others would count twice.
double seconds_of(const RunData& run, OpKind kind, double summed) {
  if (!is_imported(run.tables()) || run.figure("breakdown.by_kind") == nullptr) return summed;
  const std::string path = "breakdown.by_kind." + std::string(to_string(kind));
  return run.number(path + ".compute_s") + run.number(path + ".busy_s");
}

double size_of(const OpDifference& d) {
  return std::abs(d.b - d.a);
}

}  // namespace

RunDifference difference_of(const RunData& run_a, const RunData& run_b) {
  RunDifference result;
  const auto keeps_ops = [](const RunData& run) { return run.columns.size() > 0 && !run.of_submissions(); };
  result.has_ops = keeps_ops(run_a) && keeps_ops(run_b);
  if (!result.has_ops) {
    result.figures = figure_differences(run_a.report, run_b.report);
    return result;
  }
  result.makespan_a = static_cast<double>(run_a.lanes.end_of_run()) * 1e-9;
  result.makespan_b = static_cast<double>(run_b.lanes.end_of_run()) * 1e-9;
  const int steps_a = whole_steps(run_a.tables()), steps_b = whole_steps(run_b.tables());
  if (steps_a > 0 && steps_b > 0 && steps_a != steps_b) result.steps_a = steps_a, result.steps_b = steps_b;
  const std::string hash = run_a.columns.fact("schedule_hash");
  result.same_schedule = !hash.empty() && hash == run_b.columns.fact("schedule_hash");
  std::array<KindDifference, kNumOpKinds> kinds;
  const auto count_a = [&](const Side& s) {
    KindDifference& kind = kinds[static_cast<std::size_t>(s.op->kind)];
    ++kind.count_a, kind.a += s.seconds;
  };
  const auto count_b = [&](const Side& s) {
    KindDifference& kind = kinds[static_cast<std::size_t>(s.op->kind)];
    ++kind.count_b, kind.b += s.seconds;
  };
  const auto larger = [](const OpDifference& x, const OpDifference& y) { return size_of(x) > size_of(y); };
  Side a(run_a), b(run_b);
  while (!a.over() || !b.over()) {
    if (!a.over() && !b.over() && a.key() == b.key()) {
      count_a(a), count_b(b);
      const bool same = same_work(*a.op, *b.op);
      ++(same ? result.joined : result.different);
      const OpDifference d{static_cast<std::uint32_t>(a.at), static_cast<std::uint32_t>(b.at), a.seconds,
                           b.seconds};
      // A heap of the worst so far, the least of them on top.
      if (same && (result.worst.size() < kWorstTold || size_of(d) > size_of(result.worst.front()))) {
        if (result.worst.size() == kWorstTold) {
          std::pop_heap(result.worst.begin(), result.worst.end(), larger);
          result.worst.pop_back();
        }
        result.worst.push_back(d);
        std::push_heap(result.worst.begin(), result.worst.end(), larger);
      }
      a.next(), b.next();
    } else if (b.over() || (!a.over() && a.key() < b.key())) {
      count_a(a), ++result.only_a, a.next();
    } else {
      count_b(b), ++result.only_b, b.next();
    }
  }
  std::sort(result.worst.begin(), result.worst.end(), [](const OpDifference& x, const OpDifference& y) {
    return std::tuple{-size_of(x), x.span_a} < std::tuple{-size_of(y), y.span_a};
  });
  for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
    kinds[kind].kind = static_cast<OpKind>(kind);
    kinds[kind].a = seconds_of(run_a, kinds[kind].kind, kinds[kind].a) / result.steps_a;
    kinds[kind].b = seconds_of(run_b, kinds[kind].kind, kinds[kind].b) / result.steps_b;
    if (kinds[kind].count_a + kinds[kind].count_b > 0) result.kinds.push_back(kinds[kind]);
  }
  std::stable_sort(result.kinds.begin(), result.kinds.end(),
                   [](const KindDifference& x, const KindDifference& y) {
                     return std::abs(x.b - x.a) > std::abs(y.b - y.a);
                   });
  return result;
}

}  // namespace moebius::viz
