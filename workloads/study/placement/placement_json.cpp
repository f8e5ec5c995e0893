// What `moebius place` prints as JSON, and the scenario that it writes.
#include <filesystem>

#include <nlohmann/json.hpp>

#include "workloads/scenario/extended_document.h"
#include "workloads/scenario/named_files.h"
#include "workloads/study/placement/placement_study.h"
#include "workloads/training/rank_placement.h"

namespace moebius {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const PlacementStudy::Finalist& finalist) {
  Json json{{"how", finalist.placed.how},
            {"step_time_s", finalist.step_seconds},
            {"estimated_communication_s", finalist.placed.cost.seconds}};
  for (const auto& [role, seconds] : finalist.by_role)
    json["estimated_by_group_s"][std::string(to_string(role))] = seconds;
  json["ranks"] = device_ranges(finalist.placed.device_of_rank);
  return json;
}

}  // namespace

std::string placement_json(const PlacementStudy& study) {
  Json json{{"scenario", study.scenario},
            {"ranks", study.ranks},
            {"free_devices", study.free},
            {"estimated_placements", study.tried},
            {"exact", study.exact},
            {"gain", study.gain()},
            {"estimated_communication_gain", study.estimated_gain()}};
  for (const auto& [role, bytes] : study.bytes) json["sent_bytes"][std::string(to_string(role))] = bytes;
  json["naive"] = json_of(study.naive);
  for (const PlacementStudy::Finalist& finalist : study.finalists)
    json["finalists"].push_back(json_of(finalist));
  return json.dump(2) + "\n";
}

namespace {

Json placement_of(const PlacementStudy& study) {
  return {{"order", "naive"}, {"ranks", device_ranges(study.best().placed.device_of_rank)}};
}

std::string name_of(const PlacementStudy& study) {
  return study.name + ", placed";
}

}  // namespace

std::string placed_scenario(const PlacementStudy& study, const std::string& file, const std::string& path) {
  namespace fs = std::filesystem;
  const fs::path directory = fs::absolute(path).parent_path();
  const Json json{{"moebius", 1},
                  {"extends", fs::relative(fs::absolute(file), directory).string()},
                  {"kind", "training"},
                  {"name", name_of(study)},
                  {"plan", {{"placement", placement_of(study)}}}};
  return json.dump(2) + "\n";
}

std::string placed_scenario(const PlacementStudy& study, const Document& changed, const std::string& path) {
  Document scenario = written_into(changed, std::filesystem::path(path).parent_path().string());
  forget_expected(scenario);
  set_at_pointer(scenario, "/plan/placement", placement_of(study).dump());
  set_at_pointer(scenario, "/name", Json(name_of(study)).dump());
  return to_json(scenario.root) + "\n";
}

std::string fragmented_json(const std::vector<FragmentedGain>& gains) {
  Json json{{"published_gain", kPublishedGain},
            {"share_at_published", share_at_least(gains, kPublishedGain)}};
  for (const FragmentedGain& gain : gains)
    json["cases"].push_back({{"name", gain.name},
                             {"how", gain.how},
                             {"whole_nodes", gain.whole_nodes},
                             {"gain", gain.gain()},
                             {"naive_step_time_s", gain.naive_seconds},
                             {"placed_step_time_s", gain.placed_seconds},
                             {"naive_estimated_communication_s", gain.naive_estimate},
                             {"placed_estimated_communication_s", gain.placed_estimate}});
  return json.dump(2) + "\n";
}

}  // namespace moebius
