#include "workloads/serving/system/expert_steps.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "workloads/routing/routing.h"

namespace moebius {

ExpertSteps::ExpertSteps(const Links& links, const ExpertBalancePlan& plan, const BalancerShape& shape)
    : links_(links), plan_(plan), shape_(shape), balancer_(plan, shape, *links.course) {}

// What a layer loses until the next placement is taken to be what it lost since the last one.
void ExpertSteps::begin(Time now, bool /*gives_tokens*/) {
  now_ = now;
  links_.course->advance(now);
  const double elapsed = (now - since_).seconds();
  const double saved = elapsed > 0 ? worth_ * plan_.every.seconds() / elapsed : 0;
  const auto rebalanced = [&] {
    return static_cast<std::int64_t>(balancer_.rebalances().size()) + balancer_.more_rebalances();
  };
  const std::int64_t before = rebalanced();
  balancer_.advance(now, {saved, links_.seconds_of_move});
  if (rebalanced() != before) worth_ = 0, since_ = now;
  take_shares();
}

void ExpertSteps::take_shares() {
  if (balancer_.version() == version_ && !shares_.empty()) return;
  version_ = balancer_.version();
  weights_.reset();
  shares_.assign(links_.loads->edges(), 0.0);
  const int layers = links_.course->layers();
  for (const double imbalance : balancer_.imbalances()) links_.loads->spread(imbalance, layers, shares_);
}

double ExpertSteps::added(const StepPoint& point, const std::vector<double>& shares, double times) {
  double sum = 0;
  for (int edge = 0; edge < static_cast<int>(shares.size()); ++edge)
    if (shares[edge] != 0) sum += shares[edge] * links_.loads->loaded(point, edge, times * shares[edge]);
  return sum;
}

double ExpertSteps::moved(const StepPoint& point, double lasts) {
  const std::vector<ExpertMove>& moves = balancer_.slice();
  if (!balancer_.moving()) return 0;
  const double slowed =
      moves.empty() ? 0 : links_.loads->moving(point, moves, shape_.ranks, shape_.expert_bytes);
  balancer_.slice_done(now_ + time_from_seconds(lasts + slowed), slowed);
  return slowed;
}

StepPoint ExpertSteps::fullest(std::span<const StepShape> replicas) {
  const StepShape* most = &replicas[0];
  for (const StepShape& shape : replicas)
    if (shape.rows() > most->rows()) most = &shape;
  return point_of(*most, replicas);
}

double ExpertSteps::forecast(std::span<const StepShape> replicas) {
  const double even = links_.even->forecast(replicas);
  take_shares();
  return links_.course->even() ? even : even + added(fullest(replicas), shares_);
}

// What the fullest ranks cost is against ranks that are loaded alike by experts as uneven as they are: few
// tokens that choose the same experts read fewer of them, which is no stall, and may be worth more than the
// fullest ranks cost.
double ExpertSteps::seconds(std::span<const StepShape> replicas) {
  const double even = even_ = links_.even->seconds(replicas);
  if (links_.course->even()) return even;
  std::int64_t rows = 0;
  for (const StepShape& shape : replicas) rows += shape.rows();
  const StepPoint point = fullest(replicas);
  balancer_.count(rows);
  const double added_by_loads = added(point, shares_, 1);
  if (plan_.policy == BalancePolicy::kGreedy && links_.loads->edges() > 4)
    worth_ += (links_.loads->loaded(point, 4) - links_.loads->loaded(point, 0)) /
              (links_.loads->edge(4) - 1) / links_.course->layers();
  sample(point);
  stalls_ = {.experts = std::max(0.0, added_by_loads - links_.loads->loaded(point, 0)),
             .moves = moved(point, even + added_by_loads)};
  return even + added_by_loads + stalls_.moves;
}

StepStalls ExpertSteps::stalls(std::span<const StepShape> replicas, double) {
  StepStalls stalls = stalls_;
  stalls.barrier = links_.even->stalls(replicas, even_).barrier;
  return stalls;
}

void ExpertSteps::sample_layers() {
  const std::vector<double>& imbalances = balancer_.imbalances();
  std::vector<int> order(imbalances.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&](int a, int b) { return std::pair(imbalances[a], a) < std::pair(imbalances[b], b); });
  const int layers = static_cast<int>(order.size()), few = std::min(kSampledLayers, layers);
  auto weights = std::make_shared<SlotWeights>();
  sampled_shares_.assign(links_.loads->edges(), 0.0);
  for (int i = 0; i < few; ++i) {
    const int layer = order[(2 * i + 1) * layers / (2 * few)];
    weights->push_back(ExpertWeights(draw_weights(balancer_.slot_loads(layer))));
    links_.loads->spread(imbalances[layer], few, sampled_shares_);
  }
  weights_ = weights;
}

void ExpertSteps::sample(const StepPoint& point) {
  std::int64_t place = asked_++;
  if (place >= kSampled)
    place = static_cast<std::int64_t>(random_bits(0x73746570, static_cast<std::uint64_t>(asked_)) % asked_);
  if (place >= kSampled) return;
  if (!weights_) sample_layers();
  if (place == static_cast<std::int64_t>(samples_.size())) samples_.emplace_back();
  samples_[place] = {point, weights_, links_.even->at(point) + added(point, sampled_shares_)};
}

}  // namespace moebius
