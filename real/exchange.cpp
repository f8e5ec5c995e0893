#include "real/exchange.h"

#include <algorithm>
#include <exception>
#include <utility>

#include <fmt/format.h>

#include "hw/error.h"

namespace moebius {

namespace {

void write(ByteWriter& to, const MeetingKey& key) {
  to.put_list(std::span<const std::int32_t>(key.ranks));
  to.put(key.group);
  to.put(key.step);
  to.put(key.microbatch);
  to.put(key.match);
  to.put(key.round);
}

MeetingKey read_key(ByteReader& from) {
  MeetingKey key;
  key.ranks = from.get_list<std::int32_t>();
  key.group = from.get<int>();
  key.step = from.get<std::int32_t>();
  key.microbatch = from.get<std::int32_t>();
  key.match = from.get<std::uint32_t>();
  key.round = from.get<std::int32_t>();
  return key;
}

template <class Value>
Value take_oldest(auto& waiting, const auto& key) {
  const auto found = waiting.find(key);
  Value value = std::move(found->second.front());
  found->second.pop_front();
  if (found->second.empty()) waiting.erase(found);
  return value;
}

constexpr std::int32_t kMessage = -1;  // instead of members

}  // namespace

template <class Real>
std::chrono::steady_clock::time_point Exchange<Real>::swap_pieces(
    const MeetingKey& key, const Caller& caller, const Pieces& give,
    const std::function<void(const Pieces&)>& take) {
  const std::size_t size = key.ranks.size();
  CHECK(give.size() == size, fmt::format("{} pieces for {} members", give.size(), size));
  post_pieces(key, caller.member, give);
  Monitor::Lock lock(monitor_.mutex());
  // A member that waited here has left, and its pieces with it.
  if (monitor_.stopped()) throw Stopped();
  Meeting& meeting = meetings_[key];  // stays where it is until the last member leaves
  meeting.given.resize(size);
  meeting.here =
      std::count_if(key.ranks.begin(), key.ranks.end(), [this](auto rank) { return is_here(rank); });
  CHECK(meeting.given[caller.member] == nullptr, fmt::format("{} arrives twice", caller.what));
  meeting.given[caller.member] = &give;
  ++meeting.arrived;
  settle(key, meeting);
  monitor_.changed();
  monitor_.wait(lock, caller.rank, caller.what, [&] { return meeting.ready; });
  // From here all members are past their wait: even when the run is stopped or a take fails, each goes
  // through to the end, so that nobody's pieces vanish under a reader.
  const auto complete = meeting.complete;
  Pieces mine;
  for (std::int32_t from = 0; from < static_cast<std::int32_t>(size); ++from) {
    const Pieces* pieces = meeting.given[from];
    mine.push_back(pieces != nullptr ? (*pieces)[caller.member]
                                     : std::span<const Real>(meeting.outside.at({from, caller.member})));
  }
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
  monitor_.wait_to_end(lock, caller.rank, caller.what, [&] { return meeting.taken == meeting.here; });
  if (++meeting.left == meeting.here) meetings_.erase(key);
  lock.unlock();
  if (failure) std::rethrow_exception(failure);
  return complete;
}

// ---- other processes ----

template <class Real>
void Exchange<Real>::post_pieces(const MeetingKey& key, std::int32_t member, const Pieces& give) {
  for (std::int32_t to = 0; to < static_cast<std::int32_t>(give.size()); ++to) {
    if (is_here(key.ranks[to])) continue;
    ByteWriter message;
    write(message, key);
    message.put(member);
    message.put(to);
    message.put_list(give[to]);
    outside_.post(key.ranks[to], message.take());
  }
}

// Whether visit(piece) is true for each piece that members here need from elsewhere.
template <class Real>
template <class Visit>
bool Exchange<Real>::each_outside(const MeetingKey& key, const Visit& visit) {
  const auto size = static_cast<std::int32_t>(key.ranks.size());
  for (std::int32_t from = 0; from < size; ++from) {
    for (std::int32_t to = 0; to < size && !is_here(key.ranks[from]); ++to) {
      if (is_here(key.ranks[to]) && !visit(PieceKey{key, from, to})) return false;
    }
  }
  return true;
}

// All who live here are ready at once: what came from elsewhere is taken for all of them together. Not once
// the run is stopped: who waited may have gone, and what they gave with them.
template <class Real>
void Exchange<Real>::settle(const MeetingKey& key, Meeting& meeting) {
  if (monitor_.stopped() || meeting.ready || meeting.arrived < meeting.here) return;
  if (!each_outside(key, [this](const PieceKey& piece) { return pieces_.count(piece) > 0; })) return;
  each_outside(key, [&](const PieceKey& piece) {
    meeting.outside[{piece.from, piece.to}] = take_oldest<Values>(pieces_, piece);
    return true;
  });
  meeting.ready = true;
  meeting.complete = std::chrono::steady_clock::now();
}

template <class Real>
void Exchange<Real>::deliver(ByteReader& message) {
  const MeetingKey key = read_key(message);
  const auto from = message.get<std::int32_t>(), to = message.get<std::int32_t>();
  Values values = message.template get_list<Real>();
  Monitor::Lock lock(monitor_.mutex());
  if (from == kMessage) {
    messages_[key].push_back(std::move(values));
  } else {
    pieces_[{key, from, to}].push_back(std::move(values));
    const auto meeting = meetings_.find(key);
    if (meeting != meetings_.end()) settle(key, meeting->second);
  }
  monitor_.changed();
}

// ---- messages ----

template <class Real>
void Exchange<Real>::send(const MeetingKey& key, std::vector<Real> message) {
  if (!is_here(key.ranks[1])) {
    ByteWriter posted;
    write(posted, key);
    posted.put(kMessage);
    posted.put(kMessage);
    posted.put_list(std::span<const Real>(message));
    return outside_.post(key.ranks[1], posted.take());
  }
  Monitor::Lock lock(monitor_.mutex());
  messages_[key].push_back(std::move(message));
  monitor_.changed();
}

template <class Real>
std::vector<Real> Exchange<Real>::receive(const MeetingKey& key, const Caller& caller) {
  Monitor::Lock lock(monitor_.mutex());
  monitor_.wait(lock, caller.rank, caller.what, [&] { return messages_.count(key) > 0; });
  return take_oldest<Values>(messages_, key);
}

template class Exchange<float>;
template class Exchange<double>;

}  // namespace moebius
