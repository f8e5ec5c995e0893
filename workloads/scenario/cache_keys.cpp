#include "workloads/scenario/cache_keys.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "hw/catalog.h"

namespace moebius {
namespace {

constexpr std::array kScopes{
    Named<bool>{"local", false, "a node finds its own blocks"},
    Named<bool>{"cluster", true, "and those of all other nodes, which come over the fabric"},
};
constexpr std::array kPrefetches{
    Named<PrefetchPolicy>{"none", PrefetchPolicy::kNone, "nothing moves before a request is admitted"},
    Named<PrefetchPolicy>{"best-effort", PrefetchPolicy::kBestEffort,
                          "blocks on drives and other nodes come to host memory while the request waits for "
                          "other reasons"},
    Named<PrefetchPolicy>{"wait", PrefetchPolicy::kWait, "and it waits until all of them are there"},
    Named<PrefetchPolicy>{"timeout", PrefetchPolicy::kTimeout, "and it waits for them up to a limit"},
};
constexpr std::array kAheads{
    Named<PrefetchAhead>{"none", PrefetchAhead::kNone, "nothing moves before a request is there"},
    Named<PrefetchAhead>{"session", PrefetchAhead::kSession,
                         "what a session's last turn had, when its next one is due"},
    Named<PrefetchAhead>{"pattern", PrefetchAhead::kPattern,
                         "what requests of one kind begin with, when the next one is due"},
    Named<PrefetchAhead>{"both", PrefetchAhead::kBoth, "sessions and patterns"},
};
constexpr std::array kWrites{
    Named<WritePolicy>{"write-through", WritePolicy::kThrough, "to all tiers when a block is computed"},
    Named<WritePolicy>{
        "selective", WritePolicy::kSelective,
        "to host memory when a block is used a second time, to the drives when it leaves that"},
    Named<WritePolicy>{"write-back", WritePolicy::kBack,
                       "to host memory when a block is computed, to the drives when it leaves that"},
    Named<WritePolicy>{"on-eviction", WritePolicy::kOnEviction,
                       "to the next tier when a block has to leave; who needs its room waits for the copy"},
};
constexpr std::array kInclusions{
    Named<bool>{"inclusive", false, "a block that comes up stays below too"},
    Named<bool>{"exclusive", true, "it leaves the tier where it was"},
};
constexpr std::array kLoads{
    Named<bool>{"sooner", false, "blocks below are loaded where that ends sooner than computing them again"},
    Named<bool>{"always", true, "blocks below are loaded"},
};
constexpr std::array kDriveAdmissions{
    Named<bool>{"all", false, "every block that leaves host memory"},
    Named<bool>{"second-use", true, "those that were used twice"},
};

constexpr std::array kCacheShares{
    Named<CacheShare>{"held", CacheShare::kHeld, "weights and cache together"},
    Named<CacheShare>{"used", CacheShare::kUsed, "weights, cache and the largest iteration together"},
    Named<CacheShare>{"free", CacheShare::kFree,
                      "the cache, of what weights and the largest iteration leave"},
};

constexpr std::array kWindows{
    Named<bool>{"all", false, "all tokens, as the other layers"},
    Named<bool>{
        "window", true,
        "their window or chunk: pages hold some layers each, and those that no layer looks at any more "
        "are free"},
};

// The future is known to a replay alone.
std::vector<Named<kv::EvictionKind>> evictions() {
  std::vector<Named<kv::EvictionKind>> rows;
  for (const kv::EvictionRow& row : kv::eviction_table())
    if (row.kind != kv::EvictionKind::kBelady) rows.push_back({row.name, row.kind, row.help});
  return rows;
}

constexpr const char* kPriceHelp = "USD of a terabyte for an hour; left out: it comes with the node";

void read_ssd(Section section, TierPlan& tiers, const Catalog* catalog) {
  tiers.ssd = section.bytes("capacity", Bytes{}, "of a node, for blocks; left out: there is no such tier");
  const DescriptionPtr form =
      description_of("", "a name of `moebius list storage`, or {\"base\": NAME, changes}");
  set_keyword(form->keywords, "type", array_value({text_value("string"), text_value("object")}));
  const Value* device = section.value("device", false, form);
  if (device != nullptr && catalog != nullptr) {
    tiers.device = catalog->storage(*device, section.place_of("device"));
  } else if (tiers.ssd.value > 0 && catalog != nullptr) {
    section.place_of("device").fail("expected a name of `moebius list storage`, found none");
  }
  tiers.devices = static_cast<int>(
      section.integer("devices", {0, 1024}, 0, "drives of a node; 0: as many as the node has"));
  tiers.queue_depth = static_cast<int>(
      section.integer("queue_depth", {1, 1024}, 32, "reads and writes that a drive has at a time"));
  tiers.ssd_second_use =
      section.choice<bool>("admission", kDriveAdmissions, false, "which blocks go to the drives");
  tiers.ssd_price = section.number("price", {0, 1e4}, 0, kPriceHelp);
  for (const char* key : {"device", "devices", "queue_depth", "admission", "price"})
    section.allow_only(key, section.given("capacity"), "\"capacity\"");
  section.finish();
}

void read_index(Section section, TierPlan& tiers) {
  tiers.cluster = section.choice<bool>("scope", kScopes, false, "where blocks are found");
  tiers.staleness = section.time("staleness", Time{}, "until other nodes know what has changed on one");
  section.allow_only("staleness", tiers.cluster, "scope \"cluster\"");
  section.finish();
}

void read_prefetch(Section section, TierPlan& tiers) {
  tiers.prefetch = section.choice<PrefetchPolicy>("policy", kPrefetches, PrefetchPolicy::kNone,
                                                  "blocks that a waiting request will need");
  tiers.prefetch_limit = section.time("limit", Time{}, "policy timeout: how long a request waits for them");
  tiers.prefetch_budget = section.number("budget", {0.01, 0.95}, 0.5,
                                         "share of a link's rate that prefetch takes at most from the rest");
  tiers.ahead = section.choice<PrefetchAhead>("ahead", kAheads, PrefetchAhead::kNone,
                                              "what moves before a request that needs it is there");
  if (tiers.ahead != PrefetchAhead::kNone && tiers.prefetch == PrefetchPolicy::kNone)
    section.place_of("ahead").fail("\"ahead\" counts only with a policy other than \"none\"");
  const bool timed = tiers.prefetch == PrefetchPolicy::kTimeout;
  section.allow_only("limit", timed, "policy \"timeout\"");
  if (timed && section.given("policy") && tiers.prefetch_limit.ns == 0)
    section.place_of("limit").fail("expected more than 0 s with policy \"timeout\", found 0 s");
  section.allow_only("budget", tiers.prefetch != PrefetchPolicy::kNone, "a policy other than \"none\"");
  section.finish();
}

void require_counts(Section& cache, const ServicePlan& service) {
  const TierPlan& tiers = service.tiers;
  for (const char* key : {"index", "prefetch", "write", "inclusion", "load", "layerwise"})
    cache.allow_only(key, tiers.on(), "a tier below device memory");
  cache.allow_only("eviction", service.prefix_cache || tiers.on(), "shared prefixes");
  if (tiers.exclusive && tiers.write != WritePolicy::kOnEviction)
    cache.place_of("inclusion")
        .fail("an exclusive tier has a block when no other one has it: expected write \"on-eviction\"");
  if (tiers.prefetch != PrefetchPolicy::kNone && tiers.dram.value == 0)
    cache.place_of("prefetch").fail("prefetch brings blocks to host memory: expected a tier \"dram\"");
  if (tiers.prefetch != PrefetchPolicy::kNone && tiers.ssd.value == 0 && !tiers.cluster)
    cache.place_of("prefetch")
        .fail("there is nothing to prefetch from: expected a tier \"ssd\", or scope \"cluster\"");
}

void require(const Document& document, bool holds, const char* pointer, const std::string& sentence) {
  if (!holds) place_at(document, pointer).fail(sentence);
}

void check_pool(const TierPlan& tiers, const ServicePhase& phase, const Pool& pool,
                const Document& document) {
  const Node& node = pool.node;
  require(document, phase.plan.tp <= node.accelerators, "/plan/cache",
          fmt::format("a replica of {} ranks has tiers on one node, which has {} accelerators", phase.plan.tp,
                      node.accelerators));
  require(
      document, pool.accelerator.host_rate.value > 0 && node.host_memory_rate.value > 0, "/plan/cache",
      fmt::format("nothing is known of the way from {} to the memory of {}", pool.accelerator.id, node.id));
  require(document, tiers.dram <= node.host_memory, "/plan/cache/dram/capacity",
          fmt::format("{} are more than the {} of host memory of {}", to_text(tiers.dram),
                      to_text(node.host_memory), node.id));
  const int drives = tiers.drives_of(node);
  const Bytes room = tiers.device.capacity * drives;
  require(document, tiers.ssd.value == 0 || tiers.ssd <= room, "/plan/cache/ssd/capacity",
          fmt::format("{} are more than the {} of {} drives {}", to_text(tiers.ssd), to_text(room), drives,
                      tiers.device.id));
}

}  // namespace

void read_cache_keys(Section& cache, const Framework& framework, ServicePlan& service) {
  service.prefix_cache =
      cache.boolean("prefix", false, "prompts that begin alike share what the cache has of them");
  service.keeps_windows_only = cache.choice<bool>("windows", kWindows, framework.keeps_windows_only,
                                                  "what layers keep that look back only so far");
  service.windows_given = cache.given("windows");
  Section section = cache.object("hbm", false, "in device memory");
  service.device_share = section.number("share", {0.01, 1}, framework.device_share, "of a device's memory");
  if (!section.given("share")) service.reserve = framework.reserve;
  service.sampler_bytes = framework.sampler_bytes;
  service.share_of =
      section.choice<CacheShare>("of", kCacheShares, framework.share_of, "what takes that share");
  service.runtime = framework.runtime;
  const Bytes runtime =
      section.bytes("runtime", framework.runtime.of(1),
                    "of a device, for a process's context and libraries; frameworks: and the buffers of its "
                    "communicators where there are ranks beside it",
                    0);
  if (section.given("runtime")) service.runtime = {runtime, Bytes{}};
  section.finish();
}

void read_tier_keys(Section& cache, ServicePlan& service, const Catalog* catalog) {
  TierPlan& tiers = service.tiers;
  Section dram = cache.object("dram", false, "a tier in the host memory of each node");
  tiers.dram = dram.bytes("capacity", Bytes{}, "of a node, for blocks; left out: there is no such tier");
  tiers.dram_price = dram.number("price", {0, 1e4}, 0, kPriceHelp);
  dram.allow_only("price", dram.given("capacity"), "\"capacity\"");
  dram.finish();
  read_ssd(cache.object("ssd", false, "a tier on the drives of each node"), tiers, catalog);
  read_index(cache.object("index", false, "which blocks a node finds"), tiers);
  read_prefetch(cache.object("prefetch", false, "of blocks that are far away"), tiers);
  const std::vector<Named<kv::EvictionKind>> rows = evictions();
  tiers.eviction = cache.choice<kv::EvictionKind>("eviction", std::span<const Named<kv::EvictionKind>>(rows),
                                                  kv::EvictionKind::kLru,
                                                  "which block of a full tier goes, of those not in use");
  tiers.write =
      cache.choice<WritePolicy>("write", kWrites, WritePolicy::kBack, "when blocks go to tiers below");
  tiers.exclusive = cache.choice<bool>("inclusion", kInclusions, false, "blocks that are used again");
  tiers.always_load = cache.choice<bool>("load", kLoads, false, "blocks that a prompt finds below");
  tiers.layerwise =
      cache.boolean("layerwise", true, "a layer is computed as soon as its own blocks are there");
  if (catalog == nullptr) return;
  if (tiers.on() && !cache.given("prefix")) service.prefix_cache = true;
  require_counts(cache, service);
}

void check_tiers(const Scenario& scenario, const Document& document) {
  const ServicePlan& service = scenario.service;
  const TierPlan& tiers = service.tiers;
  if (!tiers.on()) return;
  require(document, !service.full_steps && scenario.traffic.source.has_value(), "/plan/cache",
          "tiers below device memory need requests that come by and by, found a batch");
  require(document, service.does != PoolRole::kDecode, "/plan/cache",
          "tiers below device memory keep what prompts leave, and /plan/phase \"decode\" computes none");
  require(document, service.prefix_cache, "/plan/cache/prefix",
          "tiers below device memory keep shared prefixes: expected true, found false");
  for (const ServicePhase& phase : service.phases)
    if (phase.role != PoolRole::kDecode)
      check_pool(tiers, phase, scenario.cluster->pools[phase.pool], document);
}

}  // namespace moebius
