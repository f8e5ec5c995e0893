#include "workloads/flows.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "workloads/collective.h"

namespace moebius {

FlowsRun::FlowsRun(const CollectiveWorkload& work, const Fabric& fabric, std::uint64_t seed) {
  std::map<double, Ends> ends_of_size;
  for (const DeviceFlow& flow : flows_of(*work.flows, work.ranks, work.bytes, seed)) {
    Ends& ends = ends_of_size[flow.bytes.value];
    if (!ends.send) {
      CollectiveWorkload message = work;
      message.ranks = 2;
      message.bytes = flow.bytes;
      std::tie(ends.send, ends.receive) = message_fragments(message);
    }
    flows_.push_back({ends, fabric.acknowledgement(flow.from, flow.to), {}});
    add_ranks(flow);
  }
}

// A rank, and a class, for either end: a device holds as many as it has flows.
void FlowsRun::add_ranks(const DeviceFlow& flow) {
  const std::int32_t sender = layout_.ranks;
  const std::vector<std::int32_t> both{sender, sender + 1};
  for (const bool receives : {false, true}) {
    RankClass rank_class;
    rank_class.ranks = {layout_.ranks};
    const GroupRole role = receives ? GroupRole::kPrevious : GroupRole::kNext;
    rank_class.groups[static_cast<int>(role)] = {.ranks = both, .my_index = receives, .num_classes = 2};
    layout_.classes.push_back(std::move(rank_class));
    layout_.class_of_rank.push_back(layout_.ranks);
    layout_.device_of_rank.push_back(receives ? flow.to : flow.from);
    ++layout_.ranks;
  }
}

std::optional<Submission> FlowsRun::next(Time) {
  if (issued_ == 2 * num_flows()) return std::nullopt;
  const auto i = static_cast<std::int32_t>(issued_++);
  const Ends& ends = flows_[i / 2].ends;
  return Submission{
      .fragment = i % 2 == 0 ? ends.send : ends.receive, .sequence = i, .rank_class = i, .after = {}};
}

void FlowsRun::completed(const Completion& completion) {
  ++completed_;
  Time& end = flows_[completion.sequence / 2].end;
  end = std::max(end, completion.time);
}

FlowTimes FlowsRun::times() const {
  std::vector<double> sorted;
  double sum = 0;
  for (const Flow& flow : flows_) {
    sorted.push_back((flow.end + flow.acknowledgement).seconds());
    sum += sorted.back();
  }
  std::sort(sorted.begin(), sorted.end());
  const auto count = static_cast<double>(sorted.size());
  const auto rank = [&](double share) {
    return sorted[static_cast<std::size_t>(std::ceil(share * count)) - 1];
  };
  return {num_flows(), sum / count, rank(0.5), rank(0.99), sorted.back(), sorted.front()};
}

}  // namespace moebius
