// Predictions beside measurements: scenarios with expected figures are run, and every figure is judged.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "hw/document.h"
#include "workloads/job.h"
#include "workloads/perform/perform.h"
#include "workloads/report/report_figures.h"

namespace moebius {

// One scenario to run; its rows are counted with those of its group.
struct ValidationCase {
  std::string group, name;
  Document scenario;
  bool fitted = false;  // something of it is fitted to its figures: they are shown and judge nothing
};

struct ValidatedRow {
  Expectation expectation;
  std::optional<double> ours;  // nothing: the report has no such figure
  double difference = 0;       // relative, ours over expected
  JudgedExpectation::Verdict verdict = JudgedExpectation::Verdict::kShown;
  std::string nearest = {};  // of an absent one: a figure that may be meant

  bool judged() const;  // by a tolerance
  bool fails() const;   // a miss, a known one that got worse, or a figure that is absent
};

// What ran.
struct ValidatedRun {
  std::vector<std::string> chips = {};  // catalog ids
  int devices = 0, nodes = 0;
  double parts = 0;  // see AccuracyPoint
};

struct ValidatedCase {
  std::string group, name;
  std::string file = {};  // of the scenario; of a row of a table, what the row's errors name
  ValidatedRun run = {};
  std::vector<ValidatedRow> rows = {};
  std::string failure = {};  // why the run came to no end; empty: it did
  bool fitted = false;       // ValidationCase::fitted
};

struct ValidationSummary {
  std::string group;
  int judged = 0, failed = 0, known = 0;   // rows
  double median = 0, mean = 0, worst = 0;  // of the absolute differences of judged rows
  std::string worst_case = {};
  // Of each two cases that judge the same figure and whose published values differ: how many we put in the
  // published order.
  int pairs = 0, in_order = 0;
};

// The scenarios with expected figures in these paths: a directory and those below it (the directory that
// holds a file names its group), or one file. input_error for a path that is not there, and for a file given
// by name that expects nothing. Files of claims (claims/) are left out.
std::vector<ValidationCase> cases_of(const std::vector<std::string>& paths, const std::string& mapping);

// The report of a scenario, with no timeline kept. Errors are those of the run; run_error where it does not
// fit.
std::string quiet_report(const Document& scenario, const Library& library, const StartExecutor& start);

// Runs them on as many threads as this machine has cores. A run that fails is told in its case; input_error
// is thrown.
std::vector<ValidatedCase> validate(const std::vector<ValidationCase>& cases, const Library& library,
                                    const StartExecutor& start);

// Counts pairs and in_order of the cases of the summary's group.
void count_order(ValidationSummary& summary, const std::vector<ValidatedCase>& cases);

// One for each group, in the order of the cases.
std::vector<ValidationSummary> summaries(const std::vector<ValidatedCase>& cases);
bool passed(const std::vector<ValidatedCase>& cases);

std::string to_text(const std::vector<ValidatedCase>& cases);
std::string to_json(const std::vector<ValidatedCase>& cases);  // one object, ends with a newline

}  // namespace moebius
