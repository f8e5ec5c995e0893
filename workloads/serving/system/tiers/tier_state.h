// What TieredCache is inside: tier_loads.cpp finds and loads blocks, tier_writes.cpp puts them below,
// tier_prefetch.cpp sends for them ahead.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "workloads/serving/system/tiers/global_index.h"
#include "workloads/serving/system/tiers/node_tiers.h"
#include "workloads/serving/system/tiers/tier_figures.h"
#include "workloads/serving/system/tiers/tiers_below.h"
#include "workloads/serving/system/tiers/turn_forecast.h"

namespace moebius {

enum class BlockSource : std::uint8_t { kDram, kSsd, kRemoteDram, kRemoteSsd };

// A block of a prompt that is below.
struct FoundBlock {
  BlockSource source = BlockSource::kDram;
  std::int32_t node = 0, slot = 0;
};

// Blocks held in host memory for a request that waits, and when it may be admitted.
struct HeldBlocks {
  Time start;
  std::int32_t node = 0;
  std::vector<std::int32_t> slots;
};

// Blocks of a load by where they come from.
struct BlockLoad {
  std::int64_t dram = 0, ssd = 0, remote = 0, remote_ssd = 0;
  std::int64_t blocks() const { return dram + ssd + remote; }
};

// Blocks of a load that another node has, and those of them on its drives.
struct PeerBlocks {
  std::int64_t blocks = 0, drives = 0;
};

struct TierState {
  struct View : TiersBelow {
    View(TierState& owner, std::int32_t index) : state(owner), replica(index) {}
    bool may_start(std::int32_t id, Time now) const override { return state.may_start(id, now); }
    std::int64_t near(kv::Chain chain, std::int64_t there) const override {
      return state.near(replica, chain, there);
    }
    LoadedBlocks load(const PromptAsk& ask) override { return state.load(replica, ask); }
    Time take_in(std::span<const kv::EvictedBlock> blocks, Time now) override {
      return state.take_in(replica, blocks, now);
    }
    void computed(kv::Chain chain, std::int64_t reused, Time now) override {
      state.computed(replica, chain, reused, now);
    }
    TierState& state;
    std::int32_t replica;
  };

  explicit TierState(const TierRules& given)
      : rules(given), work(given), index(given.plan.staleness), forecast(given.plan.ahead) {
    const auto count = static_cast<std::int32_t>(rules.node_of.size());
    for (std::int32_t n = 0; n < rules.nodes; ++n) nodes.emplace_back(rules);
    views.reserve(count);  // others keep references to them
    for (std::int32_t r = 0; r < count; ++r) ways.emplace_back(rules), views.emplace_back(*this, r);
    for (const std::int32_t rank : rules.rank_of)
      nics_of_node = std::max(nics_of_node, rank / rules.replicas_on_nic + 1);
    nics.assign(static_cast<std::size_t>(rules.nodes) * nics_of_node, NicWays(rules));
    shapes.resize(rules.replicas);
  }

  bool may_start(std::int32_t id, Time now) const;
  std::int64_t near(std::int32_t replica, kv::Chain chain, std::int64_t there) const;
  LoadedBlocks load(std::int32_t replica, const PromptAsk& ask);
  Time take_in(std::int32_t replica, std::span<const kv::EvictedBlock> blocks, Time now);
  void computed(std::int32_t replica, kv::Chain chain, std::int64_t reused, Time now);
  Time arrived(std::int32_t replica, const PromptAsk& ask);
  bool fetch_ahead(std::int32_t replica, const PromptAsk& ask, std::int64_t i);
  void fetch_due(Time now);

  NodeTiers& node_of(std::int32_t replica) { return nodes[rules.node_of[replica]]; }
  NicWays& nic(std::int32_t replica) { return peer(replica, rules.node_of[replica]); }
  // The NIC of a node that has the same rank as the replica's own.
  NicWays& peer(std::int32_t replica, std::int32_t node) {
    return nics[static_cast<std::size_t>(node) * nics_of_node +
                rules.rank_of[replica] / rules.replicas_on_nic];
  }
  std::optional<FoundBlock> find_block(std::int32_t home, kv::BlockHash hash, Time now);
  void find(std::int32_t replica, const PromptAsk& ask, std::int64_t most);
  bool holds(const BlockPlace& place, kv::BlockHash hash, std::int32_t& slot);
  BlockLoad load_of(std::int64_t blocks) const;
  Time ready_of(std::int64_t blocks, Time now) const;
  void count_peers(std::int64_t blocks);
  Time load_end(std::int32_t replica, std::int64_t blocks, Time now, bool commit);
  double compute_seconds(std::int64_t tokens, std::int64_t past);
  double finish_seconds(std::int32_t replica, const PromptAsk& ask, std::int64_t blocks);
  std::int64_t decide(std::int32_t replica, const PromptAsk& ask);
  void count_hits(std::int64_t chain, std::int64_t there, const BlockLoad& load);
  void use(std::int32_t replica, const PromptAsk& ask, const LoadedBlocks& loaded);
  void use_copies(std::int32_t replica, const PromptAsk& ask);
  void put_dram(std::int32_t node, const kv::EvictedBlock& block, Time ready, bool ahead, Time now);
  void put_ssd(std::int32_t node, const kv::EvictedBlock& block, Time from, bool read_memory);
  void tell(std::int32_t node, LowerTier tier, kv::BlockHash hash, Time when, bool there);
  Time copy_down(std::int32_t replica, std::span<const kv::EvictedBlock> blocks, Time now);
  void release(std::int32_t id);

  TierRules rules;
  WayWork work;
  GlobalIndex index;
  std::vector<NodeTiers> nodes;
  std::vector<ReplicaWays> ways;
  std::vector<NicWays> nics;  // node by node
  std::int32_t nics_of_node = 1;
  std::vector<View> views;
  std::unordered_map<std::int32_t, HeldBlocks> waiting;  // by request
  TurnForecast forecast;
  ExpectedChain due;                      // of fetch_due()
  std::vector<FoundBlock> found;          // of the prompt in hand
  std::vector<PeerBlocks> of_peer;        // by node, of the load in hand; zero between loads
  std::vector<std::int32_t> asked_nodes;  // that have some
  bool stale = false;                     // the search came to a place that had it no more
  std::vector<StepShape> shapes;
  std::vector<kv::EvictedBlock> fresh;  // in computed(), used again
  TierFigures figures;
};

}  // namespace moebius
