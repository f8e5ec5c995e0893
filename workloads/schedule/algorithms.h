// The algorithms of collectives by name: which operations have them, what they need, what they do. The one
// table that scenarios, listings and the simulator's library go by.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "models/op_kind.h"
#include "workloads/schedule/op.h"

namespace moebius {

struct AlgorithmRow {
  Algorithm value = Algorithm::kRing;
  std::string_view name;  // as scenarios and to_string() call it
  std::vector<OpKind> kinds;
  std::string_view needs;  // of the group; elsewhere it is refused, or does what is said here
  std::string_view help;
};

// All but kAuto, in the order of preference between equals.
std::span<const AlgorithmRow> algorithm_rows();

// A message (kSend) is sent directly; dispatch and combine have kernels of their own.
bool has_algorithm(OpKind kind, Algorithm algorithm);

}  // namespace moebius
