#include "workloads/report/report_cache.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "workloads/report/number_text.h"

namespace moebius {
namespace {

std::int64_t hits_of(const TierFigures& tiers) {
  return tiers.asked - tiers.missed;
}

void add_hits(FigureTree& kv, std::int64_t asked, std::int64_t hit, std::int64_t block_tokens) {
  kv.rows.emplace_back("asked_blocks", asked);
  kv.rows.emplace_back("hit_blocks", hit);
  kv.rows.emplace_back("missed_blocks", asked - hit);
  kv.rows.emplace_back("hit_share", share(hit, asked));
  kv.rows.emplace_back("prompt_block_tokens", block_tokens);
}

void add_tiers(FigureTree& kv, const TierFigures& tiers, std::int64_t block_tokens) {
  add_hits(kv, tiers.asked, hits_of(tiers), block_tokens);
  kv.rows.emplace_back("recomputed_blocks", tiers.recomputed);
  kv.rows.emplace_back("time_saved_s", tiers.saved_s);
  kv.rows.emplace_back("stalled_s", tiers.stalled_s);
  kv.parts.emplace_back("hits", FigureTree{{{"hbm", tiers.hit_device},
                                            {"dram", tiers.hit_dram},
                                            {"ssd", tiers.hit_ssd},
                                            {"remote_dram", tiers.hit_remote_dram},
                                            {"remote_ssd", tiers.hit_remote_ssd},
                                            {"block_tokens", block_tokens}}});
  kv.parts.emplace_back("bytes", FigureTree{{{"host_to_device", tiers.to_device_bytes},
                                             {"device_to_host", tiers.from_device_bytes},
                                             {"ssd_read", tiers.ssd_read_bytes},
                                             {"ssd_written", tiers.ssd_written_bytes},
                                             {"network", tiers.network_bytes},
                                             {"index", tiers.index_bytes}}});
  kv.parts.emplace_back("dram", FigureTree{{{"blocks", tiers.dram_capacity},
                                            {"peak_blocks_of_a_node", tiers.dram_peak},
                                            {"evicted_blocks", tiers.dram_evicted},
                                            {"block_tokens", block_tokens}}});
  kv.parts.emplace_back("ssd", FigureTree{{{"blocks", tiers.ssd_capacity},
                                           {"peak_blocks_of_a_node", tiers.ssd_peak},
                                           {"evicted_blocks", tiers.ssd_evicted},
                                           {"refused_blocks", tiers.ssd_refused},
                                           {"block_tokens", block_tokens}}});
  kv.parts.emplace_back("index", FigureTree{{{"lookups", tiers.index_lookups},
                                             {"updates", tiers.index_updates},
                                             {"stale", tiers.stale}}});
  kv.parts.emplace_back("prefetch", FigureTree{{{"blocks", tiers.prefetched},
                                                {"used", tiers.prefetch_used},
                                                {"wasted", tiers.prefetch_wasted},
                                                {"ahead", tiers.prefetched_ahead},
                                                {"block_tokens", block_tokens}}});
}

}  // namespace

void add_blocks(FigureTree& kv, const ServiceFigures& service, std::int64_t block_tokens) {
  if (service.tiers) return add_tiers(kv, *service.tiers, block_tokens);
  PrefixTotals prefixes;
  for (const ServicePoolFigures& pool : service.pools) prefixes.add(pool.run.prefixes);
  if (prefixes.asked_blocks > 0) add_hits(kv, prefixes.asked_blocks, prefixes.hit_blocks, block_tokens);
}

std::string tiers_text(const TierFigures& tiers, std::int64_t block_tokens) {
  std::string text;
  const auto out = std::back_inserter(text);
  const auto percent = [&](std::int64_t part) { return 100 * share(part, tiers.asked); };
  fmt::format_to(out,
                 "  prompts' blocks    {} asked, of {} tokens as all below: device {:.1f}%, host memory "
                 "{:.1f}%, drives {:.1f}%, other "
                 "nodes {:.1f}%, computed {:.1f}%\n",
                 grouped(tiers.asked), grouped(block_tokens), percent(tiers.hit_device),
                 percent(tiers.hit_dram), percent(tiers.hit_ssd),
                 percent(tiers.hit_remote_dram + tiers.hit_remote_ssd), percent(tiers.missed));
  fmt::format_to(
      out, "  tiers              {} blocks in a node's host memory and {} on its drives at most{}\n",
      grouped(tiers.dram_peak), grouped(tiers.ssd_peak),
      tiers.recomputed > 0
          ? fmt::format("; {} found and computed all the same, which was sooner", grouped(tiers.recomputed))
          : "");
  fmt::format_to(
      out, "  moved              to devices {}, from devices {}, drives read {}, written {}, network {}\n",
      to_text(Bytes{tiers.to_device_bytes}), to_text(Bytes{tiers.from_device_bytes}),
      to_text(Bytes{tiers.ssd_read_bytes}), to_text(Bytes{tiers.ssd_written_bytes}),
      to_text(Bytes{tiers.network_bytes}));
  if (tiers.ssd_refused > 0)
    fmt::format_to(out, "  drives were full   of writes {} times: those blocks were dropped\n",
                   grouped(tiers.ssd_refused));
  if (tiers.prefetched > 0)
    fmt::format_to(out, "  prefetched         {} blocks, {} used, {} in vain{}\n", grouped(tiers.prefetched),
                   grouped(tiers.prefetch_used), grouped(tiers.prefetch_wasted),
                   tiers.prefetched_ahead > 0
                       ? fmt::format("; {} before their request was there", grouped(tiers.prefetched_ahead))
                       : "");
  if (tiers.index_updates > 0)
    fmt::format_to(out,
                   "  index              {} changes told ({}), {} questions, {} places that had it no more\n",
                   grouped(tiers.index_updates), to_text(Bytes{tiers.index_bytes}),
                   grouped(tiers.index_lookups), grouped(tiers.stale));
  fmt::format_to(out, "  loads saved        {} of computing, one by one; iterations waited {}\n",
                 seconds_text(tiers.saved_s), seconds_text(tiers.stalled_s));
  return text;
}

}  // namespace moebius
