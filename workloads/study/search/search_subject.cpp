#include "workloads/study/search/search_subject.h"

#include <fmt/format.h>

#include "hw/units.h"
#include "workloads/report/number_text.h"

namespace moebius {

const std::vector<std::pair<std::string, SearchGoal>>& search_goals() {
  static const std::vector<std::pair<std::string, SearchGoal>> table{
      {"step-time", SearchGoal::kStepTime},
      {"tokens-per-dollar", SearchGoal::kTokensPerDollar},
      {"tokens-per-joule", SearchGoal::kTokensPerJoule},
      {"goodput", SearchGoal::kGoodput},
      {"throughput", SearchGoal::kThroughput}};
  return table;
}

const std::string& name_of(SearchGoal goal) {
  return search_goals()[static_cast<int>(goal)].first;
}

const SearchSubject& training_subject() {
  static const SearchSubject subject{
      .goals = {SearchGoal::kStepTime, SearchGoal::kTokensPerDollar, SearchGoal::kTokensPerJoule},
      .columns = {{"alpha-beta", "step_time_s", FigureForm::kSeconds, true},
                  {"memory", "memory_bytes", FigureForm::kBytes}},
      .across = {"memory of the fullest rank, GB", "memory_bytes", FigureForm::kNumber},
      .across_scale = 1e-9,
      .parts = "seconds of a step, mean over ranks",
      .known = "one step",
      .known_by = "by the errors of its kernels alone, which plans of like kernels share",
      .lowered = "stages lowered",
      .refine = 100};
  return subject;
}

const SearchSubject& serving_subject() {
  static const SearchSubject subject{
      .goals = {SearchGoal::kGoodput, SearchGoal::kThroughput, SearchGoal::kTokensPerDollar,
                SearchGoal::kTokensPerJoule},
      .columns = {{"per card", "value_per_device", FigureForm::kNumber},
                  {"attained", "slo_attainment", FigureForm::kShare},
                  {"TTFT p99", "ttft_p99_s", FigureForm::kSeconds},
                  {"TPOT p99", "tpot_p99_s", FigureForm::kSeconds},
                  {"tokens/s", "output_tokens_per_s", FigureForm::kNumber},
                  {"cards", "devices", FigureForm::kNumber}},
      .across = {"mean time per output token, ms", "tpot_mean_s", FigureForm::kNumber},
      .across_scale = 1e3,
      .parts = "seconds of a request, mean",
      .known = "the pace of a service",
      .known_by =
          "by what measured ones of its class were off, four in five; plans on one engine share much "
          "of that",
      .lowered = "iterations timed",
      .refine = 10};
  return subject;
}

std::string form_text(FigureForm form, double value) {
  switch (form) {
    case FigureForm::kSeconds:
      return seconds_text(value);
    case FigureForm::kBytes:
      return to_text(Bytes{value});
    case FigureForm::kShare:
      return fmt::format("{:.1f}%", 100 * value);
    case FigureForm::kNumber:
      return figure_text(value);
  }
  return "";
}

}  // namespace moebius
