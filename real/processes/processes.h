// The processes of one run. All of them do the same, each for a contiguous block of the ranks; the first one
// speaks: it prints and writes what the run leaves behind. Whoever fails, all fail.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "hw/error.h"
#include "real/processes/rank_block.h"
#include "real/processes/transport.h"

namespace moebius {

class Processes {
 public:
  struct Listener {
    std::function<void(int from, ByteReader& message)> heard;
    std::function<void(const Error&)> failed;  // another process; may come more than once
  };

  explicit Processes(std::unique_ptr<Transport> transport);
  ~Processes();
  Processes(const Processes&) = delete;

  int self() const { return transport_->self(); }
  int count() const { return transport_->count(); }
  bool speaks() const { return self() == 0; }
  // "2 by Open MPI 4.1.4: ranks 0-3, 4-7"
  std::string describe(int ranks) const;

  // ranks / count of them each, the rest spread. run_error when there are more processes than ranks.
  RankBlock block_of(int process, int ranks) const;
  int process_of(int rank, int ranks) const;

  // What processes of one executor say to each other. The n-th join of a process meets the n-th of the
  // others: what comes early is kept, what comes late is dropped. Listeners are called in a thread of their
  // own; after leave() no longer.
  void join(Listener listener);
  void leave();
  void send(int to, const ByteString& message);

  // Tells the others, once, that this process cannot go on.
  void fail(const Error& error);
  // Everyone calls it, in the same order; the first process gets what all brought, the others nothing. Throws
  // the error of a process that failed.
  std::vector<ByteString> gather(ByteString mine);
  // The last meeting: waits for everyone to come to it. Returns the first error: `mine`, or what another
  // process failed with, which is then named.
  std::optional<Error> farewell(const std::optional<Error>& mine);

 private:
  enum class Envelope : std::uint8_t { kHeard, kGathered, kFailed, kGoodbye, kEnd };
  struct Failure {
    int process;
    Error error;
  };

  void post(int to, Envelope envelope, std::int32_t number, std::span<const std::byte> content);
  void deliver(int from, const ByteString& message);
  void hear(int from, std::int32_t channel, ByteReader& content);
  void take_failure(int from, std::int32_t kind, ByteReader& content);

  std::mutex listening_;  // held while a listener is called, and while it changes
  std::optional<Listener> listener_;
  std::int32_t channel_ = 0;  // of the present or last listener
  struct Early {
    std::int32_t channel;
    int from;
    ByteString message;
  };
  std::vector<Early> early_;

  std::mutex mutex_;  // guards everything below
  std::condition_variable changed_;
  std::optional<Failure> failure_;
  bool told_ = false;
  std::int32_t gathers_ = 0;
  std::map<std::int32_t, std::map<int, ByteString>> gathered_;  // by number and process
  int goodbyes_ = 0;
  bool ended_ = false;

  std::unique_ptr<Transport> transport_;  // the last member: it stops delivering before the others go
};

}  // namespace moebius
