// The part of a report that says how far to trust it, for scripts.
#include <nlohmann/json.hpp>

#include "workloads/accuracy/error_spread.h"
#include "workloads/report/report_figures.h"
#include "workloads/report/report_uncertainty.h"

namespace moebius {

namespace {

using Json = nlohmann::ordered_json;

// {"ttft_s": {"mean": {"low": ...}}}: at the places of the figures themselves.
void add_intervals(Json& json, const Report& report) {
  const Uncertainty uncertainty = uncertainty_of(report, shipped_record());
  for (const FigureInterval& figure : uncertainty.figures) {
    Json* at = &json["figures"];
    for (std::size_t begin = 0; begin != std::string::npos;) {
      const std::size_t dot = figure.key.find('.', begin);
      at = &(*at)[figure.key.substr(begin, dot - begin)];
      begin = dot == std::string::npos ? dot : dot + 1;
    }
    *at = {{"low", figure.low},         {"high", figure.high},
           {"level", kIntervalLevel},   {"class", to_string(figure.of)},
           {"sources", figure.sources}, {"rows", figure.rows}};
  }
  if (!uncertainty.outside.empty()) json["outside"] = uncertainty.outside;
}

}  // namespace

std::string uncertainty_json(const Report& report) {
  const Metrics& metrics = report.metrics;
  const TrustFigures trust = trust_figures(metrics);
  Json shares = Json::object();
  for (int i = 0; i < kNumOrigins; ++i) {
    if (metrics.seconds_by_origin[i] <= 0) continue;
    shares[std::string(to_string(static_cast<Origin>(i)))] = metrics.seconds_by_origin[i] / trust.busy;
  }
  Json json = Json::object();
  if (trust.busy > 0)  // of ops that were recorded; without any, nothing is known of them
    json = {{"kernel_relative_error", trust.kernel_error}, {"share_of_busy_time", shares}};
  if (of_timed_iterations(report)) json["weighted_by"] = kWeightedBy;
  if (const auto interval = interval_figures(report))
    json["interval"] = {{"of", interval_subject(report)},
                        {"low", interval->low},
                        {"high", interval->high},
                        {"relative", interval->relative},
                        {"covered_share", interval->covered}};
  add_intervals(json, report);
  return json.dump();
}

}  // namespace moebius
