#include "workloads/serving/system/latency_histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace moebius {
namespace {

constexpr int kBits = 10;
constexpr std::uint64_t kLinear = std::uint64_t{1} << kBits;  // below it a bucket a nanosecond

std::size_t bucket_of(std::uint64_t ns) {
  if (ns < kLinear) return ns;
  const int octave = std::bit_width(ns) - 1 - kBits;  // its buckets are 2^octave wide
  return (static_cast<std::size_t>(octave) << kBits) + (ns >> octave);
}

// The middle of what falls into a bucket.
double value_of(std::size_t bucket) {
  if (bucket < 2 * kLinear) return static_cast<double>(bucket);
  const std::size_t octave = (bucket >> kBits) - 1;
  const double low = std::ldexp(static_cast<double>(bucket - (octave << kBits)), static_cast<int>(octave));
  return low + std::ldexp(0.5, static_cast<int>(octave)) - 0.5;
}

}  // namespace

void LatencyHistogram::add(Time duration, std::int64_t count) {
  const auto ns = static_cast<std::uint64_t>(std::max<std::int64_t>(0, duration.ns));
  const std::size_t bucket = bucket_of(ns);
  if (bucket >= buckets_.size()) buckets_.resize(bucket + 1 + bucket / 8);
  buckets_[bucket] += count;
  count_ += count;
  sum_ += static_cast<double>(ns) * static_cast<double>(count);
  least_ = std::min(least_, ns);
  most_ = std::max(most_, ns);
}

double LatencyHistogram::mean() const {
  return count_ == 0 ? 0 : sum_ / static_cast<double>(count_) * 1e-9;
}

double LatencyHistogram::at(double share) const {
  if (count_ == 0) return 0;
  const double place = share * static_cast<double>(count_ - 1);
  const auto below = static_cast<std::int64_t>(place);
  const auto inside = [this](double ns) {
    return std::clamp(ns, static_cast<double>(least_), static_cast<double>(most_));
  };
  double low = -1;
  std::int64_t seen = 0;
  for (std::size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
    seen += buckets_[bucket];
    if (seen > below && low < 0) low = inside(value_of(bucket));
    if (seen > below + 1 || seen == count_)
      return (low + (place - std::floor(place)) * (inside(value_of(bucket)) - low)) * 1e-9;
  }
  return 0;
}

Spread LatencyHistogram::spread() const {
  return {mean(), at(0.5), at(0.9), at(0.95), at(0.99), count_ == 0};
}

void LatencyHistogram::merge(const LatencyHistogram& other) {
  if (other.buckets_.size() > buckets_.size()) buckets_.resize(other.buckets_.size());
  for (std::size_t bucket = 0; bucket < other.buckets_.size(); ++bucket)
    buckets_[bucket] += other.buckets_[bucket];
  count_ += other.count_;
  sum_ += other.sum_;
  least_ = std::min(least_, other.least_);
  most_ = std::max(most_, other.most_);
}

}  // namespace moebius
