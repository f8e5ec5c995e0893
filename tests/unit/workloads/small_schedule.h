// A fragment with one of everything: a GEMM, the exchange of a mixture-of-experts layer, and the layouts that
// run it.
#pragma once

#include <numeric>
#include <vector>

#include "workloads/schedule/fragment.h"
#include "workloads/schedule/layout.h"

namespace moebius {

// 2 ranks with 2 experts each; every token of 8 goes to 2 experts.
inline RouteSpec small_route() {
  return {.ranks = 2, .experts = 4, .active = 2, .tokens = 8};
}

// Ops: 0 gemm, 1 dispatch (after 0), 2 grouped_gemm (after 1), 3 combine (after 2).
inline Fragment small_fragment() {
  const auto route = std::make_shared<const Route>(small_route());
  const std::int64_t received = route->max_received_tokens(), rows = route->max_rows_of_rank();
  Fragment f;
  f.name = "forward";
  f.routes = {route};
  f.tensors = {
      {.scope = Scope::kMicrobatch, .role = Role::kInput, .key = 0, .rows = 8, .columns = 16},
      {.scope = Scope::kRank,
       .memory = MemoryKind::kWeights,
       .role = Role::kO,
       .layer = 1,
       .key = 1,
       .rows = 32,
       .columns = 16,
       .init = 0.25},
      {.role = Role::kO, .rows = 8, .columns = 32},
      {.role = Role::kExperts, .rows = received, .columns = 32},
      {.scope = Scope::kRank,
       .memory = MemoryKind::kWeights,
       .role = Role::kExpertDown,
       .layer = 1,
       .key = 2,
       .rows = 32,
       .columns = 32,
       .experts = 2,
       .init = 0.25},
      {.role = Role::kExpertDown, .rows = rows, .columns = 32},
      {.role = Role::kResidual, .rows = 8, .columns = 32},
  };
  f.ops = {
      {.kind = OpKind::kGemm,
       .role = Role::kO,
       .num_inputs = 2,
       .num_outputs = 1,
       .layer = 1,
       .shape = {.m = 8, .n = 32, .k = 16}},
      {.kind = OpKind::kDispatch,
       .lane = Lane::kExpertComm,
       .role = Role::kExperts,
       .group = GroupRole::kExpert,
       .num_inputs = 1,
       .num_outputs = 1,
       .layer = 1,
       .route = 0,
       .match = 7,
       .first_dependency = 0,
       .num_dependencies = 1,
       .first_tensor = 3,
       .shape = {.m = 8, .n = 32},
       .payload = {64}},
      {.kind = OpKind::kGroupedGemm,
       .role = Role::kExpertDown,
       .num_inputs = 2,
       .num_outputs = 1,
       .layer = 1,
       .route = 0,
       .first_dependency = 1,
       .num_dependencies = 1,
       .first_tensor = 5,
       .shape = {.m = rows, .n = 32, .k = 32, .groups = 2}},
      {.kind = OpKind::kCombine,
       .lane = Lane::kExpertComm,
       .role = Role::kExperts,
       .group = GroupRole::kExpert,
       .num_inputs = 1,
       .num_outputs = 1,
       .layer = 1,
       .route = 0,
       .match = 8,
       .first_dependency = 2,
       .num_dependencies = 1,
       .first_tensor = 8,
       .shape = {.m = 8, .n = 32},
       .payload = {64}},
  };
  f.operands = {0, 1, 2, /**/ 2, 3, /**/ 3, 4, 5, /**/ 5, 6};
  f.dependencies = {0, 1, 2};
  return f;
}

// `ranks` ranks that are one expert group: one class for all of them, or one for each.
inline Layout small_layout(int ranks, bool fold) {
  Layout layout;
  layout.ranks = ranks;
  std::vector<std::int32_t> all(ranks);
  std::iota(all.begin(), all.end(), 0);
  layout.device_of_rank = all;
  layout.classes.resize(fold ? 1 : ranks);
  for (int rank = 0; rank < ranks; ++rank) {
    const int rank_class = fold ? 0 : rank;
    layout.class_of_rank.push_back(rank_class);
    layout.classes[rank_class].ranks.push_back(rank);
    layout.classes[rank_class].groups[static_cast<int>(GroupRole::kExpert)] = {
        .ranks = all,
        .my_index = rank_class,
        .num_classes = static_cast<std::int32_t>(layout.classes.size())};
  }
  return layout;
}

}  // namespace moebius
