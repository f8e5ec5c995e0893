#include <algorithm>

#include <fmt/format.h>

#include "hw/units.h"
#include "workloads/report/number_text.h"
#include "workloads/study/search/search_result.h"

namespace moebius {
namespace {

std::string counts_text(const SearchResult& result) {
  const SearchCounts& counts = result.counts;
  std::string text = fmt::format(
      "  {} legal plans in {} groups of degrees: {} behind the best by their bounds, {} too large for "
      "memory, {} "
      "run at alpha-beta, {} of them at fluid\n",
      grouped(counts.legal), grouped(counts.groups), grouped(counts.bounded), grouped(counts.too_large),
      grouped(counts.rough), grouped(counts.fine));
  if (!result.complete)
    text += fmt::format(
        "  ended by {}: {} plans not looked at{}\n", result.ended, grouped(counts.left),
        result.open_bound > 0 && !result.plans.empty()
            ? fmt::format("; none is more than {:.1f}% better than the best found",
                          100 * std::max(0.0, result.plans.front().rough.score / result.open_bound - 1))
            : "");
  return text;
}

std::string row_text(const SearchResult& result, std::size_t index) {
  const RankedPlan& plan = result.plans[index];
  const double best = result.plans.front().best_known().score;
  return fmt::format("  {:>3}  {:>14}  {:>7}  {:>10}  {:>10}  {}\n", index + 1,
                     goal_text(result.goal, plan.best_known()) + (plan.fine ? "" : " *"),
                     fmt::format("{:+.1f}%", 100 * (plan.best_known().score / best - 1)),
                     seconds_text(plan.rough.step_time_s), to_text(Bytes{plan.best_known().memory_bytes}),
                     plan.name);
}

// Where the seconds of `plan` lie that `best` does not spend.
std::string difference_text(const PlanFigures& best, const PlanFigures& plan) {
  std::vector<std::pair<double, std::string>> rows;
  for (std::size_t i = 0; i < std::min(best.parts.size(), plan.parts.size()); ++i)
    rows.emplace_back(plan.parts[i].second - best.parts[i].second, best.parts[i].first);
  std::sort(rows.begin(), rows.end(),
            [](const auto& a, const auto& b) { return std::abs(a.first) > std::abs(b.first); });
  std::string text;
  for (std::size_t i = 0; i < std::min<std::size_t>(4, rows.size()); ++i) {
    if (std::abs(rows[i].first) < 1e-4 * best.step_time_s) break;
    text += fmt::format("{}{} {}{}", text.empty() ? "" : ", ", rows[i].second, rows[i].first < 0 ? "-" : "+",
                        seconds_text(std::abs(rows[i].first)));
  }
  return text.empty() ? "no part of it differs by more than a ten-thousandth" : text;
}

std::string reasons_text(const SearchResult& result) {
  const PlanFigures& best = result.plans.front().best_known();
  std::string text =
      "\nwhy the first one wins (seconds of a step, mean over ranks, that the other spends more)\n";
  const std::size_t shown = std::min<std::size_t>(4, result.plans.size());
  for (std::size_t i = 1; i < shown; ++i)
    text += fmt::format("  than {:<8} {}\n", i + 1, difference_text(best, result.plans[i].best_known()));
  if (result.given)
    text += fmt::format("  than given   {}\n", difference_text(best, result.given->best_known()));
  if (result.plans.size() < 2 || best.expected_error <= 0) return text;
  const double next = result.plans[1].best_known().score / best.score - 1;
  text += fmt::format(
      "  the next one is {:.2f}% behind; one step is known to {:.0f}% by the errors of its kernels alone, "
      "which plans "
      "of like kernels share: {}\n",
      100 * next, 100 * best.expected_error,
      next > best.expected_error ? "the difference is larger than that"
                                 : "take the order of plans closer than that as a tie");
  return text;
}

std::string given_text(const SearchResult& result) {
  if (!result.given)
    return fmt::format("  the plan as given does not run: {}\n",
                       result.given_refusal.substr(0, result.given_refusal.find('\n')));
  const double best = result.plans.front().best_known().score;
  return fmt::format("  given  {:>11}  {:>7}  {:>10}  {:>10}  as the scenario says\n",
                     goal_text(result.goal, result.given->best_known()),
                     fmt::format("{:+.1f}%", 100 * (result.given->best_known().score / best - 1)),
                     seconds_text(result.given->rough.step_time_s),
                     to_text(Bytes{result.given->best_known().memory_bytes}));
}

}  // namespace

std::string goal_text(SearchGoal goal, const PlanFigures& figures) {
  switch (goal) {
    case SearchGoal::kStepTime:
      return seconds_text(figures.value);
    case SearchGoal::kTokensPerDollar:
      return figure_text(figures.value) + "/$";
    case SearchGoal::kTokensPerJoule:
      return figure_text(figures.value) + "/J";
  }
  return "";
}

std::string to_text(const SearchResult& result, std::size_t most) {
  std::string text = fmt::format("{}\nsearch for the best {}\n\n{}\n", result.scenario,
                                 search_goals()[static_cast<int>(result.goal)].first, counts_text(result));
  if (result.plans.empty()) return text + "  nothing found\n";
  text +=
      fmt::format("       {:>14}  {:>7}  {:>10}  {:>10}  plan\n", "fluid", "behind", "alpha-beta", "memory");
  const std::size_t shown = std::min(most, result.plans.size());
  for (std::size_t i = 0; i < shown; ++i) text += row_text(result, i);
  text += given_text(result);
  if (std::any_of(result.plans.begin(), result.plans.begin() + static_cast<std::ptrdiff_t>(shown),
                  [](const RankedPlan& plan) { return !plan.fine; }))
    text += "  * at alpha-beta: not run at fluid\n";
  text += reasons_text(result);
  text += "\nthe first one as a command: --write FILE, or\n ";
  for (const Assignment& change : result.plans.front().settings)
    text += fmt::format(" --set '{}={}'", change.pointer, change.value);
  text += "\n";
  for (const std::string& note : result.notes) text += "  " + note + "\n";
  return text + fmt::format("\n  {} stages lowered, {:.1f} s, {:.1f} s of CPU\n",
                            grouped(result.counts.lowered), result.wall_s, result.cpu_s);
}

}  // namespace moebius
