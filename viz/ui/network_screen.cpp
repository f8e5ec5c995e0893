// The network tier by tier: how full its links were over time, and who used the one that is chosen.
#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>

#include "viz/data/op_names.h"
#include "viz/ui/app.h"
#include "viz/ui/chart.h"

namespace moebius::viz {
namespace {

constexpr std::size_t kUsersShown = 12;

void tiers_of_report(App& app, const RunData& run) {
  const Value* tiers = run.figure("network.tiers");
  if (tiers == nullptr || tiers->items.empty()) return;
  Bars chart;
  chart.text = share_text;
  chart.full = 1;
  const auto number = [](const Value& tier, const char* key) {
    const Value* value = tier.find(key);
    return value == nullptr ? 0 : value->number;
  };
  for (const Value& tier : tiers->items) {
    const Value* name = tier.find("tier");
    if (name == nullptr) continue;
    chart.rows.push_back({name->text, number(tier, "busy_share"), app.theme.series(0)});
    chart.second.push_back({name->text, number(tier, "most_busy_share"), app.theme.series(1)});
  }
  ImGui::TextUnformatted(
      "Share of the run that ports carry data: blue the mean of each tier, orange its busiest port");
  explain("busy");
  bars(app.theme, chart);
  const Value* shares = run.figure("network.shares_wires");
  if (shares != nullptr && !shares->boolean)
    ImGui::TextWrapped(
        "Transfers do not share wires at this detail, so that ports can be busy for more than 100%%.");
  const std::string binding = run.text("network.binding.tier");
  if (!binding.empty())
    ImGui::Text("Binding: %s, the busiest in use %s of the time; sent %s: %s", binding.c_str(),
                share_text(run.number("network.binding.busy_share")).c_str(),
                run.text("kind") == "training" ? "in each step" : "in all",
                bytes_text(run.number("network.sent_bytes")).c_str());
}

// Transfers that were under way at `time`, those of most bytes first.
void users(const RunData& run, std::int64_t time) {
  struct User {
    double bytes;
    std::string text;
  };
  std::vector<User> found;
  for (const LaneRow& row : run.lanes.rows()) {
    const std::size_t slot = run.lanes.first_ending_after(row, time);
    if (slot >= row.last() || run.lanes.start(slot) > time) continue;
    const OpRow& op = run.tables().ops[run.lanes.op_row(slot)];
    if (!is_communication(op.kind)) continue;
    const Span span = run.columns.span(run.lanes.span(slot));
    if (span.transfer_start().ns > time) continue;  // still waiting for peers
    found.push_back({op.payload, fmt::format("{}, {} on {}: {}", class_name(run.tables(), row.rank_class),
                                             run.name_of_op(run.lanes.op_row(slot)), to_string(op.group),
                                             payload_text(op))});
  }
  std::sort(found.begin(), found.end(), [](const User& a, const User& b) { return a.bytes > b.bytes; });
  ImGui::Text("Transfers under way at %s, of the ranks that are simulated:",
              seconds_text(static_cast<double>(time) * 1e-9).c_str());
  for (std::size_t i = 0; i < found.size() && i < kUsersShown; ++i)
    ImGui::BulletText("%s", found[i].text.c_str());
  if (found.empty()) ImGui::TextDisabled("none");
}

void heat(App& app, std::size_t index, const HeatMap& map) {
  NetworkState& state = app.network;
  const double length = static_cast<double>((map.end - map.begin).ns);
  heat_scale(app.theme);
  // Of all tiers, so that the same moment stands at the same place in each.
  float names = 0;
  for (const HeatMap::Tier& tier : map.tiers)
    for (const HeatMap::Row& wire : tier.wires)
      names = std::max(names, ImGui::CalcTextSize(wire.name.c_str()).x);
  for (std::size_t t = 0; t < map.tiers.size(); ++t) {
    const HeatMap::Tier& tier = map.tiers[t];
    ImGui::TextUnformatted(tier.name.c_str());
    explain(tier.name.substr(0, tier.name.find(' ')));
    Heat chart;
    chart.names = names;
    chart.row_height = std::floor(ImGui::GetFontSize() + 2);
    chart.window = {static_cast<double>(map.begin.ns), static_cast<double>(map.end.ns)};
    for (const HeatMap::Row& wire : tier.wires) {
      chart.rows.push_back(wire.name);
      chart.values.push_back(&wire.share);
    }
    const std::size_t columns = tier.mean.size();
    const auto time_of = [&](std::size_t c) {
      return static_cast<double>(map.begin.ns) +
             length * (static_cast<double>(c) + 0.5) / static_cast<double>(columns);
    };
    chart.tooltip = [&](std::size_t r, std::size_t c) {
      return fmt::format("{} at {}: {} of its capacity\nclick to see who used it", tier.wires[r].name,
                         seconds_text(time_of(c) * 1e-9), share_text(tier.wires[r].share[c]));
    };
    std::size_t row = 0, column = 0;
    const bool clicked = heat_chart(app.theme, chart, row, column);
    mark(app, fmt::format("tier {}", t + 1));
    if (clicked)
      state.chosen = true, state.run = index, state.tier = t, state.wire = row, state.column = column;
    if (state.chosen && state.run == index && state.tier == t && state.column < columns) {
      ImGui::Text("%s: %s of its capacity", tier.wires[state.wire].name.c_str(),
                  share_text(tier.wires[state.wire].share[state.column]).c_str());
      users(*app.runs[index], static_cast<std::int64_t>(time_of(state.column)));
    }
  }
  for (const HeatMap::Mark& fault : map.marks)
    ImGui::TextColored(ImGui::ColorConvertU32ToFloat4(app.theme.warning), "%s: %s",
                       seconds_text(fault.time.seconds()).c_str(), fault.what.c_str());
}

}  // namespace

void network_screen(App& app) {
  ImGui::BeginChild("network");
  for (std::size_t i = 0; i < app.runs.size(); ++i) {
    const RunData& run = *app.runs[i];
    run_heading(app, i);
    report_trouble(app, run);
    tiers_of_report(app, run);
    if (!app.network.maps[i]) app.network.maps[i] = heat_map(run.tables());
    const HeatMap& map = *app.network.maps[i];
    ImGui::Separator();
    if (map.empty())
      ImGui::TextWrapped(
          "Links over time were not sampled in this run: run it again with --set \"/timeline/counters=1 ms\" "
          "(a time that suits its length).");
    else
      heat(app, i, map);
    ImGui::Separator();
  }
  ImGui::EndChild();
}

}  // namespace moebius::viz
