// The requests of a stream, each when it may go: one that goes on from an answer waits for it and for what
// the user or the tool then takes. Held are those that wait, and all that the stream has before the next one
// that does not.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "hw/units.h"
#include "workloads/serving/traffic/traffic_request.h"

namespace moebius {

class DueRequests {
 public:
  // `rate_scale`: all times of the stream, pauses too, are divided by it; 0: they are none.
  DueRequests(std::unique_ptr<TrafficStream> traffic, double rate_scale);

  // When the first of them may go, `from` or later; of those that may go at once, the first of the stream.
  // Nothing while all that is to come waits for an answer, and at the end.
  std::optional<Time> due(Time from) const;
  // That request, whose memory is used again; returns its number in the stream, from 0.
  std::int64_t take(Time from, TrafficRequest& request);
  // That request has its last token, or was rejected.
  void answered(std::int64_t number, Time now);

 private:
  struct Waiting {
    TrafficRequest request;
    std::int64_t number = 0;
    bool operator>(const Waiting& other) const {
      return std::pair(request.arrival, number) > std::pair(other.request.arrival, other.number);
    }
  };
  struct Answer {  // of a request that another may follow
    Time end = kForever;
    std::unique_ptr<Waiting> next;
  };

  bool read();
  void advance();
  bool holds_next();
  void release(Waiting waiting);
  bool first_is_released(Time from) const;

  std::unique_ptr<TrafficStream> traffic_;
  double rate_scale_;
  TrafficRequest next_;  // of the stream, and waits for nobody
  std::int64_t number_ = -1;
  bool more_ = false;
  std::unordered_map<std::int64_t, Answer> answers_;
  std::vector<Waiting> released_;  // a heap: they wait for their pause alone
};

}  // namespace moebius
