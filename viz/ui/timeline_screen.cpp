// The timeline: rows of spans under one ruler, with the whole run above and counters below.
#include <fmt/format.h>
#include <imgui.h>
#include <imgui_stdlib.h>

#include <algorithm>
#include <cmath>

#include "hw/error.h"
#include "viz/data/op_names.h"
#include "viz/ui/app.h"
#include "viz/ui/chart.h"

namespace moebius::viz {
namespace {

constexpr int kMinimapColumns = 1024;
constexpr std::size_t kRectsTogether = 8000;  // below what 16-bit indices reach
constexpr std::size_t kMostArrows = 12;

// Where the parts of the screen stand, in pixels.
struct Frame {
  ImVec2 origin;  // of the strip of time, below the ruler
  float width = 0, height = 0;
  float names = 0;  // width of the names, left of origin
  float unit = 0;   // a line of text
};

struct RowView {
  std::size_t run = 0, row = 0;
  float y = 0, height = 0;  // y from the top of the first row
};

float x_of(const App& app, const Frame& frame, double time) {
  return frame.origin.x + frame.width * static_cast<float>(app.timeline.window.share_of(time));
}

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

// Rows of both runs, lane by lane beside each other: the same class and lane of a, then of b.
std::vector<RowView> rows_of(const App& app, float line) {
  struct Key {
    std::int32_t rank;
    Lane lane;
    std::int32_t part;
    std::size_t run, row;
    auto operator<=>(const Key&) const = default;
  };
  std::vector<Key> keys;
  for (std::size_t run = 0; run < app.runs.size(); ++run) {
    const auto& rows = app.runs[run]->lanes.rows();
    for (std::size_t row = 0; row < rows.size(); ++row)
      keys.push_back({app.runs[run]->tables().class_ranks[rows[row].rank_class], rows[row].lane,
                      rows[row].part, run, row});
  }
  std::sort(keys.begin(), keys.end());
  std::vector<RowView> views;
  float y = 0;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (i > 0 && keys[i].rank != keys[i - 1].rank) y += std::floor(line * 0.4f);
    const float height = std::floor(keys[i].lane == Lane::kCompute ? line * 1.25f : line);
    views.push_back({keys[i].run, keys[i].row, y, height});
    y += height + 1;
  }
  return views;
}

void draw_rectangles(ImDrawList* draw, const std::vector<Stroke>& strokes, ImVec2 at, float height,
                     auto&& colour) {
  for (std::size_t first = 0; first < strokes.size(); first += kRectsTogether) {
    const std::size_t last = std::min(first + kRectsTogether, strokes.size());
    draw->PrimReserve(static_cast<int>(6 * (last - first)), static_cast<int>(4 * (last - first)));
    for (std::size_t i = first; i < last; ++i) {
      const Stroke& s = strokes[i];
      // A gap of a pixel between spans that are wide enough to spare it.
      const float end = s.slot >= 0 && s.x1 - s.x0 > 4 ? s.x1 - 1 : s.x1;
      draw->PrimRect({at.x + s.x0, at.y}, {at.x + end, at.y + height}, colour(s));
    }
  }
}

void draw_labels(ImDrawList* draw, const App& app, const RunData& run, const std::vector<Stroke>& strokes,
                 ImVec2 at, float height) {
  const float smallest = ImGui::GetFontSize() * 2.2f;
  for (const Stroke& s : strokes) {
    if (s.slot < 0 || s.x1 - s.x0 < smallest || (s.category & kFilteredOut) != 0) continue;
    const std::string& name = run.name_of_op(run.lanes.op_row(static_cast<std::size_t>(s.slot)));
    const ImVec4 clip(at.x + s.x0, at.y, at.x + s.x1 - 2, at.y + height);
    draw->AddText(nullptr, 0,
                  {std::floor(at.x + s.x0) + 3, std::floor(at.y + (height - ImGui::GetFontSize()) / 2)},
                  colour_of(0, 0, 0), name.data(), name.data() + name.size(), 0, &clip);
  }
  static_cast<void>(app);
}

void draw_row(App& app, const Frame& frame, const RowView& view, ImDrawList* draw, float y) {
  RunData& run = *app.runs[view.run];
  const LaneRow& row = run.lanes.rows()[view.row];
  static std::vector<Stroke> strokes;  // kept for its memory
  strokes.clear();
  run.detail.draw(view.row, app.timeline.window, frame.width, strokes);
  const ImVec2 at{frame.origin.x, y};
  draw->AddRectFilled(at, {at.x + frame.width, y + view.height}, app.theme.panel);
  draw_rectangles(draw, strokes, at, view.height, [&](const Stroke& s) {
    const Colour colour = (s.category & kFilteredOut) != 0
                              ? app.theme.filtered
                              : app.theme.category(app.timeline.colouring, s.category);
    return s.coverage >= 1 ? colour : with_alpha(colour, static_cast<unsigned>(40 + 215 * s.coverage));
  });
  draw_labels(draw, app, run, strokes, at, view.height);
  std::string name(to_string(row.lane));
  if (row.part > 0) name += fmt::format(" {}", row.part + 1);
  if (app.runs.size() > 1) name = (view.run == 0 ? "a  " : "b  ") + name;
  const Colour colour = app.runs.size() < 2 ? app.theme.faint_text
                        : view.run == 0     ? app.theme.run_a
                                            : app.theme.run_b;
  draw->AddText(
      {frame.origin.x - frame.names + frame.unit * 7, std::floor(y + (view.height - frame.unit) / 2)}, colour,
      name.c_str());
}

void draw_ruler(const App& app, const Frame& frame, ImDrawList* draw) {
  const TimeWindow& window = app.timeline.window;
  const double step = axis_step(window.length(), static_cast<double>(frame.width / (frame.unit * 8)));
  for (double mark = std::ceil(window.begin / step) * step; mark < window.end; mark += step) {
    const float x = std::floor(x_of(app, frame, mark));
    draw->AddRectFilled({x, frame.origin.y - 4}, {x + 1, frame.origin.y + frame.height}, app.theme.grid);
    draw->AddText({x + 3, frame.origin.y - frame.unit - 3}, app.theme.faint_text,
                  axis_text(mark, step).c_str());
  }
}

// Where a place of a run stands on the screen; false when its row is not shown.
bool find_place(const App& app, const Frame& frame, const std::vector<RowView>& views, std::size_t run,
                Place place, ImVec2& low, ImVec2& high) {
  for (const RowView& view : views) {
    if (view.run != run || view.row != place.row) continue;
    const LaneSpans& lanes = app.runs[run]->lanes;
    const float y = frame.origin.y + view.y - app.timeline.scroll;
    low = {x_of(app, frame, static_cast<double>(lanes.start(place.slot))), y};
    high = {std::max(x_of(app, frame, static_cast<double>(lanes.end(place.slot))), low.x + 1),
            y + view.height};
    return true;
  }
  return false;
}

void arrow(ImDrawList* draw, ImVec2 from, ImVec2 to, Colour colour) {
  const float middle = std::floor(std::max(from.x + 6, (from.x + to.x) / 2));
  draw->AddLine(from, {middle, from.y}, colour, 1.5f);
  draw->AddLine({middle, from.y}, {middle, to.y}, colour, 1.5f);
  draw->AddLine({middle, to.y}, to, colour, 1.5f);
  draw->AddTriangleFilled({to.x, to.y}, {to.x - 6, to.y - 4}, {to.x - 6, to.y + 4}, colour);
}

void draw_selection(App& app, const Frame& frame, const std::vector<RowView>& views, ImDrawList* draw) {
  if (!app.timeline.selection) return;
  const Selection chosen = *app.timeline.selection;
  const RunData& run = *app.runs[chosen.run];
  ImVec2 low, high, other_low, other_high;
  if (!find_place(app, frame, views, chosen.run, chosen.place, low, high)) return;
  draw->AddRect({low.x - 1, low.y - 1}, {high.x + 1, high.y + 1}, app.theme.select, 0, 0, 2);
  const float middle = std::floor((low.y + high.y) / 2);
  if (const auto before = waited_for(run, chosen.place))
    if (find_place(app, frame, views, chosen.run, *before, other_low, other_high))
      arrow(draw, {other_high.x, std::floor((other_low.y + other_high.y) / 2)}, {low.x, middle},
            app.theme.warning);
  for (const Place& after : began_at_end_of(run, chosen.place, kMostArrows))
    if (find_place(app, frame, views, chosen.run, after, other_low, other_high))
      arrow(draw, {high.x, middle}, {other_low.x, std::floor((other_low.y + other_high.y) / 2)},
            app.theme.accent);
  if (const auto peer = other_side(run, chosen.place))
    if (find_place(app, frame, views, chosen.run, *peer, other_low, other_high))
      draw->AddRect(other_low, other_high, app.theme.accent, 0, 0, 2);
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
  for (float& share : map) share /= static_cast<float>(std::max(rows, 1));
}

void minimap(App& app, const Frame& frame) {
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
  for (std::size_t i = 0; i < app.runs.size(); ++i) {
    if (t.minimap[i].empty()) build_minimap(app, i);
    const float bottom = low.y + each * static_cast<float>(i + 1);
    const Colour colour = app.runs.size() < 2 ? app.theme.accent : i == 0 ? app.theme.run_a : app.theme.run_b;
    for (float x = 0; x < frame.width; x += 1) {
      const float share = t.minimap[i][static_cast<std::size_t>(x / frame.width * kMinimapColumns)];
      draw->AddRectFilled({low.x + x, bottom - std::round(share * (each - 1))}, {low.x + x + 1, bottom},
                          colour);
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

// The span under the mouse; none between spans.
std::optional<Selection> under_mouse(const App& app, const Frame& frame, const std::vector<RowView>& views) {
  const ImVec2 mouse = ImGui::GetIO().MousePos;
  const float y = mouse.y - frame.origin.y + app.timeline.scroll;
  const double share = static_cast<double>((mouse.x - frame.origin.x) / frame.width);
  const double half_pixel = 0.5 * app.timeline.window.length() / static_cast<double>(frame.width);
  const double time = app.timeline.window.at(share);
  for (const RowView& view : views) {
    if (y < view.y || y >= view.y + view.height) continue;
    const LaneSpans& lanes = app.runs[view.run]->lanes;
    const std::size_t slot =
        lanes.first_ending_after(lanes.rows()[view.row], static_cast<std::int64_t>(time - half_pixel));
    if (slot < lanes.rows()[view.row].last() && static_cast<double>(lanes.start(slot)) <= time + half_pixel)
      return Selection{view.run, {view.row, slot}};
  }
  return std::nullopt;
}

void hover(const App& app, const Selection& at) {
  const RunData& run = *app.runs[at.run];
  const std::size_t slot = at.place.slot;
  const Span span = run.columns.span(run.lanes.span(slot));
  const SubmissionRow& s = run.columns.submission_of(span);
  ImGui::SetTooltip("%s\n%s\n%s, step %d, microbatch %d\n%s", run.name_of_op(run.lanes.op_row(slot)).c_str(),
                    seconds_text((span.end - span.start).seconds()).c_str(),
                    run.tables().fragments[s.fragment].c_str(), s.step, s.microbatch,
                    class_name(run.tables(), span.rank_class).c_str());
}

void pointer(App& app, const Frame& frame, const std::vector<RowView>& views) {
  TimelineState& t = app.timeline;
  const ImGuiIO& io = ImGui::GetIO();
  ImGui::SetCursorScreenPos({frame.origin.x - frame.names, frame.origin.y});
  ImGui::InvisibleButton("names", {frame.names, frame.height});
  const bool over_names = ImGui::IsItemHovered();
  ImGui::SetCursorScreenPos(frame.origin);
  ImGui::InvisibleButton("rows", {frame.width, frame.height});
  mark(app, "rows");
  const bool hovered = ImGui::IsItemHovered(), active = ImGui::IsItemActive();
  const bool vertical = over_names || io.KeyShift;
  if ((hovered || over_names) && io.MouseWheel != 0) {
    if (vertical)
      t.scroll -= io.MouseWheel * frame.unit * 4;
    else
      t.window.zoom(std::pow(0.8, static_cast<double>(io.MouseWheel)),
                    static_cast<double>((io.MousePos.x - frame.origin.x) / frame.width));
  }
  if (active && ImGui::IsMouseDragging(0)) {
    t.window.pan(-static_cast<double>(io.MouseDelta.x / frame.width));
    t.scroll -= io.MouseDelta.y;
  }
  const ImVec2 dragged = ImGui::GetMouseDragDelta(0, 0);
  const bool clicked = ImGui::IsItemDeactivated() && std::abs(dragged.x) + std::abs(dragged.y) < 4;
  if (!hovered) return;
  const auto at = under_mouse(app, frame, views);
  if (at && !active) hover(app, *at);
  if (clicked) {
    t.selection = at;
    if (at && io.MouseDoubleClicked[0]) app.select(*at, true);
  }
  if (at && ImGui::IsMouseDoubleClicked(0)) app.select(*at, true);
}

void draw_rows(App& app, const Frame& frame) {
  TimelineState& t = app.timeline;
  const std::vector<RowView> views = rows_of(app, frame.unit + 3);
  const float all = views.empty() ? 0 : views.back().y + views.back().height + 4;
  t.scroll = std::clamp(t.scroll, 0.0f, std::max(all - frame.height, 0.0f));
  ImDrawList* draw = ImGui::GetWindowDrawList();
  draw_ruler(app, frame, draw);
  draw->PushClipRect({frame.origin.x - frame.names, frame.origin.y},
                     {frame.origin.x + frame.width, frame.origin.y + frame.height}, true);
  std::int32_t last_rank = -1;
  for (const RowView& view : views) {
    const float y = frame.origin.y + view.y - t.scroll;
    if (y + view.height < frame.origin.y || y > frame.origin.y + frame.height) continue;
    draw_row(app, frame, view, draw, y);
    const RunData& run = *app.runs[view.run];
    const std::int32_t rank_class = run.lanes.rows()[view.row].rank_class,
                       rank = run.tables().class_ranks[rank_class];
    if (rank != last_rank)
      draw->AddText(
          {frame.origin.x - frame.names + 2, y + 1}, app.theme.text,
          fmt::format("{}{}", run.tables().class_sizes[rank_class] > 1 ? "ranks like " : "rank ", rank)
              .c_str());
    last_rank = rank;
  }
  draw_selection(app, frame, views, draw);
  draw->PopClipRect();
  if (all > frame.height) {
    const float length = frame.height * frame.height / all,
                top = frame.origin.y + t.scroll / all * frame.height;
    draw->AddRectFilled({frame.origin.x + frame.width - 4, top}, {frame.origin.x + frame.width, top + length},
                        with_alpha(app.theme.text, 90));
  }
  pointer(app, frame, views);
}

void counters(App& app, const Frame& frame, float height) {
  LineChart chart;
  chart.window = app.timeline.window;
  chart.height = height;
  std::string shown;
  for (const auto& run : app.runs) {
    for (const CounterTrack& track : run->counters) {
      // The counter with the most classes first: one family at a time, or lines would cross that have no
      // common unit.
      if (shown.empty()) shown = track.name();
      if (track.name() != shown || chart.tracks.size() >= 16) continue;
      chart.tracks.push_back(&track);
      chart.names.push_back(
          fmt::format("{} of {}", track.name(), class_name(run->tables(), track.rank_class())));
    }
  }
  chart.text = [&](double value) { return shown == "memory" ? bytes_text(value) : count_text(value); };
  ImGui::SetCursorScreenPos({frame.origin.x, frame.origin.y + frame.height + 4});
  if (!chart.tracks.empty()) {
    ImGui::BeginChild("counters", {frame.width, height + frame.unit + 4}, false,
                      ImGuiWindowFlags_NoScrollbar);
    line_chart(app.theme, chart);
    ImGui::EndChild();
  }
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
  Frame frame;
  frame.unit = unit;
  frame.names = std::floor(unit * 15);
  frame.width = std::max(std::floor(room.x - details - frame.names - 8), 50.0f);
  frame.origin = {at.x + frame.names, at.y};
  minimap(app, frame);
  frame.origin.y = std::floor(at.y + unit * 2.2f + unit + 8);
  const float chart = app.timeline.counters && samples ? std::floor(unit * 7) : 0;
  frame.height = std::max(room.y - (frame.origin.y - at.y) - (chart > 0 ? chart + unit + 12 : 0), 40.0f);
  draw_rows(app, frame);
  if (chart > 0) counters(app, frame, chart);
  ImGui::SetCursorScreenPos({at.x + room.x - details, at.y});
  ImGui::BeginChild("details", {details, room.y}, false);
  timeline_details(app);
  ImGui::EndChild();
}

}  // namespace moebius::viz
