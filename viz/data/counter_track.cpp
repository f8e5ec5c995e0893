#include "viz/data/counter_track.h"

#include <algorithm>
#include <map>
#include <utility>

namespace moebius::viz {
namespace {

void widen(Extent& extent, Extent by) {
  extent.low = std::min(extent.low, by.low);
  extent.high = std::max(extent.high, by.high);
}

}  // namespace

CounterTrack::CounterTrack(std::string name, std::int32_t rank_class, std::vector<std::int64_t> times,
                           std::vector<double> values)
    : name_(std::move(name)), rank_class_(rank_class), times_(std::move(times)), values_(std::move(values)) {
  std::vector<Extent> below;
  for (const double value : values_) below.push_back({value, value});
  if (!below.empty()) all_ = below.front();
  for (const Extent& extent : below) widen(all_, extent);
  while (below.size() > kTogether) {
    std::vector<Extent> level;
    for (std::size_t i = 0; i < below.size(); ++i) {
      if (i % kTogether == 0) level.push_back(below[i]);
      widen(level.back(), below[i]);
    }
    levels_.push_back(level);
    below = std::move(level);
  }
}

double CounterTrack::at(std::int64_t time) const {
  const auto after = std::upper_bound(times_.begin(), times_.end(), time);
  return after == times_.begin() ? 0 : values_[static_cast<std::size_t>(after - times_.begin()) - 1];
}

Extent CounterTrack::between(std::int64_t from, std::int64_t to) const {
  Extent extent{at(from), at(from)};
  auto i = static_cast<std::size_t>(std::upper_bound(times_.begin(), times_.end(), from) - times_.begin());
  const auto last =
      static_cast<std::size_t>(std::upper_bound(times_.begin(), times_.end(), to) - times_.begin());
  while (i < last) {
    // The largest block that begins here and ends inside.
    std::size_t size = 1, level = 0;
    while (level < levels_.size() && i % (size * kTogether) == 0 && i + size * kTogether <= last)
      size *= kTogether, ++level;
    widen(extent, level == 0 ? Extent{values_[i], values_[i]} : levels_[level - 1][i / size]);
    i += size;
  }
  return extent;
}

std::string family_of(const std::string& counter) {
  const std::size_t space = counter.rfind(' ');
  const bool numbered = space != std::string::npos && space + 1 < counter.size() &&
                        counter.find_first_not_of("0123456789", space + 1) == std::string::npos;
  return numbered ? counter.substr(0, space) : counter;
}

std::vector<CounterTrack> counter_tracks(const Timeline& tables) {
  struct Series {
    std::vector<std::pair<std::int64_t, double>> samples;
  };
  std::map<std::pair<std::string, std::int32_t>, Series> all;
  for (const CounterSample& sample : tables.samples)
    all[{tables.counters[sample.counter], sample.rank_class}].samples.emplace_back(sample.time.ns,
                                                                                   sample.value);
  std::vector<CounterTrack> tracks;
  for (auto& [key, series] : all) {
    std::stable_sort(series.samples.begin(), series.samples.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<std::int64_t> times;
    std::vector<double> values;
    for (const auto& [time, value] : series.samples) {
      times.push_back(time);
      values.push_back(value);
    }
    tracks.emplace_back(key.first, key.second, std::move(times), std::move(values));
  }
  return tracks;
}

}  // namespace moebius::viz
