#include "real/tiers/storage_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "hw/error.h"
#include "hw/median.h"
#include "real/tiers/ssd_tier.h"
#include "workloads/calibration/device/transfer_fit.h"
#include "workloads/routing/random_stream.h"

namespace moebius::kv {
namespace {

constexpr std::int64_t kBlock = 4 << 20;
constexpr std::array<std::int64_t, 6> kSizes{4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, kBlock};
constexpr std::array<int, 3> kDepths{1, 8, 32};
constexpr int kDepth = 32, kParts = 9;
constexpr int kTurns = 2;  // of the queue, in a part at least

// Half of the distance between the quartiles, over the median.
double spread_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return (values[values.size() * 3 / 4] - values[values.size() / 4]) / 2 / values[values.size() / 2];
}

struct Point {
  double seconds = 0, spread = 0;
};

// The disk under measurement: the tier, and memory for `kDepth` pieces with random bytes, so that a disk
// that compresses gains nothing.
class Bench {
 public:
  Bench(const std::string& directory, std::int64_t blocks, const FiguresTime& time)
      : time_(time),
        memory_(kBlock * kDepth),
        tier_({.directory = directory, .block_bytes = kBlock, .blocks = blocks, .depth = kDepth},
              HostClock::now()) {
    for (std::int64_t i = 0; i < memory_.bytes(); i += 8)
      *reinterpret_cast<std::uint64_t*>(memory_.data() + i) = random_.bits();
  }

  std::string description() const { return tier_.description(); }
  bool direct() const { return tier_.direct(); }
  void fill_blocks();  // what was never written is read without the disk
  Point measure(Direction direction, std::int64_t bytes, int depth, double seconds);

 private:
  void submit(Direction direction, std::int64_t bytes, int place);
  std::vector<TransferDone> wait();

  const FiguresTime& time_;
  AlignedMemory memory_;
  SsdTier tier_;  // transfers under way end with it, before their memory
  RandomStream random_{1};
  std::vector<int> place_of_;  // by transfer
};

void Bench::fill_blocks() {
  const std::int64_t blocks = tier_.shape().blocks;
  for (std::int64_t first = 0; first < blocks; first += kDepth) {
    for (std::int64_t block = first; block < std::min(first + kDepth, blocks); ++block) {
      std::byte* const from = memory_.data() + block % kDepth * kBlock;
      tier_.submit({Direction::kWrite, {{block, 0, kBlock, from}}});
      place_of_.push_back(0);
    }
    while (tier_.next() != kForever) wait();
    time_.require_left();
  }
}

Point Bench::measure(Direction direction, std::int64_t bytes, int depth, double seconds) {
  std::vector<Time> ends{tier_.now()};
  const Time stop = ends[0] + time_from_seconds(seconds);
  for (int place = 0; place < depth; ++place) submit(direction, bytes, place);
  for (int open = depth; open > 0;) {
    for (const TransferDone& done : wait()) {
      ends.push_back(done.end);
      const bool more =
          done.end < stop || static_cast<int>(ends.size()) <= std::max(kParts, (kTurns + 1) * depth);
      if (more && !time_.spent()) {
        submit(direction, bytes, place_of_[static_cast<std::size_t>(done.id)]);
      } else {
        --open;
      }
    }
  }
  time_.require_left();
  ends.resize(ends.size() - static_cast<std::size_t>(depth) + 1);  // at the last ones the queue ran empty
  // Completions come in bursts of up to a whole queue: a part is a few turns of it, or its time says nothing.
  const std::size_t turns = (ends.size() - 1) / static_cast<std::size_t>(depth);
  const std::size_t num_parts = std::clamp<std::size_t>(turns / kTurns, 1, kParts);
  std::vector<double> parts;
  for (std::size_t i = 0; i < num_parts; ++i) {
    const std::size_t from = i * (ends.size() - 1) / num_parts, to = (i + 1) * (ends.size() - 1) / num_parts;
    if (to > from)
      parts.push_back((ends[to] - ends[from]).seconds() * depth / static_cast<double>(to - from));
  }
  return {upper_median(parts), spread_of(parts)};
}

void Bench::submit(Direction direction, std::int64_t bytes, int place) {
  const auto blocks = static_cast<std::uint64_t>(tier_.shape().blocks);
  const auto block = static_cast<std::int64_t>(random_.below_large(blocks));
  const auto slots = static_cast<std::uint64_t>(kBlock / bytes);
  const auto slot = static_cast<std::int64_t>(random_.below_large(slots));
  tier_.submit({direction, {{block, slot * bytes, bytes, memory_.data() + place * kBlock}}});
  place_of_.push_back(place);
}

std::vector<TransferDone> Bench::wait() {
  std::vector<TransferDone> done = tier_.wait(kForever);
  for (const TransferDone& transfer : done) {
    if (transfer.outcome != Outcome::kGood) throw run_error(transfer.failure);
  }
  return done;
}

// 256 MiB, or a quarter of what is free.
std::int64_t blocks_in(const std::string& directory) {
  std::error_code error;
  const auto space = std::filesystem::space(directory, error);
  if (error) throw run_error(fmt::format("{}: the disk cannot be measured: {}", directory, error.message()));
  const auto fitting = static_cast<std::int64_t>(space.available / 4) / kBlock;
  return std::clamp<std::int64_t>(fitting, 1, (256 << 20) / kBlock);
}

std::string curve_name(Direction direction, int depth) {
  const std::string_view name = direction == Direction::kRead ? kStorageRead : kStorageWrite;
  return depth == 1 ? std::string(name) : fmt::format("{} x{}", name, depth);
}

}  // namespace

StorageFigures measure_storage(const std::string& directory, const FiguresTime& time) {
  Bench bench(directory, blocks_in(directory), time);
  bench.fill_blocks();
  const double each = time.seconds / (2 * kDepths.size() * kSizes.size());
  StorageFigures figures{bench.description(), bench.direct(), {}};
  for (const Direction direction : {Direction::kRead, Direction::kWrite}) {
    for (const int depth : kDepths) {
      TransferCurve curve;
      curve.name = curve_name(direction, depth);
      for (const std::int64_t bytes : kSizes) {
        const Point point = bench.measure(direction, bytes, depth, each);
        curve.bytes.push_back(static_cast<double>(bytes));
        curve.seconds.push_back(point.seconds);
        curve.spread.push_back(point.spread);
      }
      fit_line(curve);
      figures.curves.push_back(std::move(curve));
    }
  }
  return figures;
}

}  // namespace moebius::kv
