#include "workloads/validation/validation.h"

#include <algorithm>
#include <cmath>

#include "hw/error.h"
#include "workloads/crew.h"
#include "workloads/report/report_uncertainty.h"

namespace moebius {

namespace {

using Verdict = JudgedExpectation::Verdict;

std::vector<ValidatedRow> rows_of(const Report& report) {
  std::vector<ValidatedRow> rows;
  for (const JudgedExpectation& judged : judge_expectations(report))
    rows.push_back({*judged.row, judged.ours, judged.difference, judged.verdict, judged.nearest});
  return rows;
}

ValidatedRun run_of(const Report& report) {
  const Scenario& scenario = *report.scenario;
  ValidatedRun run{.devices = scenario.ranks(), .parts = deviation_of_parts(report)};
  for (const Pool& pool : scenario.cluster->pools) {
    run.chips.push_back(pool.accelerator.id);
    run.nodes += pool.nodes;
  }
  return run;
}

// Calls what takes the report, which refers to the job.
template <class Take>
auto with_report(const Document& scenario, const Library& library, const StartExecutor& start, Take take) {
  Job job = read_job(scenario, {}, library);
  job.scenario.timeline.detail = Detail::kNone;  // figures come from accumulators
  Hooks hooks;
  hooks.quiet = true;
  require_fit(job);
  return take(perform(job, start, hooks).report);
}

ValidatedCase validated(const ValidationCase& given, const Library& library, const StartExecutor& start) {
  ValidatedCase result;
  result.group = given.group;
  result.name = given.name;
  result.file = given.scenario.file;
  result.fitted = given.fitted;
  try {
    with_report(given.scenario, library, start, [&](const Report& report) {
      result.rows = rows_of(report);
      result.run = run_of(report);
    });
  } catch (const Error& error) {
    if (error.kind() == Error::Kind::kInput) throw;
    result.failure = error.what();
  }
  return result;
}

void add(ValidationSummary& summary, std::vector<double>& differences, const ValidatedCase& given) {
  if (!given.failure.empty()) ++summary.failed;
  for (const ValidatedRow& row : given.rows) {
    if (row.fails()) ++summary.failed;
    if (row.verdict == Verdict::kKnownMiss) ++summary.known;
    if (!row.judged()) continue;
    ++summary.judged;
    if (!row.ours) continue;
    const double difference = std::abs(row.difference);
    differences.push_back(difference);
    if (difference < summary.worst) continue;
    summary.worst = difference;
    summary.worst_case = given.name;
  }
}

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

}  // namespace

bool ValidatedRow::judged() const {
  return expectation.tolerance > 0;
}

bool ValidatedRow::fails() const {
  return verdict == Verdict::kMiss || verdict == Verdict::kWorse || verdict == Verdict::kAbsent;
}

std::string quiet_report(const Document& scenario, const Library& library, const StartExecutor& start) {
  return with_report(scenario, library, start, report_json);
}

std::vector<ValidatedCase> validate(const std::vector<ValidationCase>& cases, const Library& library,
                                    const StartExecutor& start) {
  std::vector<ValidatedCase> results(cases.size());
  work_side_by_side(cases.size(), [&](std::size_t i) { results[i] = validated(cases[i], library, start); });
  return results;
}

std::vector<ValidationSummary> summaries(const std::vector<ValidatedCase>& cases) {
  std::vector<ValidationSummary> all;
  std::vector<std::vector<double>> differences;
  for (const ValidatedCase& given : cases) {
    const auto same = [&](const ValidationSummary& summary) { return summary.group == given.group; };
    auto at = std::find_if(all.begin(), all.end(), same) - all.begin();
    if (at == static_cast<std::ptrdiff_t>(all.size())) {
      all.emplace_back().group = given.group;
      differences.emplace_back();
    }
    add(all[at], differences[at], given);
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    count_order(all[i], cases);
    if (differences[i].empty()) continue;
    all[i].median = median_of(differences[i]);
    for (const double difference : differences[i])
      all[i].mean += difference / static_cast<double>(differences[i].size());
  }
  return all;
}

bool passed(const std::vector<ValidatedCase>& cases) {
  for (const ValidationSummary& summary : summaries(cases)) {
    if (summary.failed > 0) return false;
  }
  return true;
}

}  // namespace moebius
