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

double variance_of(const std::vector<double>& values) {
  const double mean = mean_of(values);
  double sum = 0;
  for (const double value : values) sum += (value - mean) * (value - mean);
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

using ByValue = std::map<std::string, std::vector<double>>;

// At the first value of the axis and at the last, of those that have any.
std::pair<double, double> ends_of(const StudyAxis& axis, const ByValue& groups) {
  std::vector<double> means;
  for (const std::string& value : axis.values) {
    const auto found = groups.find(value);
    if (found != groups.end()) means.push_back(mean_of(found->second));
  }
  return {means.front(), means.back()};
}

// Of what depends on one value out of several: how far the means by value explain the whole.
Influence by_value(const std::string& pointer, const StudyAxis* axis, const ByValue& groups) {
  std::vector<double> all, means;
  for (const auto& [value, members] : groups) {
    means.push_back(mean_of(members));
    all.insert(all.end(), members.size(), means.back());
  }
  std::vector<double> raw;
  for (const auto& [value, members] : groups) raw.insert(raw.end(), members.begin(), members.end());
  const double whole = variance_of(raw), mean = mean_of(raw);
  const auto [least, largest] = std::minmax_element(means.begin(), means.end());
  const auto [first, last] = axis != nullptr ? ends_of(*axis, groups) : std::pair(*least, *largest);
  Influence influence{pointer, whole > 0 ? variance_of(all) / whole : 0,
                      mean != 0 ? (last - first) / std::abs(mean) : 0};
  if (axis != nullptr && first != 0) influence.change = (last - first) / std::abs(first);
  return influence;
}

// Of what is drawn from a range: a straight line through all, each combination about its own mean.
Influence by_draw(const UncertainValue& value, const std::vector<double>& drawn,
                  const std::vector<double>& away, double whole, double mean) {
  const double drawn_mean = mean_of(drawn), away_mean = mean_of(away);
  double both = 0, own = 0;
  for (std::size_t i = 0; i < drawn.size(); ++i) {
    both += (drawn[i] - drawn_mean) * (away[i] - away_mean);
    own += (drawn[i] - drawn_mean) * (drawn[i] - drawn_mean);
  }
  const double slope = own > 0 ? both / own : 0;
  const double explained = slope * slope * own / static_cast<double>(drawn.size());
  return {value.pointer, whole > 0 ? explained / whole : 0,
          mean != 0 ? slope * (value.high - value.low) / std::abs(mean) : 0};
}

std::vector<Influence> influences_on(const Study& study, const std::vector<Measured>& points,
                                     std::size_t column) {
  std::map<std::string, ByValue> groups;
  std::map<std::int64_t, std::vector<double>> combinations;
  std::vector<double> all;
  for (const Measured& point : points) {
    if (!point.values[column]) continue;
    all.push_back(*point.values[column]);
    combinations[point.combination].push_back(all.back());
    for (std::size_t i = 0; i < study.axes.size(); ++i)
      groups[point.point.settings[i].pointer][point.point.settings[i].value].push_back(all.back());
    groups["cases"][std::to_string(point.combination % study.cases.size())].push_back(all.back());
  }
  std::vector<Influence> influences;
  if (all.empty()) return influences;
  for (const auto& [pointer, by] : groups) {
    const auto is_it = [&, &of = pointer](const StudyAxis& axis) { return axis.pointer == of; };
    const auto axis = std::find_if(study.axes.begin(), study.axes.end(), is_it);
    if (by.size() > 1)
      influences.push_back(by_value(pointer, axis == study.axes.end() ? nullptr : &*axis, by));
  }
  for (std::size_t i = 0; i < study.uncertain.size(); ++i) {
    std::vector<double> drawn, away;
    for (const Measured& point : points) {
      if (!point.values[column]) continue;
      const std::vector<Assignment>& settings = point.point.settings;
      const std::string& text = settings[settings.size() - study.uncertain.size() + i].value;
      drawn.push_back(std::stod(text.starts_with('"') ? text.substr(1) : text));
      away.push_back(*point.values[column] - mean_of(combinations[point.combination]));
    }
    influences.push_back(by_draw(study.uncertain[i], drawn, away, variance_of(all), mean_of(all)));
  }
  std::stable_sort(influences.begin(), influences.end(),
                   [](const Influence& a, const Influence& b) { return a.share > b.share; });
  return influences;
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

  void check() const {
    for (std::size_t i = 0; i < known_.size(); ++i) {
      if (known_[i]) continue;
      Place place = study_.columns_at;
      place.pointer += fmt::format("/{}", i);
      place.fail(fmt::format("no report has a number \"{}\"{}", study_.columns[i],
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
  if (table.done == table.points) names.check();
  add_values(points, table);
  for (std::size_t column = 0; column < study.columns.size(); ++column)
    table.influences.push_back(influences_on(study, points, column));
  return table;
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
