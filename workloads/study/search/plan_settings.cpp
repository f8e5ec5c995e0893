#include "workloads/study/search/plan_settings.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "hw/error.h"
#include "workloads/scenario/scenario_parts.h"
#include "workloads/study/search/document_changes.h"

namespace moebius {
namespace {

constexpr std::array kDegrees{"/plan/tp/attention",         "/plan/tp/dense",    "/plan/tp/expert",
                              "/plan/tp/sequence_parallel", "/plan/tp/overlap",  "/plan/pp/degree",
                              "/plan/pp/virtual",           "/plan/pp/schedule", "/plan/ep/degree",
                              "/plan/ep/nodes_per_token",   "/plan/cp",          "/plan/dp/degree",
                              "/workload/micro_batch"};

// What no plan of a search keeps of the scenario's, since it goes with its degrees.
void make_neutral(Document& document) {
  for (const Assignment& change : degree_settings({}, 0))
    set_at_pointer(document, change.pointer, change.value);
  set_at_pointer(document, "/plan/context", "\"all-gather\"");
}

std::string zero_of(const Document& base, const std::vector<Assignment>& settings) {
  std::string zero = text_at(base, "/plan/dp/zero");
  for (const Assignment& change : settings)
    if (change.pointer == "/plan/dp/zero") zero = change.value;
  return zero;
}

// Copies between tensors and shards of them are for plans that shard more than states.
bool shards_states_alone(const Document& base, const std::vector<Assignment>& settings) {
  const std::string zero = zero_of(base, settings);
  return zero != "2" && zero != "3";
}

// Layers are gathered or copied in turn where something of them stands elsewhere.
void drop_turns(const std::vector<StudyAxis>& axes, PlanBundle& bundle) {
  TrainingPlan& plan = bundle.plan;
  if (plan.zero >= 2 || plan.overlap_weights || plan.offload.any()) return;
  const auto drop = [&](const char* pointer, int& value) {
    const auto varied = [&](const StudyAxis& axis) { return axis.pointer == pointer; };
    if (value == 1 || std::any_of(axes.begin(), axes.end(), varied)) return;
    value = 1;
    bundle.settings.push_back({pointer, "1"});
  };
  drop("/plan/dp/group_layers", plan.group_layers);
  drop("/plan/dp/prefetch", plan.prefetch);
}

// Of the scenario's own: what is for plans that shard gradients, or parameters, alone.
void drop_resharding(const Document& base, PlanBundle& bundle) {
  const std::string zero = zero_of(base, bundle.settings);
  const auto drop = [&](const char* pointer, const char* neutral) {
    const auto set = [&](const Assignment& change) { return change.pointer == pointer; };
    const bool varied = std::any_of(bundle.settings.begin(), bundle.settings.end(), set);
    if (!varied && !text_at(base, pointer).empty()) bundle.settings.push_back({pointer, neutral});
  };
  if (zero != "2" && zero != "3") drop("/plan/dp/accumulate", "\"shards\"");
  if (zero == "3") return;
  drop("/plan/dp/reshard_after_forward", "true");
  drop("/plan/dp/reshard_after_backward", "true");
}

}  // namespace

bool says_where_state_stands(const std::string& pointer) {
  constexpr std::array kPointers{"/plan/offload",
                                 "/plan/dp/zero",
                                 "/plan/dp/overlap_gradients",
                                 "/plan/dp/shard",
                                 "/plan/dp/buffers",
                                 "/plan/dp/accumulate",
                                 "/plan/dp/reshard_after_forward",
                                 "/plan/dp/reshard_after_backward"};
  return std::find(kPointers.begin(), kPointers.end(), pointer) != kPointers.end();
}

bool is_degree(const std::string& pointer) {
  return std::find(kDegrees.begin(), kDegrees.end(), pointer) != kDegrees.end();
}

std::optional<std::string> degree_below(const std::string& pointer) {
  for (const char* degree : kDegrees)
    if (std::string_view(degree).starts_with(pointer + "/")) return degree;
  return std::nullopt;
}

std::vector<Assignment> degree_settings(const PlanDegrees& d, int nodes_per_token) {
  const auto number = [](int value) { return std::to_string(value); };
  const auto boolean = [](bool value) { return std::string(value ? "true" : "false"); };
  return {{"/plan/tp/attention", number(d.tp)},
          {"/plan/tp/dense", number(d.dense_tp)},
          {"/plan/tp/expert", number(d.expert_tp)},
          {"/plan/tp/sequence_parallel", boolean(d.tp > 1 && d.rows_cut)},
          {"/plan/tp/overlap", boolean(d.tensor_overlap)},
          {"/plan/tp/chunks", "0"},
          {"/plan/pp/degree", number(d.pp)},
          {"/plan/pp/schedule", fmt::format("\"{}\"", name_of(d.schedule))},
          {"/plan/pp/virtual", number(d.chunks)},
          {"/plan/ep/degree", number(d.ep)},
          {"/plan/ep/nodes_per_token", number(nodes_per_token)},
          {"/plan/cp", number(d.cp)},
          {"/plan/dp/degree", number(d.dp)},
          {"/workload/micro_batch", number(d.micro_batch)}};
}

std::string name_of(PipelineKind schedule) {
  for (const Named<PipelineKind>& row : pipeline_schedules()) {
    if (row.value == schedule) return std::string(row.name);
  }
  return "";
}

PipelineKind schedule_of(const std::string& json, const std::string& file) {
  std::vector<std::string> names;
  for (const Named<PipelineKind>& row : pipeline_schedules()) {
    if (json == fmt::format("\"{}\"", row.name)) return row.value;
    names.emplace_back(row.name);
  }
  throw input_error(
      fmt::format("{}: /plan/pp/schedule: expected one of {}, found {}", file, fmt::join(names, ", "), json));
}

void add_own(const Document& base, StudyAxis& axis) {
  const std::string own = text_at(base, axis.pointer);
  const bool known = std::find(axis.values.begin(), axis.values.end(), own) != axis.values.end();
  if (!own.empty() && !known) axis.values.push_back(own);
}

std::vector<PlanBundle> bundles_of(const Document& base, const std::vector<StudyAxis>& axes) {
  Document neutral = base;
  make_neutral(neutral);
  std::vector<Assignment> always;
  if (text_at(base, "/plan/pp/slicing").starts_with('['))
    always.push_back({"/plan/pp/slicing", "\"balanced\""});
  if (!text_at(base, "/plan/dp/shard").empty()) always.push_back({"/plan/dp/shard", "0"});
  const bool copies = !text_at(base, "/plan/dp/buffers").empty();
  const auto varies = [&](const StudyAxis& axis) { return axis.pointer == "/plan/dp/overlap_weights"; };
  const bool overlaps =
      text_at(base, "/plan/dp/overlap_weights") == "true" && std::none_of(axes.begin(), axes.end(), varies);
  std::size_t count = 1;
  for (const StudyAxis& axis : axes) count *= axis.values.size();
  constexpr std::size_t kMost = 100'000;
  if (count > kMost)
    throw input_error(
        fmt::format("a search has at most {} combinations of switches, found {}", kMost, count));
  std::vector<PlanBundle> bundles;
  std::string refusal;
  for (std::size_t i = 0; i < count; ++i) {
    PlanBundle bundle{always, {}};
    std::size_t rest = i;
    for (const StudyAxis& axis : axes) {
      bundle.settings.push_back({axis.pointer, axis.values[rest % axis.values.size()]});
      rest /= axis.values.size();
    }
    if (copies && shards_states_alone(base, bundle.settings))
      bundle.settings.push_back({"/plan/dp/buffers", "\"in-place\""});
    // Weights are gathered beside a step where its shards are of states alone, or of gradients.
    const std::string zero = zero_of(base, bundle.settings);
    if (overlaps && zero != "1" && zero != "2")
      bundle.settings.push_back({"/plan/dp/overlap_weights", "false"});
    drop_resharding(base, bundle);
    Document document = neutral;
    try {
      for (const Assignment& change : bundle.settings) set_at_pointer(document, change.pointer, change.value);
      bundle.plan = read_plan(document, {}).plan;
      drop_turns(axes, bundle);
      bundles.push_back(std::move(bundle));
    } catch (const Error& error) {
      if (refusal.empty()) refusal = error.what();
    }
  }
  if (bundles.empty()) throw input_error(refusal);
  return bundles;
}

std::string degrees_text(const PlanDegrees& d, int dp) {
  std::string text = fmt::format("tp {}", d.tp);
  if (d.dense_tp != d.tp) text += fmt::format(", dense {}", d.dense_tp);
  if (d.expert_tp != 1) text += fmt::format(", expert {}", d.expert_tp);
  text += fmt::format(" · pp {}", d.pp);
  if (d.pp > 1 || d.schedule != PipelineKind::k1F1B)
    text += fmt::format(" ({}{})", name_of(d.schedule), d.chunks > 1 ? fmt::format(" x {}", d.chunks) : "");
  text += fmt::format(" · ep {}", d.ep);
  if (d.nodes_per_token > 0) text += fmt::format(" on {} nodes a token", d.nodes_per_token);
  if (d.nodes_per_token == 0) text += " on any nodes";
  text += fmt::format(" · cp {} · dp {} · microbatch {}", d.cp, dp, d.micro_batch);
  if (d.tp > 1 && !d.rows_cut) text += " · rows not cut over tp";
  if (d.tensor_overlap) text += " · tp overlap";
  return text;
}

std::string bundle_text(const TrainingPlan& plan) {
  std::string text = fmt::format("zero {}", plan.zero);
  switch (plan.recompute) {
    case RecomputePolicy::kNone:
      break;
    case RecomputePolicy::kSelective:
      text += fmt::format(", recompute {} ops", plan.recompute_ops.size());
      break;
    case RecomputePolicy::kFull:
      text += ", recompute layers";
      break;
    case RecomputePolicy::kHybrid:
      text += ", recompute what does not fit";
      break;
  }
  const auto add = [&](bool on, const char* what) {
    if (on) text += std::string(", ") + what;
  };
  add(plan.offload.optimizer, "optimizer on host");
  add(plan.offload.activations, "activations on host");
  add(plan.overlap_two_batch, "two batches");
  add(plan.ep > 1 && !plan.overlap_dispatch_combine, "exchanges in line");
  add(!plan.overlap_gradients && plan.zero < 2, "gradients last");
  add(plan.accumulation != Accumulation::kShards, "whole gradients");
  add(plan.regather == 1 && plan.free_after_backward, "weights kept for the backward pass");
  add(plan.regather == 1 && !plan.free_after_backward, "weights gathered once a step");
  if (plan.regather > 1) text += fmt::format(", weights kept among {}", plan.regather);
  return text;
}

}  // namespace moebius
