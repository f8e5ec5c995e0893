#include "workloads/service/traffic.h"

#include <utility>

#include "workloads/serving/plan.h"

namespace moebius {
namespace {

// Requests of a batch, all at once.
class BatchTraffic : public TrafficStream {
 public:
  explicit BatchTraffic(const ServingWorkload& work) : work_(work) {}

  bool next(TrafficRequest& request) override {
    if (given_ == work_.requests) return false;
    const RequestLengths lengths = lengths_of(work_, given_++);
    request = {};
    request.input_tokens = lengths.input;
    request.output_tokens = lengths.output;
    return true;
  }

 private:
  const ServingWorkload& work_;
  int given_ = 0;
};

class FirstRequests : public TrafficStream {
 public:
  FirstRequests(std::unique_ptr<TrafficStream> traffic, std::int64_t most)
      : traffic_(std::move(traffic)), left_(most) {}
  bool next(TrafficRequest& request) override { return left_-- > 0 && traffic_->next(request); }

 private:
  std::unique_ptr<TrafficStream> traffic_;
  std::int64_t left_;
};

}  // namespace

std::unique_ptr<RequestFeed> request_feed(const Scenario& scenario) {
  const ServiceTraffic& traffic = scenario.traffic;
  std::unique_ptr<TrafficStream> stream;
  if (traffic.source) {
    stream = scenario.service.prefix_cache ? open_traffic_of_one_block_size(*traffic.source, true)
                                           : open_traffic(*traffic.source);
    if (scenario.served.requests > 0)
      stream = std::make_unique<FirstRequests>(std::move(stream), scenario.served.requests);
  } else {
    stream = std::make_unique<BatchTraffic>(scenario.served);
  }
  std::unique_ptr<RequestFeed> feed;
  if (traffic.users > 0) {
    feed = std::make_unique<ClosedFeed>(std::move(stream), traffic.users);
  } else {
    feed = std::make_unique<OpenFeed>(std::move(stream), traffic.rate_scale);
  }
  const std::vector<RequestClass>& classes = scenario.service.classes;
  return classes.size() > 1 ? classified(std::move(feed), classes, scenario.seed) : std::move(feed);
}

}  // namespace moebius
