// The degrees of parallelism that one pool of a service may have, and how a scenario says so.
#pragma once

#include <string>
#include <vector>

#include "workloads/study/search/serving_layout.h"

namespace moebius {

struct SeatOption {
  int tp = 1, cp = 1, ep = 1;
  bool overlapped = false;  // two half batches, with the exchanges that hold their own cores or none
  int microbatches = 0;     // of an iteration, where experts stand apart
};

// Tensor-parallel degrees that divide a node; prompts whole, unless a space file cuts them; expert-parallel
// ones that divide the experts and the replicas (or, of replicas of several ranks, their ranks); two batches
// where tokens travel to experts on other replicas; 2 to 4 microbatches where experts stand apart. A space
// file's values take their place: `attention/tp`, `attention/cp`, `ep/degree`, `two_batch_overlap`,
// `microbatches` of the seat's pointer. Whether each is legal the scenario's reader says.
std::vector<SeatOption> seat_options(const PoolSeat& seat, const Model& model, const SpaceFile& given);

// Whether a key of a space file is one of those, of any seat.
bool is_degree_of_seat(const std::string& pointer);

// The phases of the plan with that option; what else `base` says of them stays.
std::vector<Assignment> seat_settings(const PoolSeat& seat, const SeatOption& option, const Document& base);

// "tp 1, cp 8, ep 16, two batches"
std::string option_text(const PoolSeat& seat, const SeatOption& option);

}  // namespace moebius
