#include "workloads/reinforcement_phases.h"

#include <utility>

#include <fmt/format.h>

#include "hw/error.h"
#include "models/model.h"

namespace moebius {
namespace {

const Value* at(const Value* value, const std::vector<std::string_view>& path) {
  for (const std::string_view key : path)
    if (value != nullptr) value = value->kind == Value::Kind::kObject ? value->find(key) : nullptr;
  return value;
}

void put(Value& object, std::string key, Value value) {
  object.kind = Value::Kind::kObject;
  object.keys.push_back(std::move(key));
  object.items.push_back(std::move(value));
}

void drop(Value& object, std::string_view key) {
  for (std::size_t i = 0; i < object.keys.size(); ++i) {
    if (object.keys[i] != key) continue;
    object.keys.erase(object.keys.begin() + static_cast<std::ptrdiff_t>(i));
    object.items.erase(object.items.begin() + static_cast<std::ptrdiff_t>(i));
    return;
  }
}

// A scenario on the cluster of `whole`.
Document on_same_cluster(const Document& whole, std::string_view kind, std::string_view phase) {
  Document document{fmt::format("{} ({})", whole.file, phase), {}};
  for (const char* key : {"moebius", "seed", "cluster"})
    if (const Value* value = whole.root.find(key)) put(document.root, key, *value);
  set_at_pointer(document, "/kind", kind);
  set_at_pointer(document, "/name", fmt::format("\"{}\"", phase));
  set_at_pointer(document, "/timeline/detail", "none");
  return document;
}

void count(Document& document, std::string_view pointer, std::int64_t number) {
  set_at_pointer(document, pointer, std::to_string(number));
}

Document rollout(const Document& whole, const Scenario& scenario) {
  Document document = on_same_cluster(whole, "serving", "rollout");
  put(document.root, "model", *whole.root.find("model"));
  put(document.root, "plan", *at(&whole.root, {"workload", "rl", "rollout", "serving"}));
  set_at_pointer(document, "/workload/trace/generator", "batch");
  count(document, "/workload/trace/requests", scenario.rl->sequences());
  count(document, "/workload/trace/input", scenario.training.sequence_length - scenario.rl->response_tokens);
  const Value* lengths = at(&whole.root, {"workload", "rl", "response_lengths"});
  if (lengths == nullptr) {
    count(document, "/workload/trace/output", scenario.rl->response_tokens);
    return document;
  }
  set_at_pointer(document, "/workload/trace/output", to_json(*lengths));
  // Ranks that do not do the same are many iterations, most of them like another one.
  if (at(&document.root, {"plan", "steps"}) == nullptr)
    set_at_pointer(document, "/plan/steps", "\"surface\"");
  return document;
}

// One step of forward passes by the plan of the training, of `model`.
Document scoring(const Document& whole, const Value& model, std::string_view phase, std::int64_t sequences) {
  Document document = on_same_cluster(whole, "training", phase);
  put(document.root, "model", model);
  if (const Value* plan = whole.root.find("plan")) put(document.root, "plan", *plan);
  Value workload = *whole.root.find("workload");
  for (const char* key : {"rl", "job", "steps"}) drop(workload, key);
  put(document.root, "workload", std::move(workload));
  set_at_pointer(document, "/workload/job", "scoring");
  count(document, "/workload/global_batch", sequences);
  return document;
}

// Rank 0 stands for all that hold a weight: the bytes over each wire are the same whoever begins.
Document sync(const Document& whole, const Scenario& scenario) {
  Document document = on_same_cluster(whole, "collective", "sync");
  const double bytes = count_parameters(scenario.model).total() * element_bytes(DType::kBf16);
  set_at_pointer(document, "/workload/operation", "broadcast");
  set_at_pointer(document, "/workload/bytes", fmt::format("\"{:.0f} B\"", bytes));
  set_at_pointer(document, "/workload/dtype", "bf16");
  count(document, "/workload/ranks", scenario.ranks());
  set_at_pointer(document, "/workload/fold", scenario.plan.fold ? "true" : "false");
  return document;
}

}  // namespace

std::vector<JobPhase> phases_of(const Document& document, const Scenario& scenario, const Library& library,
                                bool unfold) {
  const Reinforcement& rl = *scenario.rl;
  std::vector<JobPhase> phases;
  const auto add = [&](RlPhase phase, Document part) {
    const Changes changes{.sets = {}, .seed = {}, .unfold = unfold};
    phases.push_back({phase, std::make_unique<Job>(read_job(std::move(part), changes, library))});
    phases.back().job->is_phase = true;
  };
  if (rl.rollout_rate == 0) add(RlPhase::kRollout, rollout(document, scenario));
  if (rl.reference)
    add(RlPhase::kReference, scoring(document, *document.root.find("model"), "reference", rl.sequences()));
  if (rl.reward)
    add(RlPhase::kReward, scoring(document, *at(&document.root, {"workload", "rl", "reward_model"}),
                                  "reward model", rl.sequences()));
  if (rl.sync && scenario.ranks() > 1) add(RlPhase::kSync, sync(document, scenario));
  return phases;
}

ReinforcementFigures reinforcement_figures(const Scenario& scenario, const std::vector<PhaseTime>& phases,
                                           double training_s) {
  const Reinforcement& rl = *scenario.rl;
  ReinforcementFigures figures;
  figures.updates = rl.sequences() / scenario.training.global_batch;
  figures.training_s = training_s * static_cast<double>(figures.updates);
  figures.response_tokens = static_cast<double>(rl.sequences() * rl.response_tokens);
  figures.tokens = static_cast<double>(rl.sequences() * scenario.training.sequence_length);
  figures.rollout_given = rl.rollout_rate > 0;
  if (figures.rollout_given)
    figures.rollout_s = figures.response_tokens / (rl.rollout_rate * scenario.ranks());
  for (const PhaseTime& phase : phases) {
    switch (phase.phase) {
      case RlPhase::kRollout:
        figures.rollout_s = phase.seconds;
        break;
      case RlPhase::kReference:
        figures.reference_s = phase.seconds;
        break;
      case RlPhase::kReward:
        figures.reward_s = phase.seconds;
        break;
      case RlPhase::kSync:
        figures.sync_s = phase.seconds;
        break;
    }
  }
  return figures;
}

}  // namespace moebius
