// Memory of a device: what it is made of at the peak, and how it goes up and down in each stage.
#include <fmt/format.h>
#include <imgui.h>

#include "viz/data/op_names.h"
#include "viz/ui/app.h"
#include "viz/ui/chart.h"

namespace moebius::viz {
namespace {

void peak(App& app, const RunData& run) {
  const Value* kinds = run.figure("memory.by_kind");
  if (kinds == nullptr || kinds->kind != Value::Kind::kObject) return;
  StackedBar bar;
  for (std::size_t i = 0; i < kinds->keys.size(); ++i)
    bar.parts.push_back({kinds->keys[i], kinds->items[i].number, app.theme.series(static_cast<int>(i))});
  bar.mark = run.number("memory.capacity_bytes");
  bar.mark_name = "capacity";
  bar.text = bytes_text;
  ImGui::Text("Peak of the fullest device: %s", bytes_text(run.number("memory.peak_bytes")).c_str());
  stacked_bar(app.theme, bar);
}

bool over_time(App& app, std::size_t index, const RunData& run) {
  LineChart chart;
  for (const CounterTrack& track : run.counters) {
    if (track.name() != "memory") continue;
    chart.tracks.push_back(&track);
    chart.names.push_back(class_name(run.tables(), track.rank_class()));
  }
  if (chart.tracks.empty()) return false;
  chart.window = {0, run.length()};
  chart.limit = run.number("memory.capacity_bytes");
  chart.limit_name = "capacity";
  chart.text = bytes_text;
  chart.height = ImGui::GetFontSize() * 20;
  ImGui::TextUnformatted("Over the run, one line for each stage (rank class)");
  explain("rank class");
  ImGui::PushID(static_cast<int>(index));
  line_chart(app.theme, chart);
  ImGui::PopID();
  return true;
}

}  // namespace

void memory_screen(App& app) {
  ImGui::BeginChild("memory");
  bool any = false;
  for (std::size_t i = 0; i < app.runs.size(); ++i) {
    const RunData& run = *app.runs[i];
    run_heading(app, i);
    report_trouble(app, run);
    any = any || run.figure("memory") != nullptr;
    peak(app, run);
    ImGui::Spacing();
    any = over_time(app, i, run) || any;
    ImGui::Separator();
  }
  if (!any)
    empty_state(app, "This run says nothing of memory.",
                "Training runs report it; a service's cache is on the screens serving and tiers.");
  ImGui::EndChild();
}

}  // namespace moebius::viz
