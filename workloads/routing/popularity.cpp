#include "workloads/routing/popularity.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "hw/error.h"
#include "workloads/routing/random_stream.h"
#include "workloads/routing/routing.h"

namespace moebius {
namespace {

// The logarithm of a gamma variate (Marsaglia and Tsang 2000); below a shape of 1 that of one more, and
// ln(u) / shape, which does not underflow for small shapes as the variate itself would.
double log_gamma_variate(double shape, RandomStream& random) {
  if (shape < 1) return log_gamma_variate(shape + 1, random) + std::log(random.unit()) / shape;
  const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  while (true) {
    const double x = random.normal(), cube = 1 + c * x;
    if (cube <= 0) continue;
    const double v = cube * cube * cube;
    if (std::log(random.unit()) < 0.5 * x * x + d - d * v + d * std::log(v)) return std::log(d * v);
  }
}

// Of numbers given as logarithms: each over their sum.
std::vector<double> shares_of(const std::vector<double>& logarithms) {
  const double most = *std::max_element(logarithms.begin(), logarithms.end());
  std::vector<double> shares;
  for (const double logarithm : logarithms) shares.push_back(std::exp(logarithm - most));
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  for (double& share : shares) share /= sum;
  return shares;
}

}  // namespace

RecordedLoads::RecordedLoads(std::vector<std::map<int, std::vector<double>>> counts)
    : counts_(std::move(counts)) {
  CHECK(!counts_.empty() && !counts_.front().empty(), std::string("no recorded step"));
  experts_ = static_cast<int>(counts_.front().begin()->second.size());
}

bool RecordedLoads::has(int layer) const {
  return std::all_of(counts_.begin(), counts_.end(),
                     [&](const auto& layers) { return layers.count(layer) > 0; });
}

const std::vector<double>& RecordedLoads::at(int step, int layer) const {
  return counts_[step % counts_.size()].at(layer);
}

std::vector<double> shuffled_zipf(std::int32_t experts, double exponent, std::uint64_t key) {
  std::vector<double> weights(experts);
  RandomStream random(key);
  std::vector<std::int32_t> expert_of_rank(experts);
  std::iota(expert_of_rank.begin(), expert_of_rank.end(), 0);
  for (std::int32_t r = 0; r < experts; ++r) {
    std::swap(expert_of_rank[r], expert_of_rank[r + random.below(experts - r)]);
    weights[expert_of_rank[r]] = std::pow(r + 1.0, -exponent);
  }
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (double& weight : weights) weight /= sum;
  return weights;
}

PopularityCourse::PopularityCourse(const Popularity& popularity, std::uint64_t seed, int experts, int active)
    : popularity_(popularity), seed_(seed), experts_(experts), active_(active) {}

// Draws of a layer: apart from those of its tokens, which have keys of their own.
void PopularityCourse::begin(State& state, int layer) const {
  state = {};
  state.step = 0;
  state.biases.assign(experts_, 0.0);
  state.logarithms.assign(experts_, 0.0);
  RandomStream random(random_bits(seed_, 0xd1d1, static_cast<std::uint64_t>(layer)));
  switch (popularity_.kind) {
    case PopularityKind::kBalanced:
      break;
    case PopularityKind::kZipf: {
      const auto shares = shuffled_zipf(experts_, popularity_.exponent, ranking_key(seed_, layer));
      for (int e = 0; e < experts_; ++e) state.logarithms[e] = std::log(shares[e]);
      break;
    }
    case PopularityKind::kDirichlet:
      for (double& value : state.logarithms) value = log_gamma_variate(popularity_.concentration, random);
      break;
    case PopularityKind::kRecorded:
      break;
  }
  settle(state);
}

void PopularityCourse::settle(State& state) const {
  std::vector<double> biased = state.logarithms;
  for (int e = 0; e < experts_; ++e) biased[e] += state.biases[e];
  state.weights = ExpertWeights(shares_of(biased));
}

void PopularityCourse::advance(State& state, int layer) const {
  ++state.step;
  RandomStream random(random_bits(seed_, 0xd21f7, static_cast<std::uint64_t>(layer), state.step));
  const std::vector<double>& shares = state.weights.list();
  const double mean = 1.0 / experts_;
  for (int e = 0; e < experts_; ++e) {
    if (popularity_.drift > 0) state.logarithms[e] += popularity_.drift * random.normal();
    if (shares[e] != mean)
      state.biases[e] += shares[e] > mean ? -popularity_.balancing : popularity_.balancing;
  }
  settle(state);
}

ExpertWeights PopularityCourse::recorded(int layer, int step) const {
  const std::vector<double>& counts = popularity_.recorded->at(step, layer);
  const double tokens = std::accumulate(counts.begin(), counts.end(), 0.0) / active_;
  constexpr double kMost = 1 - 1e-6;  // an expert of all tokens
  std::vector<double> weights;
  for (const double count : counts) weights.push_back(-std::log1p(-std::min(count / tokens, kMost)));
  weights.resize(experts_);  // those that no row names: no token chose them
  return ExpertWeights(std::move(weights));
}

ExpertWeights PopularityCourse::at(int layer, int step) {
  if (popularity_.kind == PopularityKind::kBalanced) return {};
  if (popularity_.kind == PopularityKind::kZipf && !popularity_.changes()) return {};
  State& state = layers_[layer];
  if (popularity_.kind == PopularityKind::kRecorded) {
    if (state.step != step) state.weights = recorded(layer, step);
    state.step = step;
    return state.weights;
  }
  if (state.step < 0 || state.step > step) begin(state, layer);
  while (state.step < step && popularity_.changes()) advance(state, layer);
  return state.weights;
}

}  // namespace moebius
