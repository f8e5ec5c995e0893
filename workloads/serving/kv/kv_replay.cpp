#include "workloads/serving/kv/kv_replay.h"

#include <algorithm>
#include <deque>
#include <span>
#include <type_traits>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "hw/error.h"
#include "workloads/serving/kv/hybrid_index.h"

namespace moebius::kv {
namespace {

// One index of three, by what its leases are.
template <class Index, class Lease>
struct Structure {
  Index index;

  void acquire(Chain chain, Lease& lease) { index.acquire(chain, lease); }
  void release(Chain chain, Lease& lease, std::span<const std::int64_t> next) {
    if constexpr (std::is_same_v<Index, BlockIndex>)
      index.release(chain, lease, next);
    else
      index.release(chain, lease);
  }
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

template <class Index, class Lease>
class Replay {
  struct Served {
    Time end;
    std::vector<BlockHash> chain;
    std::vector<std::int64_t> next;  // requests until each block is used again, where the policy must know
    Lease lease;
  };
  struct Place {
    BlockHash before = 0;
    std::int32_t depth = 0;
    bool operator==(const Place&) const = default;
  };

 public:
  Replay(const ReplayCache& cache, Index index) : cache_(cache), index_{std::move(index)} {}

  void take(TrafficRequest& request, std::vector<std::int64_t>* next = nullptr) {
    require_blocks(request);
    if constexpr (!std::is_same_v<Index, BlockIndex>) require_one_place(request);
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
    figures_.evicted_blocks = index_.index.evicted();
    figures_.resident_blocks = index_.index.resident();
    figures_.index_bytes = index_.index.bytes();
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

  // A tree knows a block by the first of its run: one that stands in two places would be two.
  void require_one_place(const TrafficRequest& request) {
    const std::vector<BlockHash>& blocks = request.blocks;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      const Place place{i == 0 ? 0 : blocks[i - 1], static_cast<std::int32_t>(i)};
      if (known_.insert(blocks[i], static_cast<std::int32_t>(places_.size()))) {
        places_.push_back(place);
        continue;
      }
      if (places_[known_.find(blocks[i])] == place) continue;
      throw input_error(
          fmt::format("request {} of the trace has block {} behind others than before: expected ids that "
                      "name a block and "
                      "all before it, or structure \"hash\"",
                      figures_.requests + 1, blocks[i]));
    }
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
  Structure<Index, Lease> index_;
  BlockTable seen_;
  BlockTable known_;  // to places_; of trees
  std::vector<Place> places_;
  std::deque<Served> open_;
  std::vector<Served> free_;
  ReplayFigures figures_;
};

template <class Index, class Lease>
ReplayFigures carry_out(TrafficStream& traffic, const ReplayCache& cache, Index index) {
  Replay<Index, Lease> replay(cache, std::move(index));
  if (cache.eviction == EvictionKind::kBelady) {
    KnownFuture future(traffic);
    for (std::size_t r = 0; r < future.size(); ++r) replay.take(future.request(r), &future.next(r));
    return replay.finish();
  }
  TrafficRequest request;
  while (traffic.next(request)) replay.take(request);
  return replay.finish();
}

// Knows the size of blocks from the first request on alone.
class PeekedTraffic : public TrafficStream {
 public:
  explicit PeekedTraffic(TrafficStream& traffic) : traffic_(traffic) { there_ = traffic.next(first_); }
  std::int64_t block_tokens() const { return there_ ? first_.block_tokens : 0; }
  bool next(TrafficRequest& request) override {
    if (!there_) return traffic_.next(request);
    request = std::move(first_);
    there_ = false;
    return true;
  }

 private:
  TrafficStream& traffic_;
  TrafficRequest first_;
  bool there_ = false;
};

}  // namespace

ReplayFigures replay(TrafficStream& traffic, const ReplayCache& cache) {
  const std::int64_t capacity = cache.capacity_blocks.value_or(BlockIndex::kUnbounded);
  switch (cache.structure) {
    case IndexStructure::kHash:
      return carry_out<BlockIndex, Lease>(
          traffic, cache, BlockIndex(capacity, make_eviction(cache.eviction, {.capacity = capacity})));
    case IndexStructure::kTrie:
      return carry_out<PrefixTrie, TrieLease>(traffic, cache, PrefixTrie(capacity));
    case IndexStructure::kHybrid:
      break;
  }
  PeekedTraffic peeked(traffic);
  const std::int64_t tokens = std::max<std::int64_t>(1, peeked.block_tokens());
  return carry_out<HybridIndex, HybridLease>(peeked, cache,
                                             HybridIndex(capacity, (cache.long_from + tokens - 1) / tokens));
}

}  // namespace moebius::kv
