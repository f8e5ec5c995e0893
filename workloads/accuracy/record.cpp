#include "workloads/accuracy/record.h"

#include <algorithm>
#include <cmath>

namespace moebius {

const std::vector<std::pair<std::string_view, AccuracyClass>>& accuracy_classes() {
  static const std::vector<std::pair<std::string_view, AccuracyClass>> table{
      {"kernels", AccuracyClass::kKernels},
      {"collectives", AccuracyClass::kCollectives},
      {"training", AccuracyClass::kTraining},
      {"serving", AccuracyClass::kServing},
      {"KV cache", AccuracyClass::kCache}};
  return table;
}

std::string_view to_string(AccuracyClass of) {
  return accuracy_classes()[static_cast<std::size_t>(of)].first;
}

std::vector<double> AccuracySource::errors() const {
  std::vector<double> all;
  for (const AccuracyPoint& point : points) all.push_back(point.error);
  return all;
}

std::vector<const AccuracySource*> AccuracyRecord::tests(AccuracyClass of, std::string_view figure) const {
  std::vector<const AccuracySource*> found;
  for (const AccuracySource& source : sources)
    if (source.of == of && source.figure == figure && !source.calibration) found.push_back(&source);
  return found;
}

std::vector<std::string> AccuracyRecord::figures(AccuracyClass of) const {
  std::vector<std::string> names;
  for (const AccuracySource& source : sources) {
    if (source.of != of || source.calibration) continue;
    if (std::find(names.begin(), names.end(), source.figure) == names.end()) names.push_back(source.figure);
  }
  return names;
}

void AccuracyRecord::replace(AccuracySource source) {
  const auto same = [&](const AccuracySource& other) {
    return other.of == source.of && other.figure == source.figure && other.name == source.name &&
           other.calibration == source.calibration;
  };
  const auto at = std::find_if(sources.begin(), sources.end(), same);
  if (at != sources.end()) {
    *at = std::move(source);
    return;
  }
  const auto later = [&](const AccuracySource& other) { return other.of > source.of; };
  sources.insert(std::find_if(sources.begin(), sources.end(), later), std::move(source));
}

void condense(AccuracySource& source) {
  std::vector<AccuracyPoint> rows = std::move(source.points);
  if (source.rows == 0) source.rows = static_cast<std::int64_t>(rows.size());
  if (rows.size() <= kMostPoints) {
    source.points = std::move(rows);
    return;
  }
  for (const AccuracyPoint& row : rows)
    source.worst = std::max(source.worst, std::abs(std::expm1(row.error)));
  std::sort(rows.begin(), rows.end(),
            [](const AccuracyPoint& a, const AccuracyPoint& b) { return a.error < b.error; });
  double squares = 0;
  for (const AccuracyPoint& row : rows) squares += row.parts * row.parts;
  const double parts = std::sqrt(squares / static_cast<double>(rows.size()));
  source.points.clear();
  for (std::size_t i = 0; i < kMostPoints; ++i)
    source.points.push_back({"", rows[(2 * i + 1) * rows.size() / (2 * kMostPoints)].error, parts});
}

}  // namespace moebius
