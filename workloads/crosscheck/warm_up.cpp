#include "workloads/crosscheck/warm_up.h"

#include <algorithm>
#include <numeric>

namespace moebius {

std::shared_ptr<const RecordedSchedule> twice(const RecordedSchedule& schedule) {
  auto both = std::make_shared<RecordedSchedule>(schedule);
  const auto count = static_cast<std::int32_t>(schedule.submissions.size());
  std::vector<std::int32_t> all(schedule.submissions.size());
  std::iota(all.begin(), all.end(), 0);
  both->submissions.reserve(2 * schedule.submissions.size());
  for (Submission again : schedule.submissions) {
    again.sequence += count;
    for (std::int32_t& before : again.after) before += count;
    for (Follow& follow : again.follows) follow.sequence += count;
    if (again.after.empty()) again.after = all;
    both->submissions.push_back(std::move(again));
  }
  return both;
}

namespace {

// The new number of each submission, by the old one; -1: it is left out.
std::vector<std::int32_t> renumber(Timeline& timeline,
                                   const std::function<bool(const SubmissionRow&)>& counts) {
  std::vector<std::int32_t> number(timeline.submissions.size(), -1);
  std::vector<SubmissionRow> kept;
  std::vector<std::int32_t> afters;
  for (const SubmissionRow& row : timeline.submissions) {
    if (!counts(row)) continue;
    number[row.sequence] = static_cast<std::int32_t>(kept.size());
    SubmissionRow& mine = kept.emplace_back(row);
    mine.sequence = number[row.sequence];
    mine.first_after = static_cast<std::int32_t>(afters.size());
    for (std::int32_t i = row.first_after; i < row.first_after + row.num_after; ++i)
      if (const std::int32_t before = number[timeline.afters[i]]; before >= 0) afters.push_back(before);
    mine.num_after = static_cast<std::int32_t>(afters.size()) - mine.first_after;
  }
  std::vector<FollowRow> follows;
  for (FollowRow row : timeline.follows) {
    row.sequence = number[row.sequence], row.before_sequence = number[row.before_sequence];
    if (row.sequence >= 0 && row.before_sequence >= 0) follows.push_back(row);
  }
  timeline.submissions = std::move(kept);
  timeline.follows = std::move(follows);
  timeline.afters = std::move(afters);
  return number;
}

// Later by less; what is not set stays so.
void shift(Span& span, Time by) {
  for (Time* time : {&span.first_end, &span.mean_end, &span.work_start})
    if (time->ns != 0) *time = std::max(Time{0}, *time - by);
  span.start = span.start - by;
  span.end = span.end - by;
}

}  // namespace

Timeline only(Timeline timeline, const std::function<bool(const SubmissionRow&)>& counts) {
  const std::vector<std::int32_t> number = renumber(timeline, counts);
  std::erase_if(timeline.spans, [&](const Span& span) { return number[span.sequence] < 0; });
  Time first = timeline.spans.empty() ? Time{0} : kForever;
  for (const Span& span : timeline.spans) first = std::min(first, span.start);
  for (Span& span : timeline.spans) {
    span.sequence = number[span.sequence];
    shift(span, first);
  }
  std::erase_if(timeline.samples, [&](const CounterSample& sample) { return sample.time < first; });
  for (CounterSample& sample : timeline.samples) sample.time = sample.time - first;
  return timeline;
}

Time last_end(const Timeline& timeline) {
  Time last;
  for (const Span& span : timeline.spans) last = std::max(last, span.end);
  return last;
}

}  // namespace moebius
