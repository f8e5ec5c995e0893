#include "viz/data/transfers.h"

#include <algorithm>
#include <tuple>

namespace moebius::viz {
namespace {

struct End {
  std::tuple<std::int32_t, std::int32_t, Phase, double, std::uint32_t>
      meeting;  // step, microbatch, phase, bytes, match
  bool recv = false;
  std::int64_t time = 0;
  std::uint32_t span = 0;

  auto key() const { return std::tie(meeting, recv, time, span); }
};

std::vector<End> ends_of(const SpanColumns& spans) {
  std::vector<End> ends;
  const auto& ops = spans.tables().ops;
  for (std::size_t i = 0; i < spans.size(); ++i) {
    const OpRow& op = ops[spans.checked_row(i)];
    if (op.kind != OpKind::kSend && op.kind != OpKind::kRecv) continue;
    const SubmissionRow& s = spans.tables().submissions[spans.sequence(i)];
    const std::int32_t microbatch = microbatch_of(s, op);
    ends.push_back({{s.step, microbatch, op.phase, op.payload, op.match},
                    op.kind == OpKind::kRecv,
                    spans.end(i),
                    static_cast<std::uint32_t>(i)});
  }
  std::sort(ends.begin(), ends.end(), [](const End& a, const End& b) { return a.key() < b.key(); });
  return ends;
}

}  // namespace

std::vector<Transfer> transfers_of(const SpanColumns& spans) {
  const std::vector<End> ends = ends_of(spans);
  std::vector<Transfer> transfers;
  for (std::size_t first = 0; first < ends.size();) {
    std::size_t sends = first, recvs = first;
    while (recvs < ends.size() && ends[recvs].meeting == ends[first].meeting && !ends[recvs].recv) ++recvs;
    std::size_t last = recvs;
    while (last < ends.size() && ends[last].meeting == ends[first].meeting) ++last;
    for (std::size_t send = sends, recv = recvs; send < recvs && recv < last; ++send, ++recv)
      transfers.push_back({ends[send].span, ends[recv].span});
    first = last;
  }
  std::sort(transfers.begin(), transfers.end(),
            [](const Transfer& a, const Transfer& b) { return a.send < b.send; });
  return transfers;
}

std::int64_t waiting_of(const SpanColumns& spans, std::size_t i) {
  const std::int64_t start = spans.start(i);
  if (!is_communication(spans.tables().ops[spans.checked_row(i)].kind)) return 0;
  return std::clamp(spans.work_start(i), start, spans.end(i)) - start;
}

}  // namespace moebius::viz
