#include "real/host_run.h"

#include <filesystem>
#include <memory>
#include <vector>

#include <fmt/format.h>

#include "hw/error.h"
#include "real/activation_dump.h"
#include "real/host_executor.h"
#include "real/processes.h"
#include "workloads/checkpoint/parameters.h"

namespace moebius {
namespace {

using Host = HostExecutor<float>;

// What the options of the executor point to; lives as long as the executor.
struct Companions {
  std::unique_ptr<Checkpoint> weights;
  std::unique_ptr<ActivationDump> activations;
};

bool from_checkpoint(const Scenario& scenario) {
  return scenario.weights != "random";
}

// Where config.json of the model is, for the checkpoint to stand alone.
std::string config_of(const Job& job, const Companions& companions) {
  if (companions.weights) return companions.weights->config_path();
  std::error_code error;
  const std::string& id = job.scenario.model.id;  // of a model that was read from a file: its path
  return std::filesystem::path(id).filename() == "config.json" && std::filesystem::exists(id, error) ? id
                                                                                                     : "";
}

// The ranks that hold the first replica of a parameter write it, into the file of their place in their
// groups.
std::vector<HeldParameter> parameters_here(const Job& job, const Layout& layout, const Host& host) {
  const TrainingPlan& plan = job.scenario.plan;
  std::vector<HeldParameter> parameters;
  for (std::int32_t rank = host.ranks_here().first; rank < host.ranks_here().last; ++rank) {
    const RankClass& place = layout.classes[layout.class_of_rank[rank]];
    const int stage = rank / (layout.ranks / plan.pp);
    for (const HeldTensor<float>& held : host.weights(rank)) {
      const bool expert = held.tensor.experts > 0;
      if (place.group(expert ? GroupRole::kExpertData : GroupRole::kData).my_index > 0) continue;
      const int member = place.group(expert ? GroupRole::kExpert : GroupRole::kTensor).my_index;
      parameters.push_back({stage * std::max(plan.tp, plan.ep) + member, held.tensor, held.values});
    }
  }
  return parameters;
}

// Parameters as they came from another process.
struct Gathered {
  std::int32_t file = 0;
  Tensor tensor;
  std::vector<float> values;
};

ByteString packed(const std::vector<HeldParameter>& parameters) {
  ByteWriter bytes;
  for (const HeldParameter& held : parameters) {
    bytes.put(held.file);
    bytes.put(held.tensor);
    bytes.put_list(held.values);
  }
  return bytes.take();
}

// In the order of processes, which is that of ranks.
std::vector<Gathered> gather_parameters(Processes& processes, const std::vector<HeldParameter>& mine) {
  std::vector<Gathered> all;
  for (const ByteString& bytes : processes.gather(packed(mine))) {
    for (ByteReader from(bytes); !from.at_end();) {
      Gathered& next = all.emplace_back();
      next.file = from.get<std::int32_t>();
      next.tensor = from.get<Tensor>();
      next.values = from.get_list<float>();
    }
  }
  return all;
}

void save(const Job& job, const Layout& layout, const Host& host, const Companions& companions,
          Processes* processes) {
  const TrainingPlan& plan = job.scenario.plan;
  std::vector<HeldParameter> parameters = parameters_here(job, layout, host);
  std::vector<Gathered> gathered;
  if (processes != nullptr) {
    gathered = gather_parameters(*processes, parameters);
    if (!processes->speaks()) return;
    parameters.clear();
    for (const Gathered& held : gathered) parameters.push_back({held.file, held.tensor, held.values});
  }
  save_parameters({.directory = job.scenario.save,
                   .degrees = {plan.tp, plan.pp, plan.ep},
                   .model = job.scenario.model,
                   .step = job.scenario.training.steps,
                   .source = companions.weights.get(),
                   .config = config_of(job, companions)},
                  parameters);
}

std::shared_ptr<Companions> make_companions(const Job& job, const Layout& layout, const HostRun& request) {
  const Scenario& scenario = job.scenario;
  auto companions = std::make_shared<Companions>();
  if (!scenario.save.empty()) require_savable(scenario.save, scenario.model);
  if (from_checkpoint(scenario)) {
    companions->weights = std::make_unique<Checkpoint>(scenario.weights);
    require_executable(*companions->weights, scenario.model);
  }
  if (!request.dump_activations.empty() && request.processes != nullptr)
    throw run_error("--dump-activations: the layers' outputs are put together in one process only");
  if (!request.dump_activations.empty() && !job.training) {
    throw input_error(fmt::format("--dump-activations: {} is no training: it has no layers", scenario.name));
  }
  if (!request.dump_activations.empty()) {
    companions->activations =
        std::make_unique<ActivationDump>(scenario.model, scenario.plan, scenario.training, layout);
  }
  return companions;
}

HostOptions options_of(const Job& job, const Companions& companions, Processes* processes) {
  HostOptions options;
  options.processes = processes;
  options.seed = job.scenario.seed;
  if (companions.weights) {
    options.weights = [&weights = *companions.weights, &model = job.scenario.model](const Tensor& parameter) {
      return load_parameter(weights, model, parameter);
    };
  }
  if (companions.activations) {
    options.observer = [&dump = *companions.activations](const ComputedOp& computed) {
      dump.observe(computed);
    };
  }
  return options;
}

std::vector<double> losses_of(const Host& host) {
  std::vector<double> losses;
  for (int step = 0; step < host.num_steps(); ++step) losses.push_back(host.loss(step));
  return losses;
}

}  // namespace

StartedExecutor start_host(const Job& job, const Layout& layout, Recorder& recorder, const HostRun& request) {
  require_host(job);
  const std::shared_ptr<Companions> companions = make_companions(job, layout, request);
  // From here the weights are those of the model, and there is room for what is left behind.
  std::unique_ptr<Host> host =
      make_host_executor(layout, recorder, options_of(job, *companions, request.processes));
  StartedExecutor engine;
  engine.keepers.push_back(companions);
  engine.losses = [&host = *host] { return losses_of(host); };
  engine.tell_transfers = [&host = *host](GroupLedger& ledger) {
    for (const Transfer& t : host.transfers()) ledger.moved(t.sequence, t.op, t.rank, t.sent_bytes);
  };
  engine.leave = [&job, &layout, &host = *host, companions, path = request.dump_activations,
                  processes = request.processes] {
    if (companions->activations) companions->activations->write(path);
    if (!job.scenario.save.empty()) save(job, layout, host, *companions, processes);
  };
  engine.executor = std::move(host);
  engine.facts.executor = "host";
  engine.facts.detail = "threads";
  engine.facts.on_cluster = false;
  if (request.processes != nullptr)
    engine.facts.provenance.emplace_back("processes", request.processes->describe(layout.ranks));
  if (from_checkpoint(job.scenario)) engine.facts.provenance.emplace_back("weights", job.scenario.weights);
  return engine;
}

void require_nothing_computed(const Job& job, const HostRun& request) {
  const bool dump = !request.dump_activations.empty();
  if (!dump && job.scenario.save.empty()) return;
  throw input_error(fmt::format("{}: a simulation computes no numbers: add --executor host",
                                dump ? "--dump-activations" : job.scenario.file + ": /plan/save"));
}

}  // namespace moebius
