#include "real/processes/processes.h"

#include <fmt/format.h>

namespace moebius {

Processes::Processes(std::unique_ptr<Transport> transport) : transport_(std::move(transport)) {
  transport_->start([this](int from, const ByteString& message) { deliver(from, message); });
}

Processes::~Processes() = default;

std::string Processes::describe(int ranks) const {
  std::string blocks;
  for (int process = 0; process < count(); ++process) {
    const RankBlock block = block_of(process, ranks);
    blocks += fmt::format("{} {}", process == 0 ? ": ranks" : ",", block.first);
    if (block.count() > 1) blocks += fmt::format("-{}", block.last - 1);
  }
  return fmt::format("{} by {}{}", count(), transport_->name(), blocks);
}

RankBlock Processes::block_of(int process, int ranks) const {
  if (count() > ranks)
    throw run_error(fmt::format("{} processes for {} ranks: each needs at least one", count(), ranks));
  const auto first = [&](std::int64_t p) { return static_cast<int>(p * ranks / count()); };
  return {first(process), first(process + 1)};
}

int Processes::process_of(int rank, int ranks) const {
  int process = 0;
  while (!block_of(process, ranks).holds(rank)) ++process;
  return process;
}

// ---- messages ----

void Processes::post(int to, Envelope envelope, std::int32_t number, std::span<const std::byte> content) {
  ByteWriter message;
  message.put(envelope);
  message.put(number);
  message.put_all(content);
  transport_->send(to, message.take());
}

void Processes::send(int to, const ByteString& message) {
  post(to, Envelope::kHeard, channel_, message);
}

// In the transport's thread, where nothing may be thrown.
void Processes::deliver(int from, const ByteString& message) {
  try {
    ByteReader content(message);
    const auto envelope = content.get<Envelope>();
    const auto number = content.get<std::int32_t>();
    if (envelope == Envelope::kHeard) return hear(from, number, content);
    if (envelope == Envelope::kFailed) return take_failure(from, number, content);
    const std::scoped_lock lock(mutex_);
    if (envelope == Envelope::kGathered)
      gathered_[number][from] = {content.rest().begin(), content.rest().end()};
    if (envelope == Envelope::kGoodbye) ++goodbyes_;
    if (envelope == Envelope::kEnd) ended_ = true;
    changed_.notify_all();
  } catch (const Error& error) {
    fail(error);
    const std::scoped_lock lock(listening_);
    if (listener_) listener_->failed(error);
  }
}

void Processes::hear(int from, std::int32_t channel, ByteReader& content) {
  const std::scoped_lock lock(listening_);
  if (channel > channel_) {
    early_.push_back({channel, from, {content.rest().begin(), content.rest().end()}});
  } else if (channel == channel_ && listener_) {
    listener_->heard(from, content);
  }
}

void Processes::join(Listener listener) {
  const std::scoped_lock lock(listening_);
  ++channel_;
  listener_ = std::move(listener);
  for (Early& early : std::exchange(early_, {})) {
    ByteReader content(early.message);
    if (early.channel == channel_) listener_->heard(early.from, content);
    if (early.channel > channel_) early_.push_back(std::move(early));
  }
  const std::scoped_lock failure_lock(mutex_);
  if (failure_) listener_->failed(failure_->error);
}

void Processes::leave() {
  const std::scoped_lock lock(listening_);
  listener_.reset();
}

// ---- failures ----

void Processes::fail(const Error& error) {
  {
    const std::scoped_lock lock(mutex_);
    if (!failure_) failure_ = {self(), error};
    if (std::exchange(told_, true) || failure_->process != self()) return;
    changed_.notify_all();
  }
  ByteWriter sentence;
  const std::string text = error.what();
  sentence.put_list(std::span<const char>(text));
  const ByteString content = sentence.take();
  for (int to = 0; to < count(); ++to) {
    if (to != self()) post(to, Envelope::kFailed, static_cast<std::int32_t>(error.kind()), content);
  }
}

void Processes::take_failure(int from, std::int32_t kind, ByteReader& content) {
  const Error error(static_cast<Error::Kind>(kind), content.get_text());
  {
    const std::scoped_lock lock(mutex_);
    if (!failure_) failure_ = {from, error};
    changed_.notify_all();
  }
  const std::scoped_lock lock(listening_);
  if (listener_) listener_->failed(error);
}

// ---- meetings of all ----

std::vector<ByteString> Processes::gather(ByteString mine) {
  std::unique_lock lock(mutex_);
  const std::int32_t number = gathers_++;
  if (!speaks()) {
    lock.unlock();
    post(0, Envelope::kGathered, number, mine);
    return {};
  }
  std::map<int, ByteString>& brought = gathered_[number];
  brought[0] = std::move(mine);
  changed_.wait(lock, [&] { return failure_ || static_cast<int>(brought.size()) == count(); });
  if (failure_) throw failure_->error;
  std::vector<ByteString> all;
  all.reserve(brought.size());
  for (auto& [process, bytes] : brought) all.push_back(std::move(bytes));
  gathered_.erase(number);
  return all;
}

std::optional<Error> Processes::farewell(const std::optional<Error>& mine) {
  if (mine) fail(*mine);
  if (!speaks()) post(0, Envelope::kGoodbye, 0, {});
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return speaks() ? goodbyes_ == count() - 1 : ended_; });
  for (int to = 1; speaks() && to < count(); ++to) post(to, Envelope::kEnd, 0, {});
  if (mine || !failure_) return mine;
  return Error(failure_->error.kind(),
               fmt::format("process {}: {}", failure_->process, failure_->error.what()));
}

}  // namespace moebius
