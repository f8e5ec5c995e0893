#include "workloads/serving/system/request_class.h"

#include <algorithm>
#include <utility>

#include "hw/error.h"
#include "workloads/routing/random_stream.h"

namespace moebius {
namespace {

class ClassifiedFeed : public RequestFeed {
 public:
  ClassifiedFeed(std::unique_ptr<RequestFeed> feed, std::vector<RequestClass> classes, std::uint64_t seed)
      : feed_(std::move(feed)), classes_(std::move(classes)), seed_(seed) {
    const auto any = [](const RequestClass& of) { return of.longest_input == 0 && of.share > 0; };
    CHECK(std::any_of(classes_.begin(), classes_.end(), any), "no class for long prompts");
  }

  std::optional<Time> due() override { return feed_->due(); }
  void take(Arrival& arrival) override {
    feed_->take(arrival);
    arrival.service_class = draw(arrival.request.input_tokens, static_cast<std::uint64_t>(arrival.tag));
  }
  void answered(std::int64_t tag, Time now) override { feed_->answered(tag, now); }

 private:
  std::int32_t draw(std::int64_t input, std::uint64_t number) const {
    const auto share = [input](const RequestClass& of) {
      return of.longest_input == 0 || input <= of.longest_input ? of.share : 0;
    };
    double all = 0;
    for (const RequestClass& of : classes_) all += share(of);
    RandomStream stream(RandomStream::finalise(seed_ ^ kClasses) + RandomStream::kGolden * number);
    double left = all * stream.unit();
    std::int32_t chosen = 0;
    for (std::size_t i = 0; i < classes_.size() && left >= 0; ++i) {
      if (share(classes_[i]) == 0) continue;
      chosen = static_cast<std::int32_t>(i);
      left -= share(classes_[i]);
    }
    return chosen;
  }

  static constexpr std::uint64_t kClasses = 0x636c6173736573;  // its own draws of the seed
  std::unique_ptr<RequestFeed> feed_;
  std::vector<RequestClass> classes_;
  std::uint64_t seed_;
};

}  // namespace

std::unique_ptr<RequestFeed> classified(std::unique_ptr<RequestFeed> feed, std::vector<RequestClass> classes,
                                        std::uint64_t seed) {
  return std::make_unique<ClassifiedFeed>(std::move(feed), std::move(classes), seed);
}

}  // namespace moebius
