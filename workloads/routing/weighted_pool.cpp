#include "workloads/routing/weighted_pool.h"

#include <algorithm>

#include <fmt/format.h>

#include "hw/error.h"

namespace moebius {

AliasTable::AliasTable(const std::vector<WeightedItem>& items) {
  double sum = 0;
  for (const WeightedItem& item : items) sum += static_cast<double>(item.weight);
  std::vector<double> share;  // of a slot's width
  std::vector<std::size_t> small, large;
  for (const WeightedItem& item : items) {
    share.push_back(static_cast<double>(item.weight) / sum * static_cast<double>(items.size()));
    (share.back() < 1 ? small : large).push_back(slots_.size());
    const auto number = static_cast<std::uint16_t>(item.item);
    CHECK(number == item.item, fmt::format("item {} of an alias table", item.item));
    slots_.push_back({0xffffffffu, {number, number}});
  }
  while (!small.empty() && !large.empty()) {
    const std::size_t poor = small.back(), rich = large.back();
    small.pop_back();
    slots_[poor].threshold = static_cast<std::uint32_t>(share[poor] * 0x1p32);
    slots_[poor].items[1] = slots_[rich].items[0];
    share[rich] -= 1 - share[poor];
    if (share[rich] < 1) {
      large.pop_back();
      small.push_back(rich);
    }
  }
}

WeightedPool::WeightedPool(std::vector<WeightedItem> items, std::int32_t most) {
  if (!std::is_sorted(items.begin(), items.end(), is_before)) std::sort(items.begin(), items.end(), is_before);
  std::vector<std::uint64_t> from(items.size() + 1);  // weight of an item and all lighter ones
  for (std::size_t i = items.size(); i-- > 0;) from[i] = from[i + 1] + items[i].weight;
  const auto last = [&](std::size_t i) { return std::min(i + static_cast<std::size_t>(most), items.size()); };
  std::size_t heads = 0;
  while (heads < items.size() && 4 * (from[heads] - from[last(heads)]) > 3 * from[heads]) ++heads;
  heads_.assign(items.begin(), items.begin() + static_cast<std::ptrdiff_t>(heads));
  heads_weight_ = from[0] - from[heads];
  rest_weight_ = from[heads];
  items.erase(items.begin(), items.begin() + static_cast<std::ptrdiff_t>(heads));
  if (!items.empty()) rest_ = AliasTable(items);
}

namespace {

// The first of the heads not yet taken whose weights reach beyond `mark`.
const WeightedItem& find_head(const WeightedPool& pool, const Taken& taken, std::uint64_t mark) {
  for (const WeightedItem* head = pool.heads().data();; ++head) {
    const std::uint64_t weight = taken.has(head->item) ? 0 : head->weight;
    if (mark < weight) return *head;
    mark -= weight;
  }
}

void take_of_all(RandomStream& random, std::vector<OpenPool>& hand, Taken& taken, std::int32_t count,
                 std::int32_t* out) {
  std::uint64_t open = 0;
  for (const OpenPool& pool : hand) open += pool.heads_weight + pool.pool->rest_weight();
  std::int32_t have = 0;
  while (have < count) {
    std::uint64_t mark = random.below_large(open);
    OpenPool* from = hand.data();
    for (; mark >= from->heads_weight + from->pool->rest_weight(); ++from)
      mark -= from->heads_weight + from->pool->rest_weight();
    if (mark < from->heads_weight) {
      const WeightedItem& head = find_head(*from->pool, taken, mark);
      from->heads_weight -= head.weight;
      open -= head.weight;
      taken.take(out[have++] = head.item);
    } else {
      out[have] = from->pool->rest().draw(random);
      have += taken.take(out[have]);
    }
  }
}

}  // namespace

void take_items(RandomStream& random, std::vector<OpenPool>& hand, Taken& taken, std::int32_t count,
                std::int32_t* out) {
  RandomStream stream = random;  // in registers: `out` could be anywhere
  if (hand.size() == 1 && hand[0].heads_weight == 0) {
    take_of_rest(stream, hand[0].pool->rest(), taken, count, out);
  } else {
    take_of_all(stream, hand, taken, count, out);
  }
  random = stream;
}

}  // namespace moebius
