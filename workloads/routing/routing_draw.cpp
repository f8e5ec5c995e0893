#include "workloads/routing/routing_draw.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <type_traits>

namespace moebius {

namespace {

// Of this layer and step, together 1.
std::vector<double> weights_of(const RouteSpec& spec, std::uint64_t ranking_key) {
  if (spec.weights.empty()) return shuffled_zipf(spec.experts, spec.popularity.exponent, ranking_key);
  std::vector<double> weights = spec.weights.list();
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (double& weight : weights) weight /= sum;
  return weights;
}

// A share of the whole as a whole number: of 2^60, at least one.
WeightedItem weighted(double share, std::int32_t item) {
  return {std::max<std::uint64_t>(1, static_cast<std::uint64_t>(share * 0x1p60)), item};
}

// All sets of `size` of the groups, as bits, or nothing where their pools of experts would need more than
// half a megabyte or so.
std::vector<std::uint32_t> few_sets(std::int32_t groups, std::int32_t size, std::int32_t experts_per_group) {
  constexpr std::int32_t kMostGroups = 12, kMostSlots = 1 << 16;
  std::vector<std::uint32_t> sets;
  if (groups > kMostGroups) return sets;
  for (std::uint32_t set = 0; set < 1u << groups; ++set) {
    if (std::popcount(set) == size) sets.push_back(set);
  }
  if (static_cast<std::int64_t>(sets.size()) * size * experts_per_group > kMostSlots) sets.clear();
  return sets;
}

// How likely each set of groups is to be that of the groups chosen so far, when they are chosen one after the
// other.
std::vector<double> chances_of_sets(const std::vector<WeightedItem>& groups) {
  std::vector<double> chances(std::size_t{1} << groups.size());
  chances[0] = 1;
  for (std::size_t set = 0; set < chances.size(); ++set) {
    std::uint64_t left = 0;
    for (const WeightedItem& group : groups) left += set >> group.item & 1 ? 0 : group.weight;
    for (const WeightedItem& group : groups) {
      if (set >> group.item & 1) continue;
      chances[set | std::size_t{1} << group.item] +=
          chances[set] * (static_cast<double>(group.weight) / static_cast<double>(left));
    }
  }
  return chances;
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

// A hand for which the deck is not enough: the rest of it, then cards of the new one.
void Deck::deal_over(RandomStream& random, std::int32_t count, std::int32_t offset, std::int32_t* out) {
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
      each_(spec.active / spec.active_groups),
      hand_(spec.active_groups),
      order_(spec.active % spec.active_groups != 0 ? spec.groups : 0) {}

// A hand is the next stretch of the groups in a circle. After groups / gcd(groups, active_groups) hands every
// group has stood at the same places of a hand, modulo the gcd, and the places move on by one: so after as
// many hands as there are groups each has stood at every place once and has given `active` experts. Then the
// order is drawn anew.
void BalancedDealer::deal_in_turn() {
  const auto groups = static_cast<std::int32_t>(order_.size()),
             size = static_cast<std::int32_t>(hand_.size());
  if (turn_ == 0) groups_.deal(random_, groups, 0, order_.data());
  for (std::int32_t i = 0; i < size; ++i) hand_[i] = order_[(turn_ * size + i) % groups];
  shift_ = turn_ * std::gcd(groups, size) / groups;
  turn_ = (turn_ + 1) % groups;
}

void BalancedDealer::choose(std::int32_t* experts) {
  const auto num_groups = static_cast<std::int32_t>(hand_.size());
  if (order_.empty()) return choose_evenly(experts);
  deal_in_turn();
  std::int32_t dealt = 0;
  for (std::int32_t i = 0; i < num_groups; ++i) {
    const std::int32_t place = (i + shift_) % num_groups;
    const std::int32_t count = active_ * (place + 1) / num_groups - active_ * place / num_groups;
    experts_[hand_[i]].deal(random_, count, hand_[i] * experts_per_group_, experts + dealt);
    dealt += count;
  }
}

template <class Count>
void BalancedDealer::give_each(RandomStream& random, Count count, std::int32_t* experts) {
  for (const std::int32_t group : hand_) {
    experts_[group].deal(random, count, group * experts_per_group_, experts);
    experts += count;
  }
}

void BalancedDealer::choose_evenly(std::int32_t* experts) {
  constexpr std::integral_constant<std::int32_t, 2> kTwo;
  constexpr std::integral_constant<std::int32_t, 4> kFour;
  const auto hand = static_cast<std::int32_t>(hand_.size());
  RandomStream random = random_;         // in registers: `experts` could be anywhere
  if (each_ == kTwo && hand == kFour) {  // of DeepSeek-V3, where routes are a tenth of a short run
    groups_.deal(random, kFour, 0, hand_.data());
    give_each(random, kTwo, experts);
  } else {
    groups_.deal(random, hand, 0, hand_.data());
    give_each(random, each_, experts);
  }
  random_ = random;
}

SlotChooser::SlotChooser(const ExpertSlots& slots, int experts, std::uint64_t key)
    : key_(key), first_(experts + 1, 0), slots_(slots.expert_of_slot.size()), ends_(slots_.size()) {
  for (const std::int32_t expert : slots.expert_of_slot) ++first_[expert + 1];
  for (int e = 0; e < experts; ++e) first_[e + 1] += first_[e];
  std::vector<std::int32_t> next(first_.begin(), first_.end() - 1);
  for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
    const std::int32_t expert = slots.expert_of_slot[slot], place = next[expert]++;
    slots_[place] = static_cast<std::int32_t>(slot);
    ends_[place] = slots.shares[slot] + (place > first_[expert] ? ends_[place - 1] : 0);
  }
}

std::int32_t SlotChooser::slot_of(std::int32_t expert, int source, std::int32_t token) const {
  std::int32_t place = first_[expert];
  const std::int32_t last = first_[expert + 1] - 1;
  if (place == last) return slots_[place];
  const double at =
      random_unit(random_bits(key_, static_cast<std::uint64_t>(expert), static_cast<std::uint64_t>(source),
                              static_cast<std::uint64_t>(token)));
  while (place < last && at >= ends_[place]) ++place;
  return slots_[place];
}

PopularChooser::PopularChooser(const RouteSpec& spec, std::uint64_t ranking_key)
    : active_(spec.active), active_groups_(spec.active_groups) {
  const bool limited = spec.active_groups < spec.groups;
  if (!limited) active_groups_ = 1;
  experts_per_group_ = limited ? spec.experts / spec.groups : spec.experts;
  for (const double weight : weights_of(spec, ranking_key)) {
    const auto expert = static_cast<std::int32_t>(experts_.size());
    if (expert % experts_per_group_ == 0) groups_.push_back({0, expert / experts_per_group_});
    experts_.push_back(weighted(weight, expert));
    groups_.back().weight += experts_.back().weight;
  }
  make_pools(few_sets(static_cast<std::int32_t>(groups_.size()), active_groups_, experts_per_group_));
}

void PopularChooser::make_pools(const std::vector<std::uint32_t>& sets) {
  if (sets.empty()) {
    for (const WeightedItem& group : groups_) pools_.emplace_back(experts_of(group.item), active_);
    choice_of_groups_.emplace(groups_, active_groups_);
    return;
  }
  const std::vector<double> chances = chances_of_sets(groups_);
  std::vector<WeightedItem> weights, sorted = experts_;
  std::sort(sorted.begin(), sorted.end(), WeightedPool::is_before);  // once for all sets
  for (const std::uint32_t set : sets) {
    std::vector<WeightedItem> experts;
    for (const WeightedItem& expert : sorted)
      if ((set >> expert.item / experts_per_group_ & 1) != 0) experts.push_back(expert);
    weights.push_back(weighted(chances[set], static_cast<std::int32_t>(pools_.size())));
    pools_.emplace_back(std::move(experts), active_);
  }
  sets_ = AliasTable(weights);
}

std::vector<WeightedItem> PopularChooser::experts_of(std::int32_t group) const {
  const auto first = experts_.begin() + static_cast<std::ptrdiff_t>(group) * experts_per_group_;
  return {first, first + experts_per_group_};
}

PopularChooser::Scratch PopularChooser::scratch() const {
  return {Taken(static_cast<std::int32_t>(groups_.size())),
          Taken(static_cast<std::int32_t>(experts_.size())),
          {},
          std::vector<std::int32_t>(active_groups_),
          {}};
}

void PopularChooser::draw_sets(RandomStream& random, std::int32_t tokens, Scratch& scratch) const {
  scratch.tokens.assign(pools_.size(), 0);
  if (pools_.size() == 1) {
    scratch.tokens[0] = tokens;
    return;
  }
  for (; tokens > 0; --tokens) ++scratch.tokens[sets_.draw(random)];
}

void PopularChooser::choose_groups(RandomStream& random, Scratch& scratch) const {
  scratch.hand.assign(1, OpenPool(*choice_of_groups_));
  scratch.groups.next_token();
  take_items(random, scratch.hand, scratch.groups, active_groups_, scratch.chosen.data());
}

void PopularChooser::choose(RandomStream& random, Scratch& scratch, std::int32_t* experts) const {
  if (!choice_of_groups_) {
    const std::int32_t set = pools_.size() == 1 ? 0 : sets_.draw(random);
    return choose_of(pools_[set], random, scratch, experts);
  }
  choose_groups(random, scratch);
  scratch.hand.clear();
  for (const std::int32_t group : scratch.chosen) scratch.hand.emplace_back(pools_[group]);
  scratch.experts.next_token();
  take_items(random, scratch.hand, scratch.experts, active_, experts);
}

}  // namespace moebius
