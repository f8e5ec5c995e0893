#include "real/exchange.h"

#include <exception>
#include <utility>

#include <fmt/format.h>

#include "hw/error.h"

namespace moebius {

template <class Real>
std::chrono::steady_clock::time_point Exchange<Real>::swap(const MeetingKey& key, const Caller& caller,
                                                           const Pieces& give,
                                                           const std::function<void(const Pieces&)>& take) {
  const std::size_t size = key.ranks.size();
  CHECK(give.size() == size, fmt::format("{} pieces for {} members", give.size(), size));
  Monitor::Lock lock(monitor_.mutex());
  // A member that waited here has left, and its pieces with it.
  if (monitor_.stopped()) throw Stopped();
  Meeting& meeting = meetings_[key];  // stays where it is until the last member leaves
  meeting.given.resize(size);
  CHECK(meeting.given[caller.member] == nullptr, fmt::format("{} arrives twice", caller.what));
  meeting.given[caller.member] = &give;
  if (++meeting.arrived == size) meeting.complete = std::chrono::steady_clock::now();
  monitor_.changed();
  monitor_.wait(lock, caller.rank, caller.what, [&] { return meeting.arrived == size; });
  // From here all members are past their wait: even when the run is stopped or a take fails, each goes
  // through to the end, so that nobody's pieces vanish under a reader.
  const auto complete = meeting.complete;
  Pieces mine;
  for (const Pieces* pieces : meeting.given) mine.push_back((*pieces)[caller.member]);
  lock.unlock();
  std::exception_ptr failure;
  try {
    take(mine);
  } catch (...) {
    failure = std::current_exception();
  }
  lock.lock();
  ++meeting.taken;
  monitor_.changed();
  monitor_.wait_to_end(lock, caller.rank, caller.what, [&] { return meeting.taken == size; });
  if (++meeting.left == size) meetings_.erase(key);
  lock.unlock();
  if (failure) std::rethrow_exception(failure);
  return complete;
}

template <class Real>
void Exchange<Real>::send(const MeetingKey& key, std::vector<Real> message) {
  Monitor::Lock lock(monitor_.mutex());
  messages_[key].push_back(std::move(message));
  monitor_.changed();
}

template <class Real>
std::vector<Real> Exchange<Real>::receive(const MeetingKey& key, const Caller& caller) {
  Monitor::Lock lock(monitor_.mutex());
  monitor_.wait(lock, caller.rank, caller.what, [&] { return messages_.count(key) > 0; });
  const auto waiting = messages_.find(key);
  std::vector<Real> message = std::move(waiting->second.front());
  waiting->second.erase(waiting->second.begin());
  if (waiting->second.empty()) messages_.erase(waiting);
  return message;
}

template class Exchange<float>;
template class Exchange<double>;

}  // namespace moebius
