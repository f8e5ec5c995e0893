#include "workloads/validation/claims/judged_claim.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>

#include "hw/error.h"
#include "workloads/crew.h"
#include "workloads/report/report.h"
#include "workloads/scenario/extended_document.h"

namespace moebius {

namespace {

using Verdict = JudgedClaim::Verdict;

// What a run left: its report, or why there is none.
struct Ran {
  std::string report, failure;
};
using RanFiles = std::map<std::string, Ran>;

Ran ran(const Document& scenario, const ReportOf& report_of) {
  try {
    return {report_of(scenario), {}};
  } catch (const Error& error) {
    if (error.kind() == Error::Kind::kInput) throw;
    const std::string text = error.what();
    return {{}, text.substr(0, text.find('\n'))};
  }
}

RanFiles run_files(const std::vector<Claim>& claims, const ReportOf& report_of) {
  std::set<std::string> distinct;
  for (const Claim& claim : claims)
    for (const ClaimConfiguration& configuration : claim.configurations) {
      distinct.insert(configuration.scenario);
      distinct.insert(configuration.baselines.begin(), configuration.baselines.end());
    }
  const std::vector<std::string> files(distinct.begin(), distinct.end());
  std::vector<Ran> results(files.size());
  work_side_by_side(files.size(),
                    [&](std::size_t i) { results[i] = ran(load_scenario(files[i]), report_of); });
  RanFiles all;
  for (std::size_t i = 0; i < files.size(); ++i) all.emplace(files[i], std::move(results[i]));
  return all;
}

// The reports of one configuration.
struct Reports {
  const Ran* ours = nullptr;
  std::vector<const Ran*> baselines;
};

std::optional<double> sum_of(const std::vector<const Ran*>& parts, const std::string& path) {
  double sum = 0;
  for (const Ran* part : parts) {
    const std::optional<double> value = report_value(part->report, path);
    if (!value) return std::nullopt;
    sum += *value;
  }
  return sum;
}

std::string failure_of(const Reports& reports) {
  for (const Ran* baseline : reports.baselines)
    if (!baseline->failure.empty()) return baseline->failure;
  return reports.ours->failure;
}

std::optional<double> figure_of(const ClaimFormula& formula, const Reports& reports) {
  return formula.value([&](const std::string& path) { return report_value(reports.ours->report, path); },
                       [&](const std::string& path) { return sum_of(reports.baselines, path); });
}

ClaimRun run_of(const Claim& claim, const Reports& reports) {
  ClaimRun run{.ours = std::nullopt, .failure = failure_of(reports)};
  if (!run.failure.empty()) {
    run.notes.resize(claim.notes.size());
    return run;
  }
  run.ours = figure_of(claim.figure, reports);
  if (!run.ours) run.failure = fmt::format("the report has no {}", claim.figure.text());
  for (const ClaimNote& note : claim.notes) run.notes.push_back(figure_of(note.figure, reports));
  return run;
}

Reports reports_of(const ClaimConfiguration& configuration, const RanFiles& files) {
  Reports reports{.ours = &files.at(configuration.scenario), .baselines = {}};
  for (const std::string& baseline : configuration.baselines)
    reports.baselines.push_back(&files.at(baseline));
  return reports;
}

bool is_right_way(const Claim& claim, double ours) {
  return !claim.neutral || claim.published.better(ours, *claim.neutral);
}

// The worst of all where each must meet the bound, the best otherwise.
std::optional<std::size_t> deciding_run(const Claim& claim, const std::vector<ClaimRun>& runs) {
  std::optional<std::size_t> at;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (!runs[i].ours) continue;
    if (at && claim.published.better(*runs[i].ours, *runs[*at].ours) == claim.each) continue;
    at = i;
  }
  return at;
}

bool is_met(const JudgedClaim& judged) {
  const Claim& claim = *judged.claim;
  const bool all_right = std::all_of(judged.runs.begin(), judged.runs.end(), [&](const ClaimRun& run) {
    return run.ours && is_right_way(claim, *run.ours);
  });
  return all_right && claim.published.met_by(*judged.runs[*judged.deciding].ours);
}

// Further from the published figure than it was recorded, by half a percentage point; or a configuration has
// no figure any more.
bool is_worse(const JudgedClaim& judged) {
  constexpr double kSlack = 0.005;
  const Claim& claim = *judged.claim;
  if (!claim.known_figure) return false;
  if (std::any_of(judged.runs.begin(), judged.runs.end(), [](const ClaimRun& run) { return !run.ours; }))
    return true;
  const double ours = *judged.runs[*judged.deciding].ours, known = *claim.known_figure;
  return claim.published.better(known, ours) &&
         std::abs(ours - known) > kSlack * std::abs(claim.published.value);
}

Verdict verdict_of(const JudgedClaim& judged) {
  if (judged.deciding && is_met(judged)) return Verdict::kPass;
  if (judged.claim->known_miss.empty()) return Verdict::kMiss;
  return is_worse(judged) ? Verdict::kWorse : Verdict::kKnownMiss;
}

JudgedClaim judged(const Claim& claim, const RanFiles& files) {
  JudgedClaim judged{.claim = &claim};
  for (const ClaimConfiguration& configuration : claim.configurations)
    judged.runs.push_back(run_of(claim, reports_of(configuration, files)));
  judged.deciding = deciding_run(claim, judged.runs);
  judged.verdict = verdict_of(judged);
  return judged;
}

// ---- what a miss would need ----

std::string replaced(std::string text, std::string_view what, std::string_view by) {
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
  return text;
}

// A JSON value with its # replaced: a string that is nothing else becomes a number.
std::string with_number(const std::string& value, double number) {
  const std::string text = fmt::format("{}", number);
  return replaced(replaced(value, "\"#\"", text), "#", text);
}

// The configuration that decides, with one assumption at `number`.
class Supposed {
 public:
  Supposed(const JudgedClaim& judged, const ClaimAssumption& assumption, const RanFiles& files,
           const ReportOf& report_of)
      : claim_(*judged.claim),
        configuration_(claim_.configurations[*judged.deciding]),
        assumption_(assumption),
        reports_(reports_of(configuration_, files)),
        report_of_(report_of) {}

  std::optional<double> figure(double number) const {
    Reports reports = reports_;
    Ran ours;
    if (assumption_.of != ClaimAssumption::Of::kBaseline) {
      ours = run(configuration_.scenario, number);
      reports.ours = &ours;
    }
    std::vector<Ran> baselines;
    if (assumption_.of != ClaimAssumption::Of::kScenario) {
      for (const std::string& file : configuration_.baselines) baselines.push_back(run(file, number));
      for (std::size_t i = 0; i < baselines.size(); ++i) reports.baselines[i] = &baselines[i];
    }
    return run_of(claim_, reports).ours;
  }

  bool meets(double number) const {
    const std::optional<double> ours = figure(number);
    return ours && meets_with(*ours);
  }

  bool meets_with(double ours) const { return claim_.published.met_by(ours); }

 private:
  Ran run(const std::string& file, double number) const {
    Document document = load_scenario(file);
    set_at_pointer(document, assumption_.pointer, with_number(assumption_.value, number));
    return ran(document, report_of_);
  }

  const Claim& claim_;
  const ClaimConfiguration& configuration_;
  const ClaimAssumption& assumption_;
  Reports reports_;
  const ReportOf& report_of_;
};

double on_step(double number, double step) {
  return step > 0 ? std::round(number / step) * step : number;
}

// The border between missing and meeting, to a hundredth of the way or to the step. The figure is taken to
// get better all the way.
ClaimNeed need_of(const ClaimAssumption& assumption, const Supposed& supposed) {
  constexpr double kShareOfWay = 0.01;
  ClaimNeed need{.assumption = &assumption};
  need.at_the_end = supposed.figure(assumption.to);
  if (!need.at_the_end || !supposed.meets_with(*need.at_the_end)) return need;
  double misses = assumption.from, meets = assumption.to;
  const double close = std::max(assumption.step, kShareOfWay * std::abs(meets - misses));
  while (std::abs(meets - misses) > 1.001 * close) {
    const double middle = on_step((misses + meets) / 2, assumption.step);
    if (middle == misses || middle == meets) break;
    (supposed.meets(middle) ? meets : misses) = middle;
  }
  need.number = meets;
  return need;
}

void find_needs(JudgedClaim& judged, const RanFiles& files, const ReportOf& report_of) {
  if (judged.verdict == Verdict::kPass || !judged.deciding) return;
  for (const ClaimAssumption& assumption : judged.claim->needs)
    judged.needs.push_back(need_of(assumption, {judged, assumption, files, report_of}));
}

}  // namespace

std::string_view to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::kPass:
      return "pass";
    case Verdict::kMiss:
      return "miss";
    case Verdict::kKnownMiss:
      return "known miss";
    case Verdict::kWorse:
      return "worse";
  }
  return "";
}

std::vector<JudgedClaim> judge_claims(const std::vector<Claim>& claims, const ReportOf& report_of) {
  const RanFiles files = run_files(claims, report_of);
  std::vector<JudgedClaim> results;
  for (const Claim& claim : claims) results.push_back(judged(claim, files));
  work_side_by_side(results.size(), [&](std::size_t i) { find_needs(results[i], files, report_of); });
  return results;
}

bool passed(const std::vector<JudgedClaim>& claims) {
  return std::none_of(claims.begin(), claims.end(), [](const JudgedClaim& claim) { return claim.fails(); });
}

}  // namespace moebius
