#include "workloads/scenario/queueing_keys.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "hw/error.h"
#include "workloads/cluster/queue/card_map.h"
#include "workloads/cluster/queue/queue_plan.h"
#include "workloads/scenario/named_files.h"
#include "workloads/scenario/new_names.h"
#include "workloads/scenario/scenario_parts.h"

namespace moebius {

namespace {

constexpr double kMostCards = 1 << 20;

constexpr std::array kClasses{
    Named<JobClass>{"training", JobClass::kTraining, "pre-training"},
    Named<JobClass>{"sft", JobClass::kFineTuning, "supervised fine-tuning"},
    Named<JobClass>{"rl", JobClass::kReinforcement, "reinforcement learning"},
    Named<JobClass>{"inference", JobClass::kInference, "a service whose replicas follow the hour"},
};
constexpr std::array kPartitions{
    Named<PartitionRule>{"static", PartitionRule::kStatic, "a queue has its quota and nothing else"},
    Named<PartitionRule>{"borrow", PartitionRule::kBorrow,
                         "idle quota is lent, and taken back by preemption when its queue asks"},
};
constexpr std::array kBackfills{
    Named<BackfillRule>{"none", BackfillRule::kNone, "nobody of a queue passes the first who does not fit"},
    Named<BackfillRule>{"easy", BackfillRule::kEasy,
                        "those who do not delay the first who waits, by stated lengths (Lifka 1995)"},
    Named<BackfillRule>{"conservative", BackfillRule::kConservative,
                        "those who delay nobody who waits before them"},
};
constexpr std::array kPlacements{
    Named<PlacementRule>{"first", PlacementRule::kFirst, "free nodes in their order"},
    Named<PlacementRule>{"spread", PlacementRule::kSpread, "nodes from the emptiest leaves"},
    Named<PlacementRule>{"packed", PlacementRule::kPacked,
                         "the fewest leaves, of those the fullest; small jobs on the fullest nodes"},
};
constexpr std::array kChips{
    Named<ChipRule>{"first", ChipRule::kFirst, "pools in the order of the shape"},
    Named<ChipRule>{"fastest", ChipRule::kFastest, "where its step is shortest"},
    Named<ChipRule>{
        "cheapest", ChipRule::kCheapest,
        "where a step costs least: price a card and hour x cards x time, by power where no price is known"},
};

std::vector<std::string> read_names(Section& row, std::string_view key, std::string_view help) {
  const DescriptionPtr form = description_of("array", help);
  form->items = description_of("string", "");
  std::vector<std::string> names;
  const Value* value = row.value(key, false, form);
  if (value == nullptr) return names;
  const bool array = value->kind == Value::Kind::kArray;
  for (std::size_t i = 0; array && i < value->items.size(); ++i) {
    if (value->items[i].kind == Value::Kind::kString) names.push_back(value->items[i].text);
  }
  if (!array || names.empty() || names.size() != value->items.size())
    row.place_of(key).fail("expected an array of names");
  return names;
}

int index_of(const std::string& name, const std::vector<std::string>& known, const Place& place,
             std::string_view noun) {
  const auto at = std::find(known.begin(), known.end(), name);
  if (at == known.end())
    place.fail(fmt::format("expected the name of {}, found \"{}\"{}", noun, name, suggestion(name, known)));
  return static_cast<int>(at - known.begin());
}

JobQueue read_queue(Section& row) {
  JobQueue queue;
  queue.name = row.text("name", std::nullopt, "for people");
  queue.quota = row.number("quota", {0, 1}, std::nullopt, "share of every pool that it gets when it asks");
  queue.priority =
      static_cast<int>(row.integer("priority", {-1000, 1000}, 0, "higher: served first, taken from last"));
  queue.network = static_cast<int>(
      row.integer("network_queue", {0, 7}, 0, "of its traffic on links that jobs share; higher goes first"));
  row.finish();
  return queue;
}

void read_state(Section& row, const ModelCatalog* models, JobShape& shape) {
  const double bytes = row.number("bytes_per_parameter", {0, 64}, 14,
                                  "of a checkpoint: BF16 weights, FP32 master weights and two moments; of a "
                                  "service: the weights that a replica loads");
  const std::string model = row.text("model", "", "a name of `moebius list models`: the size of its state");
  if (models == nullptr) return;
  if (model.empty()) row.place_of("model").fail("expected the name of a model, found none");
  Value name;
  name.kind = Value::Kind::kString;
  name.text = model;
  const Model& of = models->model(name, row.place_of("model"));
  shape.model = of.id;
  shape.parameters = count_parameters(of).total();
  shape.state = {bytes * shape.parameters};
}

void read_sizes(Section& row, JobShape& shape) {
  for (Section& size : row.objects("sizes", true, "cards on which such jobs run, rising")) {
    shape.sizes.push_back(static_cast<int>(
        size.integer("cards", {1, kMostCards}, std::nullopt, "of a job; of one replica of a service")));
    shape.weights.push_back(size.number("weight", {0, 1e9}, 1, "how often it is asked for"));
    if (shape.sizes.size() > 1 && shape.sizes.back() <= shape.sizes[shape.sizes.size() - 2])
      size.place_of("cards").fail("expected more cards than the size before, found as many or fewer");
    size.finish();
  }
}

struct NamesOfPlan {
  std::vector<std::string> queues, pools;
};

JobShape read_shape(Section& row, const NamesOfPlan& known, const ModelCatalog* models) {
  JobShape shape;
  shape.name = row.text("name", std::nullopt, "for people");
  shape.kind = row.choice<JobClass>("class", kClasses, std::nullopt, "what such jobs do");
  const std::string queue = row.text("queue", std::nullopt, "where they wait");
  shape.scenario =
      row.text("scenario", std::nullopt,
               "training: its step, serving: its tokens a second are simulated on every pool and "
               "size, in place of its own cluster; relative to this file");
  if (models != nullptr) shape.scenario = named_path(row.place_of("scenario"), shape.scenario);
  read_sizes(row, shape);
  const std::vector<std::string> pools = read_names(
      row, "pools", "on which they may run; the first is that by which lengths are drawn; none: all");
  shape.jobs = row.number("jobs", {0, 1e9}, 1, "share of all jobs, in number; 0: none");
  shape.card_time = row.number("card_time", {0, 1e9}, 1, "share of all card time that is asked for");
  shape.sigma = row.number("sigma", {0, 4}, 1, "of the logarithm of their lengths");
  read_state(row, models, shape);
  shape.preemptible = row.boolean("preemptible", true, "may be stopped, after a checkpoint");
  shape.elastic = row.boolean("elastic", false, "may run on other of its sizes than it asked for");
  shape.least = row.number("least", {0.01, 1}, 0.25, "elastic: of the cards that it asked for");
  shape.replicas = static_cast<int>(
      row.integer("replicas", {1, 1 << 16}, 8, "inference: of a service at its peak, median"));
  shape.night = row.number("night", {0, 1}, 0.4, "inference: of its peak that is left at night");
  const bool serves = shape.kind == JobClass::kInference;
  for (const std::string_view key : {"replicas", "night"})
    row.allow_only(key, serves || models == nullptr, "class \"inference\"");
  if (shape.elastic && serves && models != nullptr)
    row.place_of("elastic").fail("expected false for class \"inference\", whose replicas have one size");
  row.allow_only("least", shape.elastic || models == nullptr, "elastic true");
  row.finish();
  if (models == nullptr) return shape;
  shape.queue = index_of(queue, known.queues, row.place_of("queue"), "a queue");
  for (const std::string& name : pools) {
    const int pool = index_of(name, known.pools, row.place_of("pools"), "a pool");
    if (std::find(shape.pools.begin(), shape.pools.end(), pool) != shape.pools.end())
      row.place_of("pools").fail(fmt::format("expected each pool once, found \"{}\" twice", name));
    shape.pools.push_back(pool);
  }
  for (std::size_t i = 0; pools.empty() && i < known.pools.size(); ++i)
    shape.pools.push_back(static_cast<int>(i));
  if (shape.sizes.empty()) row.place_of("sizes").fail("expected at least one size, found none");
  if (shape.kind == JobClass::kInference && shape.sizes.size() > 1)
    row.place_of("sizes").fail("expected one size, that of a replica, found several");
  return shape;
}

MixedLoad read_load(Section section) {
  MixedLoad load;
  load.jobs = static_cast<int>(section.integer("jobs", {1, 1'000'000}, 500, "in number, of all shapes"));
  load.demand =
      section.number("demand", {0.001, 100}, 1.1, "card time that is asked for, over all that there is");
  load.backlog = section.number("backlog", {0, 1}, 0.15, "share of the jobs that wait when time begins");
  load.day_depth =
      section.number("day_depth", {0, 1}, 0.5, "arrivals: so much more than their mean at the peak's hour");
  load.weekend =
      section.number("weekend", {0, 10}, 0.6, "arrivals on Saturday and Sunday, against other days");
  load.peak_hour = section.number("peak_hour", {0, 24}, 15, "of the day, of arrivals and of services");
  load.noise = section.number("noise", {0, 1}, 0.05, "of services from hour to hour: sigma of the logarithm");
  load.overestimate = section.number("overestimate", {1, 100}, 2,
                                     "lengths that users state: from 1 to so many times the true ones");
  section.finish();
  return load;
}

SchedulerPlan read_scheduler(Section section) {
  SchedulerPlan scheduler;
  scheduler.partition = section.choice<PartitionRule>("partition", kPartitions, PartitionRule::kBorrow,
                                                      "what becomes of quota that is idle");
  scheduler.backfill = section.choice<BackfillRule>("backfill", kBackfills, BackfillRule::kEasy,
                                                    "who may pass those who wait before");
  scheduler.placement = section.choice<PlacementRule>("placement", kPlacements, PlacementRule::kPacked,
                                                      "which nodes a job gets");
  scheduler.chips = section.choice<ChipRule>("chips", kChips, ChipRule::kCheapest,
                                             "which pool a job gets, of those that fit");
  scheduler.elastic = section.boolean("elastic", true, "elastic jobs begin smaller, shrink and grow");
  scheduler.lend_spares =
      section.boolean("lend_spares", true,
                      "idle spares to jobs that can be stopped, until a fault asks for them; not static");
  scheduler.yields = section.boolean(
      "yields", true, "elastic jobs shrink for replicas of services that find no cards; not static");
  scheduler.patience =
      section.time("patience", Time{86'400'000'000'000}, "who has waited so long goes before everybody else");
  scheduler.settle =
      section.time("settle", Time{7'200'000'000'000},
                   "a job that was just started or resized does not grow beyond what it asked for, nor "
                   "yield of that, for so long");
  section.finish();
  return scheduler;
}

PowerCap read_cap(Section& row) {
  PowerCap cap;
  cap.from = row.time("from", Time{}, "since the beginning");
  cap.until = row.time("until", kForever, "since the beginning");
  cap.watts = {row.number("watts", {1, 1e12}, std::nullopt, "of the whole building, at its meter")};
  row.finish();
  return cap;
}

std::vector<CardPool> card_pools(const Cluster& cluster, int spares) {
  std::vector<CardPool> pools;
  std::vector<int> nodes;
  for (const Pool& pool : cluster.pools) nodes.push_back(pool.nodes);
  const std::vector<int> spares_of = spares_of_pools(nodes, spares);
  for (std::size_t i = 0; i < cluster.pools.size(); ++i) {
    const Pool& of = cluster.pools[i];
    CardPool pool;
    pool.name = of.name;
    pool.nodes = of.nodes;
    pool.cards = of.node.accelerators;
    pool.nodes_per_leaf = std::max(1, cluster.fabric.layout().pools[i].nodes_per_leaf);
    pool.oversubscription = cluster.fabric.spec().oversubscription;
    pool.spares = spares_of[i];
    pool.overhead_power = of.node.overhead_power;
    pool.node_power = of.node.overhead_power + of.accelerator.power * of.node.accelerators;
    pool.card_price = of.accelerator.price;
    pools.push_back(std::move(pool));
  }
  return pools;
}

// Why no pool of the shape holds so many cards; empty: one does.
std::string why_nowhere(const QueuePlan& plan, const JobShape& shape, int size) {
  std::int64_t most = 0;
  const CardPool* largest = nullptr;
  for (const int at : shape.pools) {
    const CardPool& pool = plan.pools[at];
    if (!pool.stands_whole(size)) continue;
    if (size <= pool.own_cards()) return "";
    if (largest == nullptr || pool.own_cards() > most) largest = &pool, most = pool.own_cards();
  }
  if (largest == nullptr)
    return fmt::format("{} cards are no equal part of a node and no number of whole nodes of its pools",
                       size);
  return fmt::format("expected at most {} cards, those of pool \"{}\"{}, found {}", most, largest->name,
                     largest->spares > 0 ? " without its spares" : "", size);
}

// With what is its own and nothing else: of some size that is asked for the least has to be in a quota.
void check_quota(const QueuePlan& plan, const JobShape& shape, const Document& document) {
  if (plan.scheduler.partition != PartitionRule::kStatic || shape.jobs <= 0) return;
  const bool shrinks = shape.elastic && plan.scheduler.elastic;
  int least = shape.sizes.back();
  std::int64_t most = 0;
  for (std::size_t size = 0; size < shape.sizes.size(); ++size) {
    if (shape.weights[size] <= 0) continue;
    least = std::min(least, shape.sizes[size]);
    for (std::size_t smaller = 0; shrinks && smaller < size; ++smaller)
      if (shape.sizes[smaller] >= shape.least * shape.sizes[size])
        least = std::min(least, shape.sizes[smaller]);
  }
  for (const int at : shape.pools) {
    if (plan.pools[at].stands_whole(least))
      most = std::max(most, plan.pools[at].quota(plan.queues[shape.queue]));
  }
  if (most < least)
    place_at(document, fmt::format("/queueing/queues/{}/quota", shape.queue))
        .fail(fmt::format("expected at least {} cards of a pool, which shape \"{}\" takes and a static "
                          "partition does not lend, found {}",
                          least, shape.name, most));
}

void check_shape(const QueuePlan& plan, const JobShape& shape, const std::string& pointer,
                 const Document& document) {
  for (const int size : shape.sizes) {
    const std::string why = why_nowhere(plan, shape, size);
    if (!why.empty()) place_at(document, pointer + "/sizes").fail(why);
  }
  check_quota(plan, shape, document);
  if (std::none_of(shape.weights.begin(), shape.weights.end(), [](double weight) { return weight > 0; }))
    place_at(document, pointer + "/sizes").fail("expected a weight above 0, found none");
}

}  // namespace

void read_queueing(Section& top, Scenario& scenario, const ModelCatalog* models) {
  const bool asked = models == nullptr || top.given("queueing");
  Section section = top.object("queueing", false, "instead of `jobs`: many jobs that are drawn, in queues");
  const auto plan = std::make_shared<QueuePlan>();
  NamesOfPlan known;
  for (Section& row : section.objects("queues", asked, "who shares the cluster")) {
    JobQueue queue = read_queue(row);
    require_new_name(plan->queues, queue.name, row.place_of("name"), "queues");
    plan->queues.push_back(std::move(queue));
    known.queues.push_back(plan->queues.back().name);
  }
  for (const Pool& pool : models != nullptr ? scenario.cluster->pools : std::vector<Pool>{})
    known.pools.push_back(pool.name);
  for (Section& row : section.objects("shapes", asked, "kinds of jobs")) {
    JobShape shape = read_shape(row, known, models);
    require_new_name(plan->shapes, shape.name, row.place_of("name"), "shapes");
    plan->shapes.push_back(std::move(shape));
  }
  plan->load = read_load(section.object("load", false, "how jobs are drawn"));
  plan->scheduler = read_scheduler(section.object("scheduler", false, "by which rules they get cards"));
  for (Section& row : section.objects("power_caps", false, "limits of the building's power"))
    plan->caps.push_back(read_cap(row));
  section.finish();
  if (models == nullptr || !asked) return;
  plan->pools = card_pools(*scenario.cluster, scenario.operations->plan.spares);
  scenario.operations->queueing = plan;
}

void check_queueing(const Scenario& scenario, const Document& document) {
  const QueuePlan& plan = *scenario.operations->queueing;
  if (!scenario.operations->plan.jobs.empty())
    place_at(document, "/jobs").fail("expected `jobs` or `queueing`, found both");
  if (plan.queues.empty()) place_at(document, "/queueing/queues").fail("expected at least one, found none");
  if (plan.shapes.empty()) place_at(document, "/queueing/shapes").fail("expected at least one, found none");
  int nodes = 0;
  for (const CardPool& pool : plan.pools) nodes += pool.nodes;
  if (scenario.operations->plan.spares >= nodes)
    place_at(document, "/operations/spares")
        .fail(fmt::format("expected fewer spares than the {} nodes, found {}", nodes,
                          scenario.operations->plan.spares));
  double quotas = 0;
  for (const JobQueue& queue : plan.queues) quotas += queue.quota;
  if (quotas > 1 + 1e-9)
    place_at(document, "/queueing/queues")
        .fail(fmt::format("expected quotas of at most 1 together, found {}", quotas));
  const auto wanted = std::count_if(plan.shapes.begin(), plan.shapes.end(),
                                    [](const JobShape& shape) { return shape.jobs > 0; });
  if (wanted == 0)
    place_at(document, "/queueing/shapes").fail("expected a share of the jobs above 0, found none");
  if (plan.load.jobs < wanted)
    place_at(document, "/queueing/load/jobs")
        .fail(
            fmt::format("expected at least one job a shape, found {} for {} shapes", plan.load.jobs, wanted));
  for (std::size_t i = 0; i < plan.shapes.size(); ++i)
    check_shape(plan, plan.shapes[i], fmt::format("/queueing/shapes/{}", i), document);
  const Time end = scenario.operations->plan.duration;
  for (std::size_t i = 0; i < plan.caps.size(); ++i) {
    if (plan.caps[i].from >= end)
      place_at(document, fmt::format("/queueing/power_caps/{}/from", i))
          .fail(fmt::format("expected a time before the end after {}, found {}", to_text(end),
                            to_text(plan.caps[i].from)));
    if (plan.caps[i].until <= plan.caps[i].from)
      place_at(document, fmt::format("/queueing/power_caps/{}/until", i))
          .fail("expected a time after `from`, found one that is not");
  }
}

}  // namespace moebius
