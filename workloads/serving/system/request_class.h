// Classes of requests: what each is promised, which requests belong to it, and the path they take.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "workloads/serving/plan.h"
#include "workloads/serving/system/request_feed.h"

namespace moebius {

inline constexpr int kMostPools = 64;  // of a service: a class names its pools by bits

struct RequestClass {
  std::string name;
  ServiceGoal goal;
  double share = 1;                // of the requests that may belong to it, over the shares of other classes
  std::int64_t longest_input = 0;  // tokens of a prompt that may belong to it; 0: any
  std::int32_t priority = 0;       // prompts of a higher one are computed first
  std::uint64_t pools = ~std::uint64_t{0};  // bit by pool of the service: those that may serve it
};

// The feed, with a class drawn for each request from those that its prompt may belong to: a function of the
// seed and the number of the request. CHECK: some class takes prompts of any length.
std::unique_ptr<RequestFeed> classified(std::unique_ptr<RequestFeed> feed, std::vector<RequestClass> classes,
                                        std::uint64_t seed);

}  // namespace moebius
