#include "workloads/report/expert_loads_json.h"

#include <nlohmann/json.hpp>

namespace moebius {

std::string loads_json(const ExpertLoads& loads) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const LayerLoad& row : loads.layers()) {
    rows.push_back({{"step", row.step},
                    {"layer", row.layer},
                    {"busiest_expert", row.busiest_expert},
                    {"busiest_rank", row.busiest_rank},
                    {"rank", row.rank},
                    {"dropped_share", row.dropped}});
    if (row.padding > 0) rows.back()["padding_share"] = row.padding;
  }
  nlohmann::ordered_json json;
  json["max_violation"] = loads.violations();
  json["dropped_share"] = loads.dropped_share();
  if (loads.padding_share() > 0) json["padding_share"] = loads.padding_share();
  json["layers"] = rows;
  return json.dump();
}

}  // namespace moebius
