#include "workloads/serving/kv/kv_replay.h"

#include <deque>

#include <fmt/format.h>

#include "hw/error.h"

namespace moebius::kv {
namespace {

struct Served {
  Time end;
  std::vector<BlockHash> chain;
  Lease lease;
};

class Replay {
 public:
  explicit Replay(const ReplayCache& cache)
      : cache_(cache), index_(cache.capacity_blocks.value_or(BlockIndex::kUnbounded)) {}

  void take(TrafficRequest& request) {
    require_blocks(request);
    finish_until(request.arrival);
    Served& served = begin();
    served.chain.swap(request.blocks);
    served.end = request.arrival + cache_.service_time;
    index_.acquire(served.chain, served.lease);
    count(request, served);
    if (cache_.service_time.ns == 0) finish_first();
  }

  ReplayFigures finish() {
    finish_until(kForever);
    figures_.evicted_blocks = index_.evicted();
    figures_.resident_blocks = index_.resident();
    figures_.distinct_blocks = seen_.size();
    return figures_;
  }

 private:
  void require_blocks(const TrafficRequest& request) {
    if (request.blocks.empty())
      throw input_error(
          fmt::format("request {} of the trace has no hash_ids: nothing is known of what inputs share",
                      figures_.requests + 1));
    if (figures_.requests == 0) figures_.block_tokens = request.block_tokens;
    if (request.block_tokens != figures_.block_tokens)
      throw input_error(fmt::format("request {} of the trace has blocks of {} tokens, the first one of {}",
                                    figures_.requests + 1, request.block_tokens, figures_.block_tokens));
  }

  // All take as long, so that they end in the order in which they came. Their memory is used again.
  Served& begin() {
    if (free_.empty()) free_.emplace_back();
    open_.push_back(std::move(free_.back()));
    free_.pop_back();
    return open_.back();
  }
  void finish_first() {
    Served& served = open_.front();
    index_.release(served.chain, served.lease);
    free_.push_back(std::move(served));
    open_.pop_front();
  }
  void finish_until(Time now) {
    while (!open_.empty() && open_.front().end <= now) finish_first();
  }

  void count(const TrafficRequest& request, const Served& served) {
    const auto blocks = static_cast<std::int64_t>(served.chain.size());
    const std::int64_t hits = served.lease.blocks();
    ++figures_.requests;
    figures_.total_blocks += blocks;
    figures_.hit_blocks += hits;
    if (hits == blocks) ++figures_.requests_fully_hit;
    for (std::int64_t i = hits; i < blocks; ++i) seen_.insert(served.chain[i], 0);
    figures_.input_tokens += request.input_tokens;
    figures_.output_tokens += request.output_tokens;
    figures_.last_arrival = request.arrival;
  }

  ReplayCache cache_;
  BlockIndex index_;
  BlockTable seen_;
  std::deque<Served> open_;
  std::vector<Served> free_;
  ReplayFigures figures_;
};

}  // namespace

ReplayFigures replay(TrafficStream& traffic, const ReplayCache& cache) {
  Replay replay(cache);
  TrafficRequest request;
  while (traffic.next(request)) replay.take(request);
  return replay.finish();
}

}  // namespace moebius::kv
