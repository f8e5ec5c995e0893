#include "viz/page/figures.h"

#include <array>
#include <cmath>

#include <fmt/format.h>

#include "hw/error.h"
#include "hw/units.h"
#include "workloads/report/number_text.h"
#include "workloads/report/run_directory.h"

namespace moebius::viz {

namespace {

// Of all time or all nodes; their names do not say so.
constexpr std::array<std::string_view, 8> kSharesOfCluster{
    "effective_time",  "cluster.allocation", "cluster.attainable",      "cluster.utilisation",
    "cluster.offered", "cluster.borrowed",   "cluster.nodes_in_repair", "cluster.missing_replicas"};
constexpr std::size_t kMostItems = 64;  // of an array, among all figures

bool is_number(const Value& value) {
  return value.kind == Value::Kind::kInteger || value.kind == Value::Kind::kNumber;
}

void collect(const Value& value, const std::string& path,
             std::vector<std::pair<std::string, std::string>>& all) {
  const bool object = value.kind == Value::Kind::kObject;
  if (!object && value.kind != Value::Kind::kArray) {
    all.emplace_back(path, value.kind == Value::Kind::kString ? value.text : to_json(value));
    return;
  }
  const std::size_t shown = object ? value.items.size() : std::min(value.items.size(), kMostItems);
  for (std::size_t i = 0; i < shown; ++i) {
    const std::string step = object ? value.keys[i] : std::to_string(i);
    collect(value.items[i], path.empty() ? step : path + "." + step, all);
  }
  if (shown < value.items.size())
    all.emplace_back(path, fmt::format("and {} more", value.items.size() - shown));
}

bool ends(std::string_view path, std::string_view with) {
  return path.size() >= with.size() && path.substr(path.size() - with.size()) == with;
}

}  // namespace

Figures::Figures(const std::string& directory) : report_(load_report(directory + "/report.json")) {}

const Value* Figures::value(std::string_view path) const {
  const Value* at = &report_.root;
  while (!path.empty() && at != nullptr) {
    const std::size_t dot = path.find('.');
    at = at->kind == Value::Kind::kObject ? at->find(path.substr(0, dot)) : nullptr;
    path = dot == std::string_view::npos ? std::string_view() : path.substr(dot + 1);
  }
  return at;
}

std::optional<double> Figures::number(std::string_view path) const {
  const Value* found = value(path);
  if (found == nullptr || !is_number(*found)) return std::nullopt;
  return found->number;
}

std::string Figures::text(std::string_view path) const {
  const Value* found = value(path);
  return found != nullptr && found->kind == Value::Kind::kString ? found->text : "";
}

std::vector<std::pair<std::string, double>> Figures::numbers_in(std::string_view path) const {
  std::vector<std::pair<std::string, double>> numbers;
  const Value* object = value(path);
  if (object == nullptr || object->kind != Value::Kind::kObject) return numbers;
  for (std::size_t i = 0; i < object->items.size(); ++i) {
    if (is_number(object->items[i])) numbers.emplace_back(object->keys[i], object->items[i].number);
  }
  return numbers;
}

std::vector<std::pair<std::string, std::string>> Figures::all() const {
  std::vector<std::pair<std::string, std::string>> all;
  collect(report_.root, "", all);
  return all;
}

std::string shown(std::string_view path, double value) {
  for (const std::string_view last : {".mean", ".p5", ".p50", ".p90", ".p95", ".p99", ".max", ".min"}) {
    if (ends(path, last)) path.remove_suffix(last.size());
  }
  if (ends(path, "tokens_per_s_per_device") || ends(path, "tokens_per_s"))
    return grouped(std::llround(value)) + " /s";
  if (ends(path, "_bytes_per_s")) return to_text(ByteRate{value});
  if (ends(path, "_bytes") || ends(path, "_bytes_per_device")) return to_text(Bytes{value});
  if (ends(path, "_s")) return seconds_text(value);
  if (ends(path, "mfu") || ends(path, "_share") || ends(path, "attainment") || ends(path, "busy"))
    return fmt::format("{:.1f}%", 100 * value);
  if (ends(path, "energy_j")) return amount_text(value / 3.6e9) + " MWh";
  if (ends(path, "joules")) return amount_text(value / 1e6) + " MJ";
  if (ends(path, "joules_per_output_token")) return fmt::format("{:.4g} J", value);
  if (ends(path, "cost_usd")) return grouped(std::llround(value)) + " USD";
  if (path.substr(path.rfind('.') + 1).starts_with("usd")) return amount_text(value) + " USD";
  for (const std::string_view share : kSharesOfCluster) {
    if (ends(path, share)) return fmt::format("{:.2f}%", 100 * value);
  }
  if (value == std::floor(value) && std::abs(value) < 1e15) return grouped(static_cast<std::int64_t>(value));
  return figure_text(value);
}

}  // namespace moebius::viz
