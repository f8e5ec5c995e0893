#include <algorithm>
#include <limits>
#include <utility>

#include "workloads/serving/latent_parts.h"
#include "workloads/serving/system/tiers/tier_state.h"

namespace moebius {

bool TierState::holds(const BlockPlace& place, kv::BlockHash hash, std::int32_t& slot) {
  NodeTiers& node = nodes[place.node];
  slot = (place.tier == LowerTier::kDram ? node.dram : node.ssd).find(hash);
  return slot >= 0;
}

std::int64_t TierState::near(std::int32_t replica, kv::Chain chain, std::int64_t there) const {
  const TierStore& dram = nodes[rules.node_of[replica]].dram;
  auto at = static_cast<std::size_t>(there);
  while (at < chain.size() && dram.find(chain[at]) >= 0) ++at;
  return static_cast<std::int64_t>(at) - there;
}

// Memory anywhere goes before drives: the node's own, another one's, and then the same of drives.
std::optional<FoundBlock> TierState::find_block(std::int32_t home, kv::BlockHash hash, Time now) {
  std::int32_t slot = nodes[home].dram.find(hash);
  if (slot >= 0) return FoundBlock{BlockSource::kDram, home, slot};
  BlockPlace place;
  if (rules.plan.cluster) place = index.find(hash, home, now);
  if (place.node >= 0 && !holds(place, hash, slot)) {
    stale = true;
    place.node = -1;
  }
  if (place.node >= 0 && place.tier == LowerTier::kDram)
    return FoundBlock{BlockSource::kRemoteDram, place.node, slot};
  const std::int32_t own = nodes[home].ssd.find(hash);
  if (own >= 0) return FoundBlock{BlockSource::kSsd, home, own};
  if (place.node >= 0) return FoundBlock{BlockSource::kRemoteSsd, place.node, slot};
  return std::nullopt;
}

// Blocks behind those that are there, up to the first that is nowhere.
void TierState::find(std::int32_t replica, const PromptAsk& ask, std::int64_t most) {
  found.clear();
  stale = false;
  const auto end = std::min(static_cast<std::int64_t>(ask.chain.size()), ask.there + most);
  for (std::int64_t i = ask.there; i < end; ++i) {
    const std::optional<FoundBlock> block = find_block(rules.node_of[replica], ask.chain[i], ask.now);
    if (!block) return;
    found.push_back(*block);
  }
}

BlockLoad TierState::load_of(std::int64_t blocks) const {
  BlockLoad load;
  for (std::int64_t i = 0; i < blocks; ++i) {
    switch (found[i].source) {
      case BlockSource::kDram:
        ++load.dram;
        break;
      case BlockSource::kSsd:
        ++load.ssd;
        break;
      case BlockSource::kRemoteSsd:
        ++load.remote_ssd;
        ++load.remote;
        break;
      case BlockSource::kRemoteDram:
        ++load.remote;
        break;
    }
  }
  return load;
}

// When the last of the blocks stands where it is found: what was sent for may still be on its way.
Time TierState::ready_of(std::int64_t blocks, Time now) const {
  Time ready = now;
  for (std::int64_t i = 0; i < blocks; ++i) {
    const NodeTiers& node = nodes[found[i].node];
    const bool dram = found[i].source == BlockSource::kDram || found[i].source == BlockSource::kRemoteDram;
    ready = std::max(ready, (dram ? node.dram : node.ssd).ready(found[i].slot));
  }
  return ready;
}

// Blocks of other nodes, all of a node together: however they lie in the prompt, they pass its ways one after
// the other.
void TierState::count_peers(std::int64_t blocks) {
  of_peer.resize(nodes.size());
  for (std::int64_t i = 0; i < blocks; ++i) {
    const FoundBlock& at = found[i];
    if (at.source != BlockSource::kRemoteDram && at.source != BlockSource::kRemoteSsd) continue;
    if (of_peer[at.node].blocks++ == 0) asked_nodes.push_back(at.node);
    of_peer[at.node].drives += at.source == BlockSource::kRemoteSsd ? 1 : 0;
  }
}

// Bytes pass all ways of a transfer at once, so that the slowest one decides; latencies add up. Host memory
// is passed once by what comes from it, twice by what comes into it first.
Time TierState::load_end(std::int32_t replica, std::int64_t blocks, Time now, bool commit) {
  const BlockLoad load = load_of(blocks);
  const Time ready = ready_of(blocks, now);
  Time end = ready;
  const auto pass = [&](SharedLink& link, double seconds) {
    if (seconds > 0) end = std::max(end, commit ? link.demand(now, seconds) : link.quote(now, seconds));
  };
  const auto of = [](std::int64_t count) { return static_cast<double>(count); };
  NodeTiers& home = node_of(replica);
  ReplicaWays& way = ways[replica];
  pass(way.to_device, of(load.blocks()) * work.host_link);
  pass(home.memory, of(load.dram + 2 * (load.ssd + load.remote)) * work.memory);
  pass(home.drives, work.reads(of(load.ssd)));
  pass(nic(replica).takes_in, of(load.remote) * work.nic);
  if (load.remote > 0) count_peers(blocks);
  for (const std::int32_t node : asked_nodes) {
    const PeerBlocks peers = std::exchange(of_peer[node], {});
    pass(peer(replica, node).sends, of(peers.blocks) * work.nic);
    pass(nodes[node].memory, of(peers.blocks + peers.drives) * work.memory);
    pass(nodes[node].drives, work.reads(of(peers.drives)));
  }
  asked_nodes.clear();
  Time latency = rules.host_latency;
  if (load.ssd + load.remote_ssd > 0) latency += rules.ssd_read.latency;
  if (load.remote > 0) latency += rules.fabric_latency * 2;
  // What is still on its way at `ready` then has the host link before it, of its last block at least.
  if (ready > now) end = std::max(end, ready + time_from_seconds(work.host_link));
  return end + latency;
}

// Of the tokens behind `past` ones, in iterations of the budget.
double TierState::compute_seconds(std::int64_t tokens, std::int64_t past) {
  const std::int64_t part = std::min(tokens, rules.token_budget);
  StepShape& shape = shapes.front();
  shape = {};
  shape.prefill_tokens = part;
  shape.prefill_sequences = 1;
  const std::int64_t before = past + (tokens - part) / 2;  // on average over the iterations
  shape.prefill_pairs = part * before + part * (part + 1) / 2;
  shape.absorbed = 2 * absorbed_tokens(rules.absorbed_below, past, tokens, rules.token_budget) > tokens;
  return rules.cost->forecast(shapes) * static_cast<double>(tokens) / static_cast<double>(part);
}

double TierState::finish_seconds(std::int32_t replica, const PromptAsk& ask, std::int64_t blocks) {
  const std::int64_t past = std::min<std::int64_t>(ask.prompt - 1, (ask.there + blocks) * rules.block_tokens);
  const double compute = compute_seconds(ask.prompt - past, past);
  if (blocks == 0) return compute;
  const double load = (load_end(replica, blocks, ask.now, false) - ask.now).seconds();
  return rules.plan.layerwise ? std::max(compute, load + compute / rules.layers) : load + compute;
}

// All that is below, or what is in host memory already, or nothing: whatever ends first.
std::int64_t TierState::decide(std::int32_t replica, const PromptAsk& ask) {
  const auto all = static_cast<std::int64_t>(found.size());
  if (all == 0) return 0;
  std::int64_t near = 0;
  const TierStore& dram = node_of(replica).dram;
  while (near < all && found[near].source == BlockSource::kDram && dram.ready(found[near].slot) <= ask.now)
    ++near;
  const double without = finish_seconds(replica, ask, 0);
  double best = rules.plan.always_load ? std::numeric_limits<double>::infinity() : without;
  std::int64_t chosen = 0;
  for (const std::int64_t blocks : {near, all}) {
    if (blocks == 0 || (blocks == near && near == all && chosen == all)) continue;
    const double finish = finish_seconds(replica, ask, blocks);
    if (!rules.plan.always_load && finish >= best) continue;
    best = finish;
    chosen = blocks;
  }
  if (!ask.again) figures.recomputed += all - chosen;
  if (chosen > 0) figures.saved_s += without - best;
  return chosen;
}

// They count as used where they are, the first of a chain last: without it those behind it are never found
// again. An exclusive tier gives them away. What comes from afar stays in host memory on its way, if that
// keeps copies.
void TierState::use(std::int32_t replica, const PromptAsk& ask, const LoadedBlocks& loaded) {
  const std::int32_t home = rules.node_of[replica];
  for (std::int64_t i = loaded.blocks; i-- > 0;) {
    const FoundBlock at = found[i];
    NodeTiers& node = nodes[at.node];
    const bool dram = at.source == BlockSource::kDram || at.source == BlockSource::kRemoteDram;
    TierStore& store = dram ? node.dram : node.ssd;
    if (store.find(ask.chain[ask.there + i]) != at.slot) continue;  // it has gone since, for one before it
    store.use(at.slot);
    if (at.source == BlockSource::kDram && store.first_use_ahead(at.slot)) ++figures.prefetch_used;
    if (rules.plan.exclusive && at.node == home && !store.in_use(at.slot)) {
      // Not before others are told that it is there.
      const Time gone = std::max(ask.now, store.ready(at.slot));
      store.take_out(at.slot);
      tell(home, dram ? LowerTier::kDram : LowerTier::kSsd, ask.chain[ask.there + i], gone, false);
    } else if (!rules.plan.exclusive && at.source != BlockSource::kDram && rules.dram_blocks > 0) {
      put_dram(home, store.block(at.slot), loaded.ready, false, ask.now);
    }
  }
}

// What is used in device memory is used in its copies below, too: nobody loads those, so that what is used
// most would leave them first.
void TierState::use_copies(std::int32_t replica, const PromptAsk& ask) {
  NodeTiers& home = node_of(replica);
  for (std::int64_t i = ask.there; i-- > 0;)
    for (TierStore* store : {&home.dram, &home.ssd})
      if (const std::int32_t slot = store->find(ask.chain[i]); slot >= 0) store->use(slot);
}

void TierState::count_hits(std::int64_t chain, std::int64_t there, const BlockLoad& load) {
  figures.asked += chain;
  figures.hit_device += there;
  figures.missed += chain - there - load.blocks();
  figures.hit_dram += load.dram;
  figures.hit_ssd += load.ssd;
  figures.hit_remote_dram += load.remote - load.remote_ssd;
  figures.hit_remote_ssd += load.remote_ssd;
}

LoadedBlocks TierState::load(std::int32_t replica, const PromptAsk& ask) {
  const auto chain = static_cast<std::int64_t>(ask.chain.size());
  release(ask.id);
  find(replica, ask, chain);
  const bool was_stale = stale;
  figures.stale += was_stale ? 1 : 0;
  const std::int64_t blocks = decide(replica, ask);
  const BlockLoad load = load_of(blocks);
  if (!ask.again) count_hits(chain, ask.there, load);
  LoadedBlocks loaded{blocks, ask.now};
  if (blocks > 0) {
    loaded.ready = load_end(replica, blocks, ask.now, true);
    const auto bytes = [&](std::int64_t count) { return rules.block_bytes * static_cast<double>(count); };
    figures.to_device_bytes += bytes(blocks) * rules.copies;
    figures.ssd_read_bytes += bytes(load.ssd + load.remote_ssd);
    figures.network_bytes += bytes(load.remote);
    use(replica, ask, loaded);
  }
  if (!ask.again) use_copies(replica, ask);
  // Who was asked has answered that it is not there.
  if (was_stale) loaded.ready = std::max(loaded.ready, ask.now + rules.fabric_latency * 2);
  return loaded;
}

}  // namespace moebius
