// A study as a picture: its columns, one below the other, over one varied value.
#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "hw/error.h"
#include "hw/svg.h"
#include "workloads/report/number_text.h"
#include "workloads/study/study_table.h"

namespace moebius {

namespace {

constexpr double kWidth = 860, kHeight = 460, kLeft = 90, kRight = 250, kTop = 50, kBottom = 60;
constexpr const char* kColours[] = {"#2060b0", "#d06020", "#309040", "#8040a0",
                                    "#a08020", "#c03050", "#309090", "#606060"};

struct Dot {
  std::string label;  // of the varied value
  double x = 0;       // its place among the values, in the order of the study
  ColumnSpread y;
};
struct Curve {
  std::string name;
  std::vector<Dot> dots;
};

// What a row says of a key; "-": its case says nothing of it.
std::string value_of(const CombinationRow& row, const std::string& pointer) {
  for (const Assignment& change : row.settings)
    if (change.pointer == pointer) return plain(change.value);
  return "-";
}

// Then it tells no curve from another.
bool is_same_everywhere(const StudyTable& table, const std::string& pointer) {
  const std::string first = value_of(table.rows.front(), pointer);
  return std::all_of(table.rows.begin(), table.rows.end(),
                     [&](const CombinationRow& row) { return value_of(row, pointer) == first; });
}

// Rows that differ in the first value only make one curve.
std::vector<Curve> curves_of(const StudyTable& table, std::size_t column) {
  std::vector<std::string> values, pointers;
  for (const CombinationRow& row : table.rows)
    for (const Assignment& change : row.settings)
      if (std::find(pointers.begin(), pointers.end(), change.pointer) == pointers.end())
        pointers.push_back(change.pointer);
  const std::vector<std::string> names = short_names(pointers);
  std::vector<bool> told(pointers.size());
  for (std::size_t i = 0; i < told.size(); ++i) told[i] = !is_same_everywhere(table, pointers[i]);
  std::vector<Curve> curves;
  for (const CombinationRow& row : table.rows) {
    if (row.values[column].count == 0) continue;
    const std::string value = value_of(row, pointers.front());
    const auto known = std::find(values.begin(), values.end(), value);
    const double x = static_cast<double>(known - values.begin());
    if (known == values.end()) values.push_back(value);
    std::string name;
    for (std::size_t i = 1; i < pointers.size(); ++i) {
      const std::string own = told[i] ? value_of(row, pointers[i]) : "-";
      if (own != "-") name += fmt::format("{}{} {}", name.empty() ? "" : ", ", names[i], own);
    }
    const auto same = [&](const Curve& curve) { return curve.name == name; };
    auto at = std::find_if(curves.begin(), curves.end(), same);
    if (at == curves.end()) at = curves.insert(at, {name, {}});
    at->dots.push_back({value, x, row.values[column]});
  }
  return curves;
}

// Where more of the value stops to pay: the point farthest from the straight line between both ends, on the
// side to which the curve bends (Satopaa and others 2011). -1: no bend that is worth a mark.
int knee_of(const Curve& curve) {
  if (curve.dots.size() < 4) return -1;
  const Dot &first = curve.dots.front(), &last = curve.dots.back();
  const double rise = last.y.mean - first.y.mean, run = last.x - first.x;
  if (rise == 0 || run == 0) return -1;
  int knee = -1;
  double farthest = 0.1;
  for (std::size_t i = 1; i + 1 < curve.dots.size(); ++i) {
    const double share_x = (curve.dots[i].x - first.x) / run;
    const double share_y = (curve.dots[i].y.mean - first.y.mean) / rise;
    if (share_y - share_x > farthest) farthest = share_y - share_x, knee = static_cast<int>(i);
  }
  return knee;
}

struct Scale {
  double low = 0, high = 1, columns = 1;
  double top = 0;  // of the panel

  double x(double at) const { return kLeft + (kWidth - kLeft - kRight) * (at + 0.5) / columns; }
  double y(double value) const {
    return top + kHeight - kBottom - (kHeight - kTop - kBottom) * (value - low) / (high - low);
  }
};

// From zero, unless all values lie close together far from it.
Scale scale_of(const std::vector<Curve>& curves) {
  Scale scale{curves.front().dots.front().y.low, curves.front().dots.front().y.high, 1, 0};
  for (const Curve& curve : curves) {
    for (const Dot& dot : curve.dots) {
      scale.low = std::min(scale.low, dot.y.low);
      scale.high = std::max(scale.high, dot.y.high);
      scale.columns = std::max(scale.columns, dot.x + 1);
    }
  }
  if (scale.low > 0 && scale.low < 0.8 * scale.high) scale.low = 0;
  const double alone = scale.high != 0 ? 0.1 * std::abs(scale.high) : 1;
  const double margin = scale.high > scale.low ? 0.05 * (scale.high - scale.low) : alone;
  scale.high += margin;
  if (scale.low != 0) scale.low -= margin;
  return scale;
}

// 1, 2 or 5 times a power of ten, so that about five marks stand on the scale.
double round_step(double length) {
  const double rough = length / 6, power = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= rough) return factor * power;
  return 10 * power;
}

// What the end of a column's path says, as reports are in SI units.
std::string unit_of(std::string path) {
  for (const char* part : {".mean", ".p5", ".p10", ".p50", ".p90", ".p95", ".p99", ".low", ".high"})
    if (path.ends_with(part)) path.resize(path.rfind('.'));
  constexpr std::pair<const char*, const char*> kUnits[] = {
      {"_bytes_per_s", "bytes/s"},
      {"tokens_per_s_per_device", "tokens/s and device"},
      {"tokens_per_s", "tokens/s"},
      {"_rps", "requests/s"},
      {"_bytes", "bytes"},
      {"_usd", "USD"},
      {"_tokens", ""},
      {"_s", "s"},
      {"_j", "J"}};
  for (const auto& [end, unit] : kUnits)
    if (path.ends_with(end)) return unit;
  return "";
}

void draw_axes(Svg& svg, const Scale& scale, const std::vector<Curve>& curves) {
  const double step = round_step(scale.high - scale.low);
  for (double i = std::ceil(scale.low / step); i * step <= scale.high; ++i) {
    const double value = i * step;
    svg.line(kLeft, scale.y(value), kWidth - kRight, scale.y(value), "#e0e0e0");
    svg.text(kLeft - 8, scale.y(value) + 4, figure_text(value), SvgAnchor::kEnd);
  }
  std::map<double, std::string> labels;
  for (const Curve& curve : curves) {
    for (const Dot& dot : curve.dots) labels[dot.x] = dot.label;
  }
  const double every = std::ceil(static_cast<double>(labels.size()) / 12);
  for (const auto& [x, label] : labels) {
    if (std::fmod(x, every) == 0)
      svg.text(scale.x(x), scale.top + kHeight - kBottom + 20, label, SvgAnchor::kMiddle);
  }
}

// Words above a point, above others that stand there already.
void draw_label(Svg& svg, SvgBox at, const std::string& words, std::vector<SvgBox>& labels) {
  const auto overlaps = [&](const SvgBox& other) {
    return std::abs(at.x - other.x) < (at.width + other.width) / 2 && std::abs(at.y - other.y) < at.height;
  };
  while (std::any_of(labels.begin(), labels.end(), overlaps)) at.y -= at.height;
  svg.text(at.x, at.y, words, SvgAnchor::kMiddle);
  labels.push_back(at);
}

void draw_curve(Svg& svg, const Scale& scale, const Curve& curve, std::string_view colour,
                std::vector<SvgBox>& labels) {
  const int knee = knee_of(curve);
  for (std::size_t i = 0; i < curve.dots.size(); ++i) {
    const Dot& dot = curve.dots[i];
    const double x = scale.x(dot.x), y = scale.y(dot.y.mean);
    if (i > 0) svg.line(scale.x(curve.dots[i - 1].x), scale.y(curve.dots[i - 1].y.mean), x, y, colour);
    if (dot.y.low < dot.y.high) svg.line(x, scale.y(dot.y.low), x, scale.y(dot.y.high), colour);
    const double half = static_cast<int>(i) == knee ? 6 : 3;
    if (static_cast<int>(i) == knee)
      draw_label(svg, {x, y - 10, 7.0 * static_cast<double>(dot.label.size()), 14}, dot.label, labels);
    svg.box({x - half, y - half, 2 * half, 2 * half}, colour,
            fmt::format("{} {}: {}{}", curve.name, dot.label, figure_text(dot.y.mean),
                        static_cast<int>(i) == knee ? ", the knee" : ""));
  }
}

void draw_names(Svg& svg, const std::vector<Curve>& curves, double top) {
  const std::size_t shown = std::min(curves.size(), std::size(kColours));
  for (std::size_t i = 0; i < shown; ++i) {
    const double y = top + kTop + 18 * static_cast<double>(i);
    if (curves[i].name.empty()) continue;
    svg.box({kWidth - kRight + 14, y - 9, 10, 10}, kColours[i]);
    svg.text(kWidth - kRight + 30, y, curves[i].name);
  }
  if (shown < curves.size())
    svg.text(kWidth - kRight + 30, top + kTop + 18 * static_cast<double>(shown),
             fmt::format("and {} more", curves.size() - shown));
}

// Of the whole picture: names of curves are not cut.
double width_for_names(const StudyTable& table) {
  constexpr double kBeforeName = 30, kLetter = 7;
  std::size_t letters = 0;
  for (std::size_t column = 0; column < table.columns.size(); ++column)
    for (const Curve& curve : curves_of(table, column)) letters = std::max(letters, curve.name.size());
  return kWidth - kRight + std::max(kRight, kBeforeName + kLetter * static_cast<double>(letters));
}

void draw_panel(Svg& svg, const StudyTable& table, std::size_t column, double top) {
  const std::string unit = unit_of(table.columns[column]);
  svg.text(kLeft, top + 42, table.columns[column] + (unit.empty() ? "" : ", in " + unit));
  const std::vector<Curve> curves = curves_of(table, column);
  if (curves.empty()) return svg.text(kLeft, top + kTop + 20, "no point has it");
  Scale scale = scale_of(curves);
  scale.top = top;
  svg.text((kLeft + kWidth - kRight) / 2, top + kHeight - 14, table.rows.front().settings.front().pointer,
           SvgAnchor::kMiddle);
  draw_axes(svg, scale, curves);
  const std::size_t shown = std::min(curves.size(), std::size(kColours));
  std::vector<SvgBox> labels;
  for (std::size_t i = 0; i < shown; ++i) draw_curve(svg, scale, curves[i], kColours[i], labels);
  draw_names(svg, curves, top);
}

}  // namespace

std::string to_svg(const Study& study, const StudyTable& table) {
  if (table.done == 0 || table.rows.front().settings.empty())
    throw run_error(study.file + ": nothing to draw: no point is done, or nothing is varied");
  if (curves_of(table, 0).empty())
    throw run_error(fmt::format("{}: nothing to draw: no point has {}", study.file, table.columns.front()));
  Svg svg(width_for_names(table), kHeight * static_cast<double>(table.columns.size()));
  svg.text(kLeft, 24, study.name, SvgAnchor::kStart, 15);
  for (std::size_t column = 0; column < table.columns.size(); ++column)
    draw_panel(svg, table, column, kHeight * static_cast<double>(column));
  return svg.finish();
}

}  // namespace moebius
