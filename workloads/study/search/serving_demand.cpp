#include "workloads/study/search/serving_demand.h"

#include <algorithm>
#include <numeric>
#include <unordered_set>

#include "hw/error.h"
#include "workloads/service/traffic.h"

namespace moebius {
namespace {

// Blocks that came before, each of which stands for all of an input up to its end.
class SeenBlocks {
 public:
  std::int64_t fresh_of(const TrafficRequest& request) {
    std::int64_t known = 0;
    for (std::size_t i = 0; i < request.blocks.size(); ++i) {
      const bool is_new = seen_.insert(request.blocks[i]).second;
      if (!is_new && known == static_cast<std::int64_t>(i)) ++known;
    }
    const std::int64_t cached = std::min(request.input_tokens, known * request.block_tokens);
    return std::max<std::int64_t>(1, request.input_tokens - cached);
  }

 private:
  std::unordered_set<std::uint64_t> seen_;
};

template <class Count>
ServingDemand::Orders orders_by(const std::vector<DemandedRequest>& requests, Count count) {
  ServingDemand::Orders orders;
  for (std::size_t w = 0; w < kKeyWeights.size(); ++w) {
    orders[w].resize(requests.size());
    std::iota(orders[w].begin(), orders[w].end(), 0);
    std::stable_sort(orders[w].begin(), orders[w].end(), [&](std::int32_t a, std::int32_t b) {
      return count(requests[a])[w] < count(requests[b])[w];
    });
  }
  return orders;
}

}  // namespace

// Those that no cache can spare stand at the end, and attend to all before them; keys are rounded where they
// are interpolated.
TokenCounts DemandedRequest::prompt_counts() const {
  TokenCounts counts;
  const double keys = std::max(0.0, static_cast<double>(input) - static_cast<double>(fresh) / 2 - 1);
  for (std::size_t w = 0; w < counts.size(); ++w)
    counts[w] = static_cast<double>(fresh) * (1 + kKeyWeights[w] * keys);
  return counts;
}

TokenCounts DemandedRequest::answer_counts() const {
  TokenCounts counts;
  for (std::size_t w = 0; w < counts.size(); ++w)
    counts[w] = static_cast<double>(output - 1) * (1 + kKeyWeights[w] * static_cast<double>(input));
  return counts;
}

void keep_first_requests(Scenario& scenario, std::int64_t most) {
  int& requests = scenario.served.requests;
  requests = static_cast<int>(requests > 0 ? std::min<std::int64_t>(requests, most) : most);
}

ServingDemand demand_of(const Scenario& whole, std::int64_t most) {
  Scenario scenario = whole;
  keep_first_requests(scenario, most);
  const std::unique_ptr<RequestFeed> feed = request_feed(scenario);
  const bool shared = scenario.service.prefix_cache;
  SeenBlocks seen;
  ServingDemand demand;
  Arrival arrival;
  while (const std::optional<Time> due = feed->due()) {
    feed->take(arrival);
    feed->answered(arrival.tag, *due);
    const TrafficRequest& of = arrival.request;
    const DemandedRequest request{of.arrival.seconds(), of.input_tokens,
                                  std::max<std::int64_t>(1, of.output_tokens),
                                  shared ? seen.fresh_of(of) : of.input_tokens, arrival.service_class};
    demand.outputs += request.output;
    demand.most_input = std::max(demand.most_input, request.input);
    demand.most_output = std::max(demand.most_output, request.output);
    demand.least_input =
        demand.requests.empty() ? request.input : std::min(demand.least_input, request.input);
    demand.requests.push_back(request);
  }
  if (demand.requests.empty()) throw input_error(scenario.name + ": there are no requests");
  demand.by_prompt = orders_by(demand.requests, [](const auto& request) { return request.prompt_counts(); });
  demand.by_answer = orders_by(demand.requests, [](const auto& request) { return request.answer_counts(); });
  demand.last = demand.requests.back().arrival;
  demand.open = scenario.traffic.source && scenario.traffic.users == 0 && demand.last > 0;
  return demand;
}

}  // namespace moebius
