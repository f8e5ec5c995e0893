// A service: how long requests took, what held them up, its pools, and whatever was sampled over time.
#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <set>

#include "viz/data/op_names.h"
#include "viz/ui/app.h"
#include "viz/ui/chart.h"
#include "workloads/report/number_text.h"

namespace moebius::viz {
namespace {

void headline(App& app, const RunData& run) {
  ImGui::Text("%s of %s requests completed, %s output tokens/s",
              count_text(run.number("requests.completed")).c_str(),
              count_text(run.number("requests.submitted")).c_str(),
              rate_text(run.number("output_tokens_per_s")).c_str());
  if (run.figure("goodput_rps") == nullptr) return;
  ImGui::SameLine();
  ImGui::Text(" goodput %s requests/s", count_text(run.number("goodput_rps")).c_str());
  explain("goodput");
  const double met = run.number("slo_attainment");
  ImGui::SameLine();
  ImGui::TextColored(ImGui::ColorConvertU32ToFloat4(met >= 0.99 ? app.theme.text : app.theme.warning),
                     " %s meet the goal", share_text(met).c_str());
  explain("slo attainment");
}

// The points of a distribution that the report has, beside each other.
void latency(App& app, const RunData& run, const char* name, const char* key, double goal) {
  Bars chart;
  chart.text = seconds_text;
  chart.mark = goal;
  for (const char* point : {"mean", "p50", "p90", "p95", "p99"}) {
    const double value = run.number(fmt::format("{}.{}", key, point), -1);
    if (value >= 0)
      chart.rows.push_back(
          {point, value, goal > 0 && value > goal ? app.theme.warning : app.theme.series(0)});
  }
  if (chart.rows.empty()) return;
  ImGui::TableNextColumn();
  ImGui::TextUnformatted(name);
  explain(name);
  if (goal > 0) {
    ImGui::SameLine();
    ImGui::TextDisabled("goal %s", seconds_text(goal).c_str());
  }
  bars(app.theme, chart);
}

void time_of_requests(App& app, const RunData& run) {
  const Value* parts = run.figure("request_time_s");
  if (parts == nullptr || parts->kind != Value::Kind::kObject) return;
  StackedBar bar;
  for (std::size_t i = 0; i < parts->keys.size(); ++i)
    bar.parts.push_back({parts->keys[i], parts->items[i].number, app.theme.series(static_cast<int>(i))});
  bar.text = seconds_text;
  ImGui::TextUnformatted("What requests spend their time on, all together");
  stacked_bar(app.theme, bar);
}

void pools(const RunData& run) {
  const Value* pools = run.figure("pools");
  if (pools == nullptr || pools->kind != Value::Kind::kObject || pools->keys.empty()) return;
  if (!ImGui::BeginTable("pools", 7, ImGuiTableFlags_RowBg)) return;
  for (const char* name :
       {"pool", "devices", "instances", "iterations", "busy", "imbalance", "most blocks of a replica"})
    ImGui::TableSetupColumn(name);
  ImGui::TableHeadersRow();
  for (std::size_t i = 0; i < pools->keys.size(); ++i) {
    const auto number = [&](const char* key) {
      return run.number(fmt::format("pools.{}.{}", pools->keys[i], key));
    };
    const std::string cells[] = {
        pools->keys[i],
        count_text(number("devices")),
        count_text(number("instances")),
        count_text(number("iterations")),
        share_text(number("busy")),
        fmt::format("{:.2f}", number("rows_of_fullest_over_mean")),
        fmt::format("{} of {}", count_text(number("peak_blocks")), count_text(number("blocks")))};
    ImGui::TableNextRow();
    for (const std::string& cell : cells) {
      ImGui::TableNextColumn();
      ImGui::TextUnformatted(cell.c_str());
      explain(cell);
    }
  }
  ImGui::EndTable();
}

// Classes of requests, each against its own promise.
void classes(const App& app, const RunData& run) {
  const Value* classes = run.figure("classes");
  if (classes == nullptr || classes->kind != Value::Kind::kObject || classes->keys.empty()) return;
  if (!ImGui::BeginTable("classes", 6, ImGuiTableFlags_RowBg)) return;
  for (const char* name : {"class", "requests", "turned away", "slo attainment", "TTFT p99", "TPOT p99"})
    ImGui::TableSetupColumn(name);
  ImGui::TableHeadersRow();
  for (const std::string& name : classes->keys) {
    const auto number = [&](const char* key) { return run.number(fmt::format("classes.{}.{}", name, key)); };
    const auto against = [&](const char* key) {
      const double goal = number(fmt::format("goal.{}", key).c_str());
      const double value = number(fmt::format("{}.p99", key).c_str());
      ImGui::TableNextColumn();
      const std::string text =
          goal > 0 ? fmt::format("{} of {}", seconds_text(value), seconds_text(goal)) : seconds_text(value);
      const Colour colour = goal > 0 && value > goal ? app.theme.warning : app.theme.text;
      ImGui::TextColored(ImGui::ColorConvertU32ToFloat4(colour), "%s", text.c_str());
    };
    const bool promised = run.figure(fmt::format("classes.{}.goal", name)) != nullptr;
    ImGui::TableNextRow();
    for (const std::string& cell : {name, count_text(number("submitted")), count_text(number("turned_away")),
                                    promised ? share_text(number("slo_attainment")) : "-"}) {
      ImGui::TableNextColumn();
      ImGui::TextUnformatted(cell.c_str());
    }
    against("ttft_s");
    against("tpot_s");
  }
  ImGui::EndTable();
  ImGui::Spacing();
}

// Everything sampled but what has a screen of its own, one chart for each name.
bool over_time(App& app, const RunData& run) {
  std::set<std::string> names;
  for (const CounterTrack& track : run.counters) {
    const std::string& name = track.name();
    if (name != "memory" && !name.starts_with("wire ") && !name.starts_with("fault ")) names.insert(name);
  }
  for (const std::string& name : names) {
    LineChart chart;
    for (const CounterTrack& track : run.counters) {
      if (track.name() != name || chart.tracks.size() >= 16) continue;
      chart.tracks.push_back(&track);
      chart.names.push_back(class_name(run.tables(), track.rank_class()));
    }
    chart.window = {0, run.length()};
    chart.text = count_text;
    chart.height = ImGui::GetFontSize() * 8;
    ImGui::TextUnformatted(name.c_str());
    explain(name);
    line_chart(app.theme, chart);
  }
  return !names.empty();
}

}  // namespace

void serving_screen(App& app) {
  ImGui::BeginChild("serving");
  bool any = false;
  for (std::size_t i = 0; i < app.runs.size(); ++i) {
    const RunData& run = *app.runs[i];
    run_heading(app, i);
    report_trouble(app, run);
    if (run.figure("requests") == nullptr) continue;
    any = true;
    ImGui::PushID(static_cast<int>(i));
    headline(app, run);
    ImGui::Spacing();
    if (ImGui::BeginTable("latencies", 4)) {
      latency(app, run, "TTFT", "ttft_s", run.number("sla.ttft_s"));
      latency(app, run, "TPOT", "tpot_s", run.number("sla.tpot_s"));
      latency(app, run, "ITL", "itl_s", 0);
      latency(app, run, "end to end", "e2e_s", 0);
      ImGui::EndTable();
    }
    ImGui::Spacing();
    time_of_requests(app, run);
    ImGui::Spacing();
    pools(run);
    ImGui::Spacing();
    classes(app, run);
    if (!over_time(app, run)) ImGui::TextDisabled("Nothing was sampled over time in this run.");
    ImGui::PopID();
    ImGui::Separator();
  }
  if (!any)
    empty_state(app, "This run is not a service.",
                "Run a scenario of kind serving with --out, for instance scenarios/smoke/serve-apart.json.");
  ImGui::EndChild();
}

}  // namespace moebius::viz
