#include "workloads/study/search/pass_map.h"

#include <algorithm>

namespace moebius {
namespace {

void note(double end, double& latest) {
  latest = std::max(latest, end);
}

void add_ways(const Fragment& fragment, const std::vector<double>& seconds, PassMap::In in, PassMap& map) {
  std::array<double, kNumLanes> free;
  free.fill(PassMap::kNever);
  if (in == PassMap::kLane) free[static_cast<int>(Lane::kCompute)] = 0;
  std::vector<double> ends(fragment.ops.size(), PassMap::kNever);
  auto& out = map.way[in];
  for (std::size_t i = 0; i < fragment.ops.size(); ++i) {
    const Op& op = fragment.ops[i];
    double begin = free[static_cast<int>(op.lane)];
    for (int k = 0; k < op.num_dependencies; ++k)
      begin = std::max(begin, ends[fragment.dependencies[op.first_dependency + k]]);
    const bool arrives = (in == PassMap::kFromBefore && op.lane == Lane::kRecvForward) ||
                         (in == PassMap::kFromAfter && op.lane == Lane::kRecvBackward);
    if (arrives) begin = std::max(begin, 0.0);
    ends[i] = free[static_cast<int>(op.lane)] = begin + seconds[i];
    note(ends[i], out[PassMap::kAll]);
    if (op.lane == Lane::kSendForward) note(ends[i], out[PassMap::kToAfter]);
    if (op.lane == Lane::kSendBackward) note(ends[i], out[PassMap::kToBefore]);
  }
  out[PassMap::kLaneEnd] = free[static_cast<int>(Lane::kCompute)];
}

}  // namespace

double PassMap::busiest() const {
  return *std::max_element(lanes.begin(), lanes.end());
}

double PassMap::span() const {
  return std::max(0.0, way[kLane][kLaneEnd]);
}

double PassMap::end(Out out, const std::array<double, kIns>& ins) const {
  double latest = kNever;
  for (int in = 0; in < kIns; ++in) latest = std::max(latest, ins[in] + way[in][out]);
  return latest;
}

PassMap pass_map(const Fragment& fragment, const std::vector<double>& seconds) {
  PassMap map;
  for (const PassMap::In in : {PassMap::kLane, PassMap::kFromBefore, PassMap::kFromAfter})
    add_ways(fragment, seconds, in, map);
  for (std::size_t i = 0; i < fragment.ops.size(); ++i)
    map.lanes[static_cast<int>(fragment.ops[i].lane)] += seconds[i];
  return map;
}

}  // namespace moebius
