// What became of the requests, counted while the system runs: memory does not grow with their number.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "hw/units.h"
#include "workloads/serving/figures.h"
#include "workloads/serving/plan.h"
#include "workloads/serving/system/latency_histogram.h"
#include "workloads/serving/system/replica.h"

namespace moebius {

// The moments of one request; kForever: not yet.
struct RequestMoments {
  Time arrival;
  Time encoded = kForever;   // its images are there, from encoders that stand apart; kForever: none came
  Time admitted = kForever;  // its first prompt token is scheduled
  Time first_token = kForever;
  Time handed_over = kForever;  // its cache stands where it decodes; first_token where nothing moves
  Time last_token = kForever;
  // Of the link to a pool that stands elsewhere: until the prompt is there, and from when the first and the
  // last token are made until the user has them.
  Time there, first_back, last_back;
  Time received;  // of `there`: what the host takes before a request can be scheduled
  Time moved;     // before the first token, where that comes with the cache: since its prompt was computed
  std::int32_t input = 0, output = 0;
  std::int32_t brought = 0;  // of `output`: tokens that were there when it came
  std::int32_t service_class = 0;
};

// Where the time of finished requests went, in seconds of all requests together.
struct TimeShares {
  double encode = 0, queue = 0, prefill = 0, handover = 0, decode = 0, network = 0, reception = 0;
};

// Why a request is not served.
enum class Rejection : std::uint8_t {
  kTooLong,     // for the cache of any replica that it may go to
  kTurnedAway,  // by admission
};

struct ClassFigures {
  std::int64_t submitted = 0, completed = 0, rejected = 0, met = 0;
  std::int64_t turned_away = 0;        // of those rejected
  std::int64_t input = 0, output = 0;  // tokens of those completed
  LatencyHistogram ttft, tpot, e2e;
};

// Requests that were promised something: whoever is promised nothing keeps no promise and breaks none.
struct PromisedRequests {
  std::int64_t submitted = 0, met = 0;
};

// How many requests were in the system when the last one came, and when the last but at most half of them
// did.
struct Backlog {
  std::int64_t submitted = 0, last = 0, earlier = 0, earlier_submitted = 0;
  double arriving = 0;  // share of the time from the first request to the last answer until the last one came
  // Most came before they could be answered, and ever more of them: then what a request takes grows with the
  // length of the trace.
  bool grows() const;
};

class ServiceMetrics {
 public:
  explicit ServiceMetrics(std::vector<ServiceGoal> goals);  // by service class; at least one

  void submitted(std::int32_t service_class, Time now) {
    ++classes_[service_class].submitted;
    first_ = std::min(first_, now);
    in_system_ = ++submitted_ - finished_;
    last_ = now;
    if (std::has_single_bit(static_cast<std::uint64_t>(submitted_)))
      in_system_at_[std::countr_zero(static_cast<std::uint64_t>(submitted_))] = in_system_;
  }
  void rejected(std::int32_t service_class, Rejection why) {
    ++classes_[service_class].rejected;
    classes_[service_class].turned_away += why == Rejection::kTurnedAway ? 1 : 0;
    ++finished_;
  }
  void finished(const RequestMoments& request);
  void tokens(const std::vector<TokenGap>& gaps);

  std::int64_t finished() const { return finished_; }  // requests, of all classes; answered or rejected
  const std::vector<ClassFigures>& classes() const { return classes_; }
  const std::vector<ServiceGoal>& goals() const { return goals_; }
  PromisedRequests promised() const;  // of all classes where none is promised anything
  const TimeShares& shares() const { return shares_; }
  Backlog backlog() const;
  // From the first arrival until the last user has the last token: what rates, busy shares and costs are
  // over.
  Time span() const { return std::max(Time{}, end_ - first_); }
  ServingFigures figures() const;  // of all classes together

 private:
  std::vector<ServiceGoal> goals_;
  std::vector<ClassFigures> classes_;
  LatencyHistogram itl_;
  TimeShares shares_;
  std::int64_t submitted_ = 0, finished_ = 0, in_system_ = 0;  // in_system_: with the request that came last
  std::array<std::int64_t, 64> in_system_at_{};                // with the 2^i-th one
  std::int64_t input_ = 0, output_ = 0;                        // tokens of finished requests
  Time first_ = kForever, last_, end_;                         // first and last arrival, last answer
};

}  // namespace moebius
