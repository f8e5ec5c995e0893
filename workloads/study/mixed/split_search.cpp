#include "workloads/study/mixed/split_search.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "hw/error.h"
#include "hw/mixed_pools.h"
#include "workloads/crew.h"
#include "workloads/measured_stacks.h"
#include "workloads/scenario/extended_document.h"
#include "workloads/scenario/schema.h"
#include "workloads/study/mixed/split_estimate.h"
#include "workloads/training/pipeline/uneven_batches.h"

namespace moebius {
namespace {

constexpr std::size_t kMostOrdered = 4;  // pools of which every order is tried
constexpr int kManyTimes = 8;            // the batch of the question what filling a pipeline costs

std::string_view name_of(PipelineKind kind) {
  for (const Named<PipelineKind>& row : pipeline_schedules())
    if (row.value == kind) return row.name;
  return {};
}

// The scenario with some of its pools, in this order.
void set_pools(const std::vector<int>& order, Document& document) {
  const Value* cluster = document.root.find("cluster");
  const Value* pools = cluster == nullptr ? nullptr : cluster->find("pools");
  CHECK(pools != nullptr, document.file);
  Value chosen = *pools;
  chosen.items.clear();
  std::vector<std::string> names;
  for (const int pool : order) {
    chosen.items.push_back(pools->items[pool]);
    names.push_back(pools->items[pool].find("name")->text);
  }
  const Value* given = cluster->find("forwarding_pairs");
  std::optional<Value> pairs;  // of those that are left
  if (given != nullptr) pairs = *given;
  const auto is_left = [&](const Value* name) {
    return name != nullptr && std::find(names.begin(), names.end(), name->text) != names.end();
  };
  if (pairs)
    std::erase_if(pairs->items, [&](const Value& pair) {
      return !is_left(pair.find("from")) || !is_left(pair.find("to"));
    });
  set_at_pointer(document, "/cluster/pools", to_json(chosen));
  if (pairs) set_at_pointer(document, "/cluster/forwarding_pairs", to_json(*pairs));
}

std::string pipeline_json(const SplitPlan& plan) {
  if (plan.pp == 1) return R"({"degree": 1})";
  // Of one kind of chip many stages of a rank are cut by FLOPs: to search their cuts takes seconds.
  const bool searched = plan.order.size() > 1 || plan.chunks == 1;
  return fmt::format(R"({{"degree": {}, "schedule": "{}", "slicing": "{}"{}}})", plan.pp,
                     name_of(plan.schedule), searched ? "dynamic" : "balanced",
                     plan.chunks > 1 ? fmt::format(", \"virtual\": {}", plan.chunks) : "");
}

Document with_plan(Document document, const SplitPlan& plan, const Scenario& scenario) {
  int devices = 0;
  for (const int pool : plan.order) devices += scenario.cluster->pools[pool].devices();
  set_pools(plan.order, document);
  set_at_pointer(document, "/plan/tp/attention", std::to_string(plan.tp));
  if (plan.tp == 1) set_at_pointer(document, "/plan/tp/sequence_parallel", "false");
  set_at_pointer(document, "/plan/pp", pipeline_json(plan));
  set_at_pointer(document, "/plan/dp/degree", std::to_string(devices / plan.tp / scenario.plan.cp / plan.pp));
  set_at_pointer(document, "/plan/dp/microbatches", plan.by_replicas ? "\"auto\"" : "\"equal\"");
  return document;
}

double tokens_per_second(Document document, const SplitRequest& request, std::string* layers) {
  Job job = read_job(std::move(document), {}, request.library);
  job.scenario.timeline.detail = Detail::kNone;
  require_fit(job);
  const Scenario& scenario = job.scenario;
  if (layers != nullptr && !scenario.plan.microbatches.empty())
    *layers = "microbatches: " + microbatches_text(scenario.plan.microbatches);
  if (layers != nullptr && scenario.slices)
    *layers = fmt::format("layers: {}", fmt::join(scenario.slices->choice.layers, ", "));
  const Outcome outcome = perform(job, request.start, {.wants_spans = false, .quiet = true});
  const double step = outcome.report.metrics.makespan.seconds() / scenario.training.num_steps();
  return static_cast<double>(scenario.training.global_batch * scenario.training.sequence_length) / step;
}

class SplitSearch {
 public:
  explicit SplitSearch(const SplitRequest& request)
      : request_(request), base_(read_job(request.scenario, {}, request.library)) {
    if (!base_.training || !several_kinds(*base_.scenario.cluster))
      throw input_error(
          fmt::format("{}: expected training on pools of several kinds of chips to split", request.file));
  }

  SplitStudy run() {
    study_.name = base_.scenario.name;
    measure();
    run_as_given();
    search_all();
    if (study_.runs.front().tokens_per_s <= 0)
      throw run_error(
          fmt::format("{}: no split can run; the first: {}", request_.file, study_.runs.front().refusal));
    study_.scenario = split_scenario();
    ask_what_stops();
    return std::move(study_);
  }

 private:
  const Scenario& scenario() const { return base_.scenario; }
  const std::vector<Pool>& pools() const { return scenario().cluster->pools; }

  void measure() {
    for (const Pool& pool : pools()) {
      const auto profiles = profiles_for(scenario(), pool.accelerator, request_.library.data);
      const auto costs = make_cost_source(pool.accelerator, profiles, kernels_for(scenario(), profiles),
                                          product_scales(scenario()));
      study_.matrices.push_back(chip_matrix(pool.accelerator, *costs, scenario().plan.gemm));
      add_network(pool, scenario().cluster->fabric.spec(), request_.library, request_.start,
                  study_.matrices.back());
      study_.pools.push_back(pool.name);
    }
  }

  std::vector<double> layers_of(int tp) const {
    std::vector<double> seconds;
    for (std::size_t i = 0; i < pools().size(); ++i)
      seconds.push_back(layer_seconds(study_.matrices[i], pools()[i], scenario(), tp));
    return seconds;
  }

  SplitRun estimated(const SplitPlan& plan) const {
    const TrainingWorkload& work = scenario().training;
    const auto tokens = static_cast<double>(work.global_batch * work.sequence_length);
    return {.plan = plan, .estimate = tokens / step_estimate(plan, scenario(), layers_of(plan.tp))};
  }

  // Best first.
  std::vector<SplitRun> ranked(const std::vector<int>& pools) const {
    std::vector<SplitRun> runs;
    std::vector<int> order = pools;
    do {
      for (const SplitPlan& plan : legal_splits(scenario(), order))
        if (order == pools || !plan.by_replicas) runs.push_back(estimated(plan));
    } while (order.size() <= kMostOrdered && std::next_permutation(order.begin(), order.end()));
    std::stable_sort(runs.begin(), runs.end(),
                     [](const SplitRun& a, const SplitRun& b) { return a.estimate > b.estimate; });
    return runs;
  }

  void carry_out(SplitRun& run, std::int64_t batch = 0) const {
    try {
      Document document = with_plan(request_.scenario, run.plan, scenario());
      if (batch > 0) set_at_pointer(document, "/workload/global_batch", std::to_string(batch));
      run.tokens_per_s = tokens_per_second(std::move(document), request_, &run.layers);
    } catch (const Error& error) {
      run.refusal = error.what();
      run.refusal = run.refusal.substr(0, run.refusal.find('\n'));
    }
  }

  void run_as_given() {
    try {
      study_.as_given = tokens_per_second(request_.scenario, request_, nullptr);
    } catch (const Error& error) {
      if (error.kind() == Error::Kind::kInput) throw;
    }
  }

  // The nearest batch that its replicas share evenly.
  std::int64_t batch_for(int devices, const SplitPlan& plan, double batch) const {
    const std::int64_t round =
        scenario().training.micro_batch * (devices / plan.tp / scenario().plan.cp / plan.pp);
    return std::max<std::int64_t>(1, std::llround(batch / static_cast<double>(round))) * round;
  }

  // The best that can run, and what was refused on the way: all but interleaved ones, of which, as their
  // slices take long to find, the best alone. `batch`: 0 as the scenario has it, else about so many
  // sequences.
  std::vector<SplitRun> best_of(const std::vector<int>& pools, double batch) const {
    auto slow = static_cast<std::size_t>(request_.finalists);
    int devices = 0;
    for (const int pool : pools) devices += this->pools()[pool].devices();
    std::vector<SplitRun> runs;
    for (SplitRun& run : ranked(pools)) {
      if (run.plan.chunks > 1 && slow == 0) continue;
      slow -= run.plan.chunks > 1 ? 1 : 0;
      carry_out(run, batch > 0 ? batch_for(devices, run.plan, batch) : 0);
      runs.push_back(run);
    }
    std::stable_sort(runs.begin(), runs.end(),
                     [](const SplitRun& a, const SplitRun& b) { return a.tokens_per_s > b.tokens_per_s; });
    return runs;
  }

  // Alone, by the same search.
  SplitPart part_of(int pool, double batch) const {
    const std::vector<SplitRun> runs = best_of({pool}, batch);
    if (runs.empty() || runs.front().tokens_per_s <= 0)
      throw run_error(fmt::format("{}: pool \"{}\" cannot run the job alone{}", request_.file,
                                  pools()[pool].name, runs.empty() ? "" : ": " + runs.front().refusal));
    SplitPart part{pools()[pool].name, pools()[pool].accelerator.id, pools()[pool].devices(), runs.front(),
                   0};
    SplitRun plain{.plan = {.order = {pool}, .tp = scenario().plan.tp}};
    carry_out(plain, batch_for(part.devices, plain.plan, batch));
    part.plain_tokens_per_s = plain.tokens_per_s;
    return part;
  }

  // The parts and the whole, side by side.
  void search_all() {
    std::vector<int> all(pools().size());
    std::iota(all.begin(), all.end(), 0);
    study_.plans = static_cast<std::int64_t>(ranked(all).size());
    if (study_.plans == 0)
      throw run_error(fmt::format("{}: no number of stages divides the pools", request_.file));
    study_.parts.resize(pools().size());
    const auto batch = static_cast<double>(scenario().training.global_batch);
    work_side_by_side(pools().size() + 1, [&](std::size_t i) {
      if (i == 0)
        study_.runs = best_of(all, 0);
      else
        study_.parts[i - 1] = part_of(static_cast<int>(i) - 1, batch);
    });
  }

  // Whole: laid over the file, its pipeline would keep keys of the one that it takes the place of. What the
  // file expects is not expected of another plan.
  Document split_scenario() const {
    Document placed = with_plan(request_.scenario, study_.runs.front().plan, scenario());
    forget_expected(placed);
    set_at_pointer(placed, "/name", to_json(text_value(study_.name + ", split")));
    return placed;
  }

  void give_memory(Document& document) const {
    for (std::size_t i = 0; i < pools().size(); ++i) {
      const std::string at = fmt::format("/cluster/pools/{}/accelerator", i);
      const Value chip = *document.root.find("cluster")->find("pools")->items[i].find("accelerator");
      if (chip.kind == Value::Kind::kString)
        set_at_pointer(document, at, fmt::format(R"({{"base": "{}"}})", chip.text));
      set_at_pointer(document, at + "/memory", "\"100 TB\"");
    }
  }

  double efficiency_with(Document document) const {
    return tokens_per_second(std::move(document), request_, nullptr) / study_.sum_of_parts();
  }

  // With all that happens once a step spread over many more microbatches, in the parts too.
  double with_a_large_batch(const SplitPlan& plan) const {
    const double batch = kManyTimes * static_cast<double>(scenario().training.global_batch);
    double parts = 0;
    for (const SplitPart& part : study_.parts) {
      SplitRun run{.plan = part.run.plan};
      carry_out(run, batch_for(part.devices, run.plan, batch));
      parts += run.tokens_per_s;
    }
    SplitRun run{.plan = plan};
    carry_out(run, static_cast<std::int64_t>(batch));
    return run.tokens_per_s / parts;
  }

  // Stages hold whole layers: how much longer the slowest one takes than all would if layers could be cut.
  double whole_layers(const SplitPlan& plan) const {
    const Job job = read_job(with_plan(request_.scenario, plan, scenario()), {}, request_.library);
    const Scenario& of = job.scenario;
    const SliceLoads loads = slice_loads({of.model, of.plan, of.training, *of.cluster});
    double speed = 0, layers = 0;
    for (std::size_t rank = 0; rank < loads.seconds.size(); ++rank) {
      const auto& seconds = loads.seconds[rank];
      const double one =
          std::accumulate(seconds.begin(), seconds.end(), 0.0) / static_cast<double>(seconds.size());
      speed += 1 / one;
      if (rank == 0) layers += static_cast<double>(seconds.size()) + loads.embedding_seconds[rank] / one;
      if (rank + 1 == loads.seconds.size()) layers += loads.head_seconds[rank] / one;
    }
    return of.slices->choice.cost.slowest_rank / (layers / speed);
  }

  void ask_what_stops() {
    const SplitPlan& plan = study_.runs.front().plan;
    Document document = with_plan(request_.scenario, plan, scenario());
    set_at_pointer(document, "/cluster/forwarding", "\"rdma\"");
    if (document.root.find("cluster")->find("forwarding_pairs") != nullptr)
      set_at_pointer(document, "/cluster/forwarding_pairs", "[]");
    study_.stops.push_back(
        {"messages between vendors by RDMA instead of host memory", efficiency_with(document)});
    study_.stops.push_back(
        {fmt::format("{} times the batch, in the parts too: filling the pipeline, the optimizer", kManyTimes),
         with_a_large_batch(plan)});
    document = with_plan(request_.scenario, plan, scenario());
    give_memory(document);
    study_.stops.push_back(
        {"memory without end on every device: stages as even as layers allow", efficiency_with(document)});
    const bool sliced = plan.pp > 1 && plan.chunks == 1;
    if (sliced)
      study_.stops.push_back({"layers that could be cut anywhere", study_.efficiency() * whole_layers(plan)});
  }

  const SplitRequest& request_;
  const Job base_;
  SplitStudy study_;
};

}  // namespace

double SplitStudy::sum_of_plain_parts() const {
  double sum = 0;
  for (const SplitPart& part : parts) {
    if (part.plain_tokens_per_s <= 0) return 0;
    sum += part.plain_tokens_per_s;
  }
  return sum;
}

double SplitStudy::sum_of_parts() const {
  return std::accumulate(parts.begin(), parts.end(), 0.0,
                         [](double sum, const SplitPart& part) { return sum + part.run.tokens_per_s; });
}

std::string to_text(const SplitPlan& plan, const std::vector<std::string>& pools) {
  std::vector<std::string> names;
  for (const int pool : plan.order) names.push_back(pools[pool]);
  if (plan.by_replicas) return fmt::format("replicas on {}, tp {}", fmt::join(names, ", "), plan.tp);
  return fmt::format("{}, tp {}, pp {} {}", fmt::join(names, " > "), plan.tp, plan.pp,
                     name_of(plan.schedule));
}

SplitStudy study_split(const SplitRequest& request) {
  return SplitSearch(request).run();
}

}  // namespace moebius
