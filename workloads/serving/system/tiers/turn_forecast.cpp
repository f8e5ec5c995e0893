#include "workloads/serving/system/tiers/turn_forecast.h"

#include <algorithm>

namespace moebius {

void TurnForecast::came(std::int32_t replica, kv::Chain chain, Time now) {
  if (chain.empty() || ahead_ == PrefetchAhead::kNone) return;
  if (ahead_ != PrefetchAhead::kPattern) learn_session(replica, chain, now);
  if (ahead_ != PrefetchAhead::kSession) learn_kind(replica, chain, now);
}

// The latest turn before this one ends somewhere in its chain.
void TurnForecast::learn_session(std::int32_t replica, kv::Chain chain, Time now) {
  for (std::size_t i = chain.size(); i-- > 0;) {
    const auto before = turns_.find(chain[i]);
    if (before == turns_.end()) continue;
    note_pause(now - before->second);
    turns_.erase(before);
    break;
  }
  if (turns_.size() >= kMostWaiting) turns_.clear();
  turns_[chain.back()] = now;
  if (pauses_.size() >= kFewest) expect(now + pause_, replica, chain);
}

void TurnForecast::note_pause(Time pause) {
  if (pauses_.size() < kPauses) {
    pauses_.push_back(pause);
  } else {
    pauses_[next_pause_++ % kPauses] = pause;
  }
  if (++seen_ % static_cast<std::int64_t>(kFewest) != 0) return;
  std::vector<Time> sorted = pauses_;
  const auto tenth = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 10);
  std::nth_element(sorted.begin(), tenth, sorted.end());
  pause_ = *tenth;
}

// What two of a kind have in common is what the next one will begin with.
void TurnForecast::learn_kind(std::int32_t replica, kv::Chain chain, Time now) {
  if (kinds_.size() >= kMostWaiting && !kinds_.contains(chain.front())) return;
  Kind& kind = kinds_[chain.front()];
  if (kind.seen > 0) {
    kind.pauses[static_cast<std::size_t>(kind.seen - 1) % kPausesOfKind] = now - kind.came;
    const auto same = std::mismatch(chain.begin(), chain.end(), kind.last.begin(), kind.last.end()).first;
    const auto common = static_cast<std::size_t>(same - chain.begin());
    if (kind.seen >= static_cast<std::int64_t>(kPausesOfKind))
      expect(now + *std::min_element(kind.pauses.begin(), kind.pauses.end()), replica, chain.first(common));
  }
  ++kind.seen;
  kind.came = now;
  kind.last.assign(chain.begin(), chain.end());
}

void TurnForecast::expect(Time when, std::int32_t replica, kv::Chain chain) {
  if (waiting_.size() >= kMostWaiting) return;
  waiting_.push({when, order_++, {replica, {chain.begin(), chain.end()}}});
}

bool TurnForecast::take_due(Time now, ExpectedChain& due) {
  if (waiting_.empty() || waiting_.top().when > now) return false;
  due = waiting_.top().what;
  waiting_.pop();
  return true;
}

}  // namespace moebius
