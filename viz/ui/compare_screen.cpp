// Two runs beside each other: which takes longer, which kinds of op make the difference, and where the ops
// are that differ most.
#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>

#include "viz/data/op_names.h"
#include "viz/page/figures.h"
#include "viz/ui/app.h"
#include "viz/ui/chart.h"

namespace moebius::viz {
namespace {

constexpr std::size_t kKindsShown = 16;

std::string signed_text(double seconds) {
  return fmt::format("{}{}", seconds > 0 ? "+" : "", seconds_text(seconds));
}

void headline(App& app, const RunDifference& d) {
  run_heading(app, 0);
  run_heading(app, 1);
  const double a = d.makespan_a / d.steps_a, b = d.makespan_b / d.steps_b;
  ImGui::TextWrapped("b takes %s%s against %s: %s (%+.1f%%)", seconds_text(b).c_str(),
                     d.by_step() ? " a step" : "", seconds_text(a).c_str(), signed_text(b - a).c_str(),
                     a > 0 ? 100 * (b / a - 1) : 0);
  explain("makespan");
  if (d.by_step())
    ImGui::TextDisabled("b: %d steps in %s, a: %d steps in %s", d.steps_b, seconds_text(d.makespan_b).c_str(),
                        d.steps_a, seconds_text(d.makespan_a).c_str());
  if (d.same_schedule)
    ImGui::TextDisabled("the same schedule: %s ops joined one by one",
                        count_text(static_cast<double>(d.joined)).c_str());
  else
    ImGui::TextDisabled("other schedules: %s ops joined, %s of other work, %s only in a, %s only in b",
                        count_text(static_cast<double>(d.joined)).c_str(),
                        count_text(static_cast<double>(d.different)).c_str(),
                        count_text(static_cast<double>(d.only_a)).c_str(),
                        count_text(static_cast<double>(d.only_b)).c_str());
}

void by_kind(const App& app, const RunDifference& d) {
  ImGui::TextWrapped(
      "Time of each kind of op%s, the largest difference first (all ranks that are simulated; transfers "
      "without waiting)",
      d.by_step() ? " in a step" : "");
  Bars chart;
  chart.text = seconds_text;
  for (std::size_t i = 0; i < d.kinds.size() && i < kKindsShown; ++i) {
    const std::string name(to_string(d.kinds[i].kind));
    chart.rows.push_back({name, d.kinds[i].a, app.theme.run_a});
    chart.second.push_back({name, d.kinds[i].b, app.theme.run_b});
  }
  bars(app.theme, chart);
}

void jump(App& app, const OpDifference& op) {
  Selection there{1, {}};
  const RunData& run = *app.runs[1];
  if (!run.lanes.find(run.columns, op.span_b, there.place.row, there.place.slot)) return;
  app.show(Screen::kTimeline);
  app.select(there, true);
}

void worst(App& app, const RunDifference& d) {
  ImGui::TextUnformatted("Ops that differ most; a click shows them on the timeline");
  if (d.worst.empty()) {
    ImGui::TextDisabled("none could be joined: the runs do other work");
    return;
  }
  const ImGuiTableFlags flags =
      ImGuiTableFlags_RowBg | ImGuiTableFlags_ScrollY | ImGuiTableFlags_BordersInnerV;
  if (!ImGui::BeginTable("worst", 6, flags)) return;
  ImGui::TableSetupScrollFreeze(0, 1);
  for (const char* name : {"op", "rank", "submission", "a", "b", "b - a"}) ImGui::TableSetupColumn(name);
  ImGui::TableHeadersRow();
  const RunData& run = *app.runs[0];
  for (std::size_t i = 0; i < d.worst.size(); ++i) {
    const OpDifference op = d.worst[i];
    const Span span = run.columns.span(op.span_a);
    const SubmissionRow& s = run.columns.submission_of(span);
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    ImGui::PushID(static_cast<int>(i));
    const bool chosen = ImGui::Selectable(op_name(run.columns.op_of(span)).c_str(), false,
                                          ImGuiSelectableFlags_SpanAllColumns);
    mark(app, fmt::format("worst {}", i + 1));
    ImGui::PopID();
    ImGui::TableNextColumn();
    ImGui::TextUnformatted(class_name(run.tables(), span.rank_class).c_str());
    ImGui::TableNextColumn();
    ImGui::Text("%s, microbatch %d", run.tables().fragments[s.fragment].c_str(), s.microbatch);
    for (const std::string& text : {seconds_text(op.a), seconds_text(op.b), signed_text(op.b - op.a)}) {
      ImGui::TableNextColumn();
      ImGui::TextUnformatted(text.c_str());
    }
    if (chosen) jump(app, op);
  }
  ImGui::EndTable();
}

// Runs that have no ops, by what their reports say.
void figure_by_figure(App& app, const FigureDifferences& differences) {
  run_heading(app, 0);
  run_heading(app, 1);
  for (const auto& run : app.runs) report_trouble(app, *run);
  const std::size_t number = differences.rows.size();
  ImGui::TextWrapped(
      "There are no ops to join. Of the figures that both reports have %s differ, those of the headline "
      "first, then by relative difference, samples over time last:",
      fmt::format("{} of {}", number, number + differences.same).c_str());
  const ImGuiTableFlags flags =
      ImGuiTableFlags_RowBg | ImGuiTableFlags_ScrollY | ImGuiTableFlags_BordersInnerV;
  if (number == 0 || !ImGui::BeginTable("figures", 4, flags)) return;
  ImGui::TableSetupScrollFreeze(0, 1);
  ImGui::TableSetupColumn("figure", ImGuiTableColumnFlags_WidthStretch, 3);
  for (const char* name : {"a", "b", "b to a"}) ImGui::TableSetupColumn(name);
  ImGui::TableHeadersRow();
  for (const FigureDifference& row : differences.rows) {
    ImGui::TableNextRow();
    for (const std::string& text :
         {row.path, shown(row.path, row.a), shown(row.path, row.b), difference_text(row)}) {
      ImGui::TableNextColumn();
      ImGui::TextUnformatted(text.c_str());
    }
  }
  ImGui::EndTable();
}

}  // namespace

void compare_screen(App& app) {
  if (app.runs.size() < 2) {
    empty_state(app, "A comparison needs two runs; one is open.",
                "Press O to open another, or start with: moebius view RUN_A RUN_B.");
    return;
  }
  if (!app.difference) app.difference = difference_of(*app.runs[0], *app.runs[1]);
  const RunDifference& d = *app.difference;
  if (!d.has_ops) return figure_by_figure(app, d.figures);
  headline(app, d);
  ImGui::Separator();
  const float width = ImGui::GetContentRegionAvail().x;
  ImGui::BeginChild("kinds", {width * 0.42f, 0});
  by_kind(app, d);
  ImGui::EndChild();
  ImGui::SameLine();
  ImGui::BeginChild("ops");
  worst(app, d);
  ImGui::EndChild();
}

}  // namespace moebius::viz
