#include "workloads/calibration/experts/expert_load.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <span>

namespace moebius {
namespace {

using Loads = std::vector<std::int32_t>;

// By the inverse of the distribution function.
double draw(double exponent, double least, double most, double uniform) {
  const double power = 1 - exponent;
  if (std::abs(power) < 1e-9) return least * std::pow(most / least, uniform);
  const double low = std::pow(least, power), high = std::pow(most, power);
  return std::pow((high - low) * uniform + low, 1 / power);
}

std::vector<double> draws(const ExpertGroup& group, double exponent, std::uint64_t seed) {
  const auto tokens = static_cast<double>(group.tokens);
  const bool many = group.tokens * group.active > group.experts;
  std::mt19937_64 random(seed);
  std::vector<double> loads(static_cast<std::size_t>(group.experts));
  for (double& load : loads) {
    const double uniform = static_cast<double>(random() >> 11) * 0x1p-53;
    load = draw(exponent, many ? 1 : 0.01, many ? std::max(1.0, 0.8 * tokens) : 2, uniform);
  }
  return loads;
}

// Ranks in turn give one row (or take one away) until none is left: each to its emptiest expert, or from its
// fullest.
void even_out(Loads& loads, int ranks, std::int64_t rows, std::int32_t step, std::int32_t most) {
  const std::size_t local = loads.size() / static_cast<std::size_t>(ranks);
  bool moved = true;
  while (rows > 0 && moved) {
    moved = false;
    for (std::size_t rank = 0; rank < static_cast<std::size_t>(ranks) && rows > 0; ++rank) {
      const std::span<std::int32_t> own(loads.data() + rank * local, local);
      const auto at =
          step > 0 ? std::min_element(own.begin(), own.end()) : std::max_element(own.begin(), own.end());
      if (step > 0 ? *at >= most : *at <= 0) continue;
      *at += step;
      --rows;
      moved = true;
    }
  }
}

Loads hottest_rank(const Loads& loads, int ranks) {
  const auto local = static_cast<std::ptrdiff_t>(loads.size()) / ranks;
  std::int64_t most = -1;
  Loads hottest;
  for (auto first = loads.begin(); first != loads.end(); first += local) {
    const auto rows = std::accumulate(first, first + local, std::int64_t{0});
    if (rows <= most) continue;
    most = rows;
    hottest.assign(first, first + local);
  }
  return hottest;
}

Loads drawn_loads(const ExpertGroup& group, double exponent, std::uint64_t seed) {
  const std::vector<double> drawn = draws(group, exponent, seed);
  const double sum = std::accumulate(drawn.begin(), drawn.end(), 0.0);
  const std::int64_t assignments = group.tokens * group.active;
  const auto most = static_cast<std::int32_t>(group.tokens);
  Loads loads;
  std::int64_t overflow = 0;
  for (const double load : drawn) {
    const auto rows =
        static_cast<std::int64_t>(std::nearbyint(load / sum * static_cast<double>(assignments)));
    overflow += std::max<std::int64_t>(0, rows - most);
    loads.push_back(static_cast<std::int32_t>(std::min<std::int64_t>(rows, most)));
  }
  even_out(loads, group.ranks, overflow, 1, most);
  const std::int64_t missing = assignments - std::accumulate(loads.begin(), loads.end(), std::int64_t{0});
  even_out(loads, group.ranks, std::abs(missing), missing > 0 ? 1 : -1, most);
  return loads;
}

// One slot an expert, and spare ones for copies of those of most rows a copy; copies share the rows.
Loads copied(const Loads& loads, int slots) {
  std::vector<std::int32_t> copies(loads.size(), 1);
  const auto rows_of_copy = [&](std::size_t expert) {
    return static_cast<double>(loads[expert]) / copies[expert];
  };
  for (auto spare = static_cast<std::size_t>(slots) - loads.size(); spare > 0; --spare) {
    std::size_t fullest = 0;
    for (std::size_t expert = 1; expert < loads.size(); ++expert)
      if (rows_of_copy(expert) > rows_of_copy(fullest)) fullest = expert;
    ++copies[fullest];
  }
  Loads rows;
  for (std::size_t expert = 0; expert < loads.size(); ++expert)
    for (std::int32_t copy = 0; copy < copies[expert]; ++copy)
      rows.push_back((loads[expert] + copy) / copies[expert]);
  return rows;
}

// Slots by falling rows, each on the rank of least rows that has room; rank after rank.
Loads placed(Loads slots, int ranks) {
  std::sort(slots.rbegin(), slots.rend());
  const std::size_t room = slots.size() / static_cast<std::size_t>(ranks);
  std::vector<Loads> of_rank(static_cast<std::size_t>(ranks));
  std::vector<std::int64_t> rows(of_rank.size(), 0);
  for (const std::int32_t slot : slots) {
    std::size_t least = of_rank.size();
    for (std::size_t rank = 0; rank < of_rank.size(); ++rank)
      if (of_rank[rank].size() < room && (least == of_rank.size() || rows[rank] < rows[least])) least = rank;
    of_rank[least].push_back(slot);
    rows[least] += slot;
  }
  Loads loads;
  for (const Loads& rank : of_rank) loads.insert(loads.end(), rank.begin(), rank.end());
  return loads;
}

}  // namespace

std::vector<std::int32_t> balanced_load(const ExpertGroup& group) {
  const std::int64_t stride = (group.experts + group.active - 1) / group.active;
  Loads loads(static_cast<std::size_t>(group.experts), 0);
  for (std::int64_t place = 0; place < group.active; ++place) {
    // Tokens that make whole rounds give every expert the same.
    const std::int64_t rounds = group.tokens >= stride ? group.tokens / group.experts : 0;
    for (std::int32_t& load : loads) load += static_cast<std::int32_t>(rounds);
    for (std::int64_t token = rounds * group.experts; token < group.tokens; ++token) {
      const std::int64_t first = group.tokens >= stride ? token : token * stride / group.tokens;
      ++loads[static_cast<std::size_t>((first + place * stride) % group.experts)];
    }
  }
  loads.resize(loads.size() / static_cast<std::size_t>(group.ranks));
  return loads;
}

std::vector<std::int32_t> power_law_load(const ExpertGroup& group, double exponent, std::uint64_t seed) {
  return hottest_rank(drawn_loads(group, exponent, seed), group.ranks);
}

std::vector<std::int32_t> rebalanced_load(const ExpertGroup& group, double exponent, std::uint64_t seed) {
  const Loads slots = copied(drawn_loads(group, exponent, seed), std::max(group.slots, group.experts));
  return hottest_rank(placed(slots, group.ranks), group.ranks);
}

}  // namespace moebius
