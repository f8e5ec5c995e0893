#include "workloads/serving/balancing/expert_balancer.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "hw/error.h"
#include "workloads/routing/random_stream.h"
#include "workloads/routing/routing.h"
#include "workloads/serving/balancing/expert_placement.h"

namespace moebius {
namespace {

constexpr std::uint64_t kCountKey = 0x636f756e;
constexpr int kBinsOfWindow = 8;

// How many of `tokens` used an expert, each with that chance: exactly one by one where they are few, else by
// the normal distribution that the binomial one comes near.
double drawn_count(std::int64_t tokens, double chance, RandomStream& random) {
  const double mean = static_cast<double>(tokens) * chance;
  if (tokens <= 64) {
    int count = 0;
    for (std::int64_t i = 0; i < tokens; ++i) count += random.unit() < chance ? 1 : 0;
    return count;
  }
  return std::max(0.0, std::round(mean + random.normal() * std::sqrt(mean * (1 - chance))));
}

}  // namespace

bool keeps_groups(const ExpertBalancePlan& plan, const BalancerShape& shape, int experts) {
  const int groups = shape.groups.groups;
  if (plan.policy == BalancePolicy::kNone || plan.policy == BalancePolicy::kGlobal || shape.always > 0)
    return false;
  if (shape.ranks % shape.ranks_per_node != 0 || experts % groups != 0) return false;
  return groups % (shape.ranks / shape.ranks_per_node) == 0;
}

GroupedChoice choice_of(const ExpertBalancePlan& plan, const BalancerShape& shape, int experts) {
  if (plan.policy == BalancePolicy::kNone && shape.always == 0) return shape.groups;
  if (!keeps_groups(plan, shape, experts)) return {};
  const int nodes = shape.ranks / shape.ranks_per_node;
  const auto [groups, active] = shape.groups;
  const int elsewhere = groups - groups / nodes;  // of the groups, which nodes hold evenly
  double missed = 1;  // that all its groups stand on other nodes than a certain one
  for (int i = 0; i < active; ++i) missed *= std::max(0.0, static_cast<double>(elsewhere - i)) / (groups - i);
  return {nodes, std::max(1, static_cast<int>(std::lround(nodes * (1 - missed))))};
}

ExpertBalancer::ExpertBalancer(const ExpertBalancePlan& plan, const BalancerShape& shape,
                               const ExpertCourse& course)
    : plan_(plan),
      shape_(shape),
      course_(course),
      places_(course.layers()),
      imbalances_(course.layers(), 1.0),
      copies_(static_cast<std::size_t>(course.layers()) * experts(), 0.0),
      next_(plan.loops() ? plan.every : kForever) {
  place_first();
  settle();
}

std::vector<double> ExpertBalancer::chances(int layer) const {
  std::vector<double> all = course_.chances(layer);
  all.insert(all.end(), shape_.always, 1.0);
  return all;
}

void ExpertBalancer::place_first() {
  for (int layer = 0; layer < course_.layers(); ++layer) {
    if (plan_.policy != BalancePolicy::kNone && plan_.known_start && !course_.even()) {
      places_[layer] = placed(chances(layer));
      continue;
    }
    for (int slot = 0; slot < shape_.slots; ++slot) places_[layer].push_back(slot % experts());
  }
}

// Greedy betters what it has; its first placement is that of the algorithm.
SlotExperts ExpertBalancer::placed(const std::vector<double>& loads) const {
  PlacementShape shape{experts(), shape_.slots, 1, 1, shape_.ranks};
  if (keeps_groups(plan_, shape_, experts())) {
    shape.groups = shape_.groups.groups;
    shape.nodes = shape_.ranks / shape_.ranks_per_node;
  }
  return place_experts(loads, shape).expert_of_slot;
}

std::vector<double> ExpertBalancer::slot_loads(int layer) const {
  return loads_of_slots(places_[layer], chances(layer), shape_.ranks, plan_.split);
}

double ExpertBalancer::imbalance(int layer, const SlotExperts& slots) const {
  return imbalance_of(
      loads_of_ranks(loads_of_slots(slots, chances(layer), shape_.ranks, plan_.split), shape_.ranks));
}

// Even popularity is what balancing aims for: tokens are dealt over slots.
void ExpertBalancer::settle() {
  course_version_ = course_.version();
  if (course_.even()) return;
  chances_counted_.clear();
  for (int layer = 0; layer < course_.layers(); ++layer) {
    const std::vector<double> met = chances(layer);
    chances_counted_.insert(chances_counted_.end(), met.begin(), met.end());
    imbalances_[layer] = imbalance(layer, places_[layer]);
  }
  changed();
}

void ExpertBalancer::changed() {
  ++version_;
  mean_ = std::accumulate(imbalances_.begin(), imbalances_.end(), 0.0) / course_.layers();
}

// By the popularity that the tokens met, before it changed.
void ExpertBalancer::draw_copies() {
  RandomStream random(random_bits(shape_.seed, kCountKey, static_cast<std::uint64_t>(++flushes_)));
  seen_.resize(copies_.size(), 0.0);
  for (std::size_t i = 0; i < copies_.size(); ++i)
    seen_[i] += drawn_count(counted_, chances_counted_[i], random);
  counted_ = 0;
}

void ExpertBalancer::flush(Time now) {
  const Time since = std::exchange(flushed_, now);
  if (counted_ > 0) draw_copies();
  if (!seen_.empty()) {
    const Time bin{plan_.window.ns / kBinsOfWindow};
    if (plan_.loops() && (bins_.empty() || since - bins_.back().begin >= bin))
      bins_.push_back({since, std::vector<float>(copies_.size(), 0.0F)});
    for (std::size_t i = 0; i < copies_.size(); ++i) {
      if (plan_.loops()) bins_.back().copies[i] += static_cast<float>(seen_[i]);
      copies_[i] += seen_[i];
    }
    seen_.clear();
  }
  while (bins_.size() > 1 && bins_[1].begin <= now - plan_.window) bins_.pop_front();
}

void ExpertBalancer::count(std::int64_t tokens) {
  counted_ += tokens;
  count_tokens(tokens);
}

void ExpertBalancer::count(std::int64_t tokens, std::span<const double> copies) {
  CHECK(copies.size() == copies_.size(), fmt::format("{} counts for {}", copies.size(), copies_.size()));
  seen_.resize(copies_.size(), 0.0);
  for (std::size_t i = 0; i < copies.size(); ++i) seen_[i] += copies[i];
  count_tokens(tokens);
}

void ExpertBalancer::count_tokens(std::int64_t tokens) {
  tokens_ += static_cast<double>(tokens);
  imbalance_tokens_ += static_cast<double>(tokens) * mean_;
}

double ExpertBalancer::mean_imbalance() const {
  return tokens_ > 0 ? imbalance_tokens_ / tokens_ : 1;
}

void ExpertBalancer::advance(Time now, const MoveWorth& worth) {
  if (course_.even()) return;
  if (course_.version() != course_version_) {
    flush(now);
    settle();
  }
  if (plan_.loops() && now - flushed_ >= Time{plan_.window.ns / kBinsOfWindow}) flush(now);
  if (now < next_ || !pending_.empty()) return;
  flush(now);
  rebalance(now, worth);
  while (next_ <= now) next_ += plan_.every;
}

std::vector<double> ExpertBalancer::window_loads(int layer) const {
  std::vector<double> loads(experts(), 0.0);
  const std::size_t first = static_cast<std::size_t>(layer) * loads.size();
  for (const Bin& bin : bins_)
    for (std::size_t e = 0; e < loads.size(); ++e) loads[e] += bin.copies[first + e];
  return loads;
}

void ExpertBalancer::rebalance_layer(int layer, const MoveWorth& worth, Rebalance& of) {
  const std::vector<double> loads = window_loads(layer);
  of.before += 1 / imbalances_[layer];
  if (std::accumulate(loads.begin(), loads.end(), 0.0) == 0) {
    of.after += 1 / imbalances_[layer];
    return;
  }
  const bool greedy = plan_.policy == BalancePolicy::kGreedy;
  const SlotExperts wanted =
      greedy ? better_placement(places_[layer], loads, shape_.ranks, worth) : placed(loads);
  Rearrangement change = rearrange(places_[layer], wanted, shape_.ranks, shape_.ranks_per_node);
  of.after += 1 / imbalance(layer, change.expert_of_slot);
  of.moves += static_cast<std::int64_t>(change.moves.size());
  if (change.expert_of_slot != places_[layer]) pending_.push_back({layer, std::move(change)});
}

void ExpertBalancer::rebalance(Time now, const MoveWorth& worth) {
  Rebalance of;
  of.at = now;
  of.before = of.after = 0;
  for (int layer = 0; layer < course_.layers(); ++layer) rebalance_layer(layer, worth, of);
  of.before /= course_.layers();
  of.after /= course_.layers();
  of.bytes = static_cast<double>(of.moves) * shape_.expert_bytes * shape_.cut_over;
  if (pending_.empty()) of.done = now;
  if (rebalances_.size() == kMostRebalances) {
    ++more_;
    rebalances_.back() = of;
  } else {
    rebalances_.push_back(of);
  }
}

const std::vector<ExpertMove>& ExpertBalancer::slice() {
  if (slice_layers_ > 0 || pending_.empty()) return slice_;
  slice_layers_ = std::min<std::size_t>(plan_.slice, pending_.size());
  for (std::size_t i = 0; i < slice_layers_; ++i)
    slice_.insert(slice_.end(), pending_[i].change.moves.begin(), pending_[i].change.moves.end());
  return slice_;
}

ExpertTransfer ExpertBalancer::slice_transfer() const {
  ExpertTransfer transfer;
  for (std::size_t i = 0; i < slice_layers_; ++i) {
    const auto& [layer, change] = pending_[i];
    transfer.layers.push_back(transfer_of(course_.layer(layer), places_[layer], change, shape_.ranks));
  }
  return transfer;
}

// Tokens that the iteration routed still met the old places.
void ExpertBalancer::slice_done(Time end, double slowed) {
  for (; slice_layers_ > 0; --slice_layers_) {
    const auto& [layer, change] = pending_.front();
    places_[layer] = change.expert_of_slot;
    imbalances_[layer] = imbalance(layer, places_[layer]);
    pending_.pop_front();
  }
  slice_.clear();
  changed();
  rebalances_.back().slowed += slowed;
  if (pending_.empty()) rebalances_.back().done = end;
}

}  // namespace moebius
