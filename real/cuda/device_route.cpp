#include "real/cuda/device_route.h"

#include "real/cuda/kernels.h"

namespace moebius::cuda {
namespace {

std::int64_t append(std::vector<std::int32_t>& all, const std::vector<std::int32_t>& list) {
  const auto first = static_cast<std::int64_t>(all.size());
  all.insert(all.end(), list.begin(), list.end());
  return first;
}

std::vector<std::int32_t> positions(const RoutePlan& plan, std::size_t tokens) {
  std::vector<std::int32_t> position(plan.sent.size() * tokens, -1);
  for (std::size_t member = 0; member < plan.sent.size(); ++member) {
    for (std::size_t i = 0; i < plan.sent[member].size(); ++i)
      position[member * tokens + plan.sent[member][i]] = static_cast<std::int32_t>(i);
  }
  return position;
}

// Copies stand by expert, so that a row's are met in ascending order.
std::vector<std::int32_t> copies_of_rows(const RoutePlan& plan) {
  std::vector<std::int32_t> copies(static_cast<std::size_t>(plan.received) * plan.active, -1);
  std::vector<int> found(plan.received, 0);
  for (std::size_t i = 0; i < plan.copy_row.size(); ++i) {
    const std::int32_t row = plan.copy_row[i];
    copies[static_cast<std::size_t>(row) * plan.active + found[row]++] = static_cast<std::int32_t>(i);
  }
  return copies;
}

std::vector<std::int32_t> copies_of_slots(const RoutePlan& plan) {
  std::vector<std::int32_t> copies(static_cast<std::size_t>(plan.received) * plan.active, -1);
  for (std::size_t i = 0; i < plan.copy_row.size(); ++i)
    copies[static_cast<std::size_t>(plan.copy_row[i]) * plan.active + plan.copy_slot[i]] =
        static_cast<std::int32_t>(i);
  return copies;
}

// Sums of size(rows) over the experts before each, and over all.
template <class Size>
std::vector<std::int32_t> firsts(const RoutePlan& plan, const Size& size) {
  std::vector<std::int32_t> first{0};
  for (const auto rows : plan.expert_rows)
    first.push_back(static_cast<std::int32_t>(first.back() + size(static_cast<std::int64_t>(rows))));
  return first;
}

std::int64_t tiles_of(std::int64_t rows) {
  return (rows + kGemmTile - 1) / kGemmTile;
}

}  // namespace

RouteLists route_lists(const RoutePlan& plan) {
  RouteLists lists;
  lists.choices = append(lists.values, plan.choices);
  lists.places = plan.slots.empty() ? lists.choices : append(lists.values, plan.slots);
  lists.sent = static_cast<std::int64_t>(lists.values.size());
  for (const std::vector<std::int32_t>& tokens : plan.sent) append(lists.values, tokens);
  lists.position = append(lists.values, positions(plan, plan.choices.size() / plan.active));
  lists.copy_row = append(lists.values, plan.copy_row);
  lists.copy_slot = append(lists.values, plan.copy_slot);
  lists.row_copies = append(lists.values, copies_of_rows(plan));
  lists.slot_copy = append(lists.values, copies_of_slots(plan));
  lists.expert_row = append(lists.values, firsts(plan, [](std::int64_t rows) { return rows; }));
  lists.expert_tile = append(lists.values, firsts(plan, tiles_of));
  return lists;
}

DeviceRoute::DeviceRoute(RoutePlan plan, DeviceMemory& memory, Stream stream)
    : plan_(std::move(plan)), lists_(route_lists(plan_)) {
  tokens_ = static_cast<std::int64_t>(plan_.choices.size()) / plan_.active;
  for (const auto rows : plan_.expert_rows) num_tiles_ += tiles_of(rows);
  std::int64_t sent = 0, received = 0;
  for (std::size_t member = 0; member < plan_.sent.size(); ++member) {
    first_sent_.push_back(sent);
    first_received_.push_back(received);
    sent += static_cast<std::int64_t>(plan_.sent[member].size());
    received += plan_.received_from[member];
  }
  const std::vector<std::int32_t> values = std::move(lists_.values);
  lists_.values.clear();
  static_assert(sizeof(std::int32_t) == sizeof(float));  // one column of 32-bit numbers
  tensor_ = std::make_shared<DeviceTensor>(memory, stream, static_cast<std::int64_t>(values.size()), 1,
                                           Storage::kFp32);
  copy_to_device(stream, tensor_->operand.data, values.data(), values.size() * sizeof(std::int32_t));
  synchronise(stream);
}

DeviceRoutePtr DeviceRoutes::get(const RoutePtr& route, int member, DeviceMemory& memory, Stream upload) {
  constexpr std::size_t kKept =
      256;  // more than the layers of a stage; popularity that changes would pile them up
  const auto found = made_.find(route.get());
  if (found != made_.end()) return found->second.second;
  if (made_.size() >= kKept) made_.clear();
  const auto made = std::make_shared<const DeviceRoute>(plan_route(*route, member), memory, upload);
  return made_.emplace(route.get(), std::pair{route, made}).first->second.second;
}

void DeviceRoutes::put(const RoutePtr& route, DeviceRoutePtr made) {
  made_[route.get()] = {route, std::move(made)};
}

}  // namespace moebius::cuda
