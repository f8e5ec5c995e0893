// What is kept of the course of a service: how full its pools were on a bounded grid, and, where it is asked
// for, a timeline: a lane for each instance with its iterations, and lanes for requests, as many as may be in
// the system at once up to a limit: a request without a free lane is left out.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "workloads/schedule/recorder.h"
#include "workloads/serving/system/service_observer.h"

namespace moebius {

// Equal steps of time from 0 on, a power of two of a second each. A step holds how full pools were at its
// beginning, before whatever happened at that moment.
struct ServiceSeries {
  Time step;
  std::vector<std::vector<PoolMoment>> moments;  // by step, by pool
};

struct RecordedPool {
  std::string name;
  int instances = 1, ranks = 1;  // ranks of an instance
};

class ServiceRecord : public ServiceObserver {
 public:
  // `options`: detail none keeps no timeline, others one; what does not fit in max_bytes or comes after the
  // window is left out, and counted. Counters of the timeline are sampled as options.counters says, or on
  // the grid of the series; those of a pool of several instances stand on a class of the whole pool.
  ServiceRecord(std::vector<RecordedPool> pools, const RecorderOptions& options);

  void iteration(std::int32_t instance, Time begin, Time end, bool prompts, bool decodes,
                 std::int64_t rows) override;
  void finished(const RequestMoments& request) override;
  Time due() const override { return std::min(due_, counters_due_); }
  void sample(Time until, const std::vector<PoolMoment>& pools) override;

  const ServiceSeries& series() const { return series_; }
  // Ends the record; what was left out stands among its facts.
  Timeline take();
  std::int64_t dropped() const { return dropped_; }

  static constexpr int kMostSteps = 240, kRequestLanes = 64;
  static constexpr Time kFirstStep{1'000'000'000 / 512};  // twice as long whenever there would be too many

 private:
  enum Fragment { kPrefill, kDecode, kMixed, kQueue, kPrompt, kHandover, kAnswer };
  void keep(Fragment what, std::int32_t lane, Time begin, Time end, std::int64_t rows);
  bool fits(Time begin, double bytes);
  void halve();
  void add_to_series(Time until, const std::vector<PoolMoment>& pools);
  void count(Time time, const std::vector<PoolMoment>& pools);
  void count_series();

  std::vector<RecordedPool> pools_;
  RecorderOptions options_;
  ServiceSeries series_;
  Time due_, counters_due_ = kForever;
  std::vector<PoolMoment> counted_;  // by pool, as the timeline says last; empty: nothing yet
  std::vector<std::int32_t> pool_class_;
  Timeline timeline_;
  std::int32_t instances_ = 0;
  std::vector<Time> lane_free_;  // of request lanes
  double bytes_ = 0;
  std::int64_t dropped_ = 0, dropped_samples_ = 0;
  std::int64_t left_out_ = 0;  // requests
};

}  // namespace moebius
