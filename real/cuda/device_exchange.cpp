#include "real/cuda/device_exchange.h"

#include <exception>
#include <utility>

#include <fmt/format.h>

#include "hw/error.h"

namespace moebius::cuda {

std::vector<EventRef> DeviceExchange::meet(const MeetingKey& key, const Caller& caller, const Brought& mine,
                                           const std::function<EventRef(const All&)>& take,
                                           const std::function<void(const All&)>& together) {
  const std::size_t size = key.ranks.size();
  Monitor::Lock lock(monitor_.mutex());
  if (monitor_.stopped()) throw Stopped();  // those who waited here have left, and their operands with them
  Meeting& meeting = meetings_[key];        // stays where it is until the last member leaves
  meeting.brought.resize(size);
  meeting.read.resize(size);
  CHECK(meeting.brought[caller.member] == nullptr, fmt::format("{} arrives twice", caller.what));
  meeting.brought[caller.member] = &mine;
  ++meeting.arrived;
  monitor_.changed();
  monitor_.wait(lock, caller.rank, caller.what, [&] { return meeting.arrived == size; });
  // From here all members are past their wait: even when the run is stopped or a take fails, each goes
  // through to the end, so that nobody's operands vanish under a reader.
  const All all = meeting.brought;
  lock.unlock();
  std::exception_ptr failure;
  EventRef read;
  const auto attempt = [&failure](const auto& work) {
    try {
      work();
    } catch (...) {
      failure = std::current_exception();
    }
  };
  attempt([&] { read = take(all); });
  lock.lock();
  meeting.read[caller.member] = read;
  meeting.failed = meeting.failed || failure != nullptr;
  if (++meeting.gone == size && together && !meeting.failed) {
    lock.unlock();  // the others wait below
    attempt([&] { together(all); });
    lock.lock();
  }
  ++meeting.taken;
  monitor_.changed();
  monitor_.wait_to_end(lock, caller.rank, caller.what, [&] { return meeting.taken == size; });
  std::vector<EventRef> events = meeting.read;
  if (++meeting.left == size) meetings_.erase(key);
  lock.unlock();
  if (failure) std::rethrow_exception(failure);
  return events;
}

void DeviceExchange::send(const MeetingKey& key, Message message) {
  Monitor::Lock lock(monitor_.mutex());
  messages_[key].push_back(std::move(message));
  monitor_.changed();
}

Message DeviceExchange::receive(const MeetingKey& key, const Caller& caller) {
  Monitor::Lock lock(monitor_.mutex());
  monitor_.wait(lock, caller.rank, caller.what, [&] { return messages_.count(key) > 0; });
  const auto waiting = messages_.find(key);
  Message message = std::move(waiting->second.front());
  waiting->second.erase(waiting->second.begin());
  if (waiting->second.empty()) messages_.erase(waiting);
  return message;
}

}  // namespace moebius::cuda
