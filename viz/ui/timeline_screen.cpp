// The timeline: rows of spans under one ruler, with the whole run above and counters below.
#include <fmt/format.h>
#include <imgui.h>
#include <imgui_stdlib.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "hw/error.h"
#include "viz/data/op_names.h"
#include "viz/ui/app.h"
#include "viz/ui/chart.h"
#include "viz/ui/timeline_frame.h"

namespace moebius::viz {
namespace {

constexpr int kMinimapColumns = 1024;

void recolour(App& app) {
  TimelineState& t = app.timeline;
  if (!t.stale) return;
  t.stale = false;
  t.trouble.clear();
  for (std::size_t i = 0; i < app.runs.size(); ++i) {
    RunData& run = *app.runs[i];
    try {
      if (t.search.critical_only && t.critical[i].empty()) t.critical[i] = spans_on_critical_path(run);
      run.detail.set_categories(categories_of(run, t.colouring, t.search, t.critical[i], t.found[i]));
    } catch (const Error& error) {
      t.trouble = error.what();
      t.search.critical_only = false;
      run.detail.set_categories(categories_of(run, t.colouring, t.search, {}, t.found[i]));
    }
  }
  count_legend(app);
}

void toolbar(App& app) {
  TimelineState& t = app.timeline;
  ImGui::SetNextItemWidth(ImGui::GetFontSize() * 20);
  if (t.focus_search) ImGui::SetKeyboardFocusHere();
  t.focus_search = false;
  if (ImGui::InputTextWithHint("##search", "search (/): gemm layer:3 microbatch:5", &t.search.text))
    t.stale = true;
  mark(app, "search");
  ImGui::SameLine();
  ImGui::SetNextItemWidth(ImGui::GetFontSize() * 14);
  if (ImGui::BeginCombo("##colour", fmt::format("colour: {}", to_string(t.colouring)).c_str())) {
    for (int i = 0; i < kNumColourings; ++i) {
      const auto colouring = static_cast<ColourBy>(i);
      if (ImGui::Selectable(to_string(colouring), colouring == t.colouring))
        t.colouring = colouring, t.stale = true;
    }
    ImGui::EndCombo();
  }
  mark(app, "colouring");
  ImGui::SameLine();
  if (ImGui::Checkbox("critical path", &t.search.critical_only)) t.stale = true;
  explain("critical path");
  mark(app, "critical path");
  ImGui::SameLine();
  ImGui::Checkbox("follow", &t.follow);
  ImGui::SameLine();
  ImGui::Checkbox("counters", &t.counters);
  ImGui::SameLine();
  if (ImGui::Button("fit")) app.fit();
  mark(app, "fit");
  ImGui::SameLine();
  if (!t.trouble.empty()) {
    ImGui::TextColored(ImGui::ColorConvertU32ToFloat4(app.theme.warning), "%s", t.trouble.c_str());
  } else {
    const std::string shown = t.search.text.empty() && !t.search.critical_only ? "spans" : "found";
    ImGui::TextDisabled("%s %s", count_text(static_cast<double>(t.found[0])).c_str(), shown.c_str());
  }
}

void build_minimap(App& app, std::size_t i) {
  RunData& run = *app.runs[i];
  std::vector<float>& map = app.timeline.minimap[i];
  map.assign(kMinimapColumns, 0);
  double longest = 0;
  for (const auto& each : app.runs) longest = std::max(longest, each->length());
  int rows = 0;
  std::vector<Stroke> strokes;
  for (std::size_t row = 0; row < run.lanes.rows().size(); ++row) {
    if (run.lanes.rows()[row].lane != Lane::kCompute) continue;
    ++rows;
    strokes.clear();
    run.detail.draw(row, {0, longest}, kMinimapColumns, strokes);
    for (const Stroke& s : strokes) {
      const int last = std::min(static_cast<int>(std::ceil(s.x1)), kMinimapColumns);
      for (int x = std::max(static_cast<int>(s.x0), 0); x < last; ++x)
        map[static_cast<std::size_t>(x)] += s.coverage;
    }
  }
  // Two spans may share a pixel at their ends.
  for (float& share : map) share = std::min(share / static_cast<float>(std::max(rows, 1)), 1.0f);
}

void minimap(App& app, const TimelineFrame& frame) {
  TimelineState& t = app.timeline;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const ImVec2 low{frame.origin.x, at.y};
  const float height = std::floor(frame.unit * 2.2f);
  double longest = 20;
  for (const auto& run : app.runs) longest = std::max(longest, run->length());
  ImDrawList* draw = ImGui::GetWindowDrawList();
  draw->AddRectFilled(low, {low.x + frame.width, low.y + height}, app.theme.panel);
  draw->AddText({low.x - frame.names + 2, low.y + 2}, app.theme.faint_text, "share computing");
  const float each = height / static_cast<float>(app.runs.size());
  const int columns = static_cast<int>(std::ceil(frame.width));
  for (std::size_t i = 0; i < app.runs.size(); ++i) {
    if (t.minimap[i].empty()) build_minimap(app, i);
    const float bottom = low.y + each * static_cast<float>(i + 1);
    const Colour colour = app.runs.size() < 2 ? app.theme.accent : i == 0 ? app.theme.run_a : app.theme.run_b;
    for (int column = 0; column < columns; ++column) {
      const float share = t.minimap[i][static_cast<std::size_t>(column) * kMinimapColumns / columns];
      const float x = low.x + static_cast<float>(column);
      draw->AddRectFilled({x, bottom - std::round(share * (each - 1))}, {x + 1, bottom}, colour);
    }
  }
  const float x0 = low.x + frame.width * static_cast<float>(std::clamp(t.window.begin / longest, 0.0, 1.0));
  const float x1 = low.x + frame.width * static_cast<float>(std::clamp(t.window.end / longest, 0.0, 1.0));
  draw->AddRectFilled({x0, low.y}, {std::max(x1, x0 + 2), low.y + height}, with_alpha(app.theme.select, 40));
  draw->AddRect({x0, low.y}, {std::max(x1, x0 + 2), low.y + height}, app.theme.select);
  ImGui::SetCursorScreenPos(low);
  ImGui::InvisibleButton("minimap", {frame.width, height});
  mark(app, "minimap");
  if (ImGui::IsItemActive()) {
    const double centre = static_cast<double>((ImGui::GetIO().MousePos.x - low.x) / frame.width) * longest;
    t.window.pan((centre - (t.window.begin + t.window.end) / 2) / t.window.length());
  }
}

std::vector<std::string> families(const App& app) {
  std::set<std::string> names;
  for (const auto& run : app.runs)
    for (const CounterTrack& track : run->counters) names.insert(family_of(track.name()));
  return {names.begin(), names.end()};
}

void keep_known_counter(App& app) {
  const std::vector<std::string> names = families(app);
  std::string& chosen = app.timeline.counter;
  if (std::find(names.begin(), names.end(), chosen) == names.end())
    chosen = names.empty() ? "" : names.front();
}

void choose_counter(App& app, const TimelineFrame& frame) {
  const std::vector<std::string> names = families(app);
  std::string& chosen = app.timeline.counter;
  ImGui::SetCursorScreenPos({frame.origin.x - frame.names, frame.origin.y + frame.height + 4});
  ImGui::SetNextItemWidth(frame.names - 8);
  if (ImGui::BeginCombo("##counter", chosen.c_str())) {
    for (const std::string& name : names)
      if (ImGui::Selectable(name.c_str(), name == chosen)) chosen = name;
    ImGui::EndCombo();
  }
  mark(app, "counter");
}

// One family at a time: others have other units.
LineChart counter_chart(const App& app) {
  const std::string& shown = app.timeline.counter;
  LineChart chart;
  chart.has_ruler = true;
  chart.window = app.timeline.window;
  chart.height = std::floor(ImGui::GetFontSize() * 7);
  for (std::size_t i = 0; i < app.runs.size(); ++i) {
    for (const CounterTrack& track : app.runs[i]->counters) {
      if (family_of(track.name()) != shown || chart.tracks.size() >= 16) continue;
      chart.tracks.push_back(&track);
      std::string name =
          track.name() == shown ? class_name(app.runs[i]->tables(), track.rank_class()) : track.name();
      if (app.runs.size() > 1) name.insert(0, i == 0 ? "a: " : "b: ");
      chart.names.push_back(std::move(name));
    }
  }
  const bool share = shown.starts_with("wire ") || shown.starts_with("tier ");
  chart.text = shown == "memory" ? bytes_text : share ? share_text : count_text;
  return chart;
}

void counters(App& app, const TimelineFrame& frame, float height) {
  choose_counter(app, frame);
  const LineChart chart = counter_chart(app);
  if (chart.tracks.empty()) return;
  ImGui::SetCursorScreenPos({frame.origin.x, frame.origin.y + frame.height + 4});
  ImGui::BeginChild("counters", {frame.width, height}, false, ImGuiWindowFlags_NoScrollbar);
  line_chart(app.theme, chart);
  ImGui::EndChild();
}

}  // namespace

void timeline_screen(App& app) {
  if (!app.timeline.fitted) app.fit();
  double longest = 20;
  bool spans = false, samples = false;
  for (const auto& run : app.runs) {
    longest = std::max(longest, run->length());
    spans = spans || run->lanes.size() > 0;
    samples = samples || !run->counters.empty();
  }
  if (!spans && !samples && !app.runs.empty() && !kind_has_ops(app.runs.front()->text("kind"))) {
    empty_state(
        app, "Runs of this kind have no ops: there is nothing to show over time.",
        "Its figures: moebius report RUN --html FILE; two runs beside each other: the screen compare.");
    return;
  }
  if (!spans && !samples) {
    empty_state(app, "The timeline of this run holds no spans.",
                "It was run with /timeline/detail none, or is a service whose iterations were not kept: run "
                "it again with "
                "--set /timeline/detail=ops or steps. The other screens show its report.");
    return;
  }
  app.timeline.window.clamp(longest);
  recolour(app);
  toolbar(app);
  const ImVec2 at = ImGui::GetCursorScreenPos(), room = ImGui::GetContentRegionAvail();
  const float unit = ImGui::GetFontSize(), details = std::floor(unit * 26);
  TimelineFrame frame;
  frame.unit = unit;
  frame.names = std::floor(unit * 16);
  frame.width = std::max(std::floor(room.x - details - frame.names - 8), 50.0f);
  frame.origin = {at.x + frame.names, at.y};
  minimap(app, frame);
  frame.origin.y = std::floor(at.y + unit * 2.2f + unit + 8);
  float chart = 0;
  if (app.timeline.counters && samples) {
    keep_known_counter(app);
    const LineChart below = counter_chart(app);
    chart = below.height + ImGui::GetStyle().ItemSpacing.y + legend_height(below, frame.width);
  }
  frame.height = std::max(room.y - (frame.origin.y - at.y) - (chart > 0 ? chart + 8 : 0), 40.0f);
  timeline_rows(app, frame);
  if (chart > 0) counters(app, frame, chart);
  ImGui::SetCursorScreenPos({at.x + room.x - details, at.y});
  ImGui::BeginChild("details", {details, room.y}, false);
  timeline_details(app);
  ImGui::EndChild();
}

}  // namespace moebius::viz
