#include "workloads/serving/carried/carried_experts.h"

#include <algorithm>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "hw/error.h"
#include "workloads/routing/routing.h"

namespace moebius {
namespace {

BalancerShape shape_of(const CarriedPool& pool, int instance) {
  BalancerShape shape = pool.experts;
  shape.seed = random_bits(shape.seed, 0x63617272, static_cast<std::uint64_t>(instance));
  return shape;
}

std::vector<double> shares_of(const SlotExperts& slots, const std::vector<double>& loads, int experts) {
  std::vector<double> sums(experts, 0.0), shares;
  for (std::size_t s = 0; s < slots.size(); ++s) sums[slots[s]] += loads[s];
  for (std::size_t s = 0; s < slots.size(); ++s) {
    const double same = static_cast<double>(std::count(slots.begin(), slots.end(), slots[s]));
    shares.push_back(sums[slots[s]] > 0 ? loads[s] / sums[slots[s]] : 1 / same);
  }
  return shares;
}

}  // namespace

CarriedExperts::CarriedExperts(const CarriedService& service, const CarriedPool& pool, int instance,
                               ExpertCourse& course)
    : plan_(service.experts),
      shape_(shape_of(pool, instance)),
      course_(course),
      balancer_(plan_, shape_, course),
      places_(course.layers()) {
  const std::ptrdiff_t of_rank = shape_.slots / shape_.ranks;
  for (int i = 0; i < course.layers(); ++i) {
    const SlotExperts& slots = balancer_.places(i);
    std::vector<SlotListPtr>& members = first_.emplace_back();
    for (int rank = 0; rank < shape_.ranks; ++rank)
      members.push_back(std::make_shared<const std::vector<std::int32_t>>(
          slots.begin() + rank * of_rank, slots.begin() + (rank + 1) * of_rank));
  }
  settle();
}

std::size_t CarriedExperts::index_of(int layer) const {
  int index = 0;
  while (index < course_.layers() && course_.layer(index) != layer) ++index;
  CHECK(index < course_.layers(), fmt::format("layer {} has no experts", layer));
  return index;
}

void CarriedExperts::settle() {
  version_ = balancer_.version();
  for (int i = 0; i < course_.layers(); ++i) {
    const SlotExperts& slots = balancer_.places(i);
    std::vector<double> shares = shares_of(slots, balancer_.slot_loads(i), course_.experts());
    places_[i] = ExpertSlotsPtr({slots, std::move(shares)});
  }
}

void CarriedExperts::begin(Time now) {
  course_.advance(now);
  balancer_.advance(now, {});
  if (balancer_.version() != version_) settle();
  transfer_.reset();
  balancer_.slice();
  changing_ = balancer_.moving();
  if (changing_) transfer_ = std::make_shared<const ExpertTransfer>(balancer_.slice_transfer());
}

void CarriedExperts::end(Time now) {
  if (std::exchange(changing_, false)) balancer_.slice_done(now, 0);
}

ExpertTransferPtr CarriedExperts::largest_transfer() const {
  if (!plan_.loops() || course_.even()) return nullptr;
  const int of_rank = shape_.slots / shape_.ranks;
  ExpertTransfer transfer;
  for (int i = 0; i < std::min(plan_.slice, course_.layers()); ++i) {
    ExpertTransfer::Layer& layer = transfer.layers.emplace_back();
    layer.number = course_.layer(i);
    for (int rank = 0; rank < shape_.ranks; ++rank)
      for (int slot = 0; slot < of_rank; ++slot) {
        layer.arrivals.push_back({rank, (rank + 1) % shape_.ranks, slot});
        layer.placings.push_back({rank, slot, slot});
      }
  }
  return std::make_shared<const ExpertTransfer>(std::move(transfer));
}

}  // namespace moebius
