#include "sim/meetings.h"

namespace moebius {

std::size_t Meetings::Hash::operator()(const SimulatedMeeting& key) const {
  std::uint64_t bits = static_cast<std::uint64_t>(key.place) * 0x9e3779b97f4a7c15u;
  bits = (bits ^ static_cast<std::uint32_t>(key.step)) * 0xbf58476d1ce4e5b9u;
  bits = (bits ^ static_cast<std::uint32_t>(key.microbatch)) * 0x94d049bb133111ebu;
  bits = (bits ^ key.match) * 0x9e3779b97f4a7c15u;
  return bits ^ bits >> 31;
}

std::int32_t Meetings::open() {
  if (free_.empty()) {
    free_.push_back(static_cast<std::int32_t>(slots_.size()));
    slots_.emplace_back();
  }
  const std::int32_t slot = free_.back();
  free_.pop_back();
  return slot;
}

std::int32_t Meetings::find_or_open(const SimulatedMeeting& key) {
  const auto found = index_.find(key);
  if (found != index_.end()) return found->second;
  const std::int32_t slot = open();
  slots_[slot].key = key;
  slots_[slot].is_kept = true;
  index_.emplace(key, slot);
  return slot;
}

void Meetings::close(std::int32_t slot) {
  Meeting& meeting = slots_[slot];
  if (meeting.is_kept) index_.erase(meeting.key);
  std::vector<std::int32_t> lanes = std::move(meeting.lanes);  // keeps its memory
  lanes.clear();
  meeting = {};
  meeting.lanes = std::move(lanes);
  free_.push_back(slot);
}

}  // namespace moebius
