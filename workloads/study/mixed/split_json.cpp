#include <nlohmann/json.hpp>

#include "workloads/study/mixed/split_search.h"

namespace moebius {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const SplitRun& run, const SplitStudy& study) {
  Json json{{"split", to_text(run.plan, study.pools)},
            {"tp", run.plan.tp},
            {"pp", run.plan.pp},
            {"by_replicas", run.plan.by_replicas},
            {"estimated_tokens_per_s", run.estimate},
            {"tokens_per_s", run.tokens_per_s}};
  for (const int pool : run.plan.order) json["pools"].push_back(study.pools[pool]);
  if (!run.layers.empty()) json["holds"] = run.layers;
  if (!run.refusal.empty()) json["refused"] = run.refusal;
  return json;
}

}  // namespace

std::string split_json(const SplitStudy& study) {
  Json json{{"name", study.name},
            {"efficiency", study.efficiency()},
            {"sum_of_parts_tokens_per_s", study.sum_of_parts()},
            {"as_given_tokens_per_s", study.as_given},
            {"estimated_splits", study.plans}};
  for (const SplitPart& part : study.parts) {
    Json one = json_of(part.run, study);
    one["pool"] = part.pool;
    one["chip"] = part.chip;
    one["devices"] = part.devices;
    json["parts"].push_back(std::move(one));
  }
  for (const SplitRun& run : study.runs) json["splits"].push_back(json_of(run, study));
  for (const SplitStop& stop : study.stops)
    json["without"].push_back({{"what", stop.what}, {"efficiency", stop.efficiency}});
  json["matrices"] = Json::parse(matrix_json(study.matrices))["matrices"];
  return json.dump(2) + "\n";
}

}  // namespace moebius
