#include "viz/page/run_page.h"

#include <algorithm>

#include <fmt/format.h>

#include "hw/error.h"
#include "viz/data/op_names.h"
#include "viz/page/cluster_sections.h"
#include "viz/page/html.h"
#include "viz/page/lanes_picture.h"
#include "viz/page/service_sections.h"
#include "workloads/report/figure_differences.h"
#include "workloads/report/number_text.h"
#include "workloads/report/run_directory.h"
#include "workloads/schedule/compare.h"

namespace moebius::viz {

namespace {

std::string title_of(const Figures& figures) {
  const std::string name = figures.text("scenario");
  return name.empty() ? "a run" : name;
}

std::string subtitle_of(const Figures& figures) {
  return fmt::format("{}, {}, {} {}", escaped(figures.text("kind")), escaped(figures.text("executor")),
                     term("detail"), escaped(figures.text("detail")));
}

std::string picture_of(const LanesPicture& picture) {
  if (picture.svg.empty()) return "";
  return fmt::format("<div class=\"scroll\">{}</div>\n<div class=\"key\">{}</div>\n", picture.svg,
                     picture.caption);
}

std::string lanes_of(const RunOnPage& run, std::optional<Time> until = {}) {
  if (!run.spans || !kind_has_ops(run.figures.text("kind"))) return "";
  const std::string picture = picture_of(lanes_picture(*run.spans, until));
  return picture.empty()
             ? "<p class=\"soft\">The timeline kept no ops: /timeline/detail in the scenario.</p>\n"
             : picture;
}

std::string difference_cell(double a, double b) {
  if (a == 0) return "-";
  return fmt::format("{:+.1f}%", 100 * (b / a - 1));
}

std::string figures_beside(const RunOnPage& a, const RunOnPage& b) {
  std::vector<std::string> paths = headline_paths(a.figures);
  for (const std::string& path : headline_paths(b.figures)) {
    if (std::find(paths.begin(), paths.end(), path) == paths.end()) paths.push_back(path);
  }
  std::vector<std::vector<std::string>> rows;
  for (const std::string& path : paths) {
    const auto of_a = a.figures.number(path), of_b = b.figures.number(path);
    rows.push_back({figure_name(path, of_a ? a.figures : b.figures), of_a ? escaped(shown(path, *of_a)) : "-",
                    of_b ? escaped(shown(path, *of_b)) : "-",
                    of_a && of_b ? difference_cell(*of_a, *of_b) : "-"});
  }
  return table({"", "A", "B", "B to A"}, rows);
}

bool imported(const Figures& figures) {
  return figures.text("executor") == "imported";
}

// What nobody told the importer: how many devices and steps a profile is of.
std::string unlike_sums(bool a, bool b) {
  return fmt::format(
      "<p class=\"soft\">{} sums over all rows of a profile, without waiting where it says so and without "
      "names that tell no kind of op; a simulated or executed run is the mean over its ranks, of one step. "
      "Compare the shares.</p>\n",
      a && b ? "Each"
      : a    ? "A"
             : "B");
}

// The busy time of each kind of op, as each report counts it, and its share of all.
std::string kinds_beside(const Figures& a, const Figures& b) {
  std::vector<std::string> names;
  for (const Figures* figures : {&a, &b}) {
    const Value* kinds = figures->value("breakdown.by_kind");
    for (std::size_t i = 0; kinds != nullptr && i < kinds->keys.size(); ++i) {
      if (std::find(names.begin(), names.end(), kinds->keys[i]) == names.end())
        names.push_back(kinds->keys[i]);
    }
  }
  const auto busy = [](const Figures& figures, const std::string& name) {
    const std::string path = "breakdown.by_kind." + name;
    return figures.number(path + ".compute_s").value_or(0) + figures.number(path + ".busy_s").value_or(0);
  };
  double all_a = 0, all_b = 0;
  for (const std::string& name : names) all_a += busy(a, name), all_b += busy(b, name);
  const auto share = [](double part, double all) {
    return all > 0 ? fmt::format("{:.1f}%", 100 * part / all) : std::string("-");
  };
  const bool unlike = imported(a) || imported(b);
  std::vector<std::string> head{"op", "A", "of all", "B", "of all"};
  if (!unlike) head.emplace_back("B to A");
  std::vector<std::vector<std::string>> rows;
  for (const std::string& name : names) {
    const double of_a = busy(a, name), of_b = busy(b, name);
    rows.push_back({escaped(name), escaped(seconds_text(of_a)), share(of_a, all_a),
                    escaped(seconds_text(of_b)), share(of_b, all_b)});
    if (!unlike) rows.back().push_back(difference_cell(of_a, of_b));
  }
  return (unlike ? unlike_sums(imported(a), imported(b)) : "") + table(head, rows);
}

// Spans of whole submissions are none.
bool has_ops(const RunOnPage& run) {
  return run.spans && run.spans->size() > 0 && !of_submissions(run.spans->tables());
}

// By op kind; a sentence where the two cannot be joined.
std::string ops_beside(const RunOnPage& a, const RunOnPage& b) {
  if (!has_ops(a) || !has_ops(b)) return "";
  try {
    const Comparison joined =
        compare(MappedTimeline(timeline_path(a.name)), MappedTimeline(timeline_path(b.name)));
    std::vector<std::vector<std::string>> rows;
    for (const KindError& kind : joined.kinds)
      rows.push_back({escaped(to_string(kind.kind)), grouped(kind.count),
                      escaped(seconds_text(kind.seconds_a)), escaped(seconds_text(kind.seconds_b)),
                      difference_cell(kind.seconds_a, kind.seconds_b),
                      fmt::format("{:.1f}%", 100 * kind.median), fmt::format("{:.1f}%", 100 * kind.worst)});
    std::string text = fmt::format("<p class=\"soft\">{} ops joined{}; {} of A and {} of B alone</p>\n",
                                   grouped(joined.joined), joined.same_schedule ? ", one schedule" : "",
                                   grouped(joined.only_a), grouped(joined.only_b));
    return text + table({"op", "ops", "A", "B", "B to A", "median difference", "worst"}, rows);
  } catch (const Error& error) {
    return fmt::format("<p class=\"soft\">Ops are not joined: {}</p>\n", escaped(error.what()));
  }
}

// Of runs that have no ops to join: figures in which they differ.
std::string differing_figures(const RunOnPage& a, const RunOnPage& b) {
  if (has_ops(a) && has_ops(b)) return "";
  const FigureDifferences differences = figure_differences(*a.figures.value(""), *b.figures.value(""));
  const std::size_t number = differences.rows.size();
  std::vector<std::vector<std::string>> rows;
  for (std::size_t i = 0; i < std::min(number, kFiguresTold); ++i) {
    const FigureDifference& row = differences.rows[i];
    rows.push_back({escaped(row.path), escaped(shown(row.path, row.a)), escaped(shown(row.path, row.b)),
                    difference_text(row)});
  }
  return fmt::format(
             "<p class=\"soft\">No ops to join; {} of {} figures differ, those of the headline first</p>\n",
             number, number + differences.same) +
         table({"figure", "A", "B", "B to A"}, rows);
}

std::string two(const std::string& a, const std::string& b) {
  if (a.empty() && b.empty()) return "";
  return "<p><b>A</b></p>\n" + a + "<p><b>B</b></p>\n" + b;
}

std::optional<Time> later_end(const RunOnPage& a, const RunOnPage& b) {
  std::int64_t end = 0;
  for (const RunOnPage* run : {&a, &b}) {
    for (std::size_t i = 0; run->spans && i < run->spans->size(); ++i)
      end = std::max(end, run->spans->end(i));
  }
  if (end == 0) return std::nullopt;
  return Time{end};
}

}  // namespace

std::string run_page(const RunOnPage& run) {
  const Figures& figures = run.figures;
  const std::string title = title_of(figures);
  return page(title,
              fmt::format("<h1>{}</h1>\n<p class=\"soft\">{}</p>\n", escaped(title), subtitle_of(figures)) +
                  headline(figures) + section("Where the time went", breakdown(figures)) +
                  section("Where the time of cards goes", time_of_cards(figures)) +
                  section("Cards, power and jobs over time", cluster_picture(run.name)) +
                  section("Queues", queues(figures)) + section("Shapes of jobs", shapes(figures)) +
                  section("Requests", service(figures)) + section("Latencies", latencies(figures)) +
                  section("Classes of requests", classes(figures)) +
                  section("Money and energy", cost(figures)) + section("Pools over time", series(figures)) +
                  section("Lanes over time", lanes_of(run)) + section("Memory", memory(figures)) +
                  section("Network", network(figures, run.name)) +
                  section("Published figures beside ours", expectations(figures)) +
                  section("How far to trust it", trust(figures)) + section("Figures", all_figures(figures)));
}

std::string comparison_page(const RunOnPage& a, const RunOnPage& b) {
  const std::string title = title_of(a.figures) == title_of(b.figures)
                                ? title_of(a.figures)
                                : title_of(a.figures) + " / " + title_of(b.figures);
  const std::string names = fmt::format(
      "<h1>{}</h1>\n<p><b>A</b> {} <span class=\"soft\">({})</span><br><b>B</b> {} <span class=\"soft\">"
      "({})</span></p>\n",
      escaped(title), escaped(a.name), subtitle_of(a.figures), escaped(b.name), subtitle_of(b.figures));
  const std::optional<Time> until = later_end(a, b);
  return page(title,
              names + section("Figures", figures_beside(a, b)) +
                  section("Where the time went", two(breakdown(a.figures), breakdown(b.figures))) +
                  section("Lanes over time, to one scale", two(lanes_of(a, until), lanes_of(b, until))) +
                  section("Time by kind of op", kinds_beside(a.figures, b.figures)) +
                  section("Ops one by one", ops_beside(a, b)) +
                  section("Figures that differ", differing_figures(a, b)) +
                  section("Latencies", two(latencies(a.figures), latencies(b.figures))) +
                  section("Classes of requests", two(classes(a.figures), classes(b.figures))) +
                  section("Money and energy", two(cost(a.figures), cost(b.figures))) +
                  section("Pools over time", two(series(a.figures), series(b.figures))) +
                  section("Memory", two(memory(a.figures), memory(b.figures))) +
                  section("Network", two(network(a.figures, a.name), network(b.figures, b.name))) +
                  section("How far to trust A", trust(a.figures)) +
                  section("How far to trust B", trust(b.figures)));
}

}  // namespace moebius::viz
