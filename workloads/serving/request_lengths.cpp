#include "workloads/serving/request_lengths.h"

#include <algorithm>
#include <cmath>

#include "workloads/routing/random_stream.h"
#include "workloads/routing/routing.h"
#include "workloads/serving/kv/page_pool.h"

namespace moebius {
namespace {

enum LengthStream : std::uint64_t { kInputStream = 0x696e7075, kOutputStream = 0x6f757470 };

int draw_length(const LengthRange& range, std::uint64_t bits) {
  if (range.median > 0) {
    const double tokens = range.median * std::exp(range.sigma * RandomStream(bits).normal());
    return static_cast<int>(std::clamp<double>(std::round(tokens), range.low, range.high));
  }
  return range.low + static_cast<int>(random_unit(bits) * (range.high - range.low + 1));
}

}  // namespace

RequestLengths lengths_of(const ServingWorkload& workload, int request) {
  return {draw_length(workload.input, random_bits(workload.seed, kInputStream, request)),
          draw_length(workload.output, random_bits(workload.seed, kOutputStream, request))};
}

std::int64_t output_tokens(const ServingWorkload& workload) {
  std::int64_t sum = 0;
  for (int request = 0; request < workload.requests; ++request) sum += lengths_of(workload, request).output;
  return sum;
}

// The last token is never fed back.
std::int32_t cache_pages(const ServingPlan& plan, const ServingWorkload& workload) {
  const std::int64_t longest = std::int64_t{workload.input.high} + workload.output.high - 1;
  const int of_replica = (workload.requests + plan.replicas() - 1) / plan.replicas();
  return std::min(plan.max_batch, of_replica) * pages_for(longest, plan.block_tokens) + plan.padding_rows();
}

}  // namespace moebius
