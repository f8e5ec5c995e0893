// What ops, rows and runs are called where people look at them.
#pragma once

#include <string>

#include "workloads/schedule/timeline.h"

namespace moebius::viz {

std::string op_name(const OpRow& op);  // "gemm q_b L3", "dispatch L3"
// "rank 16", "ranks like 16 (x128)", or as the run calls it (the fact "class 3"): "decode 0", "requests 5".
std::string class_name(const Timeline& tables, std::int32_t rank_class);
// That name alone; empty when the run gives none.
std::string given_class_name(const Timeline& tables, std::int32_t rank_class);

}  // namespace moebius::viz
