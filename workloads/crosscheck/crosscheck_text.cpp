#include <iterator>

#include <fmt/format.h>

#include "workloads/crosscheck/crosscheck.h"

namespace moebius {
namespace {

std::string_view executor_name(const Crosscheck& result) {
  return result.executor == "cuda" ? "the device" : "the host";
}

std::string goal_text(std::string_view what, double error, double limit) {
  return fmt::format("{}: {:.1f}%, goal {:.0f}%: {}\n", what, 100 * error, 100 * limit,
                     error <= limit ? "goal met" : "goal missed");
}

// "; losses equal"
std::string numbers_text(const Crosscheck& result) {
  if (result.numbers.empty()) return "";
  return fmt::format("; {} {}", result.numbers, result.repeatable ? "equal" : "DIFFER");
}

std::string times_text(const Crosscheck& result) {
  if (!result.comparable())
    return fmt::format(
        "{0}'s times are not those of the scenario's devices: they are shown, not comparable; `moebius "
        "calibrate "
        "--device {1} --out FILE` and `--profile FILE` simulate {0} itself\n",
        executor_name(result), result.executor == "cuda" ? "cuda:0" : "host");
  const CrosscheckGoals goals = goals_of(result.executor);
  return fmt::format("simulated: {}\n", result.machine) +
         goal_text("error of the makespan", result.makespan_error(), goals.makespan) +
         goal_text("error of an op, median", result.comparison.median_error, goals.ops);
}

}  // namespace

std::string to_text(const Crosscheck& result) {
  std::string text =
      to_text(result.comparison, "simulated", fmt::format("executed on {}", executor_name(result)));
  const auto out = std::back_inserter(text);
  if (result.paths) fmt::format_to(out, "\n{}", to_text(*result.paths));
  fmt::format_to(out, "\n{}\n", to_text(result.groups));
  fmt::format_to(out, "executed {} times{}: {}{}\n", result.executions,
                 result.warm_up.empty() ? "" : fmt::format(", each after {} that warms up", result.warm_up),
                 result.executor == "cuda" ? "the run of the median makespan" : "the median of each op",
                 numbers_text(result));
  text += times_text(result);
  if (result.loop) fmt::format_to(out, "\n{}\n", to_text(*result.loop));
  fmt::format_to(out, "{}: ops, order and bytes {}\n", result.scenario, result.same() ? "agree" : "differ");
  return text;
}

}  // namespace moebius
