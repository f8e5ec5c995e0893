#include "workloads/scenario/forwarding_keys.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "hw/error.h"

namespace moebius {
namespace {

constexpr std::array kForwardings{
    Named<Forwarding>{"rdma", Forwarding::kRdma, "from device to device by their NICs"},
    Named<Forwarding>{"cpu", Forwarding::kCpu, "copied to host memory, sent from there, and copied again"},
};

// NCCL's default: a buffer of 4 MiB for each peer in 8 steps.
constexpr Bytes kChunk{512 * 1024};

int index_of(const std::string& name, const std::vector<Pool>& pools, const Place& place) {
  std::vector<std::string> names;
  for (const Pool& pool : pools) names.push_back(pool.name);
  for (std::size_t i = 0; i < pools.size(); ++i) {
    if (pools[i].name == name) return static_cast<int>(i);
  }
  place.fail(fmt::format("no pool \"{}\"{}", name, suggestion(name, names)));
}

}  // namespace

ForwardingKeys::ForwardingKeys(Section& cluster, bool describing) {
  between_vendors_ = cluster.choice<Forwarding>("forwarding", kForwardings, Forwarding::kCpu,
                                                "messages between nodes of different vendors");
  chunk_ = cluster.bytes("forwarding_chunk", kChunk, "of messages that go through host memory");
  for (Section& section : cluster.objects("forwarding_pairs", false, "pools that do otherwise")) {
    Pair pair;
    pair.first = section.text("from", std::nullopt, "a pool");
    pair.second = section.text("to", std::nullopt, "a pool, or the same; both directions are meant");
    pair.forwarding =
        section.choice<Forwarding>("forwarding", kForwardings, std::nullopt, "between their nodes");
    section.finish();
    if (describing) continue;
    pair.at_first = section.place_of("from");
    pair.at_second = section.place_of("to");
    pairs_.push_back(std::move(pair));
  }
  if (!describing && !(chunk_.value >= 1))
    cluster.place_of("forwarding_chunk")
        .fail(fmt::format("expected at least 1 B, found {}", to_text(chunk_)));
}

void ForwardingKeys::set(const std::vector<Pool>& pools, FabricSpec& spec) const {
  ForwardingRules rules{between_vendors_, {}};
  for (const Pair& pair : pairs_) {
    const int first = index_of(pair.first, pools, pair.at_first);
    const int second = index_of(pair.second, pools, pair.at_second);
    for (const ForwardingRules::Pair& other : rules.pairs) {
      if (std::minmax(other.first, other.second) == std::minmax(first, second))
        pair.at_first.fail(fmt::format("pools \"{}\" and \"{}\" are named twice", pair.first, pair.second));
    }
    rules.pairs.push_back({first, second, pair.forwarding});
  }
  spec.by_host = pairs_by_host(pools, rules);
  spec.forwarding_chunk = chunk_;
}

}  // namespace moebius
