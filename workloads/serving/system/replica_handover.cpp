// Both ends of a cache's way: what a replica holds until others have it, and what it takes in to decode.
#include <algorithm>

#include <fmt/format.h>

#include "hw/error.h"
#include "workloads/serving/system/replica.h"

namespace moebius {

// Those that were driven out come back before anybody new: pages that become free are theirs first.
bool Replica::reserve(std::int32_t id, std::int32_t prompt, std::int32_t output) {
  if (!swapped_.empty() || !waiting_.empty()) return false;
  if (occupied_ >= rules_.max_running) return false;
  if (!make_room(held_by(prompt) + kept_free(prompt, output, false))) return false;
  touch();
  hold(held_by(prompt));
  to_come_ += to_come(prompt, output);
  if (tables_ != nullptr) tables_->begin(id, {}, held_by(prompt));
  ++occupied_;
  expected_ = std::max<std::int64_t>(0, expected_ - 1);
  return true;
}

void Replica::adopt(const Sequence& sequence, Time since) {
  touch();
  expected_tokens_ = std::max<std::int64_t>(0, expected_tokens_ - sequence.prompt);
  // Its first token came with the prompt.
  decode({sequence.id, sequence.prompt, sequence.output, 0, since, sequence.priority, sequence.number,
          sequence.generated + 1});
}

std::size_t Replica::handed_over(std::int32_t id) const {
  const auto at = std::find_if(handed_over_.begin(), handed_over_.end(),
                               [id](const HandedOver& of) { return of.sequence.id == id; });
  CHECK(at != handed_over_.end(), fmt::format("sequence {} was not handed over", id));
  return static_cast<std::size_t>(at - handed_over_.begin());
}

Replica::LastChunk Replica::last_chunk(std::int32_t id) const {
  return handed_over_[handed_over(id)].chunk;
}

void Replica::release(std::int32_t id) {
  touch();
  const std::size_t at = handed_over(id);
  leave(handed_over_[at].sequence);
  handed_over_.erase(handed_over_.begin() + static_cast<std::ptrdiff_t>(at));
}

}  // namespace moebius
