// The rows of the timeline: spans, their names, the selection with its arrows; and the mouse over them.
#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <cmath>

#include "viz/data/axis.h"
#include "viz/data/op_names.h"
#include "viz/ui/chart.h"
#include "viz/ui/timeline_frame.h"

namespace moebius::viz {
namespace {

constexpr std::size_t kRectsTogether = 8000;  // below what 16-bit indices reach
constexpr std::size_t kMostArrows = 12;
constexpr float kWaitingShade = 0.06f;

struct RowView {
  std::size_t run = 0, row = 0;
  float y = 0, height = 0;  // y from the top of the first row
};

float x_of(const App& app, const TimelineFrame& frame, double time) {
  return frame.origin.x + frame.width * static_cast<float>(app.timeline.window.share_of(time));
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

// Waiting for peers, at the beginning of a communication op, gets strokes of its own.
void split_waiting(const App& app, const TimelineFrame& frame, const RunData& run,
                   std::vector<Stroke>& strokes) {
  for (std::size_t i = 0, drawn = strokes.size(); i < drawn; ++i) {
    if (strokes[i].slot < 0) continue;
    const std::int64_t start = run.work_start(static_cast<std::size_t>(strokes[i].slot));
    const float x = std::min(x_of(app, frame, static_cast<double>(start)) - frame.origin.x, strokes[i].x1);
    if (x <= strokes[i].x0 + 1) continue;
    strokes.push_back({strokes[i].x0, x, kWaitingShade, strokes[i].category, -1});
    strokes[i].x0 = x;
  }
}

void draw_labels(ImDrawList* draw, const RunData& run, const std::vector<Stroke>& strokes, ImVec2 at,
                 float height) {
  const float smallest = ImGui::GetFontSize() * 2.2f;
  for (const Stroke& s : strokes) {
    if (s.slot < 0 || s.x1 - s.x0 < smallest || (s.category & kFilteredOut) != 0) continue;
    const std::string& name = run.name_of_op(run.lanes.op_row(static_cast<std::size_t>(s.slot)));
    const ImVec4 clip(at.x + s.x0, at.y, at.x + s.x1 - 2, at.y + height);
    draw->AddText(nullptr, 0,
                  {std::floor(at.x + s.x0) + 3, std::floor(at.y + (height - ImGui::GetFontSize()) / 2)},
                  colour_of(0, 0, 0), name.data(), name.data() + name.size(), 0, &clip);
  }
}

void draw_row(App& app, const TimelineFrame& frame, const RowView& view, ImDrawList* draw, float y) {
  RunData& run = *app.runs[view.run];
  const LaneRow& row = run.lanes.rows()[view.row];
  std::vector<Stroke> strokes;
  run.detail.draw(view.row, app.timeline.window, frame.width, strokes);
  split_waiting(app, frame, run, strokes);
  const ImVec2 at{frame.origin.x, y};
  draw->AddRectFilled(at, {at.x + frame.width, y + view.height}, app.theme.panel);
  draw_rectangles(draw, strokes, at, view.height, [&](const Stroke& s) {
    const Colour colour = (s.category & kFilteredOut) != 0
                              ? app.theme.filtered
                              : app.theme.category(app.timeline.colouring, s.category);
    return s.coverage >= 1 ? colour : with_alpha(colour, static_cast<unsigned>(40 + 215 * s.coverage));
  });
  draw_labels(draw, run, strokes, at, view.height);
  std::string name(run.of_submissions() ? std::string_view() : to_string(row.lane));
  if (row.part > 0) name += fmt::format(" {}", row.part + 1);
  if (app.runs.size() > 1) name = (view.run == 0 ? "a  " : "b  ") + name;
  const Colour colour = app.runs.size() < 2 ? app.theme.faint_text
                        : view.run == 0     ? app.theme.run_a
                                            : app.theme.run_b;
  draw->AddText(
      {frame.origin.x - frame.names + frame.unit * 8.5f, std::floor(y + (view.height - frame.unit) / 2)},
      colour, name.c_str());
}

void draw_ruler(const App& app, const TimelineFrame& frame, ImDrawList* draw) {
  const TimeWindow& window = app.timeline.window;
  const AxisMarks marks =
      axis_marks(window.begin, window.end, static_cast<double>(frame.width / (frame.unit * 8)));
  for (int i = 0; i < marks.count; ++i) {
    const double mark = marks.at(i);
    const float x = std::floor(x_of(app, frame, mark));
    draw->AddRectFilled({x, frame.origin.y - 4}, {x + 1, frame.origin.y + frame.height}, app.theme.grid);
    draw->AddText({x + 3, frame.origin.y - frame.unit - 3}, app.theme.faint_text,
                  axis_text(mark, marks.step).c_str());
  }
}

// Where a place of a run stands on the screen; false when its row is not shown.
bool find_place(const App& app, const TimelineFrame& frame, const std::vector<RowView>& views,
                std::size_t run, Place place, ImVec2& low, ImVec2& high) {
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

void draw_selection(App& app, const TimelineFrame& frame, const std::vector<RowView>& views,
                    ImDrawList* draw) {
  if (!app.timeline.selection) return;
  const Selection chosen = *app.timeline.selection;
  const RunData& run = *app.runs[chosen.run];
  ImVec2 low, high, other_low, other_high;
  if (!find_place(app, frame, views, chosen.run, chosen.place, low, high)) return;
  draw->AddRect({low.x - 1, low.y - 1}, {high.x + 1, high.y + 1}, app.theme.select, 0, 0, 2);
  const float middle = std::floor((low.y + high.y) / 2);
  if (const auto before = waited_for(run, chosen.place))
    if (find_place(app, frame, views, chosen.run, before->place, other_low, other_high))
      arrow(draw, {other_high.x, std::floor((other_low.y + other_high.y) / 2)}, {low.x, middle},
            app.theme.warning);
  for (const Place& after : waited_for_it(run, chosen.place, kMostArrows))
    if (find_place(app, frame, views, chosen.run, after, other_low, other_high))
      arrow(draw, {high.x, middle}, {other_low.x, std::floor((other_low.y + other_high.y) / 2)},
            app.theme.accent);
  if (const auto peer = other_side(run, chosen.place))
    if (find_place(app, frame, views, chosen.run, *peer, other_low, other_high))
      draw->AddRect(other_low, other_high, app.theme.accent, 0, 0, 2);
}

// The span under the mouse; none between spans.
std::optional<Selection> under_mouse(const App& app, const TimelineFrame& frame,
                                     const std::vector<RowView>& views) {
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
  const OpRow& op = run.tables().ops[run.lanes.op_row(slot)];
  ImGui::SetTooltip("%s\n%s\n%s, step %d, microbatch %d\n%s", run.name_of_op(run.lanes.op_row(slot)).c_str(),
                    seconds_text((span.end - span.start).seconds()).c_str(),
                    run.tables().fragments[s.fragment].c_str(), s.step, microbatch_of(s, op),
                    class_name(run.tables(), span.rank_class).c_str());
}

void pointer(App& app, const TimelineFrame& frame, const std::vector<RowView>& views) {
  TimelineState& t = app.timeline;
  const ImGuiIO& io = ImGui::GetIO();
  ImGui::SetCursorScreenPos({frame.origin.x - frame.names, frame.origin.y});
  ImGui::InvisibleButton("names", {frame.names, frame.height});
  const bool over_names = ImGui::IsItemHovered();
  ImGui::SetCursorScreenPos({frame.origin.x, frame.origin.y});
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

}  // namespace

void timeline_rows(App& app, const TimelineFrame& frame) {
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
    std::string name = given_class_name(run.tables(), rank_class);
    if (name.empty())
      name = fmt::format("{}{}", run.tables().class_sizes[rank_class] > 1 ? "ranks like " : "rank ", rank);
    if (rank != last_rank)
      draw->AddText({frame.origin.x - frame.names + 2, y + 1}, app.theme.text, name.c_str());
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

}  // namespace moebius::viz
