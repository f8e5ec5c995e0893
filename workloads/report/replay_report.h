// What a report says of requests replayed against a cache.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "workloads/report/report.h"

namespace moebius {

// Keys and counts of the report's `kv`.
std::vector<std::pair<std::string, std::int64_t>> replay_rows(const kv::ReplayFigures& figures);
std::string replay_text(const Report& report);

}  // namespace moebius
