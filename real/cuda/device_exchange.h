// How ranks meet: on the host they agree on pointers, on the device events keep the order. Every member reads
// what the others brought where it stands, or brings it over from another device.
#pragma once

#include <functional>
#include <map>
#include <vector>

#include "real/cuda/device_route.h"
#include "real/exchange.h"

namespace moebius::cuda {

struct Brought {
  std::vector<Operand> operands;
  const DeviceRoute* route = nullptr;  // of routed ops
  EventRef ready;                      // from here the operands may be read
  int device = 0;                      // where they stand
  // Of a dispatch, by part and member: the rows for members on other devices.
  std::vector<std::vector<Operand>> packed = {};
};

struct Message {
  TensorRef value;
  EventRef ready;
  int device = 0;  // where it stands
};

class DeviceExchange {
 public:
  using All = std::vector<const Brought*>;  // by member

  explicit DeviceExchange(Monitor& monitor) : monitor_(monitor) {}

  // Waits for every member, calls take with what they brought, and returns when all have taken: the events
  // after which members have read. `take` gives the reading to its stream and returns the event behind it.
  std::vector<EventRef> meet(const MeetingKey& key, const Caller& caller, const Brought& mine,
                             const std::function<EventRef(const All&)>& take);

  void send(const MeetingKey& key, Message message);  // returns at once
  Message receive(const MeetingKey& key, const Caller& caller);

 private:
  struct Meeting {
    All brought;
    std::vector<EventRef> read;  // by member
    std::size_t arrived = 0, taken = 0, left = 0;
  };

  Monitor& monitor_;
  std::map<MeetingKey, Meeting> meetings_;
  std::map<MeetingKey, std::vector<Message>> messages_;  // oldest first
};

}  // namespace moebius::cuda
