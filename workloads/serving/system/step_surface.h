// What iterations take, from a grid of iterations that were carried out one by one: the grid is filled where
// it is asked for, and interpolated between.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "workloads/schedule/metrics.h"
#include "workloads/serving/system/step.h"

namespace moebius {

// An iteration of equal sequences, on one replica and on those that share experts with it.
struct StepPoint {
  std::int64_t prefill_tokens = 0;
  std::int64_t prefill_keys = 0;  // that a prompt's token attends to on average, itself included
  std::int64_t decode_sequences = 0;
  std::int64_t decode_keys = 0;  // of each
  double others = 1;             // rows of another replica over this one's
  std::int64_t fillers = 0;      // of decode_sequences, on each replica: alike, they choose the same experts
  bool eager = false;            // see StepShape
  bool absorbed = false;         // likewise
  bool operator==(const StepPoint&) const = default;
};

// What an iteration takes, and what its ranks do meanwhile: those of an instance.
struct StepTime {
  double seconds = 0;
  BusySources busy = {};
  StepTime() = default;
  StepTime(double seconds, const BusySources& busy = {}) : seconds(seconds), busy(busy) {}
  void add(const StepTime& other, double times) {
    seconds += times * other.seconds;
    busy.add(other.busy, times);
  }
};

// Relative differences of interpolated iterations to measured ones.
struct SurfaceError {
  std::int64_t iterations = 0;
  double p50 = 0, p90 = 0, worst = 0;
};

// Edges: rows, where there are prompts, at quarters of a power of two, decoding sequences at halves, keys at
// powers of 16, or of less where asked, `others` at quarters up to one, then 2^k, fillers as sequences.
// Linear between, along every coordinate, and never between an eager iteration and one that a graph replays,
// nor between one whose prompts absorb and one whose do not: the corners of either are of its own kind, on
// whichever side of the captured sizes or of the rule's they stand. An iteration takes as long as the longest
// needs of three replicas: which has most rows, which has most keys, and of those that absorb which has most.
class StepSurface : public StepCost {
 public:
  using Measure = std::function<StepTime(const StepPoint&)>;

  struct Hash {
    std::size_t operator()(const StepPoint& point) const;
  };
  // Attention grows evenly with its keys, and so do iterations in which all else waits for it. Beside the
  // other half batch it hides until it is the longer of the two: not evenly, and a finer grid follows that.
  enum class KeyStep : std::uint8_t { kCoarse, kFine };         // 16 times as many; twice as many
  using Known = std::unordered_map<StepPoint, StepTime, Hash>;  // points that were carried out

  // `known`: what others have measured of the same plan on the same devices, which this one adds to.
  // `key_step`: from one edge of keys to the next.
  explicit StepSurface(Measure measure, Known* known = nullptr, KeyStep key_step = KeyStep::kCoarse)
      : measure_(std::move(measure)), known_(known != nullptr ? *known : own_), key_step_(key_step) {}
  StepSurface(const StepSurface&) = delete;
  StepSurface& operator=(const StepSurface&) = delete;

  double seconds(std::span<const StepShape> replicas) override;
  StepStalls stalls(std::span<const StepShape> replicas, double seconds) override;
  double forecast(std::span<const StepShape> replicas) override;
  // Interpolated; counted as so many iterations that took as long, of which busy() is the sum.
  double at(const StepPoint& point, double times = 0);
  StepTime time_at(const StepPoint& point);
  // Of all iterations that were asked for by seconds() or counted. What the corners around each did, by their
  // weights.
  BusySources busy() const;
  std::int64_t measured() const { return static_cast<std::int64_t>(known_.size()); }

  // How far it is off at iterations that were asked for, each measured by itself: so many of those with
  // prompts, and of those without, drawn evenly.
  static constexpr std::int64_t kSampled = 100;
  SurfaceError error();

 private:
  // The corners around points of one cell, by which coordinates are at their upper edge.
  static constexpr int kCorners = 64;
  struct Cell {
    std::array<double, kCorners> seconds{}, times{};  // counted
    std::array<const StepTime*, kCorners> corner{};
    std::uint64_t known = 0;  // a bit a corner
  };
  const StepTime& corner(const StepPoint& point);
  Cell& cell_at(const StepPoint& lowest);
  template <class Visit>
  void visit_corners(const StepPoint& point, Visit visit);
  void sample(const StepPoint& point);
  double slowest(std::span<const StepShape> replicas, bool sampled);
  double of_replica(const StepShape& own, std::span<const StepShape> replicas, bool sampled);

  Measure measure_;
  Known own_;
  Known& known_;
  KeyStep key_step_;
  std::unordered_map<StepPoint, Cell, Hash> cells_;  // by their lowest corner
  struct Recent {
    StepPoint lowest;
    Cell* cell = nullptr;
  };
  std::array<Recent, 64> recent_{};  // of cells_, which stay where they are
  struct Sample {
    std::vector<StepPoint> points;
    std::int64_t asked = 0;  // iterations that they were drawn from
    std::int64_t next = 0;   // which of them is one
    double largest = 1;      // of the numbers that those drawn have, each iteration one from 0 to 1
  };
  std::array<Sample, 2> samples_;  // without and with prompts
};

// Of runs that differ in nothing but their traffic: by pool.
struct StepTimings {
  std::unordered_map<std::string, StepSurface::Known> of_pool;
};

// The point that stands for a replica's part: its sequences taken to be equal.
StepPoint point_of(const StepShape& shape, double others);
// The same of one of those that share experts, beside what the others have on average.
StepPoint point_of(const StepShape& own, std::span<const StepShape> replicas);

}  // namespace moebius
