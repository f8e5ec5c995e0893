#include "sim/traffic/library_calls.h"

#include <algorithm>
#include <cmath>

#include "sim/traffic/collectives.h"
#include "sim/traffic/library_cores.h"

namespace moebius {
namespace {

bool is_library_call(OpKind kind) {
  return kind == OpKind::kAllReduce || kind == OpKind::kAllGather || kind == OpKind::kReduceScatter ||
         kind == OpKind::kAllToAll;
}

bool shares_a_domain(const GroupSites& group, const Cluster& cluster) {
  const int first = group.members.front().device;
  const Pool& pool = cluster.pool_of(first);
  if (pool.node.scale_up == ScaleUp::kFullMesh) return false;
  if ((pool.node.scale_up == ScaleUp::kPcie) != (pool.accelerator.link_rate.value == 0)) return false;
  return std::all_of(group.members.begin() + 1, group.members.end(), [&](const Member& member) {
    return cluster.fabric.distance(first, member.device) == Distance::kScaleUp;
  });
}

CollectiveFigures figures_of(const Accelerator& chip, const LinkConstants& link, const CollectiveCall& call,
                             CollectiveSource source) {
  if (const auto framework = framework_constants(chip, to_string(source)))
    return framework_figures(*framework, link, call);
  return nccl_figures(link, call);
}

// What each member sends: in the switch the whole buffer once, one-shot the whole buffer to each other.
double sent_bytes(Protocol protocol, const CollectiveCall& call) {
  if (protocol == Protocol::kInSwitch) return call.bytes;
  if (protocol == Protocol::kOneShot) return call.bytes * (call.devices - 1);
  return wire_bytes(call);
}

// Rings, and what the switch reduces, load every member's wires alike, so that one round of neighbours
// stands for all; messages go to each.
Traffic neighbours(double sent, double most_rate, const GroupSites& group) {
  Traffic traffic;
  traffic.lockstep = true;
  traffic.most_rate = most_rate;
  for (const auto& node : group.nodes) {
    for (std::size_t i = 0; i < node.size(); ++i)
      traffic.edges.push_back({node[i], node[(i + 1) % node.size()], sent});
  }
  return traffic;
}

Traffic messages(double sent, double most_rate, const GroupSites& group) {
  Traffic traffic;
  const int n = group.size();
  traffic.most_rate = most_rate / (n - 1);
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < n; ++j)
      if (i != j) traffic.edges.push_back({i, j, sent / (n - 1)});
  return traffic;
}

}  // namespace

std::optional<LibraryCall> library_call(const CollectiveCall& call, const GroupSites& group,
                                        const Cluster& cluster) {
  if (cluster.collectives == CollectiveSource::kStructure || !is_library_call(call.kind) ||
      call.devices < 2 || call.bytes <= 0 || !shares_a_domain(group, cluster))
    return {};
  const Accelerator& chip = cluster.pool_of(group.members.front().device).accelerator;
  const std::optional<LinkConstants> link = link_constants(chip);
  if (!link) return {};
  const CollectiveFigures figures = figures_of(chip, *link, call, cluster.collectives);
  const double sent = sent_bytes(figures.protocol, call);
  const bool to_each = call.kind == OpKind::kAllToAll || figures.protocol == Protocol::kOneShot ||
                       figures.protocol == Protocol::kTwoShot;
  const bool by_engines =
      cluster.copy_engines && (call.kind == OpKind::kAllGather || call.kind == OpKind::kAllToAll);
  return LibraryCall{
      to_each ? messages(sent, figures.most_rate, group) : neighbours(sent, figures.most_rate, group), sent,
      figures.most_rate, figures.seconds,
      by_engines ? 0 : cores_of_call(chip, *link, call, figures.protocol)};
}

double library_start(const CollectiveCall& call, const Accelerator& chip, CollectiveSource source) {
  const auto framework = framework_constants(chip, to_string(source));
  if (framework && call.kind == OpKind::kAllReduce)
    return framework->launch + framework->doubling * std::log2(call.devices);
  const std::optional<LinkConstants> link = link_constants(chip);
  if (!link) return 0;
  return link->launch + (call.bytes > kManyLines ? link->launch_growth : 0);
}

void limit_rate(LibraryCall& call, double most_rate) {
  if (most_rate >= call.rate || call.rate <= 0) return;
  call.seconds += call.sent / most_rate - call.sent / call.rate;
  call.traffic.most_rate *= most_rate / call.rate;
  call.rate = most_rate;
}

}  // namespace moebius
