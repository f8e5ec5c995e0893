#include <nlohmann/json.hpp>

#include "workloads/study/mixed/efficiency_matrix.h"

namespace moebius {

using Json = nlohmann::ordered_json;

std::string matrix_json(const std::vector<EfficiencyMatrix>& matrices) {
  Json all;
  for (const EfficiencyMatrix& matrix : matrices) {
    Json rows = Json::array();
    for (const EfficiencyRow& row : matrix.rows) {
      Json one{{"op", row.op},
               {"shape", row.shape},
               {"of", std::string(to_string(row.kind))},
               {"efficiency", row.efficiency()},
               {"rate", row.rate},
               {"peak", row.peak},
               {"time_s", row.seconds},
               {"source", row.source}};
      if (row.error > 0) one["expected_error"] = row.error;
      rows.push_back(std::move(one));
    }
    all["matrices"].push_back({{"chip", matrix.chip}, {"node", matrix.node}, {"rows", std::move(rows)}});
  }
  return all.dump(2) + "\n";
}

}  // namespace moebius
