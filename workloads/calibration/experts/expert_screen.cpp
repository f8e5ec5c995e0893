#include "workloads/calibration/experts/expert_screen.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "workloads/cost/roofline.h"

namespace moebius {
namespace {

constexpr double kSlowerThanMore = 1.5;    // routings drawn anew differ by less
constexpr double kSlowerThanOthers = 2.0;  // uneven loads cost less than that where no rank has more rows

// A layer on a rank, whatever its tokens and loads.
using Layer = std::tuple<std::int64_t, std::int64_t, int, int, std::size_t>;

Layer layer_of(const ExpertRow& row) {
  return {row.layer.hidden, row.layer.width, row.layer.experts, row.layer.active,
          row.routings->front().size()};
}

// Means of the routings.
struct Work {
  double rows = 0, experts = 0;
};

Work work_of(const ExpertRow& row) {
  Work work;
  const double share = 1.0 / static_cast<double>(row.routings->size());
  for (const auto& load : *row.routings) {
    work.rows += share * std::accumulate(load.begin(), load.end(), 0.0);
    work.experts += share * static_cast<double>(
                                std::count_if(load.begin(), load.end(), [](auto rows) { return rows > 0; }));
  }
  return work;
}

std::vector<bool> slower_than_more(const std::vector<ExpertRow>& rows) {
  std::map<std::pair<Layer, std::string>, std::vector<std::size_t>> series;
  for (std::size_t i = 0; i < rows.size(); ++i)
    series[{layer_of(rows[i]), rows[i].distribution}].push_back(i);
  std::vector<bool> slower(rows.size(), false);
  for (auto& [name, members] : series) {
    std::sort(members.begin(), members.end(),
              [&](std::size_t a, std::size_t b) { return rows[a].tokens > rows[b].tokens; });
    double least = 1e300;
    for (const std::size_t i : members) {
      slower[i] = rows[i].microseconds > kSlowerThanMore * least;
      least = std::min(least, rows[i].microseconds);
    }
  }
  return slower;
}

// What a layer on a rank asks of its kernels: whatever is no less in all of these takes no less time.
struct Demand {
  double rows = 0, experts = 0, hidden = 0, width = 0, microseconds = 0;

  bool within(const Demand& other) const {
    return rows <= other.rows && experts <= other.experts && hidden <= other.hidden && width <= other.width;
  }
};

// The same rows of the same distribution cut over more ranks, each of which has less to do.
std::vector<bool> slower_than_larger(const std::vector<ExpertRow>& rows) {
  std::map<std::string, std::vector<std::size_t>> alike;
  std::vector<Demand> demands;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Work work = work_of(rows[i]);
    const ExpertLayer& layer = rows[i].layer;
    demands.push_back({work.rows, work.experts, static_cast<double>(layer.hidden),
                       static_cast<double>(layer.width), rows[i].microseconds});
    alike[rows[i].distribution].push_back(i);
  }
  std::vector<bool> slower(rows.size(), false);
  for (const auto& [distribution, members] : alike)
    for (const std::size_t i : members)
      slower[i] = std::any_of(members.begin(), members.end(), [&](std::size_t other) {
        return demands[i].microseconds > kSlowerThanMore * demands[other].microseconds &&
               demands[i].within(demands[other]);
      });
  return slower;
}

std::vector<bool> slower_than_others(const std::vector<ExpertRow>& rows) {
  std::map<std::pair<Layer, std::int64_t>, std::vector<std::size_t>> alike;
  for (std::size_t i = 0; i < rows.size(); ++i) alike[{layer_of(rows[i]), rows[i].tokens}].push_back(i);
  std::vector<bool> slower(rows.size(), false);
  for (const auto& [name, members] : alike)
    for (const std::size_t i : members) {
      const Work work = work_of(rows[i]);
      for (const std::size_t other : members) {
        const Work less = work_of(rows[other]);
        const double more = std::max({1.0, work.rows / less.rows, work.experts / less.experts});
        if (rows[i].microseconds > kSlowerThanOthers * more * rows[other].microseconds) slower[i] = true;
      }
    }
  return slower;
}

// Of the GEMMs alone, mean of the routings.
double least_microseconds(const ExpertRow& row, const Accelerator& chip) {
  double seconds = 0;
  for (const auto& load : *row.routings)
    for (const CostQuery& query : expert_kernels(row.layer, row.tokens, load, chip.cores))
      if (is_expert_gemm(query)) seconds += roofline(chip, query).memory;
  return seconds * 1e6 / static_cast<double>(row.routings->size());
}

}  // namespace

std::vector<RejectedRows> reject_untuned(std::vector<ExpertRow>& rows) {
  const std::vector<bool> more = slower_than_more(rows), larger = slower_than_larger(rows),
                          others = slower_than_others(rows);
  RejectedRows by_more{0, "over half as slow again as the same layer with more tokens: not tuned"};
  RejectedRows by_larger{0, "over half as slow again as a layer with no less of anything: not tuned"};
  RejectedRows by_others{0, "over twice as slow as the same layer under another distribution: not tuned"};
  std::vector<ExpertRow> kept;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!more[i] && !larger[i] && !others[i]) {
      kept.push_back(std::move(rows[i]));
    } else {
      ++(more[i] ? by_more : larger[i] ? by_larger : by_others).rows;
    }
  }
  rows = std::move(kept);
  std::vector<RejectedRows> rejected;
  for (const RejectedRows& reason : {by_more, by_larger, by_others})
    if (reason.rows > 0) rejected.push_back(reason);
  return rejected;
}

std::vector<RejectedRows> reject_cached(std::vector<ExpertRow>& rows, const Accelerator& chip) {
  const auto cached = static_cast<int>(std::erase_if(
      rows, [&](const ExpertRow& row) { return row.microseconds < least_microseconds(row, chip); }));
  if (cached == 0) return {};
  return {{cached, "faster than the device memory's full rate: served from L2"}};
}

}  // namespace moebius
