// When requests come: as traffic says, or when users who wait for an answer can ask again.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <queue>
#include <vector>

#include "hw/units.h"
#include "workloads/serving/system/due_requests.h"

namespace moebius {

struct Arrival {
  TrafficRequest request;          // its arrival is now
  std::int32_t service_class = 0;  // which of the service goals it is held to
  std::int64_t tag = 0;            // its number in the traffic, from 0
};

class RequestFeed {
 public:
  virtual ~RequestFeed() = default;
  // When the next request comes, as far as it is known; nothing while all that is to come waits for an
  // answer, and at the end.
  virtual std::optional<Time> due() = 0;
  // That request, into `arrival`, whose memory is used again; due() has said that there is one.
  virtual void take(Arrival& arrival) = 0;
  // Request `tag` has its last token, or was rejected: others may become due, never before `now`.
  virtual void answered(std::int64_t tag, Time now) = 0;
};

// At the times of the traffic, divided by `rate_scale`; what goes on from an answer, not before its pause
// after that.
class OpenFeed : public RequestFeed {
 public:
  explicit OpenFeed(std::unique_ptr<TrafficStream> traffic, double rate_scale = 1);
  std::optional<Time> due() override;
  void take(Arrival& arrival) override;
  void answered(std::int64_t tag, Time now) override;

 private:
  DueRequests requests_;
};

// So many users, each of whom asks again at once when answered, whatever the traffic says of times: how
// servers are measured at a fixed concurrency. What goes on from an answer that is not there yet is left to
// whoever asks next.
class ClosedFeed : public RequestFeed {
 public:
  ClosedFeed(std::unique_ptr<TrafficStream> traffic, std::int64_t users);
  std::optional<Time> due() override;
  void take(Arrival& arrival) override;
  void answered(std::int64_t tag, Time now) override;

 private:
  DueRequests requests_;
  // When users are free to ask. Answers on a long way back are said early: the first in time is not the one
  // that was said first.
  std::priority_queue<Time, std::vector<Time>, std::greater<>> free_;
};

}  // namespace moebius
