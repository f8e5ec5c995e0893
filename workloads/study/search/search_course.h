// The course of a search, whatever it is for: what is not yet known to be behind is looked at in the order of
// what it could reach at best, a bound that gets tighter step by step, until nothing left can come among the
// best; then the best run at the finer clock. What entries are and how they are looked at, the search says.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <queue>
#include <string>
#include <vector>

#include "workloads/study/search/search_request.h"

namespace moebius {

// Plans that are alike in what is known of them so far.
struct SearchEntry {
  double bound = 0;        // no score of theirs is below
  double order = 0;        // of equal bounds, the lower one is looked at first
  std::uint8_t level = 0;  // how much is known: the search's own steps, from coarse to fine
  std::int32_t group = 0, bundle = 0;

  bool operator>(const SearchEntry& other) const;
};
using SearchQueue = std::priority_queue<SearchEntry, std::vector<SearchEntry>, std::greater<>>;

// What becomes of an entry that is looked at.
struct SearchNext {
  std::vector<SearchEntry> entries;
  std::vector<RankedPlan> found;
  std::int64_t too_large = 0, ran = 0;
  std::string refusal = {};  // of one plan that the scenario's reader does not take
};

class SearchCourse {
 public:
  SearchCourse(const SearchRequest& request, SearchResult& result) : request_(request), result_(result) {}

  using Look = std::function<SearchNext(const SearchEntry&)>;  // by several threads
  using CarryOut = std::function<std::optional<PlanFigures>(const RankedPlan&)>;

  // The time limit's share is spent, or the user ended it; by several threads.
  bool late(double share = 1) const;
  bool late_to_look() const;
  bool out_of_time(bool late);  // says so in the result
  double threshold() const;     // a bound from which on nothing comes among the best

  // Adds what `begin` says of every group, unless the time is up; the others come with a bound of 0.
  void open_groups(std::size_t count, const std::function<SearchEntry(std::size_t)>& begin);
  // Until nothing of `open` can come among the best, or `enough`; so many of them side by side.
  void look(SearchQueue& open, const Look& looked_at, const std::function<bool()>& enough,
            std::size_t together);
  // All that is open.
  void look_for_best(const Look& looked_at);
  // The best at the finer clock. `comparable`: it only adds to what the rough one says, so that the rest is
  // left when no other can come among the best.
  void refine(const CarryOut& fine, bool comparable);
  // Fills counts and plans of the result, of one that was ended with the plan as given where nothing better
  // was found. run_error when nothing was found and everything was looked at.
  void count();

  SearchQueue& open() { return open_; }
  const std::vector<RankedPlan>& found() const { return found_; }

 private:
  using Clock = std::chrono::steady_clock;
  void take(SearchNext& next, SearchQueue& open);
  void show_progress() const;
  double share_done() const;
  bool given_is_best() const;
  std::vector<std::size_t> run_fine(std::size_t from, std::size_t count, const CarryOut& fine);

  const SearchRequest& request_;
  SearchResult& result_;
  Clock::time_point started_ = Clock::now();
  SearchQueue open_;
  std::vector<RankedPlan> found_;  // by rough score
  double first_bound_ = 0;
};

}  // namespace moebius
