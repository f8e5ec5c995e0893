// Experts: how uneven their loads are, layer by layer and step by step.
#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <map>
#include <set>

#include "viz/data/op_names.h"
#include "viz/ui/app.h"
#include "viz/ui/chart.h"

namespace moebius::viz {
namespace {

struct Loads {
  std::vector<int> layers;
  std::vector<int> steps;
  std::map<std::pair<int, int>, std::pair<double, double>> busiest;  // (layer, step): expert, rank over mean
  double most = 1;
};

Loads loads_of(const RunData& run) {
  Loads loads;
  const Value* rows = run.figure("experts.layers");
  if (rows == nullptr) return loads;
  std::set<int> layers, steps;
  const auto number = [](const Value& row, const char* key) {
    const Value* value = row.kind == Value::Kind::kObject ? row.find(key) : nullptr;
    return value == nullptr ? 0 : value->number;
  };
  for (const Value& row : rows->items) {
    const int layer = static_cast<int>(number(row, "layer")), step = static_cast<int>(number(row, "step"));
    layers.insert(layer), steps.insert(step);
    const double expert = number(row, "busiest_expert"), rank = number(row, "busiest_rank");
    loads.busiest[{layer, step}] = {expert, rank};
    loads.most = std::max({loads.most, expert, rank});
  }
  loads.layers.assign(layers.begin(), layers.end());
  loads.steps.assign(steps.begin(), steps.end());
  return loads;
}

// One step: two bars a layer. Several: layer by step, coloured by the busiest expert.
void draw(App& app, const Loads& loads) {
  if (loads.steps.size() == 1) {
    Bars chart;
    chart.text = [](double value) { return fmt::format("{:.2f}", value); };
    for (const int layer : loads.layers) {
      const auto& [expert, rank] = loads.busiest.at({layer, loads.steps.front()});
      chart.rows.push_back({fmt::format("layer {}", layer), expert, app.theme.series(0)});
      chart.second.push_back({fmt::format("layer {}", layer), rank, app.theme.series(1)});
    }
    ImGui::TextUnformatted(
        "Tokens over the mean: blue the busiest expert, orange the busiest rank of the expert group");
    explain("busiest expert");
    bars(app.theme, chart);
    return;
  }
  ImGui::TextUnformatted("The busiest expert's tokens over the mean: layers down, steps across");
  explain("busiest expert");
  std::vector<std::vector<double>> shares;
  Heat heat;
  heat.row_height = std::floor(ImGui::GetFontSize() + 2);
  shares.reserve(loads.layers.size());
  for (const int layer : loads.layers) {
    std::vector<double> row;
    for (const int step : loads.steps) {
      const auto found = loads.busiest.find({layer, step});
      row.push_back(
          found == loads.busiest.end() ? 0 : (found->second.first - 1) / std::max(loads.most - 1, 1e-9));
    }
    shares.push_back(std::move(row));
    heat.rows.push_back(fmt::format("layer {}", layer));
    heat.values.push_back(&shares.back());
  }
  heat.tooltip = [&](std::size_t r, std::size_t c) {
    const auto found = loads.busiest.find({loads.layers[r], loads.steps[c]});
    if (found == loads.busiest.end()) return std::string("not in this step");
    return fmt::format("layer {}, step {}: busiest expert {:.2f}, busiest rank {:.2f} times the mean",
                       loads.layers[r], loads.steps[c], found->second.first, found->second.second);
  };
  std::size_t row = 0, column = 0;
  heat_chart(app.theme, heat, row, column);
}

// Moments at which a pool's experts were placed anew, in ns.
std::vector<double> placements(const Value& pool) {
  std::vector<double> moments;
  const Value* placed = pool.find("placements");
  if (placed == nullptr || placed->kind != Value::Kind::kObject) return moments;
  for (const Value& each : placed->items)
    if (const Value* at = each.kind == Value::Kind::kObject ? each.find("at_s") : nullptr)
      moments.push_back(at->number * 1e9);
  return moments;
}

void busiest(const App& app, const Value& pool) {
  const Value* layers = pool.find("busiest_expert_over_mean");
  if (layers == nullptr || layers->kind != Value::Kind::kObject) return;
  Bars chart;
  chart.text = [](double value) { return fmt::format("{:.2f}", value); };
  for (std::size_t i = 0; i < layers->keys.size(); ++i)
    chart.rows.push_back(
        {fmt::format("layer {}", layers->keys[i]), layers->items[i].number, app.theme.series(0)});
  ImGui::TextUnformatted("Tokens of each layer's busiest expert over the mean");
  explain("busiest expert");
  bars(app.theme, chart);
}

// How even the ranks' loads were over time, with the moments of rebalances.
void course(App& app, const RunData& run, const std::string& name, const Value& pool) {
  LineChart chart;
  for (const CounterTrack& track : run.counters) {
    const std::string of = class_name(run.tables(), track.rank_class());
    if (track.name() != "balancedness" || (of != name && !of.starts_with(name + ","))) continue;
    chart.tracks.push_back(&track);
    chart.names.push_back(of);
  }
  if (chart.tracks.empty()) return;
  chart.window = {0, run.length()};
  chart.marks = placements(pool);
  chart.text = [](double value) { return fmt::format("{:.3f}", value); };
  chart.height = ImGui::GetFontSize() * 8;
  ImGui::TextUnformatted("Balancedness of ranks (mean over fullest); a line where experts were placed anew");
  explain("rebalance");
  line_chart(app.theme, chart);
}

// Of a service whose experts stand in slots: pool by pool.
void balancing(App& app, const RunData& run) {
  const Value* eplb = run.figure("eplb");
  if (eplb == nullptr || eplb->kind != Value::Kind::kObject) return;
  for (std::size_t i = 0; i < eplb->keys.size(); ++i) {
    const Value& pool = eplb->items[i];
    if (pool.kind != Value::Kind::kObject) continue;
    const auto number = [&](const char* key) {
      const Value* value = pool.find(key);
      return value == nullptr ? 0 : value->number;
    };
    ImGui::Text("%s: balancedness %.3f, placed anew %.0f times, %.0f experts moved, %s",
                eplb->keys[i].c_str(), number("balancedness"), number("rebalances"), number("moved_experts"),
                bytes_text(number("moved_bytes")).c_str());
    explain("rebalance");
    course(app, run, eplb->keys[i], pool);
    busiest(app, pool);
  }
}

}  // namespace

void experts_screen(App& app) {
  ImGui::BeginChild("experts");
  bool any = false;
  for (std::size_t i = 0; i < app.runs.size(); ++i) {
    const RunData& run = *app.runs[i];
    run_heading(app, i);
    report_trouble(app, run);
    const Loads loads = loads_of(run);
    ImGui::PushID(static_cast<int>(i));
    if (!loads.busiest.empty()) {
      any = true;
      draw(app, loads);
    }
    any = any || run.figure("eplb") != nullptr;
    balancing(app, run);
    ImGui::PopID();
    ImGui::Separator();
  }
  if (!any)
    empty_state(app, "The experts of this run are equally loaded, or it has none.",
                "Make them uneven with --set '/workload/experts/popularity={\"zipf\": 1.0}'.");
  ImGui::EndChild();
}

}  // namespace moebius::viz
