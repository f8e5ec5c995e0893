#include <algorithm>
#include <cmath>

#include <fmt/format.h>

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
  if (counts.refused > 0)
    text += fmt::format("  {} of them are no scenarios and were left out, the first one: {}\n",
                        grouped(counts.refused), result.refusal);
  if (!result.complete)
    text += fmt::format(
        "  ended by {}: {} plans not looked at{}\n", result.ended, grouped(counts.left),
        result.open_bound > 0 && !result.plans.empty()
            ? fmt::format("; none is more than {:.1f}% better than the best found",
                          100 * std::max(0.0, result.plans.front().rough.score / result.open_bound - 1))
            : "");
  return text;
}

// Of a plan that keeps no promise there is nothing to compare.
std::string behind_text(double best, const RankedPlan& plan) {
  const double behind = plan.best_known().score / best - 1;
  return std::isfinite(behind) ? fmt::format("{:+.1f}%", 100 * behind) : "-";
}

std::string columns_text(const SearchResult& result, const RankedPlan& plan) {
  std::string text;
  for (const SearchColumn& column : result.subject->columns)
    text += fmt::format(
        "  {:>10}",
        form_text(column.form, (column.rough ? plan.rough : plan.best_known()).figure(column.key)));
  return text;
}

std::string row_text(const SearchResult& result, std::size_t index) {
  const RankedPlan& plan = result.plans[index];
  const double best = result.plans.front().best_known().score;
  return fmt::format("  {:>3}  {:>14}  {:>7}{}  {}\n", index + 1,
                     goal_text(result.goal, plan.best_known()) + (plan.fine ? "" : " *"),
                     behind_text(best, plan), columns_text(result, plan), plan.name);
}

// Where the seconds of `plan` lie that `best` does not spend.
std::string difference_text(const PlanFigures& best, const PlanFigures& plan) {
  double whole = 0;
  for (const auto& part : best.parts) whole += part.second;
  std::vector<std::pair<double, std::string>> rows;
  for (std::size_t i = 0; i < std::min(best.parts.size(), plan.parts.size()); ++i)
    rows.emplace_back(plan.parts[i].second - best.parts[i].second, best.parts[i].first);
  std::sort(rows.begin(), rows.end(),
            [](const auto& a, const auto& b) { return std::abs(a.first) > std::abs(b.first); });
  std::string text;
  for (std::size_t i = 0; i < std::min<std::size_t>(4, rows.size()); ++i) {
    if (std::abs(rows[i].first) < 1e-4 * whole) break;
    text += fmt::format("{}{} {}{}", text.empty() ? "" : ", ", rows[i].second, rows[i].first < 0 ? "-" : "+",
                        seconds_text(std::abs(rows[i].first)));
  }
  return text.empty() ? "no part of it differs by more than a ten-thousandth" : text;
}

// Of the `shown` plans.
std::string reasons_text(const SearchResult& result, std::size_t shown) {
  const PlanFigures& best = result.plans.front().best_known();
  std::string text =
      fmt::format("\nwhy the first one wins ({}, that the other spends more)\n", result.subject->parts);
  for (std::size_t i = 1; i < std::min<std::size_t>(4, shown); ++i)
    text += fmt::format("  than {:<8} {}\n", i + 1, difference_text(best, result.plans[i].best_known()));
  if (result.given)
    text += fmt::format("  than given   {}\n", difference_text(best, result.given->best_known()));
  if (result.plans.size() < 2 || best.expected_error <= 0) return text;
  const double next = result.plans[1].best_known().score / best.score - 1;
  text += fmt::format("  the next one is {:.2f}% behind; {} is known to {:.0f}% {}: {}\n", 100 * next,
                      result.subject->known, 100 * best.expected_error, result.subject->known_by,
                      next > best.expected_error ? "the difference is larger than that"
                                                 : "take the order of plans closer than that as a tie");
  return text;
}

std::string given_text(const SearchResult& result) {
  if (!result.given)
    return fmt::format("  the plan as given does not run: {}\n",
                       result.given_refusal.substr(0, result.given_refusal.find('\n')));
  const double best = result.plans.front().best_known().score;
  return fmt::format("  given  {:>12}  {:>7}{}  as the scenario says\n",
                     goal_text(result.goal, result.given->best_known()), behind_text(best, *result.given),
                     columns_text(result, *result.given));
}

}  // namespace

double PlanFigures::figure(std::string_view key) const {
  for (const auto& [name, value] : figures)
    if (name == key) return value;
  return 0;
}

std::string goal_text(SearchGoal goal, const PlanFigures& figures) {
  switch (goal) {
    case SearchGoal::kStepTime:
      return seconds_text(figures.value);
    case SearchGoal::kTokensPerDollar:
      return figure_text(figures.value) + "/$";
    case SearchGoal::kTokensPerJoule:
      return figure_text(figures.value) + "/J";
    case SearchGoal::kGoodput:
      return figure_text(figures.value) + " req/s";
    case SearchGoal::kThroughput:
      return figure_text(figures.value) + " tok/s";
  }
  return "";
}

std::string to_text(const SearchResult& result, std::size_t most) {
  std::string text = fmt::format("{}\nsearch for the best {}\n\n{}\n", result.scenario, name_of(result.goal),
                                 counts_text(result));
  if (result.plans.empty()) return text + "  nothing found\n";
  text += fmt::format("       {:>14}  {:>7}", "fluid", "behind");
  for (const SearchColumn& column : result.subject->columns) text += fmt::format("  {:>10}", column.title);
  text += "  plan\n";
  const std::size_t shown = std::min(most, result.plans.size());
  for (std::size_t i = 0; i < shown; ++i) text += row_text(result, i);
  text += given_text(result);
  if (std::any_of(result.plans.begin(), result.plans.begin() + static_cast<std::ptrdiff_t>(shown),
                  [](const RankedPlan& plan) { return !plan.fine; }))
    text += "  * at alpha-beta: not run at fluid\n";
  text += reasons_text(result, shown);
  const std::vector<Assignment>& settings = result.plans.front().settings;
  if (!settings.empty()) text += "\nthe first one as a command: --write FILE, or\n ";
  for (const Assignment& change : settings)
    text += fmt::format(" --set '{}={}'", change.pointer, change.value);
  text += "\n";
  for (const std::string& note : result.notes) text += "  " + note + "\n";
  return text + fmt::format("\n  {} {}, {:.1f} s, {:.1f} s of CPU\n", grouped(result.counts.lowered),
                            result.subject->lowered, result.wall_s, result.cpu_s);
}

}  // namespace moebius
