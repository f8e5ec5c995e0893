// The result of a search as one JSON object in SI units.
#include <algorithm>

#include <nlohmann/json.hpp>

#include "workloads/perform/perform.h"
#include "workloads/study/search/search_result.h"

namespace moebius {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const PlanFigures& figures) {
  Json json{{"value", figures.value}};
  for (const auto& [key, value] : figures.figures) json[std::string(key)] = value;
  if (figures.expected_error > 0) json["expected_error"] = figures.expected_error;
  for (const auto& [part, seconds] : figures.parts) json["parts"][part] = seconds;
  return json;
}

Json json_of(const RankedPlan& plan) {
  Json json{{"name", plan.name}};
  for (const Assignment& change : plan.settings) json["settings"][change.pointer] = Json::parse(change.value);
  if (plan.bound > 0) json["bound"] = plan.bound;
  json["alpha_beta"] = json_of(plan.rough);
  if (plan.fine) json["fluid"] = json_of(*plan.fine);
  return json;
}

Json counts_json(const SearchResult& result) {
  const SearchCounts& counts = result.counts;
  Json json = {
      {"legal", counts.legal},         {"groups", counts.groups},    {"behind_by_bound", counts.bounded},
      {"too_large", counts.too_large}, {"alpha_beta", counts.rough}, {"fluid", counts.fine},
      {"not_looked_at", counts.left}};
  if (counts.refused > 0) json["refused"] = counts.refused;
  std::string lowered(result.subject->lowered);
  std::replace(lowered.begin(), lowered.end(), ' ', '_');
  json[lowered] = counts.lowered;
  return json;
}

}  // namespace

std::string to_json(const SearchResult& result) {
  Json json{{"scenario", result.scenario},
            {"kind", "search"},
            {"executor", "sim"},
            {"detail", "alpha-beta, fluid"},
            {"seed", result.seed}};
  Json& search = json["search"];
  search["goal"] = name_of(result.goal);
  search["space"] = counts_json(result);
  search["complete"] = result.complete;
  if (!result.complete) search["ended_by"] = result.ended;
  if (result.open_bound > 0) search["best_possible_score"] = result.open_bound;
  search["plans"] = Json::array();
  for (const RankedPlan& plan : result.plans) search["plans"].push_back(json_of(plan));
  if (result.given)
    search["given"] = json_of(*result.given);
  else
    search["given_refusal"] = result.given_refusal;
  search["pareto_front"] = pareto_front(result);
  json["provenance"] = {{"moebius", version_text()}, {"file", result.file}};
  json["uncertainty"] = Json::object();
  if (!result.plans.empty())
    json["uncertainty"] = {{"best_expected_error", result.plans.front().best_known().expected_error}};
  json["wall_s"] = result.wall_s;
  json["cpu_s"] = result.cpu_s;
  json["max_rss_bytes"] = result.max_rss_bytes;
  return json.dump(2) + "\n";
}

}  // namespace moebius
