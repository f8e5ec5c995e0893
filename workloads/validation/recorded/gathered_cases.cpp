#include "workloads/validation/recorded/gathered_cases.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>

#include <fmt/format.h>

namespace moebius {

namespace {

constexpr const char* kHome = "scenarios/validate";

// What a metric of a report is a figure of.
struct FigureOfMetric {
  std::string_view metric;  // as it starts
  AccuracyClass of;
  std::string_view figure;
  bool rate = false;   // its inverse is a time
  bool every = false;  // each row of a case counts, not the first alone
};
constexpr FigureOfMetric kMetrics[] = {
    {"step_time_s", AccuracyClass::kTraining, "step time"},
    {"tokens_per_s", AccuracyClass::kTraining, "step time", true},
    {"mfu", AccuracyClass::kTraining, "step time", true},
    {"tflops_per_device", AccuracyClass::kTraining, "step time", true},
    {"breakdown.", AccuracyClass::kTraining, "parts of a step", false, true},
    {"collective.time_s", AccuracyClass::kCollectives, "between nodes"},
    {"collective.", AccuracyClass::kCollectives, "between nodes", true},
    {"flows.", AccuracyClass::kCollectives, "flows over a fabric", false, true},
    {"ttft_s", AccuracyClass::kServing, "TTFT"},
    {"tpot_s", AccuracyClass::kServing, "TPOT"},
    {"output_tokens_per_s", AccuracyClass::kServing, "throughput", true},
    {"input_tokens_per_s", AccuracyClass::kServing, "throughput", true},
    {"kv.hit", AccuracyClass::kCache, "hits", true, true},
    {"request_time_s.handover", AccuracyClass::kCache, "moving blocks", false, true},
};

const FigureOfMetric* figure_of(std::string_view metric) {
  for (const FigureOfMetric& row : kMetrics)
    if (metric.starts_with(row.metric)) return &row;
  return nullptr;
}

// "megatron-sc21" and "gpt-1t" of scenarios/validate/megatron-sc21/gpt-1t.json; a table and its row.
struct Campaign {
  std::string source, link, name;
};

Campaign campaign_of(const ValidatedCase& given) {
  namespace fs = std::filesystem;
  std::error_code none;
  const fs::path file = fs::absolute(given.file), home = fs::absolute(kHome);
  if (given.file.empty() || !fs::exists(file, none))
    return {given.group, std::string(kHome) + "/tables", given.name};
  const fs::path below = fs::relative(file, home, none);
  if (below.empty() || *below.begin() == "..")
    return {given.group, fs::path(given.file).parent_path().string(), given.name};
  if (!below.has_parent_path()) {  // its own campaign: what the source's name begins with
    const std::string& told = given.rows.empty() ? given.name : given.rows.front().expectation.source;
    return {told.substr(0, told.find(',')), kHome, given.name};
  }
  const std::string folder = below.begin()->string();
  return {folder, fmt::format("{}/{}", kHome, folder),
          fs::relative(below, folder, none).replace_extension().string()};
}

void unite(std::vector<std::string>& chips, const std::vector<std::string>& more) {
  for (const std::string& chip : more)
    if (std::find(chips.begin(), chips.end(), chip) == chips.end()) chips.push_back(chip);
}

AccuracySource& source_in(std::vector<AccuracySource>& all, AccuracyClass of, const std::string& figure,
                          const std::string& name) {
  const auto at = std::find_if(all.begin(), all.end(), [&](const AccuracySource& source) {
    return source.of == of && source.figure == figure && source.name == name;
  });
  if (at != all.end()) return *at;
  AccuracySource& source = all.emplace_back();
  source.of = of, source.figure = figure, source.name = name;
  return source;
}

void add_case(std::vector<AccuracySource>& all, const ValidatedCase& given) {
  const Campaign origin = campaign_of(given);
  std::vector<std::string> told;  // figures that this case has given
  for (const ValidatedRow& row : given.rows) {
    const FigureOfMetric* figure = figure_of(row.expectation.metric);
    if (figure == nullptr || !row.ours || *row.ours <= 0 || row.expectation.value <= 0) continue;
    std::string name(figure->figure);
    if (name == "between nodes" && given.run.nodes == 1) name = "in a node";
    if (!figure->every && std::find(told.begin(), told.end(), name) != told.end()) continue;
    told.push_back(name);
    AccuracySource& source = source_in(all, figure->of, name, origin.source);
    source.link = origin.link;
    source.calibration = given.fitted;
    unite(source.chips, given.run.chips);
    source.devices = std::max<std::int64_t>(source.devices, given.run.devices);
    const double ratio = std::log(*row.ours / row.expectation.value);
    const std::string point = figure->every ? origin.name + " " + row.expectation.metric : origin.name;
    source.points.push_back({point, figure->rate ? -ratio : ratio, figure->every ? 0 : given.run.parts});
  }
}

void add_server(std::vector<AccuracySource>& all, const ServerResult& result, const std::string& figure,
                double ours, double measured) {
  const ServerRow& row = result.row;
  const std::string campaign = row.for_fit
                                   ? "kept for the host's costs"
                                   : fmt::format("{} of {} on {}", row.backend, row.model, row.system);
  AccuracySource& source = source_in(all, AccuracyClass::kServing, figure, campaign);
  source.link = std::string(kHome) + "/README.md";
  source.calibration = row.for_fit;
  unite(source.chips, {row.system.substr(0, row.system.find('_')) + "-sxm"});
  source.devices = std::max(source.devices, result.devices);
  source.points.push_back({"", std::log(ours / measured), 0});
}

// In the order of the classes, each condensed.
std::vector<AccuracySource> finished(std::vector<AccuracySource> all) {
  for (AccuracySource& source : all) condense(source);
  return all;
}

}  // namespace

std::vector<AccuracySource> gathered(const std::vector<ValidatedCase>& cases) {
  std::vector<AccuracySource> all;
  for (const ValidatedCase& given : cases) add_case(all, given);
  return finished(std::move(all));
}

std::vector<AccuracySource> gathered(const std::vector<ServerResult>& results) {
  std::vector<AccuracySource> all;
  for (const ServerResult& result : results) {
    if (!result.left_out.empty()) continue;
    add_server(all, result, "TTFT", result.ttft, result.row.ttft);
    add_server(all, result, "TPOT", result.tpot, result.row.tpot);
    const ServerRow& row = result.row;
    add_server(all, result, "throughput", row.throughput(row.ttft, row.tpot),
               row.throughput(result.ttft, result.tpot));
  }
  return finished(std::move(all));
}

}  // namespace moebius
