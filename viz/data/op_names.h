// What ops, rows and runs are called where people look at them.
#pragma once

#include <string>
#include <vector>

#include "workloads/schedule/timeline.h"

namespace moebius::viz {

std::string op_name(const OpRow& op);  // "gemm q_b L3", "dispatch L3"
// Whether spans are whole submissions, not ops: iterations of a service, stretches of a request, passes of a
// stage.
bool of_submissions(const Timeline& tables);
bool is_imported(const Timeline& tables);
// Of a span of this op: the op's name; where spans are whole submissions that of the op's fragment, of an
// import the name that the profile has.
std::string span_name(const Timeline& tables, const OpRow& op);
std::vector<std::string> span_names(const Timeline& tables);  // by row of tables.ops
// "rank 16", "ranks like 16 (x128)", or as the run calls it (the fact "class 3", of an import
// "row 3"): "decode 0", "requests 5".
std::vector<std::string> class_names(const Timeline& tables);  // of all, at once
std::string lane_name(Lane lane, std::int32_t part);  // "compute"; "compute 2" of what overlaps there
std::string class_name(const Timeline& tables, std::int32_t rank_class);
// That name alone; empty when the run gives none.
std::string given_class_name(const Timeline& tables, std::int32_t rank_class);

}  // namespace moebius::viz
