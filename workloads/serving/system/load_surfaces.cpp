#include "workloads/serving/system/load_surfaces.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <utility>

namespace moebius {
namespace {

// Of loads 1, x, x^2, ... of so many ranks: the first over the mean.
double imbalance_of_ratio(double x, int ranks) {
  double sum = 0, power = 1;
  for (int r = 0; r < ranks; ++r, power *= x) sum += power;
  return ranks / sum;
}

// In proportion; what a slot would have beyond 1 goes to the others.
void scale_to(std::span<double> loads, double sum) {
  const double all = std::accumulate(loads.begin(), loads.end(), 0.0);
  for (double& load : loads) load = all > 0 ? load * (sum / all) : sum / static_cast<double>(loads.size());
  for (std::size_t pass = 0; pass < loads.size(); ++pass) {
    double beyond = 0, rest = 0;
    for (double& load : loads) {
      beyond += std::max(0.0, load - 1);
      load = std::min(1.0, load);
      if (load < 1) rest += load;
    }
    if (beyond <= 0 || rest <= 0) return;
    for (double& load : loads)
      if (load < 1) load *= 1 + beyond / rest;
  }
}

// Prompts and contexts of 512 tokens.
StepPoint with_short_contexts(StepPoint point) {
  constexpr std::int64_t kKeys = 256;
  if (point.prefill_tokens > 0) point.prefill_keys = kKeys;
  if (point.decode_sequences > 0) point.decode_keys = kKeys;
  return point;
}

std::int64_t nearest_power(std::int64_t value, double base) {
  if (value < 1) return 0;
  return std::llround(std::pow(base, std::round(std::log(static_cast<double>(value)) / std::log(base))));
}

}  // namespace

std::vector<double> loads_with_imbalance(double imbalance, int ranks, double active,
                                         std::span<const double> like) {
  double low = 0, high = 1;  // ratio of one rank's load to the one before
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (imbalance_of_ratio(middle, ranks) > imbalance ? low : high) = middle;
  }
  const std::size_t each = like.size() / static_cast<std::size_t>(ranks);
  const auto of_rank = [&](int rank) { return like.subspan(static_cast<std::size_t>(rank) * each, each); };
  std::vector<double> sums(ranks);
  for (int r = 0; r < ranks; ++r) sums[r] = std::accumulate(of_rank(r).begin(), of_rank(r).end(), 0.0);
  std::vector<int> order(ranks);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return sums[a] > sums[b]; });
  std::vector<double> loads(like.begin(), like.end());
  for (int place = 0; place < ranks; ++place) {
    const int rank = order[place];
    const double load = active * imbalance / ranks * std::pow(imbalance > 1 ? high : 1, place);
    scale_to(std::span(loads).subspan(static_cast<std::size_t>(rank) * each, each), load);
  }
  return loads;
}

std::vector<double> draw_weights(const std::vector<double>& loads) {
  constexpr double kMost = 1 - 1e-6, kLeast = 1e-9;  // a slot of all tokens, and of none
  std::vector<double> weights;
  weights.reserve(loads.size());
  for (const double load : loads) weights.push_back(-std::log1p(-std::clamp(load, kLeast, kMost)));
  return weights;
}

LoadSurfaces::LoadSurfaces(Measures measures, double most) : measures_(std::move(measures)) {
  for (const double first : {1.0, 1.125, 1.25, 1.5})
    if (first < most || first == 1.0) edges_.push_back(first);
  for (int octave = 1; std::ldexp(1, octave) < most; ++octave)
    for (const double at : {std::ldexp(1, octave), std::ldexp(1.5, octave)})
      if (at < most) edges_.push_back(at);
  surfaces_.resize(edges_.size());
}

void LoadSurfaces::spread(double imbalance, int layers, std::vector<double>& shares) const {
  const auto above = std::upper_bound(edges_.begin(), edges_.end(), imbalance);
  const auto upper = static_cast<std::size_t>(above - edges_.begin());
  const std::size_t high =
      std::clamp<std::size_t>(upper, std::min<std::size_t>(1, edges_.size() - 1), edges_.size() - 1);
  const std::size_t low = high == 0 ? 0 : high - 1;
  // Beyond the last edge as between the two before it.
  const double at = high == low ? 0 : (imbalance - edges_[low]) / (edges_[high] - edges_[low]);
  shares[low] += (1 - at) / layers;
  shares[high] += at / layers;
}

double LoadSurfaces::loaded(const StepPoint& point, int edge, double times) {
  std::unique_ptr<StepSurface>& surface = surfaces_[edge];
  if (!surface)
    surface = std::make_unique<StepSurface>([this, edge](const StepPoint& at) {
      StepTime beyond = measures_.loaded(at, edges_[edge]);
      beyond.add(measures_.even(at), -1);
      return beyond;
    });
  return surface->at(with_short_contexts(point), times);
}

double LoadSurfaces::moving(const StepPoint& point, const std::vector<ExpertMove>& moves, int ranks,
                            double expert_bytes) {
  std::vector<int> got(ranks, 0), sent(ranks, 0);
  auto bytes = std::make_shared<PairBytes>();
  bytes->ranks = ranks;
  bytes->bytes.assign(static_cast<std::size_t>(ranks) * ranks, 0.0);
  for (const ExpertMove& move : moves) {
    ++got[move.to];
    ++sent[move.from];
    bytes->bytes[static_cast<std::size_t>(move.from) * ranks + move.to] += expert_bytes;
  }
  const StepPoint near{.prefill_tokens = nearest_power(point.prefill_tokens, 2),
                       .prefill_keys = nearest_power(point.prefill_keys, 4),
                       .decode_sequences = nearest_power(point.decode_sequences, 2),
                       .decode_keys = nearest_power(point.decode_keys, 4),
                       .eager = point.eager,
                       .absorbed = point.absorbed};
  const MoveKey key{near.prefill_tokens,
                    near.prefill_keys,
                    near.decode_sequences,
                    near.decode_keys,
                    *std::max_element(got.begin(), got.end()),
                    *std::max_element(sent.begin(), sent.end()),
                    near.eager,
                    near.absorbed};
  const auto known = moving_.find(key);
  if (known != moving_.end()) return known->second;
  return moving_[key] = std::max(0.0, measures_.moving(near, bytes) - measures_.moving(near, nullptr));
}

BusySources LoadSurfaces::busy() const {
  BusySources sum;
  for (const auto& surface : surfaces_)
    if (surface) sum.add(surface->busy(), 1);
  return sum;
}

std::int64_t LoadSurfaces::measured() const {
  std::int64_t sum = static_cast<std::int64_t>(moving_.size());
  for (const auto& surface : surfaces_) sum += surface ? surface->measured() : 0;
  return sum;
}

}  // namespace moebius
