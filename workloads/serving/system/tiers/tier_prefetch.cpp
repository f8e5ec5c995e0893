#include <algorithm>

#include "workloads/serving/system/tiers/tier_state.h"

namespace moebius {

bool TierState::may_start(std::int32_t id, Time now) const {
  const auto at = waiting.find(id);
  return at == waiting.end() || at->second.start <= now;
}

void TierState::release(std::int32_t id) {
  const auto at = waiting.find(id);
  if (at == waiting.end()) return;
  // The first of the chain is the last to go: see use().
  for (auto slot = at->second.slots.rbegin(); slot != at->second.slots.rend(); ++slot)
    nodes[at->second.node].dram.free(*slot);
  waiting.erase(at);
}

// What is expected comes to host memory as what waits does, but nobody holds it there. It moves when the next
// prompt comes: a tier has no clock of its own.
void TierState::fetch_due(Time now) {
  while (forecast.take_due(now, due)) {
    const PromptAsk ask{.chain = due.chain, .now = now};
    find(due.replica, ask, static_cast<std::int64_t>(due.chain.size()));
    TierStore& dram = node_of(due.replica).dram;
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (dram.find(due.chain[i]) >= 0) continue;
      if (!fetch_ahead(due.replica, ask, static_cast<std::int64_t>(i))) break;
      ++figures.prefetched_ahead;
    }
  }
}

// What is on the node's drives or elsewhere comes to host memory, within the budget of each way, and stays
// there until the request is admitted.
Time TierState::arrived(std::int32_t replica, const PromptAsk& ask) {
  if (rules.plan.prefetch == PrefetchPolicy::kNone || rules.dram_blocks == 0) return ask.now;
  forecast.came(replica, ask.chain, ask.now);
  fetch_due(ask.now);
  find(replica, ask, static_cast<std::int64_t>(ask.chain.size()));
  if (found.empty()) return ask.now;
  HeldBlocks& held = waiting[ask.id];
  held = {ask.now, rules.node_of[replica], {}};
  TierStore& dram = node_of(replica).dram;
  Time all_there = ask.now;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const kv::BlockHash hash = ask.chain[ask.there + i];
    if (dram.find(hash) < 0 && !fetch_ahead(replica, ask, static_cast<std::int64_t>(i))) break;
    const std::int32_t slot = dram.find(hash);
    if (slot < 0) break;  // host memory is full of what others wait for
    dram.hold(slot);
    held.slots.push_back(slot);
    all_there = std::max(all_there, dram.ready(slot));
  }
  switch (rules.plan.prefetch) {
    case PrefetchPolicy::kNone:
    case PrefetchPolicy::kBestEffort:
      break;
    case PrefetchPolicy::kWait:
      held.start = all_there;
      break;
    case PrefetchPolicy::kTimeout:
      held.start = std::min(all_there, ask.now + rules.plan.prefetch_limit);
      break;
  }
  return held.start;
}

// False: it has gone, for the room of one before it.
bool TierState::fetch_ahead(std::int32_t replica, const PromptAsk& ask, std::int64_t i) {
  const FoundBlock at = found[i];
  const std::int32_t home = rules.node_of[replica];
  const bool remote = at.node != home;
  const bool drives = at.source == BlockSource::kSsd || at.source == BlockSource::kRemoteSsd;
  TierStore& store = drives ? nodes[at.node].ssd : nodes[at.node].dram;
  if (store.find(ask.chain[ask.there + i]) != at.slot) return false;
  Time end = std::max(ask.now, store.ready(at.slot));
  const auto pass = [&](SharedLink& link, double seconds) {
    end = std::max(end, link.prefetch(ask.now, seconds).end);
  };
  pass(nodes[home].memory, work.memory);
  if (drives) pass(nodes[at.node].drives, work.ssd_read);
  if (remote) {
    pass(nic(replica).takes_in, work.nic);
    pass(peer(replica, at.node).sends, work.nic);
    pass(nodes[at.node].memory, work.memory);
    end += rules.fabric_latency * 2;
    figures.network_bytes += rules.block_bytes;
  }
  if (drives) {
    end += rules.ssd_read.latency;
    figures.ssd_read_bytes += rules.block_bytes;
  }
  ++figures.prefetched;
  const kv::EvictedBlock block = store.block(at.slot);
  store.hold(at.slot);
  put_dram(home, block, end, true, ask.now);
  store.free(at.slot);
  if (rules.plan.exclusive && drives && !remote && nodes[home].dram.find(block.hash) >= 0 &&
      !store.in_use(at.slot)) {
    // Not before others are told that it is there.
    tell(home, LowerTier::kSsd, block.hash, std::max(ask.now, store.ready(at.slot)), false);
    store.take_out(at.slot);
  }
  return true;
}

}  // namespace moebius
