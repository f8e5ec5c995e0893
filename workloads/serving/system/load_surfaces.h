// What an iteration takes longer when experts are loaded unevenly, or when weights of experts move beside it:
// from iterations that were carried out with such loads, and with such moves. Layers come one after the
// other, so that a layer's part depends on its own loads alone: an iteration whose layers differ takes the
// mean over its layers of what it would take were all loaded as that one.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <tuple>
#include <vector>

#include "workloads/schedule/pair_bytes.h"
#include "workloads/serving/balancing/expert_moves.h"
#include "workloads/serving/system/step_surface.h"

namespace moebius {

// Loads are told apart by the imbalance of ranks: that of the fullest over the mean, as popularity and
// placement give it; what draws of few tokens add is in the iterations. Edges: 1, 1.125, 1.25, 1.5, then 2^k
// and half between.
class LoadSurfaces {
 public:
  struct Measures {
    std::function<StepTime(const StepPoint&)> even;                      // evenly loaded
    std::function<StepTime(const StepPoint&, double imbalance)> loaded;  // all layers so
    std::function<double(const StepPoint&, const PairBytesPtr&)>
        moving;  // seconds, evenly loaded, all layers; null: no moves
  };
  // `most`: the largest imbalance that slots can have: above it none is asked for.
  LoadSurfaces(Measures measures, double most);

  int edges() const { return static_cast<int>(edges_.size()); }
  double edge(int index) const { return edges_[index]; }
  // Adds the share of one of `layers` layers to the edges around its imbalance.
  void spread(double imbalance, int layers, std::vector<double>& shares) const;

  // Seconds beyond the evenly loaded iteration, all layers at an edge. What attention reads does not count:
  // short contexts stand for all. Counted as StepSurface::at() does.
  double loaded(const StepPoint& point, int edge, double times = 0);
  // Seconds beyond the iteration without moves, at the nearest point of the grid; moves are told apart by the
  // most experts that one rank gets and that one rank sends, and their first bytes stand for all alike.
  double moving(const StepPoint& point, const std::vector<ExpertMove>& moves, int ranks, double expert_bytes);
  std::int64_t measured() const;
  BusySources busy() const;  // beyond that of the evenly loaded iterations, of all that were counted

 private:
  using MoveKey = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t, int, int, bool, bool>;

  Measures measures_;
  std::vector<double> edges_;
  std::vector<std::unique_ptr<StepSurface>> surfaces_;  // by edge; made when asked for
  std::map<MoveKey, double> moving_;
};

// Loads of slots, rank by rank, with that imbalance: those of ranks fall exponentially, and the rank that has
// most in `like` has most; slots of a rank are to each other as in `like`, so that few tokens use as few of
// them. They add up to `active`, none is above one.
std::vector<double> loads_with_imbalance(double imbalance, int ranks, double active,
                                         std::span<const double> like);

// In proportion to what tokens draw slots one after the other so that a share `load` of them uses each.
std::vector<double> draw_weights(const std::vector<double>& loads);

}  // namespace moebius
