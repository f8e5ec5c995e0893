#include "workloads/accuracy/coverage.h"

namespace moebius {

namespace {

double share_inside(const AccuracySource& source, const ErrorSpread& spread) {
  double inside = 0;
  for (const AccuracyPoint& point : source.points)
    inside += band_of(spread, point.parts).holds(point.error) ? 1 : 0;
  return inside / static_cast<double>(source.points.size());
}

FigureCoverage coverage_of_figure(const AccuracyRecord& record, AccuracyClass of, const std::string& figure) {
  const std::vector<const AccuracySource*> sources = record.tests(of, figure);
  FigureCoverage coverage{of, figure, static_cast<int>(sources.size()), 0, {}};
  for (const AccuracySource* source : sources) coverage.rows += source->rows;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    std::vector<const AccuracySource*> others = sources;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    if (const auto spread = spread_of(others)) coverage.inside.push_back(share_inside(*sources[i], *spread));
  }
  return coverage;
}

}  // namespace

std::optional<double> ClassCoverage::share() const {
  double sum = 0;
  int sources = 0;
  for (const FigureCoverage& figure : figures) {
    for (const double share : figure.inside) sum += share;
    sources += static_cast<int>(figure.inside.size());
  }
  if (sources == 0) return std::nullopt;
  return sum / sources;
}

std::vector<ClassCoverage> coverage_of(const AccuracyRecord& record) {
  std::vector<ClassCoverage> all;
  for (const auto& [name, of] : accuracy_classes()) {
    ClassCoverage coverage{of, {}};
    for (const std::string& figure : record.figures(of))
      coverage.figures.push_back(coverage_of_figure(record, of, figure));
    if (!coverage.figures.empty()) all.push_back(std::move(coverage));
  }
  return all;
}

}  // namespace moebius
