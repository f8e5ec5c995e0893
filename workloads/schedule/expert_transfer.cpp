#include "workloads/schedule/expert_transfer.h"

#include <algorithm>

#include <fmt/format.h>

#include "hw/error.h"

namespace moebius {
namespace {

// The run of a receiver in a list that is sorted by it.
template <class Item>
std::span<const Item> run_of(const std::vector<Item>& items, int member) {
  const auto first = std::find_if(items.begin(), items.end(), [&](const Item& i) { return i.to >= member; });
  const auto last = std::find_if(first, items.end(), [&](const Item& i) { return i.to > member; });
  return {items.begin() + (first - items.begin()), static_cast<std::size_t>(last - first)};
}

}  // namespace

std::span<const ExpertTransfer::Arrival> ExpertTransfer::Layer::arrivals_at(int member) const {
  return run_of(arrivals, member);
}

std::span<const ExpertTransfer::Placing> ExpertTransfer::Layer::placings_at(int member) const {
  return run_of(placings, member);
}

int ExpertTransfer::Layer::most_arrivals() const {
  int most = 0, same = 0;
  for (std::size_t i = 0; i < arrivals.size(); ++i) {
    same = i > 0 && arrivals[i].to == arrivals[i - 1].to ? same + 1 : 1;
    most = std::max(most, same);
  }
  return most;
}

const ExpertTransfer::Layer& ExpertTransfer::of(int layer) const {
  const auto found =
      std::find_if(layers.begin(), layers.end(), [&](const Layer& l) { return l.number == layer; });
  CHECK(found != layers.end(), fmt::format("no expert of layer {} moves", layer));
  return *found;
}

int ExpertTransfer::count(int from, int to) const {
  std::ptrdiff_t sum = 0;
  for (const Layer& layer : layers)
    sum += std::count_if(layer.arrivals.begin(), layer.arrivals.end(),
                         [&](const Arrival& a) { return a.from == from && a.to == to; });
  return static_cast<int>(sum);
}

}  // namespace moebius
