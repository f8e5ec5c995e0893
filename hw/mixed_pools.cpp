#include "hw/mixed_pools.h"

#include <algorithm>

#include <fmt/format.h>

namespace moebius {
namespace {

Forwarding between(int a, int b, const std::vector<Pool>& pools, const ForwardingRules& rules) {
  for (const ForwardingRules::Pair& pair : rules.pairs) {
    if (std::minmax(pair.first, pair.second) == std::minmax(a, b)) return pair.forwarding;
  }
  const bool one_vendor = pools[a].accelerator.vendor == pools[b].accelerator.vendor;
  return one_vendor ? Forwarding::kRdma : rules.between_vendors;
}

}  // namespace

std::string_view to_string(Forwarding forwarding) {
  switch (forwarding) {
    case Forwarding::kRdma:
      return "rdma";
    case Forwarding::kCpu:
      return "cpu";
  }
  return "";
}

std::vector<std::pair<int, int>> pairs_by_host(const std::vector<Pool>& pools, const ForwardingRules& rules) {
  std::vector<std::pair<int, int>> pairs;
  const int count = static_cast<int>(pools.size());
  for (int a = 0; a < count; ++a) {
    for (int b = a; b < count; ++b) {
      if (between(a, b, pools, rules) == Forwarding::kCpu) pairs.emplace_back(a, b);
    }
  }
  return pairs;
}

std::string forwarding_text(const Cluster& cluster) {
  const std::vector<Pool>& pools = cluster.pools;
  const FabricSpec& spec = cluster.fabric.spec();
  if (pools.size() < 2 && spec.by_host.empty()) return {};
  std::string text = "messages between pools\n";
  for (std::size_t a = 0; a < pools.size(); ++a) {
    for (std::size_t b = a; b < pools.size(); ++b) {
      const bool by_host =
          std::count(spec.by_host.begin(), spec.by_host.end(), std::pair<int, int>(a, b)) > 0;
      if (a == b && !by_host) continue;
      text += fmt::format("  {:<28} {}\n", fmt::format("{} - {}", pools[a].name, pools[b].name),
                          by_host ? fmt::format("cpu: through host memory at both ends, in chunks of {}",
                                                to_text(spec.forwarding_chunk))
                                  : "rdma: from device to device");
    }
  }
  return text;
}

bool alike(const Pool& a, const Pool& b) {
  // A fact without a number is its text.
  const auto same = [](const Fact& x, const Fact& y) {
    return x.name == y.name && x.value == y.value && (x.value != 0 || x.text == y.text);
  };
  const auto all = [&](const std::vector<Fact>& x, const std::vector<Fact>& y) {
    return std::equal(x.begin(), x.end(), y.begin(), y.end(), same);
  };
  return a.accelerator.id == b.accelerator.id && a.accelerator.vendor == b.accelerator.vendor &&
         a.accelerator.architecture == b.accelerator.architecture && a.node.id == b.node.id &&
         all(a.accelerator.facts, b.accelerator.facts) && all(a.node.facts, b.node.facts);
}

bool several_kinds(const Cluster& cluster) {
  const Pool& first = cluster.pools.front();
  return std::any_of(cluster.pools.begin() + 1, cluster.pools.end(),
                     [&](const Pool& pool) { return !alike(pool, first); });
}

}  // namespace moebius
