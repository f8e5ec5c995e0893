// The errors of measured servers for scripts.
#include <nlohmann/json.hpp>

#include "hw/json_text.h"
#include "workloads/validation/servers/server_errors.h"

namespace moebius {
namespace {

using Json = nlohmann::ordered_json;

Json errors_json(const ErrorSummary& errors) {
  return {{"median", errors.median}, {"p90", errors.p90}, {"bias", errors.bias}};
}

Json group_json(const ServerGroup& group) {
  return {{"by", group.by},
          {"name", group.name},
          {"rows", group.ttft.rows},
          {"ttft", errors_json(group.ttft)},
          {"tpot", errors_json(group.tpot)}};
}

Json row_json(const ServerResult& result) {
  Json json = {
      {"line", result.row.line}, {"key", shown_characters(result.row.key)}, {"scored", result.scored()}};
  if (!result.left_out.empty()) {
    json["left_out"] = result.left_out;
    return json;
  }
  json["ttft_s"] = {
      {"measured", result.row.ttft}, {"ours", result.ttft}, {"ours_median", result.ttft_median}};
  json["tpot_s"] = {
      {"measured", result.row.tpot}, {"ours", result.tpot}, {"ours_median", result.tpot_median}};
  return json;
}

}  // namespace

std::string servers_json(const std::vector<ServerResult>& results) {
  const ServerSummary summary = summary_of(results);
  Json json = {{"rows", summary.rows},
               {"scored", summary.scored},
               {"kept_for_fit", summary.for_fit},
               {"rank_correlation", summary.ranks.empty() ? Json() : Json(summary.rank_correlation)},
               {"groups", Json::array()},
               {"rank_correlations", Json::array()},
               {"left_out", Json::object()},
               {"cases", Json::array()}};
  for (const ServerGroup& group : summary.groups) json["groups"].push_back(group_json(group));
  for (const RankCorrelation& rank : summary.ranks)
    json["rank_correlations"].push_back(
        {{"system", rank.system}, {"model", rank.model}, {"rows", rank.rows}, {"spearman", rank.spearman}});
  for (const auto& [reason, rows] : summary.left_out) json["left_out"][reason] = rows;
  for (const ServerResult& result : results) json["cases"].push_back(row_json(result));
  return json.dump(2) + "\n";
}

}  // namespace moebius
