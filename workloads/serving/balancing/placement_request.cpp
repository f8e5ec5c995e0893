#include "workloads/serving/balancing/placement_request.h"

#include <cmath>

#include <fmt/format.h>

#include "hw/reader.h"

namespace moebius {
namespace {

constexpr double kMostNumber = 1 << 20;       // of experts, slots, devices
constexpr double kLargestLoad = 1e30;         // sums of a million of them are still numbers of 32 bits
constexpr std::int64_t kMostSlots = 1 << 24;  // of all layers

double load_of(const Value& value, const Place& place) {
  const bool number = value.kind == Value::Kind::kInteger || value.kind == Value::Kind::kNumber;
  if (!number || !(value.number >= 0) || value.number > kLargestLoad)
    place.fail(fmt::format("expected a load from 0 to {:g}, found {}", kLargestLoad, value.excerpt()));
  return value.number;
}

std::vector<double> read_layer(const Value& row, const Place& place) {
  if (row.kind != Value::Kind::kArray)
    place.fail(fmt::format("expected the loads of a layer's experts, found {}", row.excerpt()));
  if (row.items.empty()) place.fail("expected the loads of at least one expert, found none");
  std::vector<double> loads;
  for (std::size_t i = 0; i < row.items.size(); ++i)
    loads.push_back(
        load_of(row.items[i], {place.file, fmt::format("{}/{}", place.pointer, i), row.items[i].line}));
  return loads;
}

std::vector<std::vector<double>> read_loads(const Value& weights, const Place& place) {
  if (weights.kind != Value::Kind::kArray)
    place.fail(fmt::format("expected an array with the loads of each layer, found {}", weights.excerpt()));
  if (weights.items.empty()) place.fail("expected the loads of at least one layer, found none");
  std::vector<std::vector<double>> loads;
  for (std::size_t i = 0; i < weights.items.size(); ++i) {
    const Place row{place.file, fmt::format("{}/{}", place.pointer, i), weights.items[i].line};
    loads.push_back(read_layer(weights.items[i], row));
    if (loads.back().size() != loads.front().size())
      row.fail(fmt::format("expected {} experts as in the first layer, found {}", loads.front().size(),
                           loads.back().size()));
  }
  return loads;
}

}  // namespace

PlacementRequest read_placement_request(const Document& document) {
  Reader reader(document);
  PlacementRequest request;
  request.loads = read_loads(reader.value("weights"), reader.place_of("weights"));
  const auto number = [&](const char* key) {
    return static_cast<std::int32_t>(reader.integer(key, {1, kMostNumber}));
  };
  request.shape = {.experts = static_cast<std::int32_t>(request.loads.front().size()),
                   .replicas = number("num_replicas"),
                   .groups = number("num_groups"),
                   .nodes = number("num_nodes"),
                   .gpus = number("num_gpus")};
  reader.finish();
  const ShapeProblem problem = problem_of(request.shape);
  if (!problem.sentence.empty()) reader.place_of(problem.key).fail(problem.sentence);
  const std::int64_t layers = static_cast<std::int64_t>(request.loads.size());
  if (layers * request.shape.replicas > kMostSlots)
    reader.place_of("num_replicas")
        .fail(fmt::format("{} layers of {} slots: expected at most {} slots in all", layers,
                          request.shape.replicas, kMostSlots));
  return request;
}

PlacedLayers place_layers(PlacementRequest request) {
  PlacedLayers placed{std::move(request), {}};
  for (const std::vector<double>& loads : placed.request.loads)
    placed.layers.push_back(place_experts(loads, placed.request.shape));
  return placed;
}

std::vector<double> PlacedLayers::gpu_loads(std::size_t layer) const {
  return load_of_gpus(request.loads[layer], layers[layer], request.shape.gpus);
}

std::vector<double> PlacedLayers::gpu_loads_before(std::size_t layer) const {
  const std::vector<double>& loads = request.loads[layer];
  const std::size_t gpus = request.shape.gpus;
  if (loads.size() % gpus != 0) return {};
  std::vector<double> sums(gpus, 0.0);
  for (std::size_t i = 0; i < loads.size(); ++i) sums[i / (loads.size() / gpus)] += loads[i];
  return sums;
}

}  // namespace moebius
