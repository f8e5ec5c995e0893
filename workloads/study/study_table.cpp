#include "workloads/study/study_table.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>

#include "hw/error.h"
#include "workloads/report/report.h"
#include "workloads/study/study_points.h"

namespace moebius {

namespace {

// A point that is done: its draws and what the columns say.
struct Measured {
  std::int64_t combination = 0;
  StudyPoint point;
  std::vector<std::optional<double>> values;
};

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

ColumnSpread spread_of(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const auto at = [&](double share) {
    return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1) + 0.5)];
  };
  return {static_cast<std::int64_t>(values.size()), mean_of(values), at(0.1), at(0.9)};
}

// Of so many values; those that no point has are left out.
Factor factor_of(std::string pointer, std::size_t values, std::vector<int> taken, bool ordered) {
  std::vector<int> number(values, -1);
  for (const int value : taken) number[value] = 0;
  int levels = 0;
  for (int& value : number)
    if (value == 0) value = levels++;
  for (int& value : taken) value = number[value];
  return {std::move(pointer), levels, ordered, std::move(taken), {}};
}

Factor factor_of(const StudyAxis& axis, std::size_t setting, const std::vector<const Measured*>& points) {
  std::map<std::string, int> numbers;
  for (std::size_t i = 0; i < axis.values.size(); ++i) numbers.emplace(axis.values[i], static_cast<int>(i));
  std::vector<int> taken;
  for (const Measured* point : points) taken.push_back(numbers.at(point->point.settings[setting].value));
  return factor_of(axis.pointer, axis.values.size(), std::move(taken), true);
}

Factor factor_of(const UncertainValue& range, std::size_t from_last,
                 const std::vector<const Measured*>& points) {
  Factor factor{range.pointer, 0, true, {}, {}};
  for (const Measured* point : points) {
    const std::vector<Assignment>& settings = point->point.settings;
    const std::string& text = settings[settings.size() - from_last].value;
    const double drawn = std::stod(text.starts_with('"') ? text.substr(1) : text);
    factor.drawn.push_back((drawn - range.low) / (range.high - range.low));
  }
  return factor;
}

// All that varies between points that have a value in the column.
std::vector<Influence> influences_on(const Study& study, const std::vector<Measured>& points,
                                     std::size_t column) {
  std::vector<const Measured*> with;
  std::vector<double> values;
  for (const Measured& point : points) {
    if (!point.values[column]) continue;
    with.push_back(&point);
    values.push_back(*point.values[column]);
  }
  if (with.empty()) return {};
  std::vector<Factor> factors;
  const auto add = [&](Factor factor) {
    if (factor.levels > 1) factors.push_back(std::move(factor));
  };
  for (std::size_t i = 0; i < study.axes.size(); ++i) add(factor_of(study.axes[i], i, with));
  std::vector<int> taken;
  const auto cases = static_cast<std::int64_t>(study.cases.size());
  for (const Measured* point : with) taken.push_back(static_cast<int>(point->combination % cases));
  add(factor_of("cases", study.cases.size(), std::move(taken), false));
  for (std::size_t i = 0; i < study.uncertain.size(); ++i)
    factors.push_back(factor_of(study.uncertain[i], study.uncertain.size() - i, with));
  return influences_of(factors, values);
}

// Points come in the order of combinations, as rows do.
void add_values(const std::vector<Measured>& points, StudyTable& table) {
  std::size_t first = 0;
  for (CombinationRow& row : table.rows) {
    std::size_t last = first;
    while (last < points.size() && points[last].combination == row.combination) ++last;
    for (std::size_t column = 0; column < table.columns.size(); ++column) {
      std::vector<double> values;
      for (std::size_t i = first; i < last; ++i) {
        if (points[i].values[column]) values.push_back(*points[i].values[column]);
      }
      row.values.push_back(spread_of(std::move(values)));
    }
    first = last;
  }
}

// Which columns the reports have.
class ColumnNames {
 public:
  explicit ColumnNames(const Study& study) : study_(study), known_(study.columns.size(), false) {}

  void add(const std::string& report, const std::vector<std::optional<double>>& values) {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < values.size(); ++i) {
      known_[i] = known_[i] || values[i].has_value();
      if (known_[i]) continue;
      if (names.empty()) names = report_names(report);
      known_[i] = std::find(names.begin(), names.end(), study_.columns[i]) != names.end();
    }
    names_.insert(names.begin(), names.end());
  }

  // `without`: who has none.
  void check(std::string_view without) const {
    for (std::size_t i = 0; i < known_.size(); ++i) {
      if (known_[i]) continue;
      Place place = study_.columns_at;
      place.pointer += fmt::format("/{}", i);
      place.fail(fmt::format("{} a number \"{}\"{}", without, study_.columns[i],
                             suggestion(study_.columns[i], {names_.begin(), names_.end()})));
    }
  }

 private:
  const Study& study_;
  std::vector<bool> known_;      // by column
  std::set<std::string> names_;  // of reports that lack some
};

}  // namespace

StudyTable table_of(const Study& study, const ResultsFile& results, std::int64_t number) {
  StudyTable table;
  table.columns = study.columns;
  table.points = study.points();
  std::vector<Measured> points;
  ColumnNames names(study);
  results.for_each(number, [&](const StudyRow& row, const StudyResult& result) {
    StudyPoint point = point_of(study, row.point);
    if (table.rows.empty() || table.rows.back().combination != point.combination) {
      table.rows.push_back({point.combination, point.settings, {}, 0, ""});
      table.rows.back().settings.resize(point.settings.size() - study.uncertain.size());
    }
    if (!result.done) {
      CombinationRow& failed = table.rows.back();
      if (failed.failed++ == 0) failed.failure = result.text;
      ++table.failed;
      return;
    }
    ++table.done;
    Measured measured{point.combination, std::move(point), {}};
    for (const std::string& column : study.columns)
      measured.values.push_back(report_value(result.text, column));
    names.add(result.text, measured.values);
    points.push_back(std::move(measured));
  });
  if (table.done == table.points) names.check("no report has");
  add_values(points, table);
  for (std::size_t column = 0; column < study.columns.size(); ++column)
    table.influences.push_back(influences_on(study, points, column));
  return table;
}

std::string missing_column(const Study& study, const std::string& report) {
  ColumnNames names(study);
  std::vector<std::optional<double>> values;
  for (const std::string& column : study.columns) values.push_back(report_value(report, column));
  names.add(report, values);
  try {
    names.check("the first report is without");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

std::vector<std::string> short_names(const std::vector<std::string>& pointers) {
  std::vector<std::string> names;
  for (const std::string& pointer : pointers) {
    std::string name;
    for (std::size_t cut = pointer.rfind('/'); cut != std::string::npos;
         cut = cut == 0 ? std::string::npos : pointer.rfind('/', cut - 1)) {
      name = pointer.substr(cut + 1);
      const auto ends_so = [&](const std::string& other) { return other.ends_with("/" + name); };
      if (std::count_if(pointers.begin(), pointers.end(), ends_so) <= 1) break;
    }
    names.push_back(std::move(name));
  }
  return names;
}

}  // namespace moebius
