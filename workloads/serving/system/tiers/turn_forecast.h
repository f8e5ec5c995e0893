// What will be asked for next, told from what was asked for so far: chains that go on where one before them
// ended are turns of a session, chains with one first block are of one kind. Nothing is known of clients but
// the blocks of their prompts and when they came.
#pragma once

#include <array>
#include <cstdint>
#include <queue>
#include <unordered_map>
#include <utility>
#include <vector>

#include "hw/units.h"
#include "workloads/serving/kv/block_index.h"
#include "workloads/serving/system/tiers/tier_plan.h"

namespace moebius {

// Blocks that will be needed on the node of that replica.
struct ExpectedChain {
  std::int32_t replica = 0;
  std::vector<kv::BlockHash> chain;
};

class TurnForecast {
 public:
  explicit TurnForecast(PrefetchAhead ahead) : ahead_(ahead) {}

  // A prompt came to a replica.
  void came(std::int32_t replica, kv::Chain chain, Time now);
  // What is due by now, one after the other; false: nothing more.
  bool take_due(Time now, ExpectedChain& due);

  // Sessions: the tenth percentile of the pauses between turns so far; nothing before kFewest of them.
  // Kinds: the shortest of the last pauses of that kind, all of which are known.
  static constexpr std::size_t kPauses = 256, kFewest = 16, kPausesOfKind = 4;
  Time pause_of_sessions() const { return pause_; }

 private:
  static constexpr std::size_t kMostWaiting = 1 << 16;  // of either kind; then what comes is not forecast

  struct Kind {
    std::vector<kv::BlockHash> last;  // chain of the last one
    Time came;
    std::array<Time, kPausesOfKind> pauses{};
    std::int64_t seen = 0;
  };
  struct Due {
    Time when;
    std::int64_t order = 0;
    ExpectedChain what;
    bool operator>(const Due& other) const {
      return std::pair(when, order) > std::pair(other.when, other.order);
    }
  };
  void learn_session(std::int32_t replica, kv::Chain chain, Time now);
  void learn_kind(std::int32_t replica, kv::Chain chain, Time now);
  void note_pause(Time pause);
  void expect(Time when, std::int32_t replica, kv::Chain chain);

  PrefetchAhead ahead_;
  std::unordered_map<kv::BlockHash, Time> turns_;  // by the last block of a chain: when it came
  std::vector<Time> pauses_;
  std::size_t next_pause_ = 0;
  std::int64_t seen_ = 0, order_ = 0;
  Time pause_;
  std::unordered_map<kv::BlockHash, Kind> kinds_;  // by first block
  std::priority_queue<Due, std::vector<Due>, std::greater<>> waiting_;
};

}  // namespace moebius
