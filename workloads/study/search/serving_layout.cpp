#include "workloads/study/search/serving_layout.h"

#include <algorithm>

#include <fmt/format.h>

#include "workloads/scenario/engine_keys.h"
#include "workloads/study/search/document_changes.h"

namespace moebius {
namespace {

constexpr const char* kSeparation = "/plan/separation";
constexpr const char* kTransfer = "/plan/transfer";
constexpr const char* kScheduler = "/plan/scheduler";
constexpr const char* kFirstNodes = "/cluster/pools/0/nodes";

// What of two pools differs, if anything, their names and sizes do.
std::string kind_of_pool(const Value& pool) {
  Document alone{"", pool};
  set_at_pointer(alone, "/name", "\"\"");
  set_at_pointer(alone, "/nodes", "1");
  return one_line(alone.root);
}

bool may_be_split(const Document& base, const Scenario& scenario) {
  const ServicePlan& service = scenario.service;
  const Value* pools = value_at(base.root, "/cluster/pools");
  if (pools == nullptr || pools->kind != Value::Kind::kArray) return false;
  for (const Value& pool : pools->items)
    if (kind_of_pool(pool) != kind_of_pool(pools->items.front())) return false;
  for (const ClassKeys& of : service.class_keys)
    if (!of.pools.empty()) return false;
  return service.pools.empty() && service.does == PoolRole::kBoth && !service.encoder.apart;
}

std::string part_text(const std::string& name, int nodes) {
  return fmt::format("{} {} node{}", name, nodes, nodes == 1 ? "" : "s");
}

ServingLayout own_layout(const Scenario& scenario) {
  const ServicePlan& service = scenario.service;
  ServingLayout layout;
  for (std::size_t i = 0; i < service.phases.size(); ++i) {
    const ServicePhase& phase = service.phases[i];
    const Pool& pool = scenario.cluster->pools[phase.pool];
    PoolSeat seat{.pointer = phase.role == PoolRole::kPrefill ? "/plan/prefill" : "/plan/decode",
                  .role = phase.role,
                  .pool = pool.name,
                  .expert_pool = {},
                  .devices = pool.devices(),
                  .node = pool.node.accelerators};
    if (!service.pools.empty()) seat.pointer = fmt::format("/plan/pools/{}", i);
    if (phase.expert_pool >= 0) {
      const Pool& experts = scenario.cluster->pools[phase.expert_pool];
      seat.expert_pool = experts.name;
      seat.expert_devices = experts.devices();
    }
    layout.name += (i == 0 ? "" : ", ") + part_text(seat.pool, pool.nodes);
    if (phase.expert_pool >= 0)
      layout.name += ", " + part_text(seat.expert_pool, scenario.cluster->pools[phase.expert_pool].nodes);
    layout.seats.push_back(std::move(seat));
  }
  return layout;
}

// Pools of one kind by name and number of nodes, on which layouts are made.
struct Part {
  const char* name;
  int nodes;
};

class LayoutMaker {
 public:
  LayoutMaker(const Document& base, const Scenario& scenario)
      : pool_(*value_at(base.root, "/cluster/pools/0")),
        hands_over_(value_at(base.root, kTransfer) != nullptr),
        scheduler_(value_at(base.root, kScheduler)),
        node_(scenario.cluster->pools[0].node.accelerators) {}

  ServingLayout together(int nodes) const {
    ServingLayout layout = on({{"serve", nodes}}, false, false);
    layout.seats = {{"/plan/decode", PoolRole::kBoth, "serve", "", nodes * node_, node_}};
    return layout;
  }

  ServingLayout phases_apart(int first, int second) const {
    ServingLayout layout = on({{"prefill", first}, {"decode", second}}, true, false);
    layout.seats = {{"/plan/prefill", PoolRole::kPrefill, "prefill", "", first * node_, node_},
                    {"/plan/decode", PoolRole::kDecode, "decode", "", second * node_, node_}};
    return layout;
  }

  ServingLayout experts_apart(int first, int second) const {
    ServingLayout layout = on({{"attention", first}, {"experts", second}}, false, true);
    layout.seats = {
        {"/plan/decode", PoolRole::kBoth, "attention", "experts", first * node_, node_, second * node_}};
    return layout;
  }

 private:
  ServingLayout on(const std::vector<Part>& parts, bool phases, bool experts) const {
    ServingLayout layout;
    std::string pools;
    for (const Part& part : parts) {
      Document pool{"", pool_};
      set_at_pointer(pool, "/name", fmt::format("\"{}\"", part.name));
      set_at_pointer(pool, "/nodes", std::to_string(part.nodes));
      pools += (pools.empty() ? "[" : ", ") + one_line(pool.root);
      layout.name += (layout.name.empty() ? "" : ", ") + part_text(part.name, part.nodes);
    }
    layout.settings = {
        {"/cluster/pools", pools + "]"},
        {kSeparation, fmt::format(R"({{"prefill_decode": {}, "attention_ffn": {}}})", phases, experts)}};
    if (hands_over_ && !phases) layout.settings.push_back({kTransfer, "{}"});
    if (scheduler_ != nullptr && phases) layout.settings.push_back({kScheduler, without_joining()});
    return layout;
  }

  // Prompts join nobody who decodes where these are apart.
  std::string without_joining() const {
    Value rest = *scheduler_;
    drop_joining_keys(rest);
    return one_line(rest);
  }

  const Value& pool_;
  bool hands_over_;         // the plan says how caches move
  const Value* scheduler_;  // null: the plan says nothing of it
  int node_;
};

bool alike(const ServingLayout& a, const ServingLayout& b) {
  return std::equal(a.seats.begin(), a.seats.end(), b.seats.begin(), b.seats.end(),
                    [](const PoolSeat& x, const PoolSeat& y) {
                      return x.role == y.role && x.devices == y.devices &&
                             x.expert_devices == y.expert_devices;
                    });
}

std::vector<int> node_counts(const Scenario& scenario, bool fewer) {
  int nodes = 0;
  for (const Pool& pool : scenario.cluster->pools) nodes += pool.nodes;
  std::vector<int> counts{nodes};
  while (fewer && counts.back() > 1) counts.push_back(counts.back() / 2);
  return counts;
}

bool says(const std::string& value, const char* key) {
  return value.find(fmt::format("\"{}\": true", key)) != std::string::npos;
}

bool accepted(const ServingLayout& layout, const SpaceFile& given) {
  const PoolSeat& first = layout.seats.front();
  const bool phases = layout.seats.size() > 1, experts = !first.expert_pool.empty();
  if (const StudyAxis* axis = given.find(kSeparation)) {
    if (std::none_of(axis->values.begin(), axis->values.end(), [&](const std::string& value) {
          return says(value, "prefill_decode") == phases && says(value, "attention_ffn") == experts;
        }))
      return false;
  }
  const StudyAxis* axis = given.find(kFirstNodes);
  if (axis == nullptr) return true;
  const std::vector<int> nodes = given.numbers(*axis);
  return std::find(nodes.begin(), nodes.end(), first.devices / first.node) != nodes.end();
}

}  // namespace

int ServingLayout::devices() const {
  int sum = 0;
  for (const PoolSeat& seat : seats) sum += seat.devices + seat.expert_devices;
  return sum;
}

bool is_of_layout(const std::string& pointer) {
  return pointer == kSeparation || pointer == kFirstNodes;
}

std::vector<ServingLayout> serving_layouts(const Document& base, const Scenario& scenario,
                                           const SpaceFile& given, bool fewer) {
  std::vector<ServingLayout> layouts{own_layout(scenario)};
  if (may_be_split(base, scenario)) {
    const LayoutMaker maker(base, scenario);
    const auto add = [&](ServingLayout layout) {
      if (!alike(layout, layouts.front())) layouts.push_back(std::move(layout));
    };
    for (const int nodes : node_counts(scenario, fewer)) {
      add(maker.together(nodes));
      const int step = (nodes + kMostSplits - 1) / kMostSplits;
      for (int first = step; first < nodes; first += step) add(maker.phases_apart(first, nodes - first));
      for (int first = step; first < nodes && scenario.model.experts.routed > 0; first += step)
        add(maker.experts_apart(first, nodes - first));
    }
  }
  std::erase_if(layouts, [&](const ServingLayout& layout) { return !accepted(layout, given); });
  return layouts;
}

}  // namespace moebius
