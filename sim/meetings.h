// Where the members of a communication op find each other. A collective's transfer begins when all classes of
// its group have come; a message begins when it is sent, and waits for its receiver.
#pragma once

#include <cstdint>
#include <deque>
#include <memory_resource>
#include <unordered_map>
#include <vector>

#include "hw/units.h"
#include "sim/network/transfer.h"

namespace moebius {

struct SimulatedMeeting {
  std::int64_t place = 0;  // the group, or sender and receiver
  std::int32_t step = 0, microbatch = 0;
  std::uint32_t match = 0;
  bool operator==(const SimulatedMeeting&) const = default;
};

struct Meeting {
  SimulatedMeeting key;
  bool is_kept = false;             // others find it by its key
  std::vector<std::int32_t> lanes;  // of the members that have come and end with the transfer
  const TransferPlan* plan = nullptr;
  std::size_t next_step = 0;
  std::uint64_t id = 0;        // orders transfers
  Time begin;                  // of the transfer
  int parts = 1;               // that have not ended: what the network moves, what each chip copies or posts
  std::int32_t receiver = -1;  // lane that waits for the message
  bool delivered = false;      // the message, before its receiver came
};

class Meetings {
 public:
  Meetings() : index_(&pool_) {}

  // The meeting with this key, a new one if no one else has come yet. Slots stay until close().
  std::int32_t find_or_open(const SimulatedMeeting& key);
  // A meeting that no one else will look for.
  std::int32_t open();
  void close(std::int32_t slot);
  Meeting& operator[](std::int32_t slot) { return slots_[slot]; }

 private:
  struct Hash {
    std::size_t operator()(const SimulatedMeeting& key) const;
  };

  std::deque<Meeting> slots_;  // a deque: meetings stay in place while others open
  std::vector<std::int32_t> free_;
  std::pmr::unsynchronized_pool_resource pool_;
  std::pmr::unordered_map<SimulatedMeeting, std::int32_t, Hash> index_;
};

}  // namespace moebius
