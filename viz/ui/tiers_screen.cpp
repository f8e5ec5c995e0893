// The cache of keys and values: what was found in it, tier by tier, and what moved between tiers.
#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>

#include "viz/data/op_names.h"
#include "viz/ui/app.h"
#include "viz/ui/chart.h"

namespace moebius::viz {
namespace {

bool is_number(const Value& value) {
  return value.kind == Value::Kind::kNumber || value.kind == Value::Kind::kInteger;
}

std::string figure_text(const std::string& name, double value) {
  if (name.ends_with("_s")) return seconds_text(value);
  if (name.ends_with("share") || name.ends_with("rate")) return share_text(value);
  if (name.ends_with("bytes")) return bytes_text(value);
  if (name.ends_with("bytes_per_s")) return bytes_text(value) + "/s";
  return count_text(value);
}

// Every figure of an object, its objects below as tables of their own: reports name what they measured.
void figures(const Value& object, const std::string& title, int depth) {
  if (!title.empty()) {
    term(title);
    ImGui::Separator();
  }
  if (ImGui::BeginTable(title.c_str(), 2, ImGuiTableFlags_SizingFixedFit)) {
    for (std::size_t i = 0; i < object.keys.size(); ++i) {
      if (!is_number(object.items[i])) continue;
      ImGui::TableNextRow();
      ImGui::TableNextColumn();
      ImGui::TextDisabled("%s", object.keys[i].c_str());
      ImGui::TableNextColumn();
      ImGui::TextUnformatted(figure_text(object.keys[i], object.items[i].number).c_str());
    }
    ImGui::EndTable();
  }
  if (depth == 0) return;
  for (std::size_t i = 0; i < object.items.size(); ++i) {
    const Value& inner = object.items[i];
    if (inner.kind == Value::Kind::kObject) figures(inner, object.keys[i], depth - 1);
    if (inner.kind != Value::Kind::kArray) continue;
    for (std::size_t j = 0; j < inner.items.size(); ++j) {
      const Value& row = inner.items[j];
      if (row.kind != Value::Kind::kObject) continue;
      const Value* name = row.find("tier");
      if (name == nullptr) name = row.find("name");
      figures(row, name != nullptr ? name->text : fmt::format("{} {}", object.keys[i], j), depth - 1);
    }
  }
}

// Blocks of prompts, in the cache or not: the report of a replay, or of each pool of a service.
void hits(App& app, const std::string& name, double found, double asked) {
  if (asked <= 0) return;
  StackedBar bar;
  bar.text = count_text;
  bar.parts = {{"found in the cache", found, app.theme.series(2)},
               {"computed", asked - found, app.theme.series(3)}};
  ImGui::Text("%s: %s of the blocks of prompts were found", name.c_str(), share_text(found / asked).c_str());
  explain("hit share");
  stacked_bar(app.theme, bar);
}

}  // namespace

void tiers_screen(App& app) {
  ImGui::BeginChild("tiers");
  bool any = false;
  for (std::size_t i = 0; i < app.runs.size(); ++i) {
    const RunData& run = *app.runs[i];
    run_heading(app, i);
    report_trouble(app, run);
    const Value* kv = run.figure("kv");
    if (kv == nullptr || kv->kind != Value::Kind::kObject) continue;
    any = true;
    ImGui::PushID(static_cast<int>(i));
    hits(app, "cache", run.number("kv.hit_blocks"),
         run.figure("kv.hit_blocks") != nullptr ? run.number("kv.total_blocks") : 0);
    if (const Value* pools = run.figure("pools"))
      for (const std::string& pool : pools->keys)
        hits(app, pool, run.number(fmt::format("pools.{}.prefix.hit_blocks", pool)),
             run.number(fmt::format("pools.{}.prefix.asked_blocks", pool)));
    figures(*kv, "", 2);
    LineChart chart;
    for (const CounterTrack& track : run.counters) {
      if (!track.name().starts_with("kv") || chart.tracks.size() >= 16) continue;
      chart.tracks.push_back(&track);
      chart.names.push_back(track.name());
    }
    if (!chart.tracks.empty()) {
      chart.window = {0, run.length()};
      chart.text = count_text;
      chart.height = ImGui::GetFontSize() * 10;
      line_chart(app.theme, chart);
    }
    ImGui::PopID();
    ImGui::Separator();
  }
  if (!any)
    empty_state(app, "This run has no cache of keys and values.",
                "Services and cache replays have one, for instance scenarios/smoke/kv-replay.json.");
  ImGui::EndChild();
}

}  // namespace moebius::viz
