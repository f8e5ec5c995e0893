#include "workloads/service_traffic.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "workloads/routing/random_stream.h"
#include "workloads/serving/plan.h"

namespace moebius {
namespace {

// Requests of a scenario's lengths: all at once, or at exponential distances.
class DrawnTraffic : public TrafficStream {
 public:
  DrawnTraffic(const ServingWorkload& work, double rate)
      : work_(work), rate_(rate), random_(RandomStream::finalise(work.seed + RandomStream::kGolden)) {}

  bool next(TrafficRequest& request) override {
    if (given_ == work_.requests) return false;
    if (rate_ > 0) now_ += time_from_seconds(-std::log(random_.unit()) / rate_);
    const RequestLengths lengths = lengths_of(work_, given_++);
    request = {};
    request.arrival = now_;
    request.input_tokens = lengths.input;
    request.output_tokens = lengths.output;
    return true;
  }

 private:
  const ServingWorkload& work_;
  double rate_;
  RandomStream random_;
  int given_ = 0;
  Time now_;
};

}  // namespace

std::unique_ptr<RequestFeed> request_feed(const Scenario& scenario) {
  const ServiceTraffic& traffic = scenario.traffic;
  auto stream = std::make_unique<DrawnTraffic>(scenario.served, traffic.rate);
  if (traffic.users > 0) return std::make_unique<ClosedFeed>(std::move(stream), traffic.users);
  return std::make_unique<OpenFeed>(std::move(stream), traffic.rate_scale);
}

}  // namespace moebius
