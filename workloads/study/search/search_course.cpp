#include "workloads/study/search/search_course.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>
#include <tuple>

#include <fmt/format.h>

#include "hw/error.h"
#include "hw/stopwatch.h"
#include "workloads/crew.h"
#include "workloads/report/number_text.h"

namespace moebius {

bool SearchEntry::operator>(const SearchEntry& other) const {
  return std::tie(bound, order, other.level, group, bundle) >
         std::tie(other.bound, other.order, level, other.group, other.bundle);
}

// The best are still to run at the finer clock when the others have been looked at.
bool SearchCourse::late_to_look() const {
  constexpr double kForLooking = 0.7;
  return late(request_.refine > 0 ? kForLooking : 1);
}

bool SearchCourse::late(double share) const {
  const double spent = seconds_since(started_);
  return (request_.time_limit_s > 0 && spent > share * request_.time_limit_s) || request_.stopped();
}

bool SearchCourse::out_of_time(bool late) {
  if (late) result_.ended = request_.stopped() ? "the user" : "the time limit";
  return !result_.ended.empty();
}

double SearchCourse::threshold() const {
  if (!request_.prune || static_cast<int>(found_.size()) < request_.top)
    return std::numeric_limits<double>::infinity();
  return found_[request_.top - 1].rough.score;
}

void SearchCourse::open_groups(std::size_t count, const std::function<SearchEntry(std::size_t)>& begin) {
  std::vector<SearchEntry> entries(count);
  constexpr std::size_t kShown = 64;
  std::mutex mutex;
  std::size_t done = 0;
  work_side_by_side(
      count,
      [&](std::size_t i) {
        entries[i].group = static_cast<std::int32_t>(i);
        if (!late_to_look()) entries[i] = begin(i);
        const std::lock_guard lock(mutex);
        if (++done % kShown == 0)
          request_.progress(0, fmt::format("bounds of {} of {} groups", grouped(done), grouped(count)));
      },
      true);
  for (const SearchEntry& entry : entries) open_.push(entry);
  if (!open_.empty()) first_bound_ = open_.top().bound;
}

void SearchCourse::look(SearchQueue& open, const Look& looked_at, const std::function<bool()>& enough,
                        std::size_t together) {
  while (!open.empty() && open.top().bound < threshold() && !enough()) {
    if (out_of_time(late_to_look())) break;
    std::vector<SearchEntry> now;
    while (now.size() < together && !open.empty() && open.top().bound < threshold()) {
      now.push_back(open.top());
      open.pop();
    }
    std::vector<SearchNext> next(now.size());
    work_side_by_side(
        now.size(),
        [&](std::size_t i) {
          next[i] = late_to_look() ? SearchNext{{now[i]}, {}} : looked_at(now[i]);
        },
        true);
    for (SearchNext& each : next) take(each, open);
    show_progress();
  }
}

void SearchCourse::look_for_best(const Look& looked_at) {
  constexpr std::size_t kTogether = 16;
  look(
      open_, looked_at, [] { return false; }, kTogether);
  result_.complete = result_.ended.empty();
  if (!result_.complete && !open_.empty()) result_.open_bound = open_.top().bound;
}

void SearchCourse::take(SearchNext& next, SearchQueue& open) {
  for (const SearchEntry& entry : next.entries) open.push(entry);
  for (RankedPlan& plan : next.found) {
    const auto after =
        std::upper_bound(found_.begin(), found_.end(), plan, [](const RankedPlan& a, const RankedPlan& b) {
          return std::tie(a.rough.score, a.rough.tie) < std::tie(b.rough.score, b.rough.tie);
        });
    found_.insert(after, std::move(plan));
  }
  result_.counts.too_large += next.too_large;
  result_.counts.rough += next.ran;
  if (next.refusal.empty()) return;
  if (result_.counts.refused++ == 0) result_.refusal = next.refusal;
}

// How far the bound of what is left has come from the first one to the best.
double SearchCourse::share_done() const {
  const double limit = threshold();
  if (std::isinf(limit) || open_.empty()) return 0;
  return std::clamp((open_.top().bound - first_bound_) / std::max(1e-12, limit - first_bound_), 0.0, 1.0);
}

void SearchCourse::show_progress() const {
  const std::string best =
      found_.empty() ? "" : ", the best " + goal_text(result_.goal, found_.front().best_known());
  request_.progress(share_done(), fmt::format("{} plans run{}; {} groups and plans to look at",
                                              grouped(result_.counts.rough), best, grouped(open_.size())));
}

// Several at a time, in the rough order.
void SearchCourse::refine(const CarryOut& fine, bool comparable) {
  if (request_.stopped()) return;
  constexpr std::size_t kTogether = 8;
  const std::size_t most = std::min<std::size_t>(found_.size(), std::max(0, request_.refine));
  const auto top = static_cast<std::size_t>(request_.top);
  std::vector<double> scores;
  for (std::size_t i = 0; i < most; i += kTogether) {
    std::sort(scores.begin(), scores.end());
    if (comparable && scores.size() >= top && found_[i].rough.score > scores[top - 1]) break;
    if (i > 0 && out_of_time(late())) break;
    const std::size_t count = std::min(kTogether, most - i);
    request_.progress(static_cast<double>(i) / static_cast<double>(most),
                      fmt::format("the best at fluid: {} of {}", i, most));
    for (const std::size_t ran : run_fine(i, count, fine)) scores.push_back(found_[ran].fine->score);
  }
  result_.counts.fine += static_cast<std::int64_t>(scores.size());
  // Those that ran at the finer clock first, by it.
  std::stable_sort(found_.begin(), found_.end(), [](const RankedPlan& a, const RankedPlan& b) {
    const PlanFigures &of_a = a.best_known(), &of_b = b.best_known();
    return std::tuple(!a.fine, of_a.score, of_a.tie) < std::tuple(!b.fine, of_b.score, of_b.tie);
  });
}

// Which of them ran: one late in the day does not, but for the first one.
std::vector<std::size_t> SearchCourse::run_fine(std::size_t from, std::size_t count, const CarryOut& fine) {
  work_side_by_side(
      count,
      [&](std::size_t k) {
        if (from + k > 0 && late()) return;
        found_[from + k].fine = fine(found_[from + k]);
      },
      true);
  std::vector<std::size_t> ran;
  for (std::size_t k = from; k < from + count; ++k)
    if (found_[k].fine) ran.push_back(k);
  return ran;
}

// What was looked at before the end may all be worse than the plan that the search began with.
bool SearchCourse::given_is_best() const {
  if (!result_.given || result_.plans.empty()) return result_.given.has_value();
  const double best = result_.plans.front().best_known().score;
  return !result_.complete && result_.given->best_known().score < best;
}

void SearchCourse::count() {
  SearchCounts& counts = result_.counts;
  const std::int64_t rest = counts.legal - counts.too_large - counts.rough - counts.refused;
  (result_.complete ? counts.bounded : counts.left) = rest;
  if (counts.legal == 0 && result_.complete)
    throw run_error(fmt::format("{}: no plan of those to search is legal", result_.scenario));
  result_.plans = std::move(found_);
  if (given_is_best()) result_.plans.insert(result_.plans.begin(), *result_.given);
  if (result_.plans.empty() && counts.refused > 0) throw input_error(result_.refusal);
  if (result_.plans.empty() && result_.complete)
    throw run_error(fmt::format("{}: none of {} legal plans fits", result_.scenario, counts.legal));
}

}  // namespace moebius
