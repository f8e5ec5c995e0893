#include "workloads/study/command_json.h"

#include <nlohmann/json.hpp>

#include "workloads/perform/perform.h"

namespace moebius {

std::string with_facts(const std::string& json, const CommandFacts& facts) {
  const auto given = nlohmann::ordered_json::parse(json);
  nlohmann::ordered_json all;
  if (!facts.scenario.empty()) all["scenario"] = facts.scenario;
  if (given.contains("scenario")) all["scenario"] = given["scenario"];
  all["kind"] = facts.kind;
  const std::size_t space = facts.means.find(' ');
  all["executor"] = facts.means.substr(0, space);
  all["detail"] = space == std::string::npos ? "" : facts.means.substr(space + 1);
  if (facts.seed) all["seed"] = *facts.seed;
  all.update(given);
  all["provenance"] = {{"moebius", version_text()}};
  all["uncertainty"] = nlohmann::ordered_json::object();
  RunFacts use;
  add_process_use(use, facts.started);
  all["wall_s"] = use.wall_s;
  all["cpu_s"] = use.cpu_s;
  all["max_rss_bytes"] = use.max_rss_bytes;
  return all.dump(2) + "\n";
}

}  // namespace moebius
