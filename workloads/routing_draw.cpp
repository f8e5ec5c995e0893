#include "workloads/routing_draw.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace moebius {

namespace {

// The weights r^-exponent of the ranks 1 .. experts, in an order shuffled by `key`.
std::vector<double> shuffled_zipf(std::int32_t experts, double exponent, std::uint64_t key) {
  std::vector<double> weights(experts);
  RandomStream random(key);
  std::vector<std::int32_t> expert_of_rank(experts);
  std::iota(expert_of_rank.begin(), expert_of_rank.end(), 0);
  for (std::int32_t r = 0; r < experts; ++r) {
    std::swap(expert_of_rank[r], expert_of_rank[r + random.below(experts - r)]);
    weights[expert_of_rank[r]] = std::pow(r + 1.0, -exponent);
  }
  return weights;
}

}  // namespace

std::uint64_t random_bits(std::uint64_t seed, std::uint64_t a, std::uint64_t b, std::uint64_t c,
                          std::uint64_t d) {
  std::uint64_t z = RandomStream::finalise(seed + RandomStream::kGolden);
  for (const std::uint64_t part : {a, b, c, d})
    z = RandomStream::finalise((z ^ part) + RandomStream::kGolden);
  return z;
}

double random_unit(std::uint64_t bits) {
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

Deck::Deck(std::int32_t size) : cards_(size) {
  std::iota(cards_.begin(), cards_.end(), 0);
}

void Deck::deal(RandomStream& random, std::int32_t count, std::int32_t offset, std::int32_t* out) {
  const auto size = static_cast<std::int32_t>(cards_.size());
  std::int32_t old = 0;  // numbers of this hand that came from the deck before: the new one has them again
  for (std::int32_t i = 0; i < count; ++i) {
    if (next_ == size) {
      next_ = 0;
      old = i;
    }
    std::int32_t at = next_ + static_cast<std::int32_t>(random.below(size - next_));
    while (std::find(out, out + old, cards_[at] + offset) != out + old) {
      at = next_ + static_cast<std::int32_t>(random.below(size - next_));
    }
    std::swap(cards_[next_], cards_[at]);
    out[i] = cards_[next_++] + offset;
  }
}

BalancedDealer::BalancedDealer(const RouteSpec& spec, std::uint64_t key)
    : random_(key),
      groups_(spec.groups),
      experts_(spec.groups, Deck(spec.experts / spec.groups)),
      active_(spec.active),
      experts_per_group_(spec.experts / spec.groups),
      hand_(spec.active_groups) {}

void BalancedDealer::choose(std::int32_t* experts) {
  const auto num_groups = static_cast<std::int32_t>(hand_.size());
  groups_.deal(random_, num_groups, 0, hand_.data());
  std::int32_t dealt = 0;
  for (std::int32_t i = 0; i < num_groups; ++i) {
    const std::int32_t count = active_ / num_groups + (i < active_ % num_groups ? 1 : 0);
    experts_[hand_[i]].deal(random_, count, hand_[i] * experts_per_group_, experts + dealt);
    dealt += count;
  }
}

AliasTable::AliasTable(const double* weights, std::int32_t size) : slots_(size) {
  const double scale = size / std::accumulate(weights, weights + size, 0.0);
  std::vector<double> share(size);  // of a slot's width
  std::vector<std::int32_t> small, large;
  for (std::int32_t i = 0; i < size; ++i) {
    share[i] = weights[i] * scale;
    (share[i] < 1 ? small : large).push_back(i);
    slots_[i] = {0xffffffffu, i};
  }
  while (!small.empty() && !large.empty()) {
    const std::int32_t poor = small.back(), rich = large.back();
    small.pop_back();
    slots_[poor] = {static_cast<std::uint32_t>(share[poor] * 0x1p32), rich};
    share[rich] -= 1 - share[poor];
    if (share[rich] < 1) {
      large.pop_back();
      small.push_back(rich);
    }
  }
}

PopularChooser::PopularChooser(const RouteSpec& spec, std::uint64_t ranking_key)
    : active_(spec.active),
      groups_(spec.groups),
      active_groups_(spec.active_groups),
      weights_(shuffled_zipf(spec.experts, spec.popularity.exponent, ranking_key)),
      table_(weights_.data(), spec.experts) {
  if (active_groups_ == groups_) groups_ = active_groups_ = 1;  // no limit
  group_weights_.resize(groups_);
  for (std::int32_t e = 0; e < spec.experts; ++e) {
    group_of_.push_back(e / (spec.experts / groups_));
    group_weights_[group_of_[e]] += weights_[e];
  }
}

PopularChooser::Scratch PopularChooser::scratch() const {
  Scratch scratch{std::vector<std::uint8_t>(weights_.size()), std::vector<std::uint8_t>(groups_),
                  std::vector<std::int32_t>(groups_)};
  std::iota(scratch.groups.begin(), scratch.groups.end(), 0);
  return scratch;
}

void PopularChooser::choose_groups(RandomStream& random, Scratch& scratch) const {
  if (groups_ == 1) return;
  std::vector<std::int32_t>& groups = scratch.groups;
  std::fill(scratch.group_closed.begin(), scratch.group_closed.end(), 1);
  double left = std::accumulate(group_weights_.begin(), group_weights_.end(), 0.0);
  for (std::int32_t i = 0; i < active_groups_; ++i) {
    double mark = random_unit(random.bits()) * left;
    std::int32_t at = i;
    while (at + 1 < groups_ && mark >= group_weights_[groups[at]]) mark -= group_weights_[groups[at++]];
    std::swap(groups[i], groups[at]);
    left -= group_weights_[groups[i]];
    scratch.group_closed[groups[i]] = 0;
  }
}

// The same distribution as drawing until something open comes, by one pass over all that is left.
std::int32_t PopularChooser::draw_open(RandomStream& random, const Scratch& scratch) const {
  const auto experts = static_cast<std::int32_t>(weights_.size());
  double left = 0;
  for (std::int32_t e = 0; e < experts; ++e) left += is_open(scratch, e) ? weights_[e] : 0;
  double mark = random_unit(random.bits()) * left;
  std::int32_t last = -1;
  for (std::int32_t e = 0; e < experts; ++e) {
    if (!is_open(scratch, e)) continue;
    last = e;
    mark -= weights_[e];
    if (mark < 0) break;
  }
  return last;
}

void PopularChooser::choose(RandomStream& random, Scratch& scratch, std::int32_t* experts) const {
  constexpr int kPatience = 16;  // draws before the pass over all experts is cheaper, for very skewed weights
  choose_groups(random, scratch);
  for (std::int32_t i = 0; i < active_; ++i) {
    std::int32_t expert = table_.draw(random);
    for (int tries = 1; !is_open(scratch, expert); ++tries) {
      expert = tries < kPatience ? table_.draw(random) : draw_open(random, scratch);
    }
    scratch.closed[expert] = 1;
    experts[i] = expert;
  }
  for (std::int32_t i = 0; i < active_; ++i) scratch.closed[experts[i]] = 0;
}

}  // namespace moebius
