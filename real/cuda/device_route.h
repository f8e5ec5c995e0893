// A route's plan (real/route_plan.h) as kernels read it: lists of rows in device memory, counts on the host,
// which decides the shapes of what it launches.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "real/cuda/device_memory.h"
#include "real/route_plan.h"

namespace moebius::cuda {

// The lists, one after the other in `values`.
struct RouteLists {
  std::vector<std::int32_t> values;
  // Where each begins:
  std::int64_t choices = 0;  // [tokens * active] experts of own tokens
  std::int64_t places = 0;   // the slots that compute them
  std::int64_t sent = 0;     // own tokens that go to member 0, then 1, ...; see first_sent
  std::int64_t position =
      0;  // [members * tokens] of a token among those that go to the member; -1: it does not
  std::int64_t copy_row = 0;    // [copies] received row of each copy by expert
  std::int64_t copy_slot = 0;   // [copies] which of the token's choices it is
  std::int64_t row_copies = 0;  // [received * active] a row's copies, ascending, then -1
  std::int64_t slot_copy = 0;   // [received * active] the copy of each choice; -1: not held here
  std::int64_t expert_row = 0;  // [experts + 1] first copy of each expert held here, and the end
  std::int64_t expert_tile =
      0;  // [experts + 1] the same in tiles of kGemmTile rows, each expert's begun anew
};
RouteLists route_lists(const RoutePlan& plan);

class DeviceRoute {
 public:
  // Uploads the lists; they are there when it returns.
  DeviceRoute(RoutePlan plan, DeviceMemory& memory, Stream stream);

  const RoutePlan& plan() const { return plan_; }
  std::int64_t tokens() const { return tokens_; }
  std::int64_t copies() const { return static_cast<std::int64_t>(plan_.copy_row.size()); }
  std::int64_t num_sent(int member) const { return static_cast<std::int64_t>(plan_.sent[member].size()); }
  std::int64_t first_received(int member) const { return first_received_[member]; }  // row

  const std::int32_t* choices() const { return list(lists_.choices); }
  const std::int32_t* places() const { return list(lists_.places); }
  const std::int32_t* sent(int member) const { return list(lists_.sent + first_sent_[member]); }
  const std::int32_t* position() const { return list(lists_.position); }
  const std::int32_t* copy_row() const { return list(lists_.copy_row); }
  const std::int32_t* copy_slot() const { return list(lists_.copy_slot); }
  const std::int32_t* row_copies() const { return list(lists_.row_copies); }
  const std::int32_t* slot_copy() const { return list(lists_.slot_copy); }

  const std::int32_t* expert_row() const { return list(lists_.expert_row); }
  const std::int32_t* expert_tile() const { return list(lists_.expert_tile); }
  int num_experts() const { return static_cast<int>(plan_.expert_rows.size()); }
  std::int64_t num_tiles() const { return num_tiles_; }  // the last of expert_tile

  const TensorRef& tensor() const {
    return tensor_;
  }  // the lists' memory, for those who keep track of its users

 private:
  const std::int32_t* list(std::int64_t first) const {
    return static_cast<const std::int32_t*>(tensor_->operand.data) + first;
  }

  RoutePlan plan_;
  RouteLists lists_;  // without values
  TensorRef tensor_;
  std::int64_t tokens_ = 0, num_tiles_ = 0;
  std::vector<std::int64_t> first_sent_, first_received_;
};
using DeviceRoutePtr = std::shared_ptr<const DeviceRoute>;

// The routes that a rank has met, made once.
class DeviceRoutes {
 public:
  DeviceRoutePtr get(const RoutePtr& route, int member, DeviceMemory& memory, Stream upload);
  void put(const RoutePtr& route, DeviceRoutePtr made);  // one made by hand, instead of the route's own

 private:
  std::map<const Route*, std::pair<RoutePtr, DeviceRoutePtr>>
      made_;  // holds the route: its address stays its name
};

}  // namespace moebius::cuda
