#include "viz/ui/app.h"

#include <fmt/format.h>
#include <imgui.h>
#include <imgui_stdlib.h>

#include <algorithm>
#include <cmath>

#include "hw/error.h"
#include "viz/ui/chart.h"

namespace moebius::viz {
namespace {

constexpr const char* kHelp[][2] = {
    {"wheel", "zoom about the cursor"},
    {"drag", "pan; the wheel over the names scrolls rows"},
    {"W S A D", "zoom in and out, pan left and right"},
    {"F", "fit the whole run"},
    {"click", "select an op; a double click zooms to it"},
    {"left right", "the op before and after in its lane (follow: the window goes along)"},
    {"B", "jump to what the selected op waited for"},
    {"/", "search: words, op:gemm layer:3 microbatch:5 step:0 rank:16"},
    {"C", "only the critical path"},
    {"K", "next colouring"},
    {"N", "counters on and off"},
    {"Q", "closes the window"},
    {"1 .. 8", "screens"},
    {"O", "open a run"},
    {"T", "dark and light"},
    {"+ -", "larger and smaller"},
    {"?", "this help"},
    {"Esc", "close, deselect"},
};

void help_window(App& app) {
  ImGui::SetNextWindowPos({ImGui::GetIO().DisplaySize.x / 2, ImGui::GetIO().DisplaySize.y / 2},
                          ImGuiCond_Always, {0.5f, 0.5f});
  if (ImGui::Begin(
          "Keys", &app.help,
          ImGuiWindowFlags_NoResize | ImGuiWindowFlags_AlwaysAutoResize | ImGuiWindowFlags_NoCollapse)) {
    if (ImGui::BeginTable("keys", 2)) {
      for (const auto& [key, meaning] : kHelp) {
        ImGui::TableNextRow();
        ImGui::TableNextColumn();
        ImGui::TextDisabled("%s", key);
        ImGui::TableNextColumn();
        ImGui::TextUnformatted(meaning);
      }
      ImGui::EndTable();
    }
  }
  ImGui::End();
}

void open_window(App& app) {
  ImGui::SetNextWindowPos({ImGui::GetIO().DisplaySize.x / 2, ImGui::GetIO().DisplaySize.y / 3},
                          ImGuiCond_Always, {0.5f, 0.3f});
  ImGui::SetNextWindowSize({ImGui::GetFontSize() * 50, 0});
  if (ImGui::Begin("Open a run", &app.opening, ImGuiWindowFlags_NoResize | ImGuiWindowFlags_NoCollapse)) {
    ImGui::TextUnformatted("A run's directory (moebius run --out) or its timeline.mtl:");
    ImGui::SetNextItemWidth(-1);
    if (ImGui::IsWindowAppearing()) ImGui::SetKeyboardFocusHere();
    const bool entered = ImGui::InputText("##path", &app.open_path, ImGuiInputTextFlags_EnterReturnsTrue);
    mark(app, "open path");
    if ((ImGui::Button("Open") || entered) && !app.open_path.empty()) app.open(app.open_path);
    mark(app, "open button");
    if (!app.open_trouble.empty()) {
      ImGui::PushStyleColor(ImGuiCol_Text, app.theme.warning);
      ImGui::TextWrapped("%s", app.open_trouble.c_str());
      ImGui::PopStyleColor();
    }
    ImGui::Separator();
    ImGui::TextDisabled("Recent");
    const std::vector<std::string> recent = app.settings.recent;
    for (const std::string& run : recent)
      if (ImGui::Selectable(run.c_str())) app.open(run);
    if (recent.empty()) ImGui::TextDisabled("none yet");
  }
  ImGui::End();
}

void top_bar(App& app) {
  for (std::size_t i = 0; i < kScreenNames.size(); ++i) {
    if (i > 0) ImGui::SameLine(0, 2);
    const bool current = static_cast<std::size_t>(app.screen) == i;
    if (current) ImGui::PushStyleColor(ImGuiCol_Button, ImGui::GetStyleColorVec4(ImGuiCol_ButtonActive));
    if (ImGui::Button(kScreenNames[i])) app.show(static_cast<Screen>(i));
    mark(app, fmt::format("screen {}", kScreenNames[i]));
    if (current) ImGui::PopStyleColor();
  }
  ImGui::SameLine(0, 20);
  if (ImGui::Button("open")) app.opening = true;
  mark(app, "open");
  ImGui::SameLine(0, 2);
  if (ImGui::Button(app.theme.dark ? "light" : "dark")) app.settings.dark = !app.settings.dark;
  mark(app, "theme");
  ImGui::SameLine(0, 2);
  if (ImGui::Button("?")) app.help = !app.help;
  mark(app, "help");
  for (std::size_t run = 0; run < app.runs.size(); ++run) {
    ImGui::SameLine(0, 16);
    const char* letter = app.runs.size() < 2 ? "" : run == 0 ? "a: " : "b: ";
    ImGui::PushStyleColor(ImGuiCol_Text, app.runs.size() < 2 ? app.theme.text
                                         : run == 0          ? app.theme.run_a
                                                             : app.theme.run_b);
    ImGui::Text("%s%s", letter, app.runs[run]->title.c_str());
    ImGui::PopStyleColor();
    if (ImGui::IsItemHovered())
      ImGui::SetTooltip("%s\n%s executor, %s spans", app.runs[run]->path.c_str(),
                        app.runs[run]->columns.fact("executor").c_str(),
                        count_text(static_cast<double>(app.runs[run]->columns.size())).c_str());
  }
  ImGui::Separator();
}

void next_colouring(TimelineState& timeline) {
  timeline.colouring = static_cast<ColourBy>((static_cast<int>(timeline.colouring) + 1) % kNumColourings);
  timeline.stale = true;
}

void typed(App& app, unsigned key) {
  TimelineState& timeline = app.timeline;
  if (key >= '1' && key <= '8') app.show(static_cast<Screen>(key - '1'));
  if (key == '?') app.help = !app.help;
  if (key == 'o') app.opening = true;
  if (key == 'q') app.closing = true;
  if (key == 't') app.settings.dark = !app.settings.dark;
  if (key == '+' || key == '-')
    app.settings.scale = std::clamp(app.scale * (key == '+' ? 1.25f : 0.8f), 0.5f, 4.0f);
  if (key == 'c') timeline.search.critical_only = !timeline.search.critical_only, timeline.stale = true;
  if (key == 'k') next_colouring(timeline);
  if (key == 'n') timeline.counters = !timeline.counters;
  if (key == '/') app.show(Screen::kTimeline), timeline.focus_search = true;
  if (key == 'f') app.fit();
  if (key == 'w') timeline.window.zoom(0.8, 0.5);
  if (key == 's') timeline.window.zoom(1.25, 0.5);
  if (key == 'a') timeline.window.pan(-0.1);
  if (key == 'd') timeline.window.pan(0.1);
  if (key == 'b' && timeline.selection)
    if (const auto before = waited_for(*app.runs[timeline.selection->run], timeline.selection->place))
      app.select({timeline.selection->run, before->place}, timeline.follow);
}

// Left and right: the neighbours of the selection in its lane.
void step_selection(App& app, int by) {
  if (!app.timeline.selection) return;
  Selection next = *app.timeline.selection;
  const LaneRow& row = app.runs[next.run]->lanes.rows()[next.place.row];
  const auto slot = static_cast<std::int64_t>(next.place.slot) + by;
  if (slot < static_cast<std::int64_t>(row.first) || slot >= static_cast<std::int64_t>(row.last())) return;
  next.place.slot = static_cast<std::size_t>(slot);
  app.select(next, app.timeline.follow);
}

void keyboard(App& app) {
  const ImGuiIO& io = ImGui::GetIO();
  if (ImGui::IsKeyPressed(ImGui::GetKeyIndex(ImGuiKey_Escape), false)) {
    if (app.help || app.opening)
      app.help = app.opening = false;
    else
      app.timeline.selection.reset();
  }
  if (io.WantTextInput) return;
  const auto pressed = [](ImGuiKey key) { return ImGui::IsKeyPressed(ImGui::GetKeyIndex(key)); };
  if (pressed(ImGuiKey_LeftArrow)) step_selection(app, -1);
  if (pressed(ImGuiKey_RightArrow)) step_selection(app, 1);
  for (const ImWchar key : io.InputQueueCharacters) typed(app, key >= 'A' && key <= 'Z' ? key + 32u : key);
}

void show_screen(App& app) {
  if (app.runs.empty() && app.screen != Screen::kScenario) {
    empty_state(
        app, app.open_trouble.empty() ? "No run is open." : app.open_trouble,
        "Press O to open one, or start with: moebius view RUN, where RUN is what moebius run --out made.");
    return;
  }
  switch (app.screen) {
    case Screen::kTimeline:
      return timeline_screen(app);
    case Screen::kCompare:
      return compare_screen(app);
    case Screen::kNetwork:
      return network_screen(app);
    case Screen::kMemory:
      return memory_screen(app);
    case Screen::kServing:
      return serving_screen(app);
    case Screen::kExperts:
      return experts_screen(app);
    case Screen::kTiers:
      return tiers_screen(app);
    case Screen::kScenario:
      return scenario_screen(app);
  }
}

}  // namespace

void App::open(const std::string& path) {
  try {
    auto run = std::make_unique<RunData>(path);
    if (runs.size() == 2) runs.pop_back();
    runs.push_back(std::move(run));
    open_trouble.clear();
    opening = false;
    remember(settings, path);
    timeline.stale = true;
    timeline.critical = {};
    timeline.minimap = {};
    timeline.selection.reset();
    network = {};
    difference.reset();
    if (runs.size() == 1)
      timeline.colouring = runs[0]->of_submissions() ? ColourBy::kFragment : ColourBy::kKind;
    fit();
  } catch (const Error& error) {
    open_trouble = error.what();
  }
}

void App::fit() {
  double longest = 20;
  for (const auto& run : runs) longest = std::max(longest, run->length());
  timeline.window = {-0.01 * longest, 1.01 * longest};
  timeline.fitted = true;
}

void App::select(Selection next, bool jump) {
  timeline.selection = next;
  if (!jump) return;
  const LaneSpans& lanes = runs[next.run]->lanes;
  const auto start = static_cast<double>(lanes.start(next.place.slot)),
             length = static_cast<double>(lanes.length(next.place.slot));
  // Wide enough to see it among its neighbours; no further away than it is already.
  const double around =
      std::clamp(timeline.window.length(), std::max(5 * length, 100.0), std::max(40 * length, 1e5));
  timeline.window = {start + length / 2 - around / 2, start + length / 2 + around / 2};
}

void mark(App& app, const std::string& name, Rect place) {
  app.targets[name] = place;
}

void mark(App& app, const std::string& name) {
  const ImVec2 low = ImGui::GetItemRectMin(), high = ImGui::GetItemRectMax();
  mark(app, name, {low.x, low.y, high.x, high.y});
}

void empty_state(App& app, const std::string& why, const std::string& advice) {
  const ImVec2 room = ImGui::GetContentRegionAvail(), at = ImGui::GetCursorPos();
  ImGui::SetCursorPos({at.x + room.x * 0.2f, at.y + room.y * 0.35f});
  ImGui::BeginGroup();
  ImGui::PushTextWrapPos(at.x + room.x * 0.8f);
  ImGui::TextUnformatted(why.c_str());
  ImGui::PushStyleColor(ImGuiCol_Text, app.theme.faint_text);
  ImGui::TextUnformatted(advice.c_str());
  ImGui::PopStyleColor();
  ImGui::PopTextWrapPos();
  ImGui::EndGroup();
  mark(app, "empty");
}

void report_trouble(App& app, const RunData& run) {
  if (run.report_trouble.empty()) return;
  ImGui::PushStyleColor(ImGuiCol_Text, app.theme.warning);
  ImGui::TextWrapped("No report beside the timeline, so its figures are missing here: %s",
                     run.report_trouble.c_str());
  ImGui::PopStyleColor();
}

void run_heading(App& app, std::size_t run) {
  if (app.runs.size() < 2) return;
  ImGui::PushStyleColor(ImGuiCol_Text, run == 0 ? app.theme.run_a : app.theme.run_b);
  ImGui::Text("%s  %s", run == 0 ? "a" : "b", app.runs[run]->title.c_str());
  ImGui::PopStyleColor();
}

std::string state_text(const App& app) {
  const TimelineState& t = app.timeline;
  std::string text = fmt::format("screen={} runs={} window={:.0f}..{:.0f} found={}",
                                 kScreenNames[static_cast<std::size_t>(app.screen)], app.runs.size(),
                                 t.window.begin, t.window.end, app.runs.empty() ? 0 : t.found[0]);
  if (t.selection) {
    const RunData& run = *app.runs[t.selection->run];
    const std::size_t slot = t.selection->place.slot;
    text += fmt::format(" selected={} \"{}\" {}..{}", t.selection->run == 0 ? "a" : "b",
                        run.name_of_op(run.lanes.op_row(slot)), run.lanes.start(slot), run.lanes.end(slot));
  }
  return text;
}

void draw_frame(App& app) {
  if (app.theme.dark != app.settings.dark) {
    app.theme = theme_of(app.settings.dark);
    apply(app.theme, app.scale);
  }
  app.targets.clear();
  app.editor.child.poll();
  keyboard(app);
  const ImVec2 size = ImGui::GetIO().DisplaySize;
  ImGui::SetNextWindowPos({0, 0});
  ImGui::SetNextWindowSize(size);
  ImGui::Begin("moebius", nullptr,
               ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove |
                   ImGuiWindowFlags_NoBringToFrontOnFocus | ImGuiWindowFlags_NoSavedSettings |
                   ImGuiWindowFlags_NoScrollWithMouse);
  top_bar(app);
  show_screen(app);
  ImGui::End();
  if (app.help) help_window(app);
  if (app.opening) open_window(app);
  app.settings.screen = kScreenNames[static_cast<std::size_t>(app.screen)];
}

}  // namespace moebius::viz
