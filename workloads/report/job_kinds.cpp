#include "workloads/report/job_kinds.h"

#include <cmath>

#include <fmt/format.h>

namespace moebius {

std::optional<PackedTokens> packed_figures(const Report& report) {
  const TrainingWorkload& work = report.scenario->training;
  if (!work.lengths) return std::nullopt;
  PackedTokens figures = packed_tokens(work, report.scenario->plan);
  for (double* sum : {&figures.rows, &figures.real, &figures.counted, &figures.sequences, &figures.squares})
    *sum /= work.num_steps();
  return figures;
}

std::vector<PhaseRow> phase_rows(const ReinforcementFigures& figures) {
  std::vector<PhaseRow> rows;
  const auto add = [&](std::string name, double seconds) {
    if (seconds > 0) rows.push_back({std::move(name), seconds, seconds / figures.step_time_s()});
  };
  add("rollout", figures.rollout_s);
  add("scoring: reference", figures.reference_s);
  add("scoring: reward model", figures.reward_s);
  add(figures.updates == 1 ? "training" : fmt::format("training: {} updates", figures.updates),
      figures.training_s);
  add("weight sync", figures.sync_s);
  return rows;
}

FigureRows packing_rows(const PackedTokens& packed, double step_time_s) {
  return {{"sequences", packed.sequences},
          {"mean_length", packed.real / packed.sequences},
          {"effective_length", packed.effective_length()},
          {"padding_share", packed.padding_share()},
          {"row_tokens_per_s", packed.rows / step_time_s},
          {"loss_tokens_per_s", packed.counted / step_time_s}};
}

FigureRows reinforcement_rows(const ReinforcementFigures& figures) {
  const double step = figures.step_time_s();
  return {{"rollout_s", figures.rollout_s},
          {"rollout_given", figures.rollout_given ? 1 : 0},
          {"scoring_s", figures.scoring_s()},
          {"reference_s", figures.reference_s},
          {"reward_s", figures.reward_s},
          {"training_s", figures.training_s},
          {"updates", static_cast<double>(figures.updates)},
          {"sync_s", figures.sync_s},
          {"step_time_s", step},
          {"tokens_per_s", figures.tokens / step},
          {"response_tokens_per_s", figures.response_tokens / step},
          {"rollout_share", figures.rollout_s / step},
          {"scoring_share", figures.scoring_s() / step},
          {"training_share", figures.training_s / step},
          {"sync_share", figures.sync_s / step}};
}

FigureRows pass_rows(const PassSeconds& passes) {
  return {{"forward_s", passes.forward},        {"backward_s", passes.backward},
          {"weight_s", passes.weight},          {"overlapped_s", passes.overlapped},
          {"between_passes_s", passes.between}, {"optimizer_pass_s", passes.optimizer}};
}

namespace {

// A checkpoint that a run goes on from holds the adapters, their masters and moments; the model is elsewhere.
FigureRows adapter_rows(const Scenario& scenario) {
  const Adapters& adapters = scenario.training.adapters;
  const TrainingPlan& plan = scenario.plan;
  const double trained = count_adapters(scenario.model, adapters).all;
  const double weights = element_bytes(DType::kBf16);
  const DType second = plan.optimizer_states == DType::kFp8 ? DType::kBf16 : plan.optimizer_states;
  const double states = (plan.keeps_master ? element_bytes(plan.master) : 0) +
                        element_bytes(plan.optimizer_states) + element_bytes(second);
  return {{"rank", adapters.rank},
          {"parameters", trained},
          {"share", trained / count_parameters(scenario.model).total()},
          {"bytes", trained * weights},
          {"checkpoint_bytes", trained * (weights + states)}};
}

}  // namespace

std::vector<std::pair<std::string, FigureRows>> kind_rows(const Report& report, double step_time_s) {
  std::vector<std::pair<std::string, FigureRows>> rows;
  if (const auto packed = packed_figures(report))
    rows.emplace_back("packing", packing_rows(*packed, step_time_s));
  if (report.reinforcement) rows.emplace_back("rl", reinforcement_rows(*report.reinforcement));
  if (report.scenario->training.adapters.any()) rows.emplace_back("lora", adapter_rows(*report.scenario));
  return rows;
}

std::string adapters_text(const Report& report) {
  const Scenario& scenario = *report.scenario;
  const Adapters& adapters = scenario.training.adapters;
  if (!adapters.any()) return "";
  const double trained = count_adapters(scenario.model, adapters).all;
  const double share = trained / count_parameters(scenario.model).total();
  return fmt::format(
      "  trained            adapters of rank {}: {:.2f} M parameters, {:.3f}% of the model's, which are "
      "frozen\n",
      adapters.rank, trained * 1e-6, 100 * share);
}

std::string packing_text(const Report& report, double step_time_s) {
  const std::optional<PackedTokens> packed = packed_figures(report);
  if (!packed) return "";
  return fmt::format(
      "  packed sequences   {:.0f} a step of {:.0f} tokens, mean; {:.2f}% of the rows is padding\n"
      "  tokens/s with loss {:.0f} ({:.1f}% of all: the others are of prompts, or first)\n",
      packed->sequences, packed->real / packed->sequences, 100 * packed->padding_share(),
      packed->counted / step_time_s, 100 * packed->counted / packed->real);
}

std::string reinforcement_text(const Report& report) {
  if (!report.reinforcement) return "";
  const ReinforcementFigures& figures = *report.reinforcement;
  std::string text = fmt::format(
      "\nstep of reinforcement learning, its phases one after the other (the cost above is of all of them, "
      "the rest above and below of training alone)\n"
      "  step time                    {:>10}; {:.0f} tokens/s, {:.0f} of them of responses\n",
      to_text(time_from_seconds(figures.step_time_s())), figures.tokens / figures.step_time_s(),
      figures.response_tokens / figures.step_time_s());
  for (const PhaseRow& row : phase_rows(figures))
    text += fmt::format("    {:<26} {:>10} {:>6.1f}%\n", row.name, to_text(time_from_seconds(row.seconds)),
                        100 * row.share);
  if (figures.rollout_given)
    text +=
        "  the rollout's time is by the given rate of a device: a placeholder, nothing of it is simulated\n";
  return text +
         "  each phase has the devices' memory to itself; what is moved out and in between is not timed\n";
}

}  // namespace moebius
