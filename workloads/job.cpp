#include "workloads/job.h"

#include <filesystem>

#include <fmt/format.h>
#include <unistd.h>

#include "hw/error.h"
#include "hw/mixed_pools.h"
#include "hw/profile.h"
#include "workloads/checkpoint/checkpoint.h"
#include "workloads/crosscheck/virtual_machine.h"
#include "workloads/job_steps.h"
#include "workloads/measured_stacks.h"
#include "workloads/reinforcement_phases.h"
#include "workloads/report/report.h"
#include "workloads/scenario/extended_document.h"
#include "workloads/scenario/placement_keys.h"
#include "workloads/scenario/service_pool_keys.h"
#include "workloads/service/carried_job.h"
#include "workloads/set_option.h"
#include "workloads/shape_jobs.h"
#include "workloads/study/placement/placed_job.h"
#include "workloads/training/layer_speed.h"
#include "workloads/training/pipeline/columns.h"
#include "workloads/training/pipeline/dynamic_slicing.h"
#include "workloads/training/pipeline/mixed_stages.h"
#include "workloads/training/pipeline/uneven_batches.h"

namespace moebius {

namespace {

// Whether ranks of one class would stand in pools of different kinds, or differ in what is beyond them.
bool is_mixed(const Scenario& scenario) {
  const Cluster& cluster = *scenario.cluster;
  if (scenario.kind == ScenarioKind::kTraining) {
    const TrainingPlan& plan = scenario.plan;
    return plan.uneven_batches() ? columns_are_mixed(cluster, plan) : stages_are_mixed(cluster, plan);
  }
  return several_kinds(cluster) || !cluster.fabric.spec().by_host.empty();
}

// Hashes, destinations, broken parts and slow nodes differ from rank to rank, and so do pools of different
// kinds.
void unfold_where_ranks_differ(Scenario& scenario) {
  if (scenario.collective.flows || !scenario.cluster || scenario.operations) return;
  const bool placed = placement_of(scenario).any() && devices_alike(scenario).empty();
  if (!scenario.cluster->by_ports() && scenario.faults.empty() && !is_mixed(scenario) && !placed) return;
  bool* folds[] = {&scenario.plan.fold, &scenario.collective.fold, &scenario.serving.fold};
  bool& fold = *folds[static_cast<int>(scenario.kind)];
  scenario.unfolded = fold;
  fold = false;
}

Scenario read(Document& document, const Changes& changes, const Library& library) {
  apply(changes, document);
  Scenario scenario = read_scenario(document, library.hardware, library.models);
  if (changes.unfold) {
    scenario.plan.fold = scenario.collective.fold = scenario.serving.fold = false;
    scenario.timeline = {};
  }
  unfold_where_ranks_differ(scenario);
  return scenario;
}

std::vector<int> devices_of_pools(const Scenario& scenario) {
  std::vector<int> devices;
  for (const Pool& pool : scenario.cluster->pools) devices.push_back(pool.devices());
  return devices;
}

void go_on_from_checkpoint(Scenario& scenario) {
  const CheckpointIndex index = load_index((std::filesystem::path(scenario.weights) / kIndexName).string());
  if (index.step >= scenario.training.steps) {
    throw input_error(fmt::format("{}: {} has {} steps behind it: expected more in /workload/steps, found {}",
                                  scenario.file, scenario.weights, index.step, scenario.training.steps));
  }
  scenario.training.first_step = static_cast<int>(index.step);
}

// From here the plan says which layers stand where.
void settle_slices(Scenario& scenario) {
  if (scenario.plan.slicing != Slicing::kDynamic) return;
  scenario.slices = slice_dynamically({scenario.model, scenario.plan, scenario.training, *scenario.cluster});
  scenario.plan.layers = scenario.slices->choice.layers;
}

// What passes take, where their order depends on it.
void settle_stage_seconds(Scenario& scenario) {
  TrainingPlan& plan = scenario.plan;
  if (!depends_on_times(plan.schedule) || scenario.training.forward_only) return;
  plan.stage_seconds = stage_seconds({scenario.model, plan, scenario.training, *scenario.cluster},
                                     slices_of(scenario.model, plan, scenario.training.sequence_length));
}

// And which replica takes how many microbatches.
void settle_batches(Scenario& scenario) {
  TrainingPlan& plan = scenario.plan;
  if (!plan.auto_microbatches) return;
  const BatchSplit split{
      .microbatches = static_cast<int>(scenario.training.global_batch / scenario.training.micro_batch),
      .ahead = plan.pp - 1,
      .together = replicas_that_meet(plan)};
  const SlicingInput input{scenario.model, plan, scenario.training, *scenario.cluster};
  plan.microbatches = split_microbatches(
      replica_seconds(input, slices_of(scenario.model, plan, scenario.training.sequence_length)), split);
}

std::vector<std::int32_t> columns_of(const Scenario& scenario) {
  const Cluster& cluster = *scenario.cluster;
  std::vector<std::int32_t> kinds = column_kinds(scenario.plan, cluster.fabric, devices_alike(scenario));
  return scenario.plan.microbatches.empty() ? kinds
                                            : with_uneven_columns(cluster, scenario.plan, std::move(kinds));
}

// Chips that differ in speed: the slowest columns by themselves.
TrainingJob with_speeds(const Cluster& cluster, std::uint64_t seed, TrainingJob job) {
  if (!cluster.variation.any()) return job;
  job.speeds.emplace(cluster.variation, seed);
  job.column_kinds = with_slow_columns(job.plan, std::move(job.column_kinds), *job.speeds);
  return job;
}

// Where its ranks stand, and how fast their devices are.
TrainingJob on_devices(const Scenario& scenario, const Document& document, TrainingJob job) {
  job.device_of_rank = devices_of_ranks(job, scenario, document);
  return with_speeds(*scenario.cluster, scenario.seed, std::move(job));
}

}  // namespace

void apply(const Changes& changes, Document& document) {
  apply_sets(changes.sets, document);
  if (changes.seed) set_at_pointer(document, "/seed", std::to_string(*changes.seed));
}

Job read_job(const std::string& file, const Changes& changes, const Library& library) {
  Document document = load_scenario(file);
  const Value* kind = document.root.kind == Value::Kind::kObject ? document.root.find("kind") : nullptr;
  if (kind != nullptr && kind->text == "study")
    Place{file, "/kind", kind->line}.fail(
        "expected a scenario, found a study: `moebius sweep` carries it out");
  Job job = read_job(std::move(document), changes, library);
  require_known_chips(library.hardware, library.data, kHostAccelerator);
  return job;
}

namespace {

std::function<std::unique_ptr<Job>()> reader_of(Document document, bool unfold, const std::string& data) {
  const auto changed = std::make_shared<const Document>(std::move(document));
  return [=] {
    return std::make_unique<Job>(
        read_job(*changed, {.sets = {}, .seed = {}, .unfold = unfold}, Library(data)));
  };
}

}  // namespace

Job read_job(Document document, const Changes& changes, const Library& library) {
  Job job{read(document, changes, library), nullptr, nullptr, nullptr, nullptr, std::nullopt};
  check_stacks(job.scenario, library.data);
  if (job.scenario.replay) return job;
  if (job.scenario.operations) {
    if (job.scenario.operations->queueing) {
      check_shapes(document, job.scenario, library);
      job.read_shape = shape_reader(document, job.scenario, library);
    }
    read_job_steps(document, library, job);
    return job;
  }
  if (job.scenario.resume) go_on_from_checkpoint(job.scenario);
  if (job.scenario.weights != "random") require_checkpoint(job.scenario.weights);
  const Cluster& cluster = *job.scenario.cluster;
  const Pool& pool = cluster.pools.front();
  switch (job.scenario.kind) {
    case ScenarioKind::kTraining:
      job.scenario.plan.stage_speeds = stage_speeds(cluster, job.scenario.plan, [&](const Pool& of) {
        const Scenario& it = job.scenario;
        return layer_speed(of, cluster.fabric.spec(), {it.model, it.plan, it.training});
      });
      settle_slices(job.scenario);
      settle_stage_seconds(job.scenario);
      settle_batches(job.scenario);
      job.training = std::make_unique<Training>(on_devices(job.scenario, document,
                                                           {.model = job.scenario.model,
                                                            .plan = job.scenario.plan,
                                                            .workload = job.scenario.training,
                                                            .ranks_per_node = pool.node.accelerators,
                                                            .column_kinds = columns_of(job.scenario)}));
      job.memory = job.training->memory(pool.accelerator.memory);
      job.memory->host_capacity = pool.node.host_memory / std::max(1, pool.node.accelerators);
      if (several_kinds(cluster)) judge_by_class(cluster, job.training->layout(), *job.memory);
      if (job.scenario.rl) job.phases = phases_of(document, job.scenario, library, changes.unfold);
      break;
    case ScenarioKind::kCollective:
      if (job.scenario.collective.flows) {
        job.flows = std::make_unique<FlowsRun>(job.scenario.collective, job.scenario.cluster->fabric,
                                               job.scenario.seed);
      } else if (!job.scenario.collective.tenants.empty()) {
        job.tenants = std::make_unique<TenantsRun>(job.scenario.collective);
      } else {
        job.collective = std::make_unique<CollectiveRun>(
            job.scenario.collective, CollectivePlace{pool.node.accelerators, devices_of_pools(job.scenario),
                                                     &job.scenario.cluster->fabric});
      }
      break;
    case ScenarioKind::kServing:
      if (job.is_service()) {
        if (job.scenario.service.full_steps) carry_out(job);
        break;
      }
      job.serving = std::make_unique<Serving>(ServingJob{.model = job.scenario.model,
                                                         .plan = job.scenario.serving,
                                                         .workload = job.scenario.served,
                                                         .ranks_per_node = pool.node.accelerators});
      job.memory = job.serving->memory(pool.accelerator.memory);
      if (job.scenario.serving.experts_apart()) judge_by_class(cluster, job.serving->layout(), *job.memory);
      break;
    case ScenarioKind::kKvReplay:
    case ScenarioKind::kCluster:
      break;
  }
  job.read_again = reader_of(std::move(document), changes.unfold, library.data);
  return job;
}

const Layout& Job::layout() const {
  require_schedule(*this);
  if (training) return training->layout();
  if (tenants) return tenants->layout();
  if (flows) return flows->layout();
  return serving ? serving->layout() : collective->layout();
}

Workload& Job::workload() {
  require_schedule(*this);
  if (again) return *again;
  if (training) return *training;
  if (tenants) return *tenants;
  if (flows) return *flows;
  return serving ? static_cast<Workload&>(*serving) : *collective;
}

bool lacks_memory(const Job& job) {
  return job.memory && job.scenario.enforce_memory && !(job.memory->fits() && job.memory->fits_on_host());
}

void require_fit(const Job& job) {
  for (const JobPhase& phase : job.phases) require_fit(*phase.job);
  if (!lacks_memory(job)) return;
  if (!job.memory->fits_on_host())
    throw run_error(
        fmt::format("{} does not fit: {} of host memory needed for the fullest rank, {} there for each\n{}",
                    job.scenario.name, to_text(job.memory->host_peak()), to_text(job.memory->host_capacity),
                    memory_text(*job.memory)));
  throw run_error(fmt::format("{} does not fit: {} needed on the fullest rank, {} there\n{}",
                              job.scenario.name, to_text(job.memory->peak()), to_text(job.memory->room()),
                              memory_text(*job.memory)));
}

void require_schedule(const Job& job) {
  if (job.is_service() && job.scenario.service.does == PoolRole::kDecode)
    throw input_error(
        fmt::format("{}: /plan/phase: decoding behind caches that nobody filled is timed iteration by "
                    "iteration and has no schedule to execute, to explain or to dump: expected \"both\" with "
                    "/plan/steps \"full\", found \"decode\"",
                    job.scenario.file));
  if (job.is_service())
    throw input_error(
        fmt::format("{}: a service whose iterations are timed has no schedule to execute, to explain or to "
                    "dump; one whose every op is carried out has one (--set /plan/steps=full, and "
                    "/workload/trace/requests for a few of them)",
                    job.scenario.file));
  if (job.scenario.operations)
    throw input_error(
        fmt::format("{}: weeks of a cluster have no schedule to execute, to explain or to dump; a step of "
                    "one of its jobs has",
                    job.scenario.file));
  if (job.scenario.replay)
    throw input_error(
        fmt::format("{}: a replay of a cache schedules no ops: nothing to execute, to explain or to dump",
                    job.scenario.file));
}

namespace {

// What ranks of a served pool would have to do alone is refused with the keys of its phase.
void require_executable(const Job& job, const ServingPlan& plan, const std::string& phase) {
  const std::string& name = job.scenario.file;
  const Model& model = job.scenario.model;
  if (plan.shares_by(ExpertSharing::kGather) && plan.ep > 1)
    throw run_error(
        fmt::format("{}: {}/ep/degree: experts that ranks of several replicas share both whole and by "
                    "columns are simulated only (expected 1 with ep/tp {}, found {})",
                    name, phase, plan.expert_tp, plan.ep));
  if (plan.shares_by(ExpertSharing::kAllReduce) && plan.ep > 1)
    throw run_error(
        fmt::format("{}: {}/ep/degree: whole experts on ranks of one replica are simulated only: executors "
                    "cut each over all of them (expected 1, found {})",
                    name, phase, plan.ep));
  if (model.kv_heads < plan.tp && model.attention != AttentionKind::kMla)
    throw run_error(
        fmt::format("{}: {}/attention/tp: heads of keys that several ranks keep are simulated only: {} on tp "
                    "{}",
                    name, phase, model.kv_heads, plan.tp));
  for (const std::optional<DType>& format :
       {std::optional(plan.gemm), plan.weights, plan.expert_gemm, plan.expert_weights}) {
    if (format == DType::kFp4 || format == DType::kInt4)
      throw run_error(
          fmt::format("{}: {} operands are simulated only (/plan/precision)", name, to_string(*format)));
  }
  if (plan.attention == DType::kFp8)
    throw run_error(
        fmt::format("{}: attention in 8 bits is simulated only (/plan/precision/attention)", name));
}

}  // namespace

void require_executable(const Job& job) {
  const std::string& name = job.scenario.file;
  if (job.flows)
    throw run_error(fmt::format("{}: flows are simulated alone: their senders and receivers are NICs", name));
  for (std::size_t i = 0; job.serving && i < job.serving->service().pools.size(); ++i)
    require_executable(job, job.serving->service().pools[i].plan, pointer_of_phase(job.scenario, i));
  if (job.scenario.collective.matrix)
    throw run_error(
        fmt::format("{}: /workload/matrix is simulated only: executors exchange equal parts", name));
  if (job.scenario.cluster->variation.any())
    throw run_error(
        fmt::format("{}: /cluster/variation is simulated only: devices are as fast as they are", name));
  if (job.scenario.training.dropout > 0)
    throw run_error(
        fmt::format("{}: /workload/dropout is simulated only: executors compute with every element", name));
  if (job.scenario.plan.fills_buffers())
    throw run_error(fmt::format(
        "{}: /plan/ep/buffers \"{}\" is simulated only: executors compute the rows that came", name,
        job.scenario.plan.expert_buffers == ExpertBuffers::kOneHot ? "one-hot" : "padded"));
  if (job.scenario.plan.scaling == Scaling::kHistory)
    throw run_error(
        fmt::format("{}: /plan/precision/scaling \"history\" is simulated only: executors keep no magnitudes "
                    "of steps before",
                    name));
  if (job.scenario.plan.gathers_fp8())
    throw run_error(fmt::format(
        "{}: shards that are gathered in 8 bits are simulated only: executors quantise whole weights "
        "(/plan/precision/weights \"bf16\")",
        name));
  if (job.scenario.plan.launch != LaunchMode::kHidden)
    throw run_error(fmt::format("{}: /plan/launch is simulated only: executors launch as they do", name));
  if (!job.scenario.faults.empty())
    throw run_error(fmt::format("{}: its faults happen in a simulated network only", name));
}

void require_host(const Job& job) {
  require_executable(job);
  const std::vector<RankClass>& classes = job.layout().classes;
  double needed = 0;  // at least: the host keeps 8- and 16-bit formats in 32 bits
  for (std::size_t i = 0; job.memory && i < classes.size(); ++i) {
    needed += classes[i].size() * job.memory->classes[i].peak.value;
  }
  const double there =
      static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGE_SIZE));
  if (needed > there) {
    throw run_error(fmt::format("{}: the {} ranks hold {} together, this machine has {}", job.scenario.file,
                                job.layout().ranks, to_text(Bytes{needed}), to_text(Bytes{there})));
  }
  if (static_cast<int>(classes.size()) < job.layout().ranks) {
    const char* part = job.collective || job.tenants ? "/workload" : "/plan";
    throw input_error(fmt::format("{}: {}/fold: the host executes every rank; add --set {}/fold=false",
                                  job.scenario.file, part, part));
  }
}

}  // namespace moebius
