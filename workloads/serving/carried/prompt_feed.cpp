#include "workloads/serving/carried/prompt_feed.h"

#include <utility>

namespace moebius {
namespace {

class HeldTraffic : public TrafficStream {
 public:
  explicit HeldTraffic(const std::vector<TrafficRequest>& requests) : requests_(requests) {}

  bool next(TrafficRequest& request) override {
    if (given_ == requests_.size()) return false;
    request = requests_[given_++];
    return true;
  }

 private:
  const std::vector<TrafficRequest>& requests_;
  std::size_t given_ = 0;
};

}  // namespace

std::unique_ptr<RequestFeed> carried_feed(const CarriedService& service) {
  auto stream = std::make_unique<HeldTraffic>(service.requests);
  std::unique_ptr<RequestFeed> feed;
  if (service.users > 0) {
    feed = std::make_unique<ClosedFeed>(std::move(stream), service.users);
  } else {
    feed = std::make_unique<OpenFeed>(std::move(stream), service.rate_scale);
  }
  if (service.classes.size() < 2) return feed;
  return classified(std::move(feed), service.classes, service.workload.seed);
}

}  // namespace moebius
