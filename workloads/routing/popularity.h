// How popular the experts of a layer are, and how that changes from step to step.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace moebius {

enum class PopularityKind : std::uint8_t { kBalanced, kZipf, kDirichlet, kRecorded };

// Token copies that each expert got, by recorded step and layer.
class RecordedLoads {
 public:
  // counts[step][layer]: one number for each expert, the same number of experts everywhere, not all zero.
  explicit RecordedLoads(std::vector<std::map<int, std::vector<double>>> counts);

  int steps() const { return static_cast<int>(counts_.size()); }
  int experts() const { return experts_; }
  bool has(int layer) const;  // in every step
  // Steps beyond the recorded ones begin again with the first.
  const std::vector<double>& at(int step, int layer) const;

 private:
  std::vector<std::map<int, std::vector<double>>> counts_;
  int experts_ = 0;
};

using RecordedLoadsPtr = std::shared_ptr<const RecordedLoads>;

struct Popularity {
  PopularityKind kind = PopularityKind::kBalanced;
  double exponent =
      0;  // kZipf: the expert of rank r is chosen in proportion to r^-exponent; ranks are shuffled per layer
  bool per_microbatch = false;  // a fresh draw for each microbatch; otherwise one for each layer and step
  double concentration = 0;     // kDirichlet: weights are drawn once per layer; the smaller, the more uneven
  RecordedLoadsPtr recorded = {};
  double drift = 0;  // after each step the logarithm of every weight moves by a normal number times this
  // Auxiliary-loss-free balancing (DeepSeek-V3, section 2.1.2): after each step the bias of every expert that
  // is more popular than the mean falls by this, that of every other one rises. The bias is added to the
  // logarithm of the weight, where the paper adds it to the affinity.
  double balancing = 0;

  bool changes() const { return drift > 0 || balancing > 0 || kind == PopularityKind::kRecorded; }
  bool operator==(const Popularity&) const = default;
};

// In proportion to what a token draws the experts of a layer, one after the other, each at most once. Equal
// contents are equal. None: the popularity alone says how tokens choose.
class ExpertWeights {
 public:
  ExpertWeights() = default;
  explicit ExpertWeights(std::vector<double> weights)
      : weights_(std::make_shared<const std::vector<double>>(std::move(weights))) {}
  bool empty() const { return weights_ == nullptr; }
  const std::vector<double>& list() const { return *weights_; }  // not empty()
  bool operator==(const ExpertWeights& other) const {
    return weights_ == other.weights_ || (weights_ && other.weights_ && *weights_ == *other.weights_);
  }

 private:
  std::shared_ptr<const std::vector<double>> weights_;
};

// The shares of experts with weights r^-exponent of their ranks 1 .. experts, in an order shuffled by `key`.
std::vector<double> shuffled_zipf(std::int32_t experts, double exponent, std::uint64_t key);
// The key of a layer's ranking, which stays over steps and microbatches.
std::uint64_t ranking_key(std::uint64_t seed, int layer);

// The course of popularity over the steps of a run, layer by layer: a function of seed, layer and step. Steps
// are cheapest in order.
class PopularityCourse {
 public:
  // `active`: experts of a token. Recorded counts come back when each token draws so many: an expert that a
  // share p of the tokens used has weight -ln(1 - p), as drawing one after the other is close to drawing each
  // by itself (with one active expert, and for p up to 1/2 or so, to a per cent; choice limited to groups of
  // experts bends it further).
  PopularityCourse(const Popularity& popularity, std::uint64_t seed, int experts, int active);

  // None for balanced popularity, and for Zipf's that stays as it is.
  ExpertWeights at(int layer, int step);

 private:
  struct State {
    int step = -1;
    std::vector<double> logarithms;  // of the weights, without bias
    std::vector<double> biases;
    ExpertWeights weights;
  };
  void begin(State& state, int layer) const;
  void advance(State& state, int layer) const;
  void settle(State& state) const;
  ExpertWeights recorded(int layer, int step) const;

  Popularity popularity_;
  std::uint64_t seed_;
  int experts_, active_;
  std::map<int, State> layers_;
};

}  // namespace moebius
