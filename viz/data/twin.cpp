#include "viz/data/twin.h"

#include "workloads/schedule/compare.h"

namespace moebius::viz {
namespace {

// Spans stand by submission.
std::size_t first_of(const SpanColumns& run, std::int32_t sequence) {
  std::size_t low = 0, high = run.size();
  while (low < high) {
    const std::size_t middle = low + (high - low) / 2;
    if (run.sequence(middle) < sequence)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

}  // namespace

std::optional<std::size_t> twin_of(const SpanColumns& run, std::size_t span, const SpanColumns& other) {
  const std::int32_t sequence = run.sequence(span);
  const OpRow& wanted = run.tables().ops[run.checked_row(span)];
  const auto is_such = [&](const SpanColumns& in, std::size_t i) {
    const OpRow& op = in.tables().ops[in.checked_row(i)];
    return same_work(op, wanted) && op.role == wanted.role && op.layer == wanted.layer &&
           op.phase == wanted.phase && op.second == wanted.second;
  };
  int before = 0;
  for (std::size_t i = first_of(run, sequence); i < span; ++i) before += is_such(run, i);
  for (std::size_t i = first_of(other, sequence); i < other.size() && other.sequence(i) == sequence; ++i)
    if (is_such(other, i) && before-- == 0) return i;
  return std::nullopt;
}

}  // namespace moebius::viz
