// Encoders on a pool of their own: requests with images wait for a replica that is free, which encodes those
// that came first, as many as an iteration takes.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "hw/units.h"
#include "workloads/serving/separation/encoder_timer.h"

namespace moebius {

struct EncoderRules {
  int replicas = 0;              // 0: none stand apart
  int max_batch = 1;             // images of an iteration; a request with more has iterations of its own
  EncoderTimer* cost = nullptr;  // outlives the pool
  double bytes_per_image = 0;    // of what goes to the language model
  ByteRate rate;                 // of a replica, one request after the other
  int replicas_on_port = 1;      // that share a NIC: their requests go one after the other
  Time latency;

  bool given() const { return replicas > 0; }
};

class EncoderPool {
 public:
  explicit EncoderPool(const EncoderRules& rules)
      : rules_(rules),
        running_(rules.replicas),
        ports_((rules.replicas + rules.replicas_on_port - 1) / rules.replicas_on_port) {}

  void enqueue(std::int32_t request, std::int32_t images);
  struct Begun {
    std::int32_t replica = 0;
    Time end;
  };
  std::optional<Begun> begin(Time now);  // on a free replica; nothing where none is, or nobody waits
  struct Sent {
    std::int32_t request = 0;
    Time arrival;  // of its last token's embedding at the language model
  };
  // The iteration of a replica has ended, and what it made goes out.
  void end(std::int32_t replica, Time now, std::vector<Sent>& sent);

  // From now until images of a request that comes now are at the language model, behind those that wait, as
  // if these were spread over all replicas.
  Time forecast(Time now, std::int32_t images) const;

  struct Totals {
    std::int64_t iterations = 0, images = 0;
    Time busy;
    double sent_bytes = 0;
  };
  const Totals& totals() const { return totals_; }

 private:
  struct Waiting {
    std::int32_t request = 0, images = 0;
  };
  struct Running {
    bool busy = false;
    Time ends;
    std::vector<Waiting> requests = {};
  };

  EncoderRules rules_;
  std::deque<Waiting> waiting_;
  std::int64_t waiting_images_ = 0;
  std::vector<Running> running_;  // by replica
  std::vector<Time> ports_;       // free again
  Totals totals_;
};

}  // namespace moebius
