#include "workloads/report/heat_map.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "hw/fabric/fabric.h"

namespace moebius {
namespace {

// The samples of one counter, by time: a step function.
using Steps = std::vector<std::pair<Time, double>>;

// Means of a step function over equal columns. A counter says nothing before its first sample: zero.
std::vector<double> columns_of(const Steps& steps, Time end, int columns) {
  std::vector<double> sums(columns, 0.0);
  const double width = static_cast<double>(end.ns) / columns;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const auto from = static_cast<double>(steps[i].first.ns);
    const auto to = static_cast<double>(i + 1 < steps.size() ? steps[i + 1].first.ns : end.ns);
    const int first = std::clamp(static_cast<int>(from / width), 0, columns - 1);
    const int last = std::clamp(static_cast<int>(to / width), 0, columns - 1);
    for (int column = first; column <= last; ++column) {
      const double overlap = std::min(to, (column + 1) * width) - std::max(from, column * width);
      sums[column] += steps[i].second * std::max(0.0, overlap) / width;
    }
  }
  return sums;
}

struct WireSteps {
  std::int64_t index = 0;
  const Steps* steps = nullptr;
};

std::vector<HeatMap::Row> rows_of(const std::string& kind, std::vector<WireSteps> wires, Time end,
                                  HeatMapSize size) {
  std::sort(wires.begin(), wires.end(),
            [](const WireSteps& a, const WireSteps& b) { return a.index < b.index; });
  const std::size_t together = (wires.size() + size.most_rows - 1) / size.most_rows;
  std::vector<HeatMap::Row> rows;
  for (std::size_t first = 0; first < wires.size(); first += together) {
    const std::size_t last = std::min(first + together, wires.size()) - 1;
    HeatMap::Row row{fmt::format("{} {}", kind, wires[first].index), std::vector<double>(size.columns, 0.0)};
    if (last > first) row.name += fmt::format("..{}", wires[last].index);
    for (std::size_t i = first; i <= last; ++i) {
      const std::vector<double> share = columns_of(*wires[i].steps, end, size.columns);
      for (int c = 0; c < size.columns; ++c) row.share[c] = std::max(row.share[c], share[c]);
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

// "wire leaf-up 3" -> "leaf-up" and 3.
bool read_wire_name(std::string_view name, std::string& kind, std::int64_t& index) {
  if (!name.starts_with("wire ")) return false;
  name.remove_prefix(5);
  const std::size_t space = name.rfind(' ');
  if (space == std::string_view::npos) return false;
  kind = name.substr(0, space);
  const std::string_view digits = name.substr(space + 1);
  return std::from_chars(digits.data(), digits.data() + digits.size(), index).ec == std::errc();
}

// Tiers stand in the order of WireKind; what is none (copies inside a device) before them.
int place_of(std::string_view kind) {
  for (int i = 0; i < kNumWireKinds; ++i)
    if (to_string(static_cast<WireKind>(i)) == kind) return i;
  return -1;
}

std::string_view block(double share) {
  constexpr std::string_view kBlocks[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  return kBlocks[std::clamp(static_cast<int>(share * 8 + 0.5), 0, 8)];
}

std::string line_of(const std::vector<double>& share, int width) {
  std::string line;
  const auto columns = static_cast<double>(share.size());
  for (int i = 0; i < width; ++i) {
    const int first = static_cast<int>(i * columns / width);
    const int last = std::max(first + 1, static_cast<int>((i + 1) * columns / width));
    double sum = 0;
    for (int c = first; c < last; ++c) sum += share[c];
    line += block(sum / (last - first));
  }
  return line;
}

double mean_of(const std::vector<double>& share) {
  double sum = 0;
  for (const double value : share) sum += value;
  return share.empty() ? 0 : sum / static_cast<double>(share.size());
}

constexpr std::size_t kMostMarks = 24;  // more than that cannot be read

}  // namespace

HeatMap heat_map(const Timeline& timeline, HeatMapSize size) {
  std::map<std::int32_t, Steps> steps;
  HeatMap map;
  for (const CounterSample& sample : timeline.samples) {
    const std::string& name = timeline.counters[sample.counter];
    if (name.starts_with("fault ") && map.marks.size() < kMostMarks)
      map.marks.push_back({sample.time, fmt::format("{}: {:.0f}% left", name.substr(6), 100 * sample.value)});
    if (!name.starts_with("wire ") && !name.starts_with("tier ")) continue;
    steps[sample.counter].emplace_back(sample.time, sample.value);
    map.end = std::max(map.end, sample.time);
  }
  for (const Span& span : timeline.spans) map.end = std::max(map.end, span.end);
  if (steps.empty() || map.end.ns == 0) return {};
  std::map<std::string, std::vector<WireSteps>> wires;
  std::map<std::string, HeatMap::Tier> tiers;
  for (const auto& [counter, samples] : steps) {
    const std::string& name = timeline.counters[counter];
    std::string kind;
    std::int64_t index = 0;
    if (read_wire_name(name, kind, index)) {
      wires[kind].push_back({index, &samples});
    } else if (name.ends_with(" mean") || name.ends_with(" max")) {
      const bool mean = name.ends_with(" mean");
      HeatMap::Tier& tier = tiers[name.substr(5, name.rfind(' ') - 5)];
      (mean ? tier.mean : tier.max) = columns_of(samples, map.end, size.columns);
    }
  }
  for (auto& [name, tier] : tiers) {
    tier.name = name;
    tier.mean.resize(size.columns, 0.0);
    tier.max.resize(size.columns, 0.0);
    tier.wires = rows_of(name, wires[name], map.end, size);
    map.tiers.push_back(std::move(tier));
  }
  std::stable_sort(map.tiers.begin(), map.tiers.end(), [](const HeatMap::Tier& a, const HeatMap::Tier& b) {
    return place_of(a.name) < place_of(b.name);
  });
  return map;
}

std::string to_text(const HeatMap& map) {
  constexpr int kWidth = 64;
  std::string text = fmt::format("how busy the network is, from 0 to {} (share of each wire's capacity)\n",
                                 to_text(map.end));
  for (const HeatMap::Tier& tier : map.tiers) {
    text += fmt::format("  {:<18} mean    {:>5.1f}%  |{}|\n", tier.name, 100 * mean_of(tier.mean),
                        line_of(tier.mean, kWidth));
    text += fmt::format("  {:<18} busiest {:>5.1f}%  |{}|\n", "", 100 * mean_of(tier.max),
                        line_of(tier.max, kWidth));
  }
  for (const HeatMap::Mark& mark : map.marks) {
    const auto at =
        static_cast<int>(std::min<double>(kWidth - 1, kWidth * mark.time.seconds() / map.end.seconds()));
    text += fmt::format("  {:<18} {:>14}  |{}^ {}, {}\n", "", "", std::string(at, ' '), mark.what,
                        to_text(mark.time));
  }
  return text;
}

}  // namespace moebius
