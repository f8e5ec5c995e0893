#include "workloads/serving/kv/kv_replay.h"

#include <deque>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "hw/error.h"

namespace moebius::kv {
namespace {

struct Served {
  Time end;
  std::vector<BlockHash> chain;
  std::vector<std::int64_t> next;  // requests until each block is used again, where the policy must know
  Lease lease;
};

// All requests at once, each block with the number of the next request that has it.
class KnownFuture {
 public:
  explicit KnownFuture(TrafficStream& traffic) {
    TrafficRequest request;
    while (traffic.next(request)) requests_.push_back(request);
    next_.resize(requests_.size());
    std::unordered_map<BlockHash, std::int64_t> used;
    for (std::size_t r = requests_.size(); r-- > 0;) {
      for (const BlockHash hash : requests_[r].blocks) {
        const auto known = used.find(hash);
        next_[r].push_back(known == used.end() ? BlockUse::kNever : known->second);
      }
      for (const BlockHash hash : requests_[r].blocks) used[hash] = static_cast<std::int64_t>(r);
    }
  }
  std::size_t size() const { return requests_.size(); }
  TrafficRequest& request(std::size_t r) { return requests_[r]; }
  std::vector<std::int64_t>& next(std::size_t r) { return next_[r]; }

 private:
  std::vector<TrafficRequest> requests_;
  std::vector<std::vector<std::int64_t>> next_;
};

class Replay {
 public:
  explicit Replay(const ReplayCache& cache)
      : Replay(cache, cache.capacity_blocks.value_or(BlockIndex::kUnbounded)) {}

  void take(TrafficRequest& request, std::vector<std::int64_t>* next = nullptr) {
    require_blocks(request);
    finish_until(request.arrival);
    Served& served = begin();
    served.chain.swap(request.blocks);
    if (next != nullptr) served.next.swap(*next);
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
  Replay(const ReplayCache& cache, std::int64_t capacity)
      : cache_(cache), index_(capacity, make_eviction(cache.eviction, {.capacity = capacity})) {}

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
    index_.release(served.chain, served.lease, served.next);
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
  if (cache.eviction == EvictionKind::kBelady) {
    KnownFuture future(traffic);
    for (std::size_t r = 0; r < future.size(); ++r) replay.take(future.request(r), &future.next(r));
    return replay.finish();
  }
  TrafficRequest request;
  while (traffic.next(request)) replay.take(request);
  return replay.finish();
}

}  // namespace moebius::kv
