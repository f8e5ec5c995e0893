// The scoreboard for scripts.
#include <nlohmann/json.hpp>

#include "workloads/validation/claims/claim_tables.h"

namespace moebius {

namespace {

using Json = nlohmann::ordered_json;

Json bound_json(const ClaimBound& bound) {
  switch (bound.kind) {
    case ClaimBound::Kind::kAtLeast:
      return {{"at_least", bound.value}};
    case ClaimBound::Kind::kAtMost:
      return {{"at_most", bound.value}};
    case ClaimBound::Kind::kValue:
      return {{"value", bound.value}, {"tolerance", bound.tolerance}};
  }
  return {};
}

Json run_json(const Claim& claim, std::size_t i, const ClaimRun& run) {
  const ClaimConfiguration& configuration = claim.configurations[i];
  Json json = {{"name", configuration.name}, {"scenario", configuration.scenario}};
  if (!configuration.baselines.empty()) json["baseline"] = configuration.baselines;
  if (run.ours) json["ours"] = *run.ours;
  for (std::size_t n = 0; n < claim.notes.size(); ++n)
    if (run.notes[n]) json["also"][claim.notes[n].name] = *run.notes[n];
  if (!run.failure.empty()) json["failure"] = run.failure;
  return json;
}

Json need_json(const ClaimNeed& need) {
  const ClaimAssumption& assumption = *need.assumption;
  Json json = {{"assumption", assumption.says}, {"pointer", assumption.pointer}, {"now", assumption.from}};
  if (need.number) json["would_need"] = *need.number;
  if (!need.number) json["tried"] = assumption.to;
  if (need.at_the_end) json["ours_then"] = *need.at_the_end;
  return json;
}

Json claim_json(const JudgedClaim& judged) {
  const Claim& claim = *judged.claim;
  Json json = {{"claim", claim.id},
               {"says", claim.says},
               {"published", bound_json(claim.published)},
               {"figure", claim.figure.text()},
               {"verdict", to_string(judged.verdict)},
               {"mechanism", claim.mechanism},
               {"source", claim.source},
               {"configurations", Json::array()}};
  for (std::size_t i = 0; i < judged.runs.size(); ++i)
    json["configurations"].push_back(run_json(claim, i, judged.runs[i]));
  if (judged.deciding) json["ours"] = *judged.runs[*judged.deciding].ours;
  if (!claim.known_miss.empty()) json["known_miss"] = claim.known_miss;
  for (const ClaimNeed& need : judged.needs) json["needs"].push_back(need_json(need));
  return json;
}

}  // namespace

std::string to_json(const std::vector<ValidatedCase>& cases, const std::vector<JudgedClaim>& claims) {
  Json json = Json::parse(to_json(cases));
  json["passed"] = passed(cases) && passed(claims);
  if (!claims.empty()) json["claims"] = Json::array();
  for (const JudgedClaim& claim : claims) json["claims"].push_back(claim_json(claim));
  return json.dump(2) + "\n";
}

}  // namespace moebius
