// A scenario's inputs: change some, press run, and the new run stands beside the old one.
#include <fmt/format.h>
#include <imgui.h>
#include <imgui_stdlib.h>

#include <algorithm>

#include "viz/ui/app.h"
#include "viz/ui/chart.h"

namespace moebius::viz {
namespace {

void choose_file(App& app) {
  ScenarioEditor& editor = app.editor;
  ImGui::TextUnformatted("Scenario file:");
  ImGui::SameLine();
  ImGui::SetNextItemWidth(ImGui::GetFontSize() * 40);
  const bool entered = ImGui::InputText("##file", &editor.file, ImGuiInputTextFlags_EnterReturnsTrue);
  mark(app, "scenario file");
  ImGui::SameLine();
  if (ImGui::Button("load") || entered) editor.load(editor.file);
  mark(app, "load");
}

void trouble(const App& app, const std::string& text) {
  ImGui::PushStyleColor(ImGuiCol_Text, app.theme.warning);
  ImGui::TextWrapped("%s", text.c_str());
  ImGui::PopStyleColor();
}

void run_line(App& app) {
  ScenarioEditor& editor = app.editor;
  const auto changed =
      std::count_if(editor.inputs.begin(), editor.inputs.end(), [](const auto& i) { return i.changed(); });
  if (editor.child.running()) {
    if (ImGui::Button("cancel")) editor.child.cancel();
    mark(app, "cancel");
    ImGui::SameLine();
    const double share = editor.child.progress();
    ImGui::ProgressBar(static_cast<float>(std::max(share, 0.0)), {ImGui::GetFontSize() * 20, 0},
                       share < 0 ? "starting" : nullptr);
    return;
  }
  if (ImGui::Button("run")) editor.start();
  mark(app, "run");
  ImGui::SameLine();
  ImGui::TextDisabled("%d changed; runs in a process of its own, with what is changed as --set",
                      static_cast<int>(changed));
  if (!editor.child.started() || editor.child.running()) return;
  if (editor.child.cancelled()) {
    ImGui::TextUnformatted("The run was cancelled.");
    mark(app, "cancelled");
  } else if (editor.child.exit_code() != 0) {
    trouble(app,
            fmt::format("The run failed (exit {}): {}", editor.child.exit_code(), editor.child.output()));
    mark(app, "failed");
  } else {
    if (!editor.shown) {
      editor.shown = true;
      app.open(editor.directory);
      app.show(Screen::kScenario);
    }
    if (!app.open_trouble.empty()) {
      trouble(app, app.open_trouble);
      return;
    }
    ImGui::Text("The run is done and open%s.", app.runs.size() == 2 ? " as b, beside the one before" : "");
    mark(app, "done");
    ImGui::SameLine();
    if (ImGui::Button("timeline")) app.show(Screen::kTimeline);
    mark(app, "to timeline");
    ImGui::SameLine();
    if (app.runs.size() == 2 && ImGui::Button("compare")) app.show(Screen::kCompare);
  }
}

void inputs(App& app) {
  ScenarioEditor& editor = app.editor;
  ImGui::SetNextItemWidth(ImGui::GetFontSize() * 20);
  ImGui::InputTextWithHint("##filter", "find an input", &editor.search);
  mark(app, "find input");
  if (!ImGui::BeginTable("inputs", 3, ImGuiTableFlags_RowBg | ImGuiTableFlags_ScrollY)) return;
  ImGui::TableSetupScrollFreeze(0, 1);
  ImGui::TableSetupColumn("input");
  ImGui::TableSetupColumn("value");
  ImGui::TableSetupColumn("was");
  ImGui::TableHeadersRow();
  for (ScenarioInput& input : editor.inputs) {
    if (input.pointer.find(editor.search) == std::string::npos) continue;
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    ImGui::TextUnformatted(input.pointer.c_str());
    ImGui::TableNextColumn();
    ImGui::SetNextItemWidth(-1);
    ImGui::InputText(fmt::format("##{}", input.pointer).c_str(), &input.is);
    mark(app, "input " + input.pointer);
    ImGui::TableNextColumn();
    if (input.changed())
      ImGui::TextColored(ImGui::ColorConvertU32ToFloat4(app.theme.warning), "%s", input.was.c_str());
  }
  ImGui::EndTable();
}

}  // namespace

void scenario_screen(App& app) {
  choose_file(app);
  if (!app.editor.trouble.empty()) trouble(app, app.editor.trouble);
  if (app.editor.inputs.empty()) {
    empty_state(app, "No scenario is loaded.",
                "Give the file above, or start with: moebius view RUN --scenario FILE. Its inputs can be "
                "changed here and run "
                "again beside the run that is open.");
    return;
  }
  run_line(app);
  ImGui::Separator();
  inputs(app);
}

}  // namespace moebius::viz
