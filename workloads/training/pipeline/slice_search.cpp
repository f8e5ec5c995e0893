#include "workloads/training/pipeline/slice_search.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <tuple>

#include <fmt/format.h>

#include "hw/error.h"
#include "workloads/training/pipeline/turns_left.h"

namespace moebius {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kRounding = 1e-9;  // of sums in different orders
constexpr double kBeyond = 1e-6;    // what exceeds a bound by that much exceeds it, however it was added up

// What a stage takes and fills; sums of layers in constant time.
class StageSums {
 public:
  StageSums(const SliceLoads& loads, const StagePlacement& placement)
      : loads_(loads),
        placement_(placement),
        stays_(prefix_sums(loads.stays)),
        kept_(prefix_sums(loads.kept)),
        kept_of_(placement.chunks()) {
    for (const std::vector<double>& of_rank : loads.seconds) seconds_.push_back(prefix_sums(of_rank));
  }

  double seconds(int rank, int stage, LayerRange layers) const {
    double sum = seconds_[rank][layers.last] - seconds_[rank][layers.first];
    if (stage == 0) sum += loads_.embedding_seconds[rank];
    if (is_last(stage)) sum += loads_.head_seconds[rank];
    return sum;
  }

  // The rank's slices, by chunk. Squares: of this rank.
  SliceCost of_rank(int rank, std::span<const LayerRange> slices) {
    SliceCost cost;
    double stays = 0, passing = loads_.passing;
    for (int chunk = 0; chunk < placement_.chunks(); ++chunk) {
      const int stage = placement_.stage_of(rank, chunk);
      const LayerRange& layers = slices[chunk];
      const double seconds = this->seconds(rank, stage, layers);
      cost.slowest_rank += seconds;
      cost.slowest_stage = std::max(cost.slowest_stage, seconds);
      stays += stays_[layers.last] - stays_[layers.first] + (stage == 0 ? loads_.embedding_stays : 0) +
               (is_last(stage) ? loads_.head_stays : 0);
      kept_of_[chunk] = kept_[layers.last] - kept_[layers.first] + (stage == 0 ? loads_.embedding_kept : 0) +
                        (is_last(stage) ? loads_.head_kept : 0);
      if (is_last(stage)) passing = std::max(passing, loads_.head_passing);
    }
    cost.fullest = (stays + passing + most_alive(rank)) / loads_.room[rank];
    cost.squares = cost.slowest_rank * cost.slowest_rank;
    return cost;
  }

 private:
  bool is_last(int stage) const { return stage + 1 == placement_.stages(); }

  double most_alive(int rank) const {
    double most = 0;
    for (const std::vector<int>& counts : loads_.alive[rank]) {
      double bytes = 0;
      for (std::size_t chunk = 0; chunk < kept_of_.size(); ++chunk) bytes += counts[chunk] * kept_of_[chunk];
      most = std::max(most, bytes);
    }
    return most;
  }

  const SliceLoads& loads_;
  const StagePlacement& placement_;
  std::vector<double> stays_, kept_;
  std::vector<double> kept_of_;  // by chunk, of the rank that is looked at: millions are, none allocates
  std::vector<std::vector<double>> seconds_;
};

SliceCost joined(const SliceCost& a, const SliceCost& b) {
  return {std::max(a.slowest_rank, b.slowest_rank), std::max(a.slowest_stage, b.slowest_stage),
          std::max(a.fullest, b.fullest), a.squares + b.squares};
}

bool within(const SliceCost& cost, const SliceCost& limit) {
  const auto holds = [](double value, double most) { return value <= most * (1 + kRounding); };
  return holds(cost.slowest_rank, limit.slowest_rank) && holds(cost.slowest_stage, limit.slowest_stage) &&
         holds(cost.fullest, limit.fullest);
}

SliceCost cost_of_layers(StageSums& sums, const StagePlacement& placement,
                         const std::vector<int>& layers) {
  std::vector<LayerRange> stages;
  for (const int count : layers) {
    const int first = stages.empty() ? 0 : stages.back().last;
    stages.push_back({first, first + count});
  }
  SliceCost cost;
  for (int rank = 0; rank < placement.ranks(); ++rank) {
    std::vector<LayerRange> slices;
    for (int chunk = 0; chunk < placement.chunks(); ++chunk)
      slices.push_back(stages[placement.stage_of(rank, chunk)]);
    cost = joined(cost, sums.of_rank(rank, slices));
  }
  return cost;
}

// Pipeline ranks in turn take their first stage from the front of the layers and their second one from the
// end of them, or from a cut in the middle on; of a pipeline that runs both ways, two ranks take both.
class CutSearch {
 public:
  CutSearch(const SliceLoads& loads, const StagePlacement& placement, StageSums& sums)
      : placement_(placement),
        sums_(sums),
        layers_(loads.layers()),
        turns_(placement.both_ways() ? placement.ranks() / 2 : placement.ranks()),
        left_(loads, placement, turns_) {
    two_ = placement.chunks() == 2;
    from_end_ = two_ && placement.stage_of(0, 1) + 1 == placement.stages();
  }

  // By limits that are met one after the other. `known`: some slices, which do not fit where `fits` is false.
  std::vector<int> run(SliceCost limit, const std::vector<int>& known, bool fits) {
    using Part = double SliceCost::*;
    constexpr std::array<Part, 3> kParts{&SliceCost::slowest_rank, &SliceCost::slowest_stage,
                                         &SliceCost::fullest};
    found_ = known;
    if (!fits && !best(limit, &SliceCost::squares, true)) {  // nothing fits: as little as possible beyond
      limit = {kNever, kNever, cost_of_layers(sums_, placement_, known).fullest, 0};
      limit.fullest = *best(limit, &SliceCost::fullest, false);
    }
    for (const Part part : kParts) limit.*part = *best(limit, part, false);
    best(limit, &SliceCost::squares, true);
    return found_;
  }

 private:
  using Part = double SliceCost::*;
  struct From {
    std::int16_t first = 0, second = 0;  // layers that the turn took
  };

  // The least of one part within the limits; nothing where nothing is. The slices go to found_. Those that
  // are there already bound the part where they are within the limits.
  std::optional<double> best(const SliceCost& limit, Part part, bool adds) {
    least_ = kNever;
    const SliceCost before = cost_of_layers(sums_, placement_, found_);
    known_ = within(before, limit) ? before.*part * (1 + kBeyond) : kNever;
    std::vector<int> slices;
    const bool middle = two_ && !from_end_;
    for (int cut = middle ? turns_ : layers_; cut <= layers_ - (middle ? turns_ : 0); ++cut) {
      const double value = with_cut(cut, limit, part, adds);
      if (value < least_) least_ = value, slices = traced(cut);
    }
    if (least_ == kNever) return std::nullopt;
    found_ = slices;
    return least_;
  }

  std::size_t at(int turn, int front, int back) const {
    return (static_cast<std::size_t>(turn) * (layers_ + 1) + front) * (two_ ? layers_ + 1 : 1) + back;
  }

  // front: layers taken from the front; back: from the end, or from the cut on.
  double with_cut(int cut, const SliceCost& limit, Part part, bool adds) {
    const std::size_t states = at(turns_, layers_, two_ ? layers_ : 0) + 1;
    value_.assign(states, kNever);
    from_.assign(states, {});
    value_[0] = 0;
    for (int turn = 0; turn < turns_; ++turn) {
      const bool middle = two_ && !from_end_;
      for (int front = turn; front <= (middle ? cut : layers_); ++front) {
        const int most_back = !two_ ? 0 : middle ? layers_ - cut : layers_ - front;
        for (int back = two_ ? turn : 0; back <= most_back; ++back) {
          if (value_[at(turn, front, back)] < kNever) take_turn(turn, front, back, {cut, limit, part, adds});
        }
      }
    }
    return value_[end_of(cut)];
  }

  // All turns taken. From the end, front and back meet anywhere.
  std::size_t end_of(int cut) const {
    if (!two_) return at(turns_, layers_, 0);
    if (!from_end_) return at(turns_, cut, layers_ - cut);
    std::size_t least = at(turns_, turns_, layers_ - turns_);
    for (int front = turns_; front <= layers_ - turns_; ++front) {
      const std::size_t end = at(turns_, front, layers_ - front);
      if (value_[end] < value_[least]) least = end;
    }
    return least;
  }

  struct Aim {
    int cut;
    const SliceCost& limit;
    Part part;
    bool adds;
  };

  void take_turn(int turn, int front, int back, const Aim& aim) {
    const int left = turns_ - turn - 1;  // each still takes one layer of each of its stages
    const int most_front = !two_       ? layers_ - front - left
                           : from_end_ ? layers_ - back - front - 2 * left - 1
                                       : aim.cut - front - left;
    const double most_seconds = most(aim, &SliceCost::slowest_rank);
    for (int a = 1; a <= most_front; ++a) {
      if (sums_.seconds(turn, placement_.stage_of(turn, 0), {front, front + a}) > most_seconds) return;
      const int most_back = !two_       ? 1
                            : from_end_ ? layers_ - front - a - back - 2 * left
                                        : layers_ - aim.cut - back - left;
      const int least_back = two_ ? least_that_leaves_few(turn, front + a, back, most_back, aim) : 1;
      if (!two_ && !leaves_few(turn, front + a, 0, aim)) continue;
      for (int b = least_back; b <= most_back; ++b) {
        if (offer(turn, front, back, {a, two_ ? b : 0}, aim)) continue;
        if (b == 1) return;
        break;
      }
    }
  }

  // What no turn may exceed, nor any of those that come, for better slices than are known.
  double most(const Aim& aim, Part part) const {
    const double limit = aim.limit.*part;
    return (aim.part == part ? std::min({limit, least_, known_}) : limit) * (1 + kBeyond);
  }

  // The layers that are left: in front, and at the back where two ranges are.
  std::pair<LayerRange, LayerRange> left_after(int front, int back, int cut) const {
    if (!two_) return {{front, layers_}, {}};
    if (from_end_) return {{front, layers_ - back}, {}};
    return {{front, cut}, {cut + back, layers_}};
  }

  // Whether the turns after this one could take what it leaves.
  bool leaves_few(int turn, int front, int back, const Aim& aim) const {
    const int left = turns_ - turn - 1;
    if (left == 0) return true;
    const auto [a, b] = left_after(front, back, aim.cut);
    return left_.seconds(turn + 1, a, b) <= left * most(aim, &SliceCost::slowest_rank) &&
           left_.bytes(turn + 1, a, b) <= left_.room(turn + 1) * most(aim, &SliceCost::fullest);
  }

  // The fewer layers it takes at the back the more it leaves.
  int least_that_leaves_few(int turn, int front, int back, int most_back, const Aim& aim) const {
    int low = 1, high = most_back + 1;
    while (low < high) {
      const int middle = (low + high) / 2;
      if (leaves_few(turn, front, back + middle, aim)) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    return low;
  }

  // Whether squares of what is left, spread evenly over the turns, are too many already.
  bool adds_too_much(double value, int turn, int front, int back, const Aim& aim) const {
    const int left = turns_ - turn - 1;
    if (left == 0) return false;
    const auto [a, b] = left_after(front, back, aim.cut);
    const double seconds = left_.seconds(turn + 1, a, b);
    return value + seconds * seconds / left > std::min(least_, known_) * (1 + kBeyond);
  }

  // False: with more layers it is beyond the limits all the more, or beyond what another cut costs in all.
  bool offer(int turn, int front, int back, std::pair<int, int> taken, const Aim& aim) {
    const auto [a, b] = taken;
    const LayerRange first{front, front + a};
    const LayerRange second = from_end_ ? LayerRange{layers_ - back - b, layers_ - back}
                                      : LayerRange{aim.cut + back, aim.cut + back + b};
    const SliceCost cost = cost_of_turn(turn, first, second);
    if (!within(cost, aim.limit)) return false;
    const double before = value_[at(turn, front, back)];
    const double value = aim.adds ? before + cost.*aim.part : std::max(before, cost.*aim.part);
    if (value >= least_ || value > known_) return false;
    if (aim.adds && adds_too_much(value, turn, front + a, back + b, aim)) return true;
    const std::size_t to = at(turn + 1, front + a, back + b);
    if (value < value_[to])
      value_[to] = value, from_[to] = {static_cast<std::int16_t>(a), static_cast<std::int16_t>(b)};
    return true;
  }

  SliceCost cost_of_turn(int turn, LayerRange first, LayerRange second) {
    const std::array<LayerRange, 2> slices{first, second}, other_way{second, first};
    const SliceCost cost = sums_.of_rank(turn, slices);
    if (!two_ || !placement_.both_ways()) return cost;
    return joined(cost, sums_.of_rank(placement_.ranks() - 1 - turn, other_way));
  }

  // Layers of each stage of the model, from the best end back.
  std::vector<int> traced(int cut) const {
    std::vector<int> slices(placement_.stages());
    std::size_t state = end_of(cut);
    const std::size_t width = two_ ? layers_ + 1 : 1;
    int front = static_cast<int>(state / width) % (layers_ + 1), back = static_cast<int>(state % width);
    for (int turn = turns_; turn-- > 0;) {
      const From taken = from_[at(turn + 1, front, back)];
      slices[placement_.stage_of(turn, 0)] = taken.first;
      if (two_) slices[placement_.stage_of(turn, 1)] = taken.second;
      front -= taken.first;
      back -= taken.second;
    }
    return slices;
  }

  const StagePlacement& placement_;
  StageSums& sums_;
  int layers_, turns_;
  TurnsLeft left_;
  bool two_ = false, from_end_ = false;
  double least_ = kNever;  // of the cuts so far
  double known_ = kNever;  // no more than this is looked for
  std::vector<double> value_;
  std::vector<From> from_;
  std::vector<int> found_;
};

std::vector<int> even_layers(int layers, int stages) {
  std::vector<int> all(stages, layers / stages);
  for (int i = 0; i < layers % stages; ++i) ++all[i];
  return all;
}

// Less is better; beyond the room by as little as possible first.
auto rank_of(const SliceCost& cost) {
  const auto rounded = [](double value) { return static_cast<double>(static_cast<float>(value)); };
  return std::tuple(std::max(1.0, rounded(cost.fullest)), rounded(cost.slowest_rank),
                    rounded(cost.slowest_stage), rounded(cost.fullest), rounded(cost.squares));
}

std::vector<int> moved_until_best(StageSums& sums, const StagePlacement& placement,
                                  std::vector<int> layers) {
  auto best = rank_of(cost_of_layers(sums, placement, layers));
  for (bool better = true; better;) {
    better = false;
    for (std::size_t from = 0; from < layers.size(); ++from) {
      for (std::size_t to = 0; to < layers.size(); ++to) {
        if (from == to || layers[from] == 1) continue;
        --layers[from], ++layers[to];
        const auto found = rank_of(cost_of_layers(sums, placement, layers));
        if (found < best) {
          best = found, better = true;
        } else {
          ++layers[from], --layers[to];
        }
      }
    }
  }
  return layers;
}

}  // namespace

SliceCost cost_of_slices(const SliceLoads& loads, const StagePlacement& placement,
                         const std::vector<int>& layers) {
  StageSums sums(loads, placement);
  return cost_of_layers(sums, placement, layers);
}

SliceChoice search_slices(const SliceLoads& loads, const StagePlacement& placement) {
  CHECK(loads.layers() >= placement.stages(),
        fmt::format("{} layers on {} stages", loads.layers(), placement.stages()));
  StageSums sums(loads, placement);
  const std::vector<int> even = even_layers(loads.layers(), placement.stages());
  SliceChoice choice;
  choice.exact = placement.chunks() <= 2;
  if (choice.exact) {
    const SliceCost of_even = cost_of_layers(sums, placement, even);
    const bool fits = of_even.fullest <= 1;
    const double most = fits ? of_even.slowest_rank : kNever;  // the best is no slower
    choice.layers = CutSearch(loads, placement, sums).run({most, kNever, 1, 0}, even, fits);
  } else {
    choice.layers = moved_until_best(sums, placement, even);
  }
  choice.cost = cost_of_layers(sums, placement, choice.layers);
  return choice;
}

}  // namespace moebius
