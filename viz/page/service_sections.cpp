#include "viz/page/service_sections.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "hw/units.h"
#include "viz/page/charts.h"
#include "viz/page/html.h"
#include "workloads/report/number_text.h"

namespace moebius::viz {

namespace {

constexpr int kCurveWidth = 900, kCurveHeight = 110, kCurveFoot = 22, kCurveTop = 14;

// The objects of one of the report's, by name.
std::vector<std::pair<std::string, Figures>> parts_of(const Figures& figures, std::string_view path) {
  std::vector<std::pair<std::string, Figures>> parts;
  const Value* object = figures.value(path);
  if (object == nullptr || object->kind != Value::Kind::kObject) return parts;
  for (std::size_t i = 0; i < object->items.size(); ++i) {
    if (object->items[i].kind == Value::Kind::kObject)
      parts.emplace_back(object->keys[i], Figures(Document{"", object->items[i]}));
  }
  return parts;
}

std::string cell(const Figures& of, const std::string& path) {
  const auto value = of.number(path);
  return value ? escaped(shown(path, *value)) : std::string("-");
}

// The median and the 99th percentile of a latency, and what the class was promised.
std::string latency_cell(const Figures& of, const std::string& key) {
  if (!of.number(key + ".p50")) return "-";
  const std::string text = cell(of, key + ".p50") + " / " + cell(of, key + ".p99");
  return of.number("goal." + key) ? fmt::format("{} of {}", text, cell(of, "goal." + key)) : text;
}

// What one pool was full of, step by step; nothing where the report has no such list.
std::vector<double> curve_of(const Figures& pool, std::string_view what) {
  std::vector<double> values;
  const Value* list = pool.value(what);
  if (list == nullptr || list->kind != Value::Kind::kArray) return values;
  for (const Value& item : list->items) values.push_back(item.number);
  return values;
}

std::string polyline(const std::vector<double>& values, double highest, std::size_t steps, std::size_t n) {
  std::string points;
  for (std::size_t i = 0; i < values.size(); ++i)
    points +=
        fmt::format("{:.1f},{:.1f} ",
                    static_cast<double>(kCurveWidth) * static_cast<double>(i) / static_cast<double>(steps),
                    kCurveTop + (kCurveHeight - kCurveTop) * (1 - values[i] / highest));
  return fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.5\"/>\n", points,
                     colour(n));
}

std::string time_words(double seconds) {
  std::string text;
  for (int i = 0; i <= 4; ++i)
    text += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"{}\">{}</text>\n", kCurveWidth * i / 4,
                        kCurveHeight + 16,
                        i == 0   ? "start"
                        : i == 4 ? "end"
                                 : "middle",
                        seconds_text(seconds * i / 4));
  return text;
}

// One quantity of all pools, over the whole run.
std::string curves(const std::vector<std::pair<std::string, Figures>>& pools, const std::string& what,
                   double step_s) {
  double highest = 0;
  std::size_t steps = 1;
  std::vector<std::vector<double>> all;
  for (const auto& [name, pool] : pools) {
    all.push_back(curve_of(pool, what));
    for (const double value : all.back()) highest = std::max(highest, value);
    steps = std::max(steps, all.back().size());
  }
  if (!(highest > 0)) return "";
  std::string lines, key;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].empty()) continue;
    lines += polyline(all[i], highest, steps, i);
    key += fmt::format("<span><i style=\"background:{}\"></i>{}</span>", colour(i), escaped(pools[i].first));
  }
  return fmt::format(
      "<p><b>{}</b> <span class=\"soft\">at most {}</span></p>\n<div class=\"scroll\"><svg width=\"{}\" "
      "height=\"{}\" font-size=\"10\" fill=\"currentColor\" role=\"img\" aria-label=\"{} over time\">\n{}"
      "<path d=\"M0 {}h{}\" stroke=\"currentColor\" stroke-opacity=\".3\"/>\n{}</svg></div>\n"
      "<div class=\"key\">{}</div>\n",
      escaped(what), amount_text(highest), kCurveWidth, kCurveHeight + kCurveFoot, escaped(what), lines,
      kCurveHeight, kCurveWidth, time_words(step_s * static_cast<double>(steps)), key);
}

}  // namespace

std::string classes(const Figures& figures) {
  std::vector<std::vector<std::string>> rows;
  for (const auto& [name, of] : parts_of(figures, "classes"))
    rows.push_back({escaped(name), cell(of, "submitted"), cell(of, "completed"), cell(of, "rejected"),
                    cell(of, "turned_away"), cell(of, "slo_attainment"), latency_cell(of, "ttft_s"),
                    latency_cell(of, "tpot_s"), cell(of, "usd_per_million_tokens")});
  return table({"class", "requests", "answered", "rejected", "turned away", term("SLO attainment"),
                term("TTFT") + " p50 / p99", term("TPOT") + " p50 / p99", "a million tokens"},
               rows);
}

std::string cost(const Figures& figures) {
  if (!figures.number("cost.usd")) return "";
  std::vector<std::vector<std::string>> rows;
  for (const auto& [name, of] : parts_of(figures, "cost.pools"))
    rows.push_back({escaped(name), cell(of, "usd_per_hour_of_a_device"), cell(of, "usd"),
                    cell(of, "usd_idle"), cell(of, "usd_per_million_input_tokens"),
                    cell(of, "usd_per_million_output_tokens"), cell(of, "joules")});
  rows.push_back({"all", "", cell(figures, "cost.usd"), cell(figures, "cost.usd_idle"),
                  cell(figures, "cost.usd_per_million_input_tokens"),
                  cell(figures, "cost.usd_per_million_output_tokens"), ""});
  std::string text = fmt::format("<p>{} an hour", cell(figures, "cost.usd_per_hour"));
  if (figures.number("cost.joules_per_output_token"))
    text += fmt::format("; {} a token out: an estimate, with what nodes take",
                        cell(figures, "cost.joules_per_output_token"));
  return text + "</p>\n" +
         table({"pool", "an hour of a device", "in all", "of it idle", "a million tokens in",
                "a million tokens out", "energy"},
               rows);
}

std::string series(const Figures& figures) {
  const double step = figures.number("series.step_s").value_or(0);
  const auto pools = parts_of(figures, "series");
  if (!(step > 0) || pools.empty()) return "";
  return curves(pools, "waiting", step) + curves(pools, "running", step) + curves(pools, "blocks", step);
}

}  // namespace moebius::viz
