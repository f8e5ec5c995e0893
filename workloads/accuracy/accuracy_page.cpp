#include "workloads/accuracy/accuracy_page.h"

#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "workloads/accuracy/coverage.h"

namespace moebius {

namespace {

using TestSources = std::vector<const AccuracySource*>;

constexpr std::size_t kMostLines = 12;  // of one figure in the README
constexpr const char* kHead =
    "| figure | source | rows | median | p90 | worst | bias |\n|---|---|--:|--:|--:|--:|--:|\n";

std::string per_cent(double share) {
  return fmt::format("{:.1f}%", 100 * share);
}

std::string cells(const SourceErrors& errors) {
  return fmt::format("{} | {} | {} | {:+.1f}%", per_cent(errors.median), per_cent(errors.p90),
                     per_cent(errors.worst), 100 * errors.bias);
}

std::int64_t rows_of(const TestSources& sources) {
  std::int64_t rows = 0;
  for (const AccuracySource* source : sources) rows += source->rows;
  return rows;
}

std::string linked(const AccuracySource& source, const std::string& up) {
  return source.link.empty() ? source.name : fmt::format("[{}]({}{})", source.name, up, source.link);
}

std::string line_of(const AccuracySource& source, const std::string& up) {
  return fmt::format("| {} | {} | {} | {} |\n", source.figure, linked(source, up), source.rows,
                     cells(errors_of(source)));
}

// "-4 .. +21%": where what is measured lies beside what was simulated.
std::string band_text(const TestSources& sources) {
  const std::optional<ErrorSpread> spread = spread_of(sources);
  if (!spread) return "none of one source";
  const ErrorBand band = band_of(*spread, spread->parts);
  return fmt::format("{:+.0f} .. {:+.0f}%", 100 * std::expm1(-band.high), 100 * std::expm1(-band.low));
}

std::string whole_line(const TestSources& sources) {
  return fmt::format("| **{}** | {} source{}; four in five: {} | {} | {} |\n", sources.front()->figure,
                     sources.size(), sources.size() == 1 ? "" : "s", band_text(sources), rows_of(sources),
                     cells(errors_of(sources)));
}

std::string share_text(const ClassCoverage& coverage) {
  const std::optional<double> share = coverage.share();
  return share ? fmt::format("{:.0f}% of what was measured lies inside", 100 * *share)
               : std::string("too few sources to leave one out");
}

TestSources calibrations(const AccuracyRecord& record, AccuracyClass of) {
  TestSources found;
  for (const AccuracySource& source : record.sources)
    if (source.of == of && source.calibration) found.push_back(&source);
  return found;
}

std::string stamp(const AccuracyRecord& record) {
  return fmt::format("Recorded {} at {}.", record.date, record.commit);
}

std::string test_table(const AccuracyRecord& record, AccuracyClass of, std::size_t most,
                       const std::string& up) {
  std::string text = kHead;
  for (const std::string& figure : record.figures(of)) {
    const TestSources sources = record.tests(of, figure);
    text += whole_line(sources);
    if (sources.size() > most) continue;
    for (const AccuracySource* source : sources) text += line_of(*source, up);
  }
  return text;
}

std::string row_lines(const AccuracySource& source, const std::string& up) {
  std::string text;
  for (const AccuracyPoint& point : source.points) {
    if (point.name.empty()) continue;
    const std::string scenario = point.name.substr(0, point.name.find(' '));
    const bool table = source.link.ends_with("/tables");
    const std::string name = table ? point.name
                                   : fmt::format("[{}]({}{}/{}.json){}", scenario, up, source.link, scenario,
                                                 point.name.substr(scenario.size()));
    text += fmt::format("| {} | {} | {} | {:+.1f}% |\n", source.figure, source.name, name,
                        100 * std::expm1(point.error));
  }
  return text;
}

}  // namespace

SourceErrors errors_of(const TestSources& sources) {
  std::vector<WeightedPoint> signed_ones, absolute;
  SourceErrors errors;
  for (const AccuracySource* source : sources) {
    const double weight = 1.0 / static_cast<double>(source->points.size());
    errors.worst = std::max(errors.worst, source->worst);
    for (const AccuracyPoint& point : source->points) {
      const double error = std::expm1(point.error);
      signed_ones.push_back({error, weight});
      absolute.push_back({std::abs(error), weight});
      errors.worst = std::max(errors.worst, std::abs(error));
    }
  }
  errors.median = weighted_quantile(absolute, 0.5);
  errors.p90 = weighted_quantile(absolute, 0.9);
  errors.bias = weighted_quantile(signed_ones, 0.5);
  return errors;
}

SourceErrors errors_of(const AccuracySource& source) {
  return errors_of(TestSources{&source});
}

std::string accuracy_section(const AccuracyRecord& record) {
  std::string text =
      stamp(record) +
      " Errors of times, ours over measured less one (of rates their inverse); bias: the median with its "
      "sign, below zero ours is faster.\nNothing is fitted to these rows. \"Four in five\": where what "
      "is measured lies, beside what is simulated; every source left out in turn, by the\nothers, "
      "sources weighing as one. [Every source, every row](scenarios/validate/ACCURACY.md).\n";
  for (const ClassCoverage& coverage : coverage_of(record))
    text += fmt::format("\n**{}** (left out in turn: {})\n\n{}", to_string(coverage.of), share_text(coverage),
                        test_table(record, coverage.of, kMostLines, ""));
  return text;
}

std::string accuracy_rows(const AccuracyRecord& record, const std::string& up) {
  std::string text = stamp(record) + "\n";
  for (const ClassCoverage& coverage : coverage_of(record)) {
    text += fmt::format("\n## {}\n\n{}", to_string(coverage.of), test_table(record, coverage.of, 1000, up));
    const TestSources fitted = calibrations(record, coverage.of);
    if (!fitted.empty())
      text += fmt::format("\nCalibration: something is fitted to these rows.\n\n{}", kHead);
    for (const AccuracySource* source : fitted) text += line_of(*source, up);
    std::string rows;
    for (const AccuracySource& source : record.sources)
      if (source.of == coverage.of && !source.calibration) rows += row_lines(source, up);
    if (!rows.empty()) text += "\n| figure | source | row | error |\n|---|---|---|--:|\n" + rows;
  }
  return text;
}

std::string accuracy_text(const AccuracyRecord& record) {
  std::string text = record.date.empty() ? "" : stamp(record) + "\n";
  for (const ClassCoverage& coverage : coverage_of(record)) {
    text += fmt::format("\n{}: {} of four in five\n  {:<24} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7}  {:<16} {}\n",
                        to_string(coverage.of), share_text(coverage), "figure", "sources", "rows", "median",
                        "p90", "worst", "bias", "four in five", "inside, source by source");
    for (const FigureCoverage& figure : coverage.figures) {
      const TestSources sources = record.tests(figure.of, figure.figure);
      const SourceErrors errors = errors_of(sources);
      text += fmt::format("  {:<24} {:>7} {:>7} {:>7} {:>7} {:>7} {:>+6.1f}%  {:<16}", figure.figure,
                          sources.size(), figure.rows, per_cent(errors.median), per_cent(errors.p90),
                          per_cent(errors.worst), 100 * errors.bias, band_text(sources));
      double sum = 0;
      for (const double share : figure.inside) sum += share;
      text += figure.inside.empty()
                  ? " -\n"
                  : fmt::format(" {:.0f}%\n", 100 * sum / static_cast<double>(figure.inside.size()));
    }
  }
  return text;
}

}  // namespace moebius
