// One counter of one class over time, with the smallest and largest value of every 16, 256, ... samples, so
// that a column of a picture costs the same however many samples it holds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "workloads/schedule/timeline.h"

namespace moebius::viz {

struct Extent {
  double low = 0, high = 0;
};

class CounterTrack {
 public:
  // Samples by time.
  CounterTrack(std::string name, std::int32_t rank_class, std::vector<std::int64_t> times,
               std::vector<double> values);

  const std::string& name() const { return name_; }
  std::int32_t rank_class() const { return rank_class_; }
  std::size_t size() const { return times_.size(); }
  Extent all() const { return all_; }
  const std::vector<std::int64_t>& times() const { return times_; }
  const std::vector<double>& values() const { return values_; }

  // A counter keeps its value till its next sample; before its first it is 0.
  double at(std::int64_t time) const;
  Extent between(std::int64_t from, std::int64_t to) const;  // of the values that it has in [from, to]

 private:
  static constexpr std::size_t kTogether = 16;
  std::string name_;
  std::int32_t rank_class_ = 0;
  std::vector<std::int64_t> times_;
  std::vector<double> values_;
  std::vector<std::vector<Extent>> levels_;  // of 16, 256, ... samples
  Extent all_;
};

// "wire nic-out 3" -> "wire nic-out": counters of one family have one unit and are shown together.
std::string family_of(const std::string& counter);

// One for each counter of each class that has samples, by name, then class.
std::vector<CounterTrack> counter_tracks(const Timeline& tables);

}  // namespace moebius::viz
