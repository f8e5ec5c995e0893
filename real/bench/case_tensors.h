// What a fragment of one op is put together from, on whatever executor its case runs.
#pragma once

#include <cstdint>

#include "real/bench/op_operands.h"
#include "workloads/routing/routing.h"
#include "workloads/schedule/fragment.h"

namespace moebius {

// `stays`: it is there before the op, under this key; else the op makes it.
Tensor tensor_of(const OperandSpec& spec, std::uint32_t key, bool stays);

// Stands for the route of the op, whose plan is given by hand.
RoutePtr stand_in_route();

}  // namespace moebius
