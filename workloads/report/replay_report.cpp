#include "workloads/report/replay_report.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include <fmt/format.h>

#include "workloads/report/number_text.h"

namespace moebius {

std::vector<std::pair<std::string, std::int64_t>> replay_rows(const kv::ReplayFigures& figures) {
  return {{"hit_blocks", figures.hit_blocks},
          {"total_blocks", figures.total_blocks},
          {"distinct_blocks", figures.distinct_blocks},
          {"requests", figures.requests},
          {"requests_fully_hit", figures.requests_fully_hit},
          {"evicted_blocks", figures.evicted_blocks},
          {"resident_blocks", figures.resident_blocks},
          {"block_tokens", figures.block_tokens},
          {"index_bytes", figures.index_bytes},
          {"input_tokens", figures.input_tokens},
          {"output_tokens", figures.output_tokens}};
}

std::string replay_text(const Report& report) {
  const kv::ReplayFigures& figures = *report.replay;
  const kv::ReplayCache& cache = report.scenario->replay->cache;
  const double requests = static_cast<double>(std::max<std::int64_t>(1, figures.requests));
  std::string text;
  const auto out = std::back_inserter(text);
  fmt::format_to(out, "one cache of {}, {} served {}\n\n",
                 cache.capacity_blocks ? grouped(*cache.capacity_blocks) + " blocks" : "any size",
                 grouped(figures.requests) + " requests",
                 cache.service_time.ns == 0 ? "at once" : "in " + to_text(cache.service_time) + " each");
  fmt::format_to(out, "  hits               {} of {} blocks, {:.2f}%  {}\n", grouped(figures.hit_blocks),
                 grouped(figures.total_blocks), 100 * figures.hit_share(), bar(figures.hit_share()));
  fmt::format_to(out, "  wholly hit         {} requests\n", grouped(figures.requests_fully_hit));
  fmt::format_to(out, "  distinct blocks    {}, of {} tokens; an endless cache holds them all\n",
                 grouped(figures.distinct_blocks), grouped(figures.block_tokens));
  fmt::format_to(out, "  evicted            {}; {} there at the end\n", grouped(figures.evicted_blocks),
                 grouped(figures.resident_blocks));
  fmt::format_to(out, "  index              {} of memory at the end\n",
                 to_text(Bytes{static_cast<double>(figures.index_bytes)}));
  fmt::format_to(out, "  a request          {} tokens in, {} out, mean; the last one after {}\n",
                 grouped(std::llround(static_cast<double>(figures.input_tokens) / requests)),
                 grouped(std::llround(static_cast<double>(figures.output_tokens) / requests)),
                 to_text(figures.last_arrival));
  return text;
}

}  // namespace moebius
