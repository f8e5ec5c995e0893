#include "workloads/shape_jobs.h"

#include <algorithm>

#include <fmt/format.h>

#include "hw/error.h"
#include "workloads/cluster/queue/queue_plan.h"

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
std::string cluster_of(const ShapeSource& source, int pool, int nodes) {
  Value cluster = source.cluster;
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

std::unique_ptr<Job> read_shape(ShapeSource& source, int shape, int pool, int cards) {
  if (!source.library) source.library = std::make_unique<const Library>(source.data);
  const std::string& file = source.plan->shapes[shape].scenario;
  const int of_node = source.plan->pools[pool].cards;
  const auto read = [&](int nodes, std::vector<std::string> sets) {
    sets.insert(sets.begin(), cluster_of(source, pool, nodes));
    return read_job(file, {.sets = std::move(sets), .seed = {}}, *source.library);
  };
  Job job = read(std::max(1, cards / of_node), {});
  if (!job.training && !job.serving)
    throw input_error(fmt::format("{}: expected training, or serving of a batch, found {}", file,
                                  to_string(job.scenario.kind)));
  if (job.training && cards < of_node) {
    const int degree = job.scenario.plan.dp * cards / of_node;
    if (degree * of_node != job.scenario.plan.dp * cards || degree == 0)
      throw run_error(fmt::format("{}: {} replicas on {} cards do not go onto {}", file, job.scenario.plan.dp,
                                  of_node, cards));
    job = read(1, {fmt::format("/plan/dp/degree={}", degree)});
  }
  job.scenario.timeline.detail = Detail::kNone;
  job.is_phase = true;
  require_fit(job);
  return std::make_unique<Job>(std::move(job));
}

}  // namespace

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
