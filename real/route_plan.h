// A route as one member of the expert group executes it: which rows go where, and in which order they stand.
#pragma once

#include <cstdint>
#include <vector>

#include "workloads/routing/routing.h"

namespace moebius {

struct RoutePlan {
  int active = 0;                     // experts of a token
  std::vector<std::int32_t> choices;  // of this member's own tokens: see Route::choices()
  std::vector<std::int32_t> slots;    // that compute them; empty: experts are their slots
  std::vector<std::vector<std::int32_t>>
      sent;  // to each member: own tokens, ascending; one that uses several experts there once
  std::vector<std::int32_t> received_from;  // rows from each member; they stand in the order of sources, then
                                            // of tokens; of a gathered route group by group
  std::int32_t received = 0;  // their sum
  std::vector<std::int32_t> copy_row,
      copy_slot;  // of each copy by expert: its received row, and which of the token's choices it is
  std::vector<std::int32_t> expert_rows;  // copies of each local expert

  // Whether choice `slot` of own token `token` is an expert of `member`.
  bool goes_to(std::int32_t token, int slot, int member) const {
    const std::int32_t expert = places()[token * active + slot];  // below 0: dropped
    return expert >= 0 && expert / experts_per_rank + without_experts == member;
  }
  const std::vector<std::int32_t>& places() const { return slots.empty() ? choices : slots; }
  int experts_per_rank = 0;
  int without_experts = 0;  // members before those that hold experts
};

// CHECKs that the route's counts are those of its choices.
RoutePlan plan_route(const Route& route, int member);

}  // namespace moebius
