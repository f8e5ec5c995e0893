#include "workloads/serving/balancing/expert_course.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "hw/normal_law.h"
#include "workloads/routing/random_stream.h"
#include "workloads/routing/routing.h"

namespace moebius {
namespace {

constexpr std::uint64_t kDomainKey = 0x646f6d61, kDriftKey = 0x64726966;

std::vector<std::int32_t> by_falling(const std::vector<double>& values) {
  std::vector<std::int32_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::int32_t a, std::int32_t b) { return values[a] > values[b]; });
  return order;
}

}  // namespace

// c by Newton's method: the sum of 1 - exp(-c w) rises and bends down, so that from below it never goes too
// far.
std::vector<double> chances_of(const std::vector<double>& weights, double active) {
  const double all = std::accumulate(weights.begin(), weights.end(), 0.0);
  double c = active / all;
  for (int i = 0; i < 50; ++i) {
    double sum = 0, slope = 0;
    for (const double w : weights) sum -= std::expm1(-c * w), slope += w * std::exp(-c * w);
    if (active - sum < 1e-12 * active || slope <= 0) break;
    c += (active - sum) / slope;
  }
  std::vector<double> chances;
  chances.reserve(weights.size());
  for (const double w : weights) chances.push_back(-std::expm1(-c * w));
  return chances;
}

ExpertCourse::ExpertCourse(const Popularity& popularity, const ExpertDrift& drift, std::uint64_t seed,
                           const Model& model)
    : popularity_(popularity),
      drift_(drift),
      seed_(seed),
      experts_(model.experts.routed),
      active_(model.experts.active),
      recorded_(popularity, seed, experts_, active_) {
  for (int e = 0; e < experts_; ++e) normal_scores_.push_back(normal_quantile((e + 0.5) / experts_));
  for (int layer = 0; layer < model.layers; ++layer) {
    if (!model.is_moe_layer(layer)) continue;
    layers_.emplace_back().number = layer;
    popularity.kind == PopularityKind::kRecorded ? begin_recorded(layers_.back(), 0)
                                                 : begin(layers_.back(), 0);
  }
}

// Domain 0 is the popularity of the seed itself.
void ExpertCourse::begin(Layer& layer, int domain) const {
  const std::uint64_t seed = domain == 0 ? seed_ : random_bits(seed_, kDomainKey, domain);
  std::vector<double> weights(experts_, 1.0);
  if (popularity_.kind == PopularityKind::kZipf)
    weights = shuffled_zipf(experts_, popularity_.exponent, ranking_key(seed, layer.number));
  if (popularity_.kind == PopularityKind::kDirichlet)
    weights = PopularityCourse(popularity_, seed, experts_, active_).at(layer.number, 0).list();
  layer.chances = chances_of(weights, active_);
  layer.order = by_falling(layer.chances);
  layer.falling.resize(experts_);
  layer.scores.resize(experts_);
  for (int rank = 0; rank < experts_; ++rank) {
    layer.falling[rank] = layer.chances[layer.order[rank]];
    layer.scores[layer.order[rank]] = normal_scores_[rank];
  }
}

// Fewer experts than the model's may be recorded: the others are never used.
void ExpertCourse::begin_recorded(Layer& layer, int step) {
  std::vector<double> weights = recorded_.at(layer.number, step).list();
  weights.resize(experts_, 0);
  layer.chances = chances_of(weights, active_);
}

void ExpertCourse::drift(Layer& layer) const {
  const double kept = std::exp(-1.0 / 60), fresh = std::sqrt(1 - kept * kept);
  RandomStream random(random_bits(seed_, kDriftKey, static_cast<std::uint64_t>(layer.number),
                                  static_cast<std::uint64_t>(ticks_)));
  for (double& score : layer.scores) score = kept * score + fresh * random.normal();
  layer.order = by_falling(layer.scores);
  for (int rank = 0; rank < experts_; ++rank) layer.chances[layer.order[rank]] = layer.falling[rank];
}

void ExpertCourse::advance(Time now) {
  if (even()) return;
  if (popularity_.kind == PopularityKind::kRecorded) {
    if (drift_.recorded_step.ns == 0 || now.ns / drift_.recorded_step.ns == step_) return;
    step_ = now.ns / drift_.recorded_step.ns;
    ++version_;
    for (Layer& layer : layers_)
      begin_recorded(layer, static_cast<int>(step_ % popularity_.recorded->steps()));
    return;
  }
  while (true) {
    const Time tick_at = drift_.correlation.ns > 0 ? Time{(ticks_ + 1) * tick().ns} : kForever;
    const Time domain_at = domains_ < drift_.domains.size() ? drift_.domains[domains_].at : kForever;
    if (std::min(tick_at, domain_at) > now) return;
    ++version_;
    if (domain_at <= tick_at) {
      for (Layer& layer : layers_) begin(layer, drift_.domains[domains_].number);
      ++domains_;
    } else {
      ++ticks_;
      for (Layer& layer : layers_) drift(layer);
    }
  }
}

}  // namespace moebius
