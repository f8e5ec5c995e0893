#include "workloads/scenario/popularity_keys.h"

#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "hw/error.h"
#include "workloads/calibration/csv.h"

namespace moebius {
namespace {

constexpr int kMostSteps = 1 << 20, kMostLayers = 1 << 12, kMostExperts = 1 << 16;
constexpr double kMostCells = 1 << 24;  // steps x layers x experts

struct Cell {
  int step = 0, layer = 0, expert = 0;
  auto operator<=>(const Cell&) const = default;
};

int index_of(const Csv& csv, const CsvRow& row, const char* column, int most, const std::string& path) {
  const double value = csv.number(row, column);
  if (value != std::floor(value) || value < 0 || value >= most) {
    throw input_error(fmt::format("{}:{}: {}: expected a whole number from 0 to {}, found {}", path, row.line,
                                  column, most - 1, csv.text(row, column)));
  }
  return static_cast<int>(value);
}

// What the file says, cell by cell.
std::map<Cell, double> cells_of(const Csv& csv, const std::string& path) {
  std::map<Cell, double> cells;
  for (const CsvRow& row : csv.rows()) {
    const Cell cell{index_of(csv, row, "step", kMostSteps, path),
                    index_of(csv, row, "layer", kMostLayers, path),
                    index_of(csv, row, "expert", kMostExperts, path)};
    const double tokens = csv.number(row, "tokens");
    if (tokens < 0)
      throw input_error(fmt::format("{}:{}: tokens: expected at least 0, found {}", path, row.line, tokens));
    if (!cells.try_emplace(cell, tokens).second) {
      throw input_error(fmt::format("{}:{}: expert {} of layer {} stands twice in step {}", path, row.line,
                                    cell.expert, cell.layer, cell.step));
    }
  }
  return cells;
}

void check_complete(const std::vector<std::map<int, std::vector<double>>>& counts,
                    const std::set<int>& layers, const std::string& path) {
  for (std::size_t step = 0; step < counts.size(); ++step) {
    for (const int layer : layers) {
      const auto found = counts[step].find(layer);
      double sum = 0;
      if (found != counts[step].end()) {
        for (const double tokens : found->second) sum += tokens;
      }
      if (sum == 0)
        throw input_error(
            fmt::format("{}: step {}: expected tokens in layer {}, found none", path, step, layer));
    }
  }
}

Popularity read_form(const Value& value, const Place& place) {
  constexpr const char* kExpected =
      "expected \"balanced\", {\"zipf\": EXPONENT}, {\"dirichlet\": CONCENTRATION} or {\"recorded\": FILE}";
  Popularity popularity;
  if (value.kind == Value::Kind::kString && value.text == "balanced") return popularity;
  if (value.kind != Value::Kind::kObject || value.keys.size() != 1)
    place.fail(fmt::format("{}, found {}", kExpected, value.excerpt()));
  Reader form(value, place);
  if (form.has("dirichlet")) {
    popularity.kind = PopularityKind::kDirichlet;
    popularity.concentration = form.number("dirichlet", {1e-3, 1e6});
  } else if (form.has("recorded")) {
    popularity.kind = PopularityKind::kRecorded;
    std::filesystem::path path = form.text("recorded");
    if (place.line != 0 && path.is_relative()) path = std::filesystem::path(place.file).parent_path() / path;
    popularity.recorded = read_recorded_loads(path.string());
  } else {
    popularity.kind = PopularityKind::kZipf;
    popularity.exponent = form.number("zipf", {0, 8});
  }
  form.finish();
  return popularity;
}

void read_course(Section& section, Popularity& popularity) {
  popularity.per_microbatch = section.boolean("per_microbatch", false, "a new draw for each microbatch");
  popularity.drift = section.number(
      "drift", {0, 10}, 0,
      "after each step the logarithm of each expert's weight moves by a normal number times this");
  popularity.balancing = section.number("balancing", {0, 10}, 0,
                                        "after each step the bias of experts over the mean falls by this, "
                                        "that of others rises (auxiliary-loss-free)");
  if (popularity.per_microbatch && popularity.kind == PopularityKind::kBalanced)
    section.place_of("per_microbatch")
        .fail("expected false with this popularity, found true: what is balanced is not drawn");
  const bool drawn =
      popularity.kind == PopularityKind::kZipf || popularity.kind == PopularityKind::kDirichlet;
  for (const char* key : {"drift", "balancing"}) {
    const double value = key[0] == 'd' ? popularity.drift : popularity.balancing;
    if (value > 0 && !drawn)
      section.place_of(key).fail(
          fmt::format("expected 0 with this popularity, found {}: only \"zipf\" and "
                      "\"dirichlet\" change from step to step by themselves",
                      value));
  }
}

}  // namespace

RecordedLoadsPtr read_recorded_loads(const std::string& path) {
  const Csv csv(path);
  for (const char* column : {"step", "layer", "expert", "tokens"}) {
    if (!csv.has(column))
      throw input_error(
          fmt::format("{}:1: expected columns step, layer, expert, tokens, found no {}", path, column));
  }
  const std::map<Cell, double> cells = cells_of(csv, path);
  if (cells.empty()) throw input_error(fmt::format("{}: expected rows of counts, found none", path));
  int experts = 0;
  std::set<int> layers;
  for (const auto& [cell, tokens] : cells)
    experts = std::max(experts, cell.expert + 1), layers.insert(cell.layer);
  const int steps = cells.rbegin()->first.step + 1;
  if (static_cast<double>(steps) * static_cast<double>(layers.size()) * experts > kMostCells) {
    throw input_error(fmt::format("{}: expected at most {} counts, found {} steps x {} layers x {} experts",
                                  path, kMostCells, steps, layers.size(), experts));
  }
  std::vector<std::map<int, std::vector<double>>> counts(steps);
  for (const auto& [cell, tokens] : cells) {
    std::vector<double>& row = counts[cell.step][cell.layer];
    row.resize(experts);
    row[cell.expert] = tokens;
  }
  check_complete(counts, layers, path);
  return std::make_shared<const RecordedLoads>(std::move(counts));
}

std::string problem_of(const Popularity& popularity, const Model& model) {
  if (popularity.kind != PopularityKind::kRecorded) return "";
  const RecordedLoads& recorded = *popularity.recorded;
  if (recorded.experts() > model.experts.routed)
    return fmt::format("expected counts of the {} experts of {}, found {}", model.experts.routed, model.id,
                       recorded.experts());
  for (int layer = 0; layer < model.layers + model.mtp_layers; ++layer) {
    if (model.is_moe_layer(layer) && !recorded.has(layer))
      return fmt::format("expected counts of layer {} of {}, found none", layer, model.id);
  }
  return "";
}

Popularity read_popularity_form(Section& section) {
  const DescriptionPtr form = description_of("",
                                             "\"balanced\", {\"zipf\": exponent}, {\"dirichlet\": "
                                             "concentration}, or {\"recorded\": CSV file of counts "
                                             "step,layer,expert,tokens}");
  set_keyword(form->keywords, "type", array_value({text_value("string"), text_value("object")}));
  set_keyword(form->keywords, "default", text_value("balanced"));
  const Value* value = section.value("popularity", false, form);
  return value == nullptr ? Popularity() : read_form(*value, section.place_of("popularity"));
}

Popularity read_popularity(Section section, bool steps) {
  Popularity popularity = read_popularity_form(section);
  if (steps) read_course(section, popularity);
  section.finish();
  return popularity;
}

}  // namespace moebius
