// What ops, rows and runs are called where people look at them.
#pragma once

#include <string>

#include "workloads/schedule/timeline.h"

namespace moebius::viz {

std::string op_name(const OpRow& op);                                     // "gemm q_b L3", "dispatch L3"
std::string class_name(const Timeline& tables, std::int32_t rank_class);  // "rank 16", "ranks like 16 (x128)"

}  // namespace moebius::viz
