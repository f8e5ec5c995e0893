#include "workloads/shape_jobs.h"

#include <algorithm>

#include <fmt/format.h>

#include "hw/error.h"
#include "workloads/cluster/queue/queue_plan.h"
#include "workloads/scenario/extended_document.h"
#include "workloads/scenario/scenario_parts.h"

namespace moebius {

namespace {

// What it takes to read shapes later: catalogs are read again then, once.
struct ShapeSource {
  std::shared_ptr<const QueuePlan> plan;
  Value cluster;
  std::string data;
  std::unique_ptr<const Library> library = {};
};

Value& member(Value& object, std::string_view key) {
  const auto at = std::find(object.keys.begin(), object.keys.end(), key);
  CHECK(at != object.keys.end(), "a key that was read");
  return object.items[static_cast<std::size_t>(at - object.keys.begin())];
}

// The cluster as it stands in the file, with nodes of one pool alone.
std::string cluster_of(Value cluster, int pool, int nodes) {
  Value& pools = member(cluster, "pools");
  Value one = pools.items[pool];
  Value& count = member(one, "nodes");
  count = {};
  count.kind = Value::Kind::kInteger;
  count.integer = nodes;
  count.number = nodes;
  pools.items = {one};
  return "/cluster=" + to_json(cluster);
}

// On a part of a node, of a plan that is that of a whole one.
int replicas_on_part(const std::string& file, int replicas, int cards, int of_node) {
  const int degree = replicas * cards / of_node;
  if (degree * of_node != replicas * cards || degree == 0)
    throw input_error(
        fmt::format("{}: {} replicas on {} cards do not go onto {}", file, replicas, of_node, cards));
  return degree;
}

// What else is set of a scenario that was read on whole nodes, so that its plan is one of all cards and no
// others: a job holds them all. Of services of requests that arrive nothing: these are no shapes.
std::vector<std::string> sets_on(const Scenario& scenario, int cards, int of_node) {
  if (!scenario.service.phases.empty()) return {};
  const bool trains = scenario.kind == ScenarioKind::kTraining;
  const int devices = trains ? scenario.plan.ranks() : scenario.serving.devices();
  if (devices == cards) return {};
  if (cards >= of_node || devices != of_node)
    throw input_error(fmt::format("{}: its plan is one of {} devices", scenario.file, devices));
  const int degree =
      replicas_on_part(scenario.file, trains ? scenario.plan.dp : scenario.serving.dp, cards, of_node);
  return {fmt::format("{}={}", trains ? "/plan/dp/degree" : "/plan/decode/attention/dp", degree)};
}

std::unique_ptr<Job> read_shape(ShapeSource& source, int shape, int pool, int cards) {
  if (!source.library) source.library = std::make_unique<const Library>(source.data);
  const std::string& file = source.plan->shapes[shape].scenario;
  const int of_node = source.plan->pools[pool].cards;
  const auto read = [&](std::vector<std::string> sets) {
    sets.insert(sets.begin(), cluster_of(source.cluster, pool, std::max(1, cards / of_node)));
    return read_job(file, {.sets = std::move(sets), .seed = {}}, *source.library);
  };
  Job job = read({});
  if (!job.training && !job.serving)
    throw input_error(fmt::format("{}: expected training, or serving of a batch, found {}", file,
                                  to_string(job.scenario.kind)));
  std::vector<std::string> sets = sets_on(job.scenario, cards, of_node);
  if (!sets.empty()) job = read(std::move(sets));
  job.scenario.timeline.detail = Detail::kNone;
  job.is_phase = true;
  // Steps by closed forms: what neighbours cost comes on top (shared_links.h).
  job.as_if_alone = true;
  for (JobPhase& phase : job.phases) phase.job->as_if_alone = true;
  require_fit(job);
  return std::make_unique<Job>(std::move(job));
}

// What stands in the file of a shape, on so many cards of a pool.
Scenario scenario_on(const Document& document, const Value& cluster, const CardPool& of, int pool, int cards,
                     const Library& library) {
  const auto read = [&](std::vector<std::string> sets) {
    Document changed = document;
    sets.insert(sets.begin(), cluster_of(cluster, pool, std::max(1, cards / of.cards)));
    apply({.sets = std::move(sets), .seed = {}}, changed);
    return read_scenario(changed, library.hardware, library.models);
  };
  Scenario scenario = read({});
  std::vector<std::string> sets = sets_on(scenario, cards, of.cards);
  return sets.empty() ? scenario : read(std::move(sets));
}

// Nothing, and why, where no pool of the shape takes it.
std::optional<Scenario> scenario_on_any(const Document& of_shape, const Value& cluster, const QueuePlan& plan,
                                        const JobShape& shape, int cards, const Library& library,
                                        std::string& why) {
  for (const int pool : shape.pools) {
    const CardPool& of = plan.pools[pool];
    if (!of.stands_whole(cards) || cards > of.own_cards()) continue;
    try {
      return scenario_on(of_shape, cluster, of, pool, cards, library);
    } catch (const Error& error) {
      if (why.empty()) why = error.what();
    }
  }
  return std::nullopt;
}

Document document_of(const JobShape& shape, const Place& place) {
  try {
    return load_scenario(shape.scenario);
  } catch (const Error& error) {
    place.fail(error.what());
  }
}

void check_kind(const JobShape& shape, const Document& of_shape, const Place& place) {
  const std::string_view wanted = shape.kind == JobClass::kInference ? "serving" : "training";
  const Value* kind = of_shape.root.kind == Value::Kind::kObject ? of_shape.root.find("kind") : nullptr;
  if (kind != nullptr && kind->text != wanted)
    place.fail(fmt::format("expected a scenario of kind \"{}\" for class \"{}\", found \"{}\"", wanted,
                           to_string(shape.kind), kind->text));
}

void check_scenario(const JobShape& shape, const Scenario& scenario, const Place& place, const Place& model) {
  if (!scenario.service.phases.empty() && !scenario.service.full_steps)
    place.fail("expected serving of a batch, found a service of requests that arrive");
  // The scenario may have changed parts of it, or have it from elsewhere under another name.
  const std::string& id = scenario.model.id;
  if (id != shape.model && id != shape.model + " (changed)" &&
      count_parameters(scenario.model).total() != shape.parameters)
    model.fail(
        fmt::format("expected \"{}\", the model of {}, found \"{}\"", id, shape.scenario, shape.model));
}

}  // namespace

void check_shapes(const Document& document, const Scenario& scenario, const Library& library) {
  const QueuePlan& plan = *scenario.operations->queueing;
  const Value& cluster = *document.root.find("cluster");
  for (std::size_t s = 0; s < plan.shapes.size(); ++s) {
    const JobShape& shape = plan.shapes[s];
    const auto place = [&](const char* key) {
      return place_at(document, fmt::format("/queueing/shapes/{}/{}", s, key));
    };
    const Document of_shape = document_of(shape, place("scenario"));
    check_kind(shape, of_shape, place("scenario"));
    for (const int cards : shape.sizes) {
      std::string why;
      const auto alone = scenario_on_any(of_shape, cluster, plan, shape, cards, library, why);
      if (!alone) place("scenario").fail(fmt::format("on {} cards: {}", cards, why));
      check_scenario(shape, *alone, place("scenario"), place("model"));
    }
  }
}

std::function<std::unique_ptr<Job>(int, int, int)> shape_reader(const Document& document,
                                                                const Scenario& scenario,
                                                                const Library& library) {
  const auto source = std::make_shared<ShapeSource>();
  source->plan = scenario.operations->queueing;
  source->cluster = *document.root.find("cluster");
  source->data = library.data;
  return [source](int shape, int pool, int cards) { return read_shape(*source, shape, pool, cards); };
}

}  // namespace moebius
