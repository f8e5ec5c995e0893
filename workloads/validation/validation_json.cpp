// The error table for scripts.
#include <nlohmann/json.hpp>

#include "workloads/validation/validation.h"

namespace moebius {

namespace {

using Json = nlohmann::ordered_json;

Json row_json(const ValidatedRow& row) {
  const Expectation& expected = row.expectation;
  Json json = {{"metric", expected.metric}, {"expected", expected.value}};
  if (row.ours) json["ours"] = *row.ours;
  if (row.ours) json["difference"] = row.difference;
  if (row.judged()) json["tolerance"] = expected.tolerance;
  json["verdict"] = to_string(row.verdict);
  if (!row.nearest.empty()) json["nearest"] = row.nearest;
  json["source"] = expected.source;
  if (!expected.known_miss.empty()) json["known_miss"] = expected.known_miss;
  return json;
}

Json case_json(const ValidatedCase& given) {
  Json json = {{"scenario", given.name}, {"rows", Json::array()}};
  if (!given.failure.empty()) json["failure"] = given.failure;
  for (const ValidatedRow& row : given.rows) json["rows"].push_back(row_json(row));
  return json;
}

Json group_json(const ValidationSummary& summary, const std::vector<ValidatedCase>& cases) {
  Json json = {{"group", summary.group},   {"judged", summary.judged},
               {"failed", summary.failed}, {"known_misses", summary.known},
               {"median", summary.median}, {"mean", summary.mean},
               {"worst", summary.worst},   {"worst_scenario", summary.worst_case},
               {"pairs", summary.pairs},   {"pairs_in_order", summary.in_order},
               {"cases", Json::array()}};
  for (const ValidatedCase& given : cases) {
    if (given.group == summary.group) json["cases"].push_back(case_json(given));
  }
  return json;
}

}  // namespace

std::string to_json(const std::vector<ValidatedCase>& cases) {
  Json json = {{"passed", passed(cases)}, {"groups", Json::array()}};
  for (const ValidationSummary& summary : summaries(cases))
    json["groups"].push_back(group_json(summary, cases));
  return json.dump(2) + "\n";
}

}  // namespace moebius
