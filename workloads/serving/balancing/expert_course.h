// How popular the experts of each layer are at a moment of a service. The popularity of a layer is a list of
// weights (Zipf's, Dirichlet's, recorded counts) and an order that says which expert has which. The list
// stays; with drift the order turns over: each expert of each layer has a score, a mean-reverting random walk
// (Ornstein and Uhlenbeck 1930) with unit variance and the stated correlation time, stepped 60 times in it,
// and the experts by falling score have the weights by falling size. A change of domain draws order and
// scores anew.
#pragma once

#include <cstdint>
#include <vector>

#include "models/model.h"
#include "workloads/routing/popularity.h"
#include "workloads/serving/balancing/balance_plan.h"

namespace moebius {

class ExpertCourse {
 public:
  ExpertCourse(const Popularity& popularity, const ExpertDrift& drift, std::uint64_t seed,
               const Model& model);

  bool even() const { return popularity_.kind == PopularityKind::kBalanced; }
  int layers() const { return static_cast<int>(layers_.size()); }  // with experts
  int layer(int index) const { return layers_[index].number; }     // of the model
  int experts() const { return experts_; }

  void advance(Time now);                             // never back
  std::uint64_t version() const { return version_; }  // changes when chances do

  // That a token uses an expert of a layer (by index): they add up to the active experts of a token. An
  // expert with weight w of its layer is used by a share 1 - exp(-c w), with one c for the layer: close to
  // drawing one expert after the other without replacement, and the inverse of how recorded counts become
  // weights. Choice that is limited to groups of experts bends it.
  const std::vector<double>& chances(int index) const { return layers_[index].chances; }

 private:
  struct Layer {
    int number = 0;
    std::vector<double> falling;      // chances by size
    std::vector<std::int32_t> order;  // experts by falling chance
    std::vector<double> scores;       // by expert
    std::vector<double> chances;      // by expert
  };
  void begin(Layer& layer, int domain) const;
  void begin_recorded(Layer& layer, int step);
  void drift(Layer& layer) const;
  Time tick() const { return {drift_.correlation.ns / 60}; }

  Popularity popularity_;
  ExpertDrift drift_;
  std::uint64_t seed_;
  int experts_, active_;
  PopularityCourse recorded_;
  std::vector<double> normal_scores_;  // by falling size
  std::vector<Layer> layers_;
  std::size_t domains_ = 0;  // changes so far
  std::int64_t ticks_ = 0, step_ = 0;
  std::uint64_t version_ = 1;
};

// Chances of things with such weights, of which `active` are used: see ExpertCourse::chances.
std::vector<double> chances_of(const std::vector<double>& weights, double active);

}  // namespace moebius
