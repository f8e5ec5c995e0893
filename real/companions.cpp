#include "real/companions.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "hw/error.h"
#include "hw/new_file.h"
#include "workloads/checkpoint/parameters.h"
#include "workloads/serving/left_out.h"

namespace moebius {
namespace {

namespace fs = std::filesystem;

// Tensors of the optimizer that this rank writes.
void add_states(const Layout& layout, const TrainingPlan& plan, std::int32_t rank,
                const std::vector<HeldValues>& held, std::vector<HeldState>& states) {
  for (const HeldValues& state : held) {
    if (state_writer(layout, plan, rank, state.tensor) == rank)
      states.push_back({rank, state.tensor, state.values});
  }
}

// The ranks that hold the first replica of a parameter write it, into the file of their place in their
// groups.
void add_parameters(const Layout& layout, const TrainingPlan& plan, std::int32_t rank,
                    const std::vector<HeldValues>& held, std::vector<HeldParameter>& parameters) {
  const RankClass& place = layout.classes[layout.class_of_rank[rank]];
  const int stage = rank / (layout.ranks / plan.pp);
  for (const HeldValues& weight : held) {
    const bool expert = weight.tensor.experts > 0;
    if (place.group(expert ? GroupRole::kExpertData : GroupRole::kData).my_index > 0) continue;
    const int member = place.group(expert ? GroupRole::kExpert : GroupRole::kTensor).my_index;
    parameters.push_back({stage * std::max(plan.tp, plan.ep) + member, weight.tensor, weight.values});
  }
}

// Answers would be those of another model.
void require_all_computed(const Scenario& scenario) {
  const std::string part = left_out(scenario.model);
  if (part.empty()) return;
  throw input_error(fmt::format("{}: /model: no run computes {}: {} can be served in simulation alone",
                                scenario.file, part, scenario.model.id));
}

}  // namespace

Companions::Companions(const Job& job, const Layout& layout, const RealRun& request)
    : job_(job), layout_(layout), activations_path_(request.dump_activations) {
  const Scenario& scenario = job.scenario;
  if (job.serving) require_all_computed(scenario);
  if (!scenario.save.empty()) require_savable(scenario.save, scenario.model, saves_where_it_started());
  if (starts_from_checkpoint()) open_checkpoint();
  read_constants();
  if (activations_path_.empty()) return;
  require_apart("--dump-activations", activations_path_, scenario.file);
  require_writable(activations_path_);  // before the work
  if (!job.training)
    throw input_error(fmt::format("--dump-activations: {} is no training: it has no layers", scenario.name));
  activations_ = std::make_unique<ActivationDump>(scenario.model, scenario.plan, scenario.training, layout);
}

void Companions::open_checkpoint() {
  const Scenario& scenario = job_.scenario;
  checkpoint_ = std::make_unique<Checkpoint>(scenario.weights);
  require_executable(*checkpoint_, scenario.model);
  if (scenario.resume)
    state_ = std::make_unique<OptimizerState>(scenario.weights, checkpoint_->index(), scenario.plan);
}

void Companions::read_constants() {
  const std::string path = config();
  if (path.empty()) return;
  constants_ = constants_from_hf_config(load_document(path));
  if (checkpoint_ && !constants_.unsupported.empty())
    throw input_error(fmt::format("{}: no run computes {}", path, constants_.unsupported));
}

bool Companions::saves_where_it_started() const {
  std::error_code error;
  return job_.scenario.resume && fs::equivalent(job_.scenario.weights, job_.scenario.save, error);
}

StartingValues Companions::weights() const {
  if (!checkpoint_) return {};
  return [this](const Tensor& parameter) {
    return load_parameter(*checkpoint_, job_.scenario.model, parameter);
  };
}

StackedRowsOf Companions::stacked() const {
  return [&model = job_.scenario.model](const Tensor& parameter) { return stacked_rows(parameter, model); };
}

StartingStates Companions::states() const {
  if (!state_) return {};
  return [this](std::int32_t rank, const Tensor& state) {
    return state_->load(state_writer(layout_, job_.scenario.plan, rank, state), state);
  };
}

OpObserver Companions::observer() {
  if (!activations_) return {};
  return [this](const ComputedOp& computed) { activations_->observe(computed); };
}

// Where config.json of the model is, for the checkpoint to stand alone.
std::string Companions::config() const {
  if (checkpoint_) return checkpoint_->config_path();
  std::error_code error;
  const std::string& id = job_.scenario.model.id;  // of a model that was read from a file: its path
  return fs::path(id).filename() == "config.json" && fs::exists(id, error) ? id : "";
}

void Companions::save(int step, const ReadHeld& held) const {
  const TrainingPlan& plan = job_.scenario.plan;
  std::vector<std::vector<HeldValues>> kept;  // what the spans below point to
  std::vector<HeldParameter> parameters;
  std::vector<HeldState> states;
  for (std::int32_t rank = 0; rank < layout_.ranks; ++rank) {
    add_parameters(layout_, plan, rank, kept.emplace_back(held(rank, MemoryKind::kWeights)), parameters);
    add_states(layout_, plan, rank, kept.emplace_back(held(rank, MemoryKind::kOptimizer)), states);
  }
  save_parameters({.directory = job_.scenario.save,
                   .degrees = {plan.tp, plan.pp, plan.ep},
                   .model = job_.scenario.model,
                   .step = step,
                   .source = checkpoint_.get(),
                   .config = config(),
                   .replace = saved_ || saves_where_it_started(),
                   .beside =
                       [&](const NewDirectory& directory, CheckpointIndex& index) {
                         index.state = {state_layout(plan), write_states(directory, layout_.ranks, states)};
                       }},
                  parameters);
  saved_ = true;
}

void Companions::write_activations() const {
  if (activations_) activations_->write(activations_path_);
}

void accompany(StartedExecutor& engine, const Job& job, const std::shared_ptr<Companions>& companions,
               const ReadHeld& held) {
  engine.keepers.push_back(companions);
  engine.leave = [companions] { companions->write_activations(); };
  if (!job.scenario.save.empty())
    engine.save = [companions, held](int step) { companions->save(step, held); };
  if (job.scenario.weights != "random") engine.facts.provenance.emplace_back("weights", job.scenario.weights);
}

void require_nothing_computed(const Job& job, const RealRun& request) {
  const bool dump = !request.dump_activations.empty();
  if (!dump && job.scenario.save.empty()) return;
  throw input_error(fmt::format("{}: a simulation computes no numbers: add --executor host",
                                dump ? "--dump-activations" : job.scenario.file + ": /plan/save"));
}

}  // namespace moebius
