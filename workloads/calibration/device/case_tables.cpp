#include "workloads/calibration/device/case_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "hw/error.h"
#include "models/layer_math.h"
#include "workloads/calibration/condense.h"
#include "workloads/calibration/held_out.h"
#include "workloads/cost/measured_table.h"
#include "workloads/cost/roofline.h"
#include "workloads/cost/table.h"

namespace moebius {
namespace {

constexpr double kAbove = 1 + 1e-6;  // of a peak over the measurement that it is taken from

double median_of(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// A case that only tests.
struct Tested {
  CostQuery query;
  double microseconds = 0;
};

// What came of one family.
struct FamilyRows {
  TableDraft draft;
  std::map<std::string, std::vector<Tested>> tests;  // by part
  std::vector<double> spreads;
  int refused = 0, left_out = 0;
  std::string why;  // a refusal's sentence
};

std::vector<FamilyRows> sorted_out(const CasePlan& plan, const CaseJournal& journal,
                                   const ProfileTable& like) {
  std::vector<FamilyRows> families(plan.families.size());
  for (std::size_t i = 0; i < families.size(); ++i) {
    ProfileTable& table = families[i].draft.table = plan.families[i];
    table.stack = like.stack;
    table.source = like.source;
    table.cores = like.cores;
    table.sustained = like.sustained;
  }
  for (const DeviceCase& one : plan.cases) {
    FamilyRows& family = families[static_cast<std::size_t>(one.family)];
    const CaseResult* result = journal.find(one.text);
    if (result == nullptr) {
      ++family.left_out;
    } else if (!result->refused.empty()) {
      ++family.refused;
      family.why = result->refused;
    } else if (one.is_test) {
      family.tests[one.part].push_back({plan.query(one, like.cores), result->measured.seconds * 1e6});
    } else {
      family.draft.rows.push_back({one.site, one.at, result->measured.seconds * 1e6, one.text});
      family.spreads.push_back(result->measured.spread);
    }
  }
  return families;
}

std::vector<double> errors_of(const std::vector<Tested>& tests, const ProfileTable& table,
                              const Accelerator& reference) {
  Profile profile;
  profile.accelerator = reference.id;
  profile.reference = reference;
  profile.tables = {table};
  const AnalyticModel model(reference);
  const MeasuredTables tables({profile});
  std::vector<double> errors;
  for (const Tested& test : tests) {
    const Clocks clocks = clocks_of(table, test.microseconds);
    const auto cost = tables.cost(model, test.query, clocks);
    const double seconds = cost ? cost->seconds : model.estimate(test.query, clocks).seconds;
    errors.push_back(seconds * 1e6 / test.microseconds - 1);
  }
  return errors;
}

// The general tests give the error; the others parts of their own beside it.
HeldOut tests_of(const FamilyRows& family, const ProfileTable& table, const Accelerator& reference) {
  HeldOut held_out;
  std::vector<HeldOutPart> parts;
  for (const auto& [part, tests] : family.tests) {
    HeldOut of_part = held_out_of(errors_of(tests, table, reference));
    if (part.empty()) {
      held_out = std::move(of_part);
    } else {
      parts.push_back({part, of_part.rows, of_part.median, of_part.p90});
    }
  }
  held_out.parts = std::move(parts);
  return held_out;
}

std::string note_of(const FamilyRows& family) {
  std::string note = fmt::format("{} ops measured", family.draft.rows.size());
  if (family.left_out > 0) note += fmt::format(", {} left out: the time was spent", family.left_out);
  return note;
}

ProfileTable table_of(FamilyRows family, const Accelerator& reference) {
  family.draft.table.note = note_of(family);
  ProfileTable table = lay_rows(family.draft);
  table.fit_error = test_table(table, family.draft.rows, reference).median;
  table.spread = median_of(family.spreads);
  table.held_out = tests_of(family, table, reference);
  if (family.refused > 0) table.rejected.push_back({family.refused, family.why.substr(0, 2000)});
  return table;
}

}  // namespace

Accelerator measured_reference(const Accelerator& known, const CasePlan& plan, const CaseJournal& journal) {
  Accelerator found = known;
  double floor = 1e300, most_added = 0, added_rate = 0;
  for (const DeviceCase& one : plan.cases) {
    const CaseResult* result = journal.find(one.text);
    if (result == nullptr || !result->refused.empty()) continue;
    const CostQuery query = plan.query(one, 1);
    const double seconds = result->measured.seconds, bytes = least_bytes(query);
    floor = std::min(floor, seconds);
    found.memory_rate.value = std::max(found.memory_rate.value, kAbove * bytes / seconds);
    if (query.kind == OpKind::kAdd && !query.hot && bytes > most_added) {
      most_added = bytes;
      added_rate = bytes / seconds;
    }
    if (!uses_tensor_cores(query.kind)) continue;
    FlopRate& peak = found.peak[static_cast<std::size_t>(query.dtype)];
    peak.value = std::max(peak.value, kAbove * op_flops(query.kind, loaded_shape(query)).value / seconds);
  }
  if (std::all_of(found.peak.begin(), found.peak.end(), [](FlopRate peak) { return peak.value <= 0; }))
    throw run_error(fmt::format("calibrate: no product could be measured on {}", known.id));
  found.memory_efficiency = added_rate > 0 ? added_rate / found.memory_rate.value : 1;
  found.kernel_floor = Time{static_cast<std::int64_t>(floor * 1e9)};  // rounded down: it is a bound
  return found;
}

CalibratedTables tables_of(const CasePlan& plan, const CaseJournal& journal, const Accelerator& reference,
                           const ProfileTable& like) {
  CalibratedTables all;
  for (FamilyRows& family : sorted_out(plan, journal, like)) {
    all.measured += static_cast<int>(family.draft.rows.size());
    for (const auto& [part, tests] : family.tests) all.measured += static_cast<int>(tests.size());
    all.refused += family.refused;
    all.left_out += family.left_out;
    if (!family.draft.rows.empty()) {
      all.tables.push_back(table_of(std::move(family), reference));
    } else {
      all.missing.push_back(fmt::format("{}: {}", family.draft.table.name,
                                        family.why.empty() ? "the time was spent" : family.why));
    }
  }
  return all;
}

}  // namespace moebius
