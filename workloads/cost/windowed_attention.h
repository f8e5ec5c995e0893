// Attention with a sliding window, of which tables know few: those of the models that were measured.
#pragma once

#include <cstdint>
#include <vector>

#include "workloads/cost/cost_source.h"
#include "workloads/cost/measured_table.h"

namespace moebius {

// Without the window where no sequence is longer: then it bounds nothing, and the kernel is that of attention
// to all keys.
CostQuery cut_to_sequence(const CostQuery& query);

// The windows that the tables were measured with, each once.
std::vector<std::int32_t> windows_of(const std::vector<MeasuredTable>& tables);

}  // namespace moebius
