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

// Where the blocks that were asked for stood.
bool hits_by_tier(App& app, const RunData& run) {
  const Value* tiers = run.figure("kv.hits");
  if (tiers == nullptr || tiers->kind != Value::Kind::kObject) return false;
  StackedBar bar;
  bar.text = count_text;
  for (std::size_t i = 0; i < tiers->keys.size(); ++i)
    bar.parts.push_back({tiers->keys[i], tiers->items[i].number, app.theme.series(static_cast<int>(i))});
  bar.parts.push_back({"computed", run.number("kv.missed_blocks"), app.theme.filtered});
  ImGui::Text("Where the blocks of prompts stood: %s found", share_text(run.number("kv.hit_share")).c_str());
  explain("hit share");
  stacked_bar(app.theme, bar);
  const Value* moved = run.figure("kv.bytes");
  if (moved == nullptr || moved->kind != Value::Kind::kObject) return true;
  Bars flows;
  flows.text = bytes_text;
  for (std::size_t i = 0; i < moved->keys.size(); ++i)
    flows.rows.push_back({moved->keys[i], moved->items[i].number, app.theme.series(0)});
  ImGui::TextUnformatted("What moved");
  bars(app.theme, flows);
  return true;
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
    if (!hits_by_tier(app, run)) {
      const double total = run.number("kv.total_blocks");
      hits(app, "cache", run.number("kv.hit_blocks"),
           run.number("kv.asked_blocks", run.figure("kv.hit_blocks") == nullptr ? 0 : total));
      if (const Value* pools = run.figure("pools"))
        for (const std::string& pool : pools->keys)
          hits(app, pool, run.number(fmt::format("pools.{}.prefix.hit_blocks", pool)),
               run.number(fmt::format("pools.{}.prefix.asked_blocks", pool)));
    }
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
