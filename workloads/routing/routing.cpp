#include "workloads/routing/routing.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include <fmt/format.h>

#include "hw/error.h"
#include "workloads/routing/routing_draw.h"
#include "workloads/routing/route_counts.h"

namespace moebius {

namespace {

// What a random number of a route is for.
enum class Purpose : std::uint64_t { kRanking, kDeal, kSource, kSlot };

std::uint64_t draw_key(const RouteSpec& spec, Purpose purpose) {
  const auto both = (static_cast<std::uint64_t>(static_cast<std::uint32_t>(spec.step)) << 32) |
                    static_cast<std::uint32_t>(spec.microbatch);
  return random_bits(spec.seed, static_cast<std::uint64_t>(purpose), both,
                     static_cast<std::uint64_t>(spec.layer));
}

// What tokens choose, without the experts that every one uses.
RouteSpec chosen_part(const RouteSpec& spec) {
  RouteSpec part = spec;
  part.experts -= spec.always;
  part.active -= spec.always;
  return part;
}

// Marks what goes over the capacity of its expert as dropped; for the tokens of one source.
class Capacity {
 public:
  explicit Capacity(const RouteSpec& spec)
      : most_(spec.capacity),
        active_(spec.active),
        of_group_(std::max(1, (spec.tokens + spec.capacity_groups - 1) / spec.capacity_groups)),
        copies_(most_ > 0 ? spec.experts : 0) {}

  void limit(std::int32_t* experts) {
    if (most_ == 0) return;
    if (tokens_ == of_group_) {
      std::fill(copies_.begin(), copies_.end(), 0);
      tokens_ = 0;
    }
    ++tokens_;
    for (int i = 0; i < active_; ++i) {
      if (++copies_[experts[i]] > most_) experts[i] = -1 - experts[i];
    }
  }

 private:
  int most_, active_, of_group_;
  int tokens_ = 0;  // of the group at hand
  std::vector<std::int32_t> copies_;
};

void check_slots(const RouteSpec& s) {
  if (!s.placed) return;
  const std::vector<std::int32_t>& slots = s.placed->expert_of_slot;
  std::vector<bool> stands(s.experts, false);
  for (const std::int32_t expert : slots) {
    CHECK(expert >= 0 && expert < s.experts, fmt::format("a slot of expert {} of {}", expert, s.experts));
    stands[expert] = true;
  }
  CHECK(s.placed->shares.size() == slots.size() && s.capacity == 0 &&
            std::find(stands.begin(), stands.end(), false) == stands.end(),
        fmt::format("{} slots of {} experts, capacity {}", slots.size(), s.experts, s.capacity));
}

void check_buffers(const RouteSpec& s) {
  const std::int64_t rows =
      std::int64_t{s.capacity} * s.capacity_groups * s.gathered * s.ranks * s.experts;
  CHECK(s.capacity_groups > 0 && (!s.filled || (s.capacity > 0 && rows < std::int64_t{1} << 31)),
        fmt::format("{} groups of {} rows for {} experts from {} ranks", s.capacity_groups, s.capacity,
                    s.experts, s.ranks));
  CHECK(!s.filled || (!s.placed && s.without_experts == 0 && s.runs.empty()),
        std::string("buffers of a service are filled"));
}

void check_spec(const RouteSpec& s) {
  const auto values = [&] {
    return fmt::format("ranks {} per node {} experts {} active {} groups {} active groups {} tokens {}",
                       s.ranks, s.ranks_per_node, s.experts, s.active, s.groups, s.active_groups, s.tokens);
  };
  CHECK(s.ranks > 0 && s.ranks_per_node > 0 && s.tokens >= 0, values());
  CHECK(s.without_experts >= 0 && s.without_experts < s.ranks && (s.without_experts == 0 || !s.runs.empty()),
        values());
  const RouteSpec by_choice = chosen_part(s);
  CHECK(by_choice.experts > 0 && s.slots() % s.holders() == 0 && s.groups > 0 &&
            by_choice.experts % s.groups == 0,
        values());
  CHECK(s.always >= 0 && (s.always == 0 || s.capacity == 0), values());
  CHECK(s.active_groups > 0 && s.active_groups <= s.groups && s.active_groups <= by_choice.active, values());
  // ceil(active / active_groups) experts of one group, at most
  CHECK((by_choice.active + s.active_groups - 1) / s.active_groups <= by_choice.experts / s.groups, values());
  for (const TokenRun& run : s.runs.list()) {
    CHECK(run.source >= 0 && run.source < (s.without_experts > 0 ? s.without_experts : s.ranks) &&
              run.count > 0,
          fmt::format("{} tokens of source {}", run.count, run.source));
    CHECK(run.popularity == 0 || run.popularity < static_cast<int>(s.popularities.size()),
          fmt::format("popularity {} of {}", run.popularity, s.popularities.size()));
  }
  check_slots(s);
  check_buffers(s);
  CHECK(s.gathered > 0 &&
            static_cast<std::int64_t>(s.ranks) * s.tokens * s.active * s.gathered < std::int64_t{1} << 31,
        values());
}

}  // namespace

std::uint64_t ranking_key(std::uint64_t seed, int layer) {
  RouteSpec spec;
  spec.seed = seed;
  spec.layer = layer;
  return draw_key(spec, Purpose::kRanking);
}

// The draw of a route, ready to be repeated for any source.
struct Route::Draw {
  Draw(const RouteSpec& spec, std::vector<std::int32_t> counts) : spec(spec), tokens_of(std::move(counts)) {
    if (spec.popularity.kind == PopularityKind::kBalanced) {
      dealers.assign(1, BalancedDealer(chosen_part(spec), draw_key(spec, Purpose::kDeal)));
    } else {
      RouteSpec layer;
      layer.seed = spec.seed;
      layer.layer = spec.layer;
      draw_by_popularity();
      source_key = draw_key(spec.runs.empty() ? spec : layer, Purpose::kSource);
    }
    if (spec.placed) slots.emplace(*spec.placed, spec.experts, draw_key(spec, Purpose::kSlot));
    for (const int tokens : tokens_of) first_of.push_back(first_of.back() + tokens);
  }

  // Of a token: its last experts are those that all use; the draw fills in the others.
  std::vector<std::int32_t> hand() const {
    std::vector<std::int32_t> experts(spec.active);
    std::iota(experts.end() - spec.always, experts.end(), spec.experts - spec.always);
    return experts;
  }

  std::int32_t slot_of(std::int32_t expert, int source, std::int32_t token) const {
    if (expert < spec.experts - spec.always) return slots->slot_of(expert, source, token);
    return slots->slot_in_turn(expert, spec.always_at_home ? source : first_of[source] + token);
  }

  void draw_by_popularity() {
    RouteSpec by = chosen_part(spec);
    const std::uint64_t key = ranking_key(spec.seed, spec.layer);
    if (spec.popularities.empty()) popular.emplace_back(by, key);
    for (const ExpertWeights& changed : spec.popularities) {
      by.weights = changed;
      popular.emplace_back(by, key);
    }
  }

  // visit(slots) for each token of a source, for visit(experts).
  template <class Visit>
  auto in_slots(int source, const Visit& visit) const {
    return [this, source, &visit, token = 0,
            chosen = std::vector<std::int32_t>(spec.active)](const std::int32_t* experts) mutable {
      for (int i = 0; i < spec.active; ++i) chosen[i] = slot_of(experts[i], source, token);
      ++token;
      visit(chosen.data());
    };
  }

  // Tokens with names: what each draws depends on its name alone.
  template <class Visit>
  void for_each_named(int source, std::vector<std::int32_t>& experts, Visit&& visit) const {
    PopularChooser::Scratch scratch = popular.front().scratch();
    Capacity capacity(spec);
    for (const TokenRun& run : spec.runs.list()) {
      const PopularChooser& chooser = popular[run.popularity];
      for (std::int32_t i = 0; run.source == source && i < run.count; ++i) {
        RandomStream random(random_bits(source_key, static_cast<std::uint32_t>(run.request), run.first + i));
        chooser.choose(random, scratch, experts.data());
        capacity.limit(experts.data());
        visit(experts.data());
      }
    }
  }

  // Calls visit(experts) for each token of a source: `active` distinct experts in no order.
  template <class Visit>
  void for_each_token(int source, Visit&& visit) const {
    std::vector<std::int32_t> experts = hand();
    if (popular.empty()) {
      BalancedDealer dealer = dealers[source];
      deal(dealer, source, experts, visit);
      return;
    }
    if (!spec.runs.empty()) return for_each_named(source, experts, visit);
    PopularChooser::Scratch scratch = popular.front().scratch();
    RandomStream random(random_bits(source_key, static_cast<std::uint64_t>(source)));
    if (spec.capacity == 0)
      return popular.front().choose_for_each(random, spec.tokens, scratch, experts.data(), visit);
    Capacity capacity(spec);  // it matters who comes first
    for (int token = 0; token < spec.tokens; ++token) {
      popular.front().choose(random, scratch, experts.data());
      capacity.limit(experts.data());
      visit(experts.data());
    }
  }

  template <class Visit>
  void deal(BalancedDealer& dealer, int source, std::vector<std::int32_t>& experts, Visit&& visit) const {
    Capacity capacity(spec);
    for (int token = 0; token < tokens_of[source]; ++token) {
      dealer.choose(experts.data());
      capacity.limit(experts.data());
      visit(experts.data());
    }
  }

  // The first pass, source by source in order: it finds where the dealer stands at the beginning of each.
  template <class Visit>
  void for_each_token_first(int source, Visit&& visit) {
    if (!popular.empty()) return for_each_token(source, visit);
    std::vector<std::int32_t> experts = hand();
    dealers.push_back(dealers.back());
    deal(dealers.back(), source, experts, visit);
  }

  RouteSpec spec;
  std::vector<std::int32_t> tokens_of;       // by source
  std::vector<std::int64_t> first_of = {0};  // tokens of the sources before
  std::vector<BalancedDealer> dealers;       // at the beginning of each source
  std::vector<PopularChooser> popular;       // by TokenRun::popularity; none: dealt
  std::optional<SlotChooser> slots;          // none: experts are their slots
  std::uint64_t source_key = 0;
};

Route::Route(const RouteSpec& spec) : spec_(spec) {
  check_spec(spec);
  tokens_of_.assign(spec.ranks, spec.runs.empty() ? spec.tokens : 0);
  for (const TokenRun& run : spec.runs.list()) tokens_of_[run.source] += run.count;
  auto draw = std::make_shared<Draw>(spec, tokens_of_);
  rows_.resize(spec.slots());
  between_.resize(static_cast<std::size_t>(spec.ranks) * spec.ranks);
  to_node_.resize(static_cast<std::size_t>(spec.ranks) * nodes());
  std::vector<RouteCounts::Home> homes(spec.slots());
  for (int e = 0; e < spec.slots(); ++e) {
    const int rank = holder(e);
    homes[e] = {rank, node_of(rank)};
  }
  RouteCounts counts(spec.ranks, nodes(), homes, rows_.data());
  const auto count = [&counts, active = spec.active](const std::int32_t* slots) {
    counts.add(slots, active);
  };
  for (int source = 0; source < spec.ranks; ++source) {
    if (draw->slots) {
      draw->for_each_token_first(source, draw->in_slots(source, count));
    } else {
      draw->for_each_token_first(source, count);
    }
    counts.take(between_.data() + static_cast<std::size_t>(source) * spec.ranks,
                to_node_.data() + static_cast<std::size_t>(source) * nodes());
  }
  dropped_ = counts.dropped();
  for (std::int32_t& rows : rows_) rows *= spec.gathered;
  for (std::int32_t& tokens : between_) tokens *= spec.gathered;
  if (spec.filled) fill_buffers();
  draw_ = std::move(draw);
  sum_up();
}

int Route::node_of(int rank) const {
  const int own = rank - spec_.without_experts;
  return own < 0 ? rank / spec_.ranks_per_node : first_node_of_holders() + own / holder_width();
}

int Route::first_of_node(int node) const {
  const int of_holders = node - first_node_of_holders();
  return of_holders < 0 ? node * spec_.ranks_per_node : spec_.without_experts + of_holders * holder_width();
}

// Between ranks all rows of the buffers travel; what stays on the only one is still its tokens.
void Route::fill_buffers() {
  const std::int32_t of_source = spec_.capacity * spec_.capacity_groups;
  const std::int32_t of_rank = of_source * experts_per_rank();
  padding_ = -std::accumulate(rows_.begin(), rows_.end(), std::int64_t{0});
  rows_.assign(rows_.size(), of_source * spec_.gathered * spec_.ranks);
  padding_ += std::accumulate(rows_.begin(), rows_.end(), std::int64_t{0});
  if (spec_.ranks == 1) return;
  between_.assign(between_.size(), of_rank * spec_.gathered);
  for (int source = 0; source < spec_.ranks; ++source)
    for (int node = 0; node < nodes(); ++node)
      to_node_[source * nodes() + node] = of_rank * (end_of_node(node) - first_of_node(node));
}

void Route::sum_up() {
  rows_of_rank_.resize(spec_.ranks);
  received_.resize(spec_.ranks);
  sent_.resize(spec_.ranks);
  for (int rank = 0; rank < spec_.ranks; ++rank) {
    for (int e = 0; e < experts_per_rank(); ++e) rows_of_rank_[rank] += rows(rank, e);
    for (int source = 0; source < spec_.ranks; ++source) {
      const int tokens = tokens_between(source, rank);
      received_[rank] += tokens;
      sent_[source] += tokens;
    }
  }
}

int Route::max_rows_of_rank() const {
  return *std::max_element(rows_of_rank_.begin(), rows_of_rank_.end());
}

int Route::max_received_tokens() const {
  return *std::max_element(received_.begin(), received_.end());
}

std::vector<std::int32_t> Route::choices(int source) const {
  CHECK(source >= 0 && source < spec_.ranks, fmt::format("source {} of {}", source, spec_.ranks));
  std::vector<std::int32_t> all;
  all.reserve(static_cast<std::size_t>(spec_.tokens) * spec_.active);
  draw_->for_each_token(source, [&](const std::int32_t* experts) {
    all.insert(all.end(), experts, experts + spec_.active);
    std::sort(all.end() - spec_.active, all.end(),
              [](std::int32_t a, std::int32_t b) { return chosen_expert(a) < chosen_expert(b); });
  });
  return all;
}

std::vector<std::int32_t> Route::chosen_slots(int source) const {
  if (!draw_->slots) return {};
  std::vector<std::int32_t> all = choices(source);
  for (std::size_t i = 0; i < all.size(); ++i)
    all[i] = draw_->slot_of(all[i], source, static_cast<std::int32_t>(i) / spec_.active);
  return all;
}

std::vector<std::int32_t> Route::copies_of_experts() const {
  if (!spec_.placed) return rows_;
  std::vector<std::int32_t> copies(spec_.experts, 0);
  for (int slot = 0; slot < spec_.slots(); ++slot) copies[spec_.placed->expert_of_slot[slot]] += rows_[slot];
  return copies;
}

}  // namespace moebius
