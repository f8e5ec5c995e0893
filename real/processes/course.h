// The course of a run: what ranks have finished, who is still at work, who has failed. Where several
// processes share the run, each tells the others what its ranks finished, and the first one says in what
// order it is taken: every process's workload sees the same completions and goes on in the same way.
#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "real/exchange.h"
#include "real/processes/finished_submission.h"
#include "real/processes/processes.h"

namespace moebius {

class Course {
 public:
  using Clock = std::chrono::steady_clock;
  using Outside = std::function<void(ByteReader& message)>;

  // `processes` may be null: this one is alone. Both outlive the course; the monitor is that of the ranks
  // which live here.
  Course(Processes* processes, int ranks, Monitor& monitor);
  ~Course();

  static RankBlock ranks_here(const Processes* processes, int ranks);
  RankBlock here() const { return here_; }
  // How an exchange reaches the ranks of other processes.
  OutsideRanks outside();

  // From here messages are heard; `outside` gets those of exchanges. Times of all processes are those of the
  // first one's clock, to within half a message's way there and back.
  void begin(Outside outside);
  void end();  // from here nothing is heard any more
  Time since_start(Clock::time_point moment) const;
  Time now() const { return since_start(Clock::now()); }

  // From threads of ranks.
  void finish(FinishedSubmission finished);
  void fail(const Error& error);  // the first failure is the one that counts

  // With the monitor's mutex held.
  void submitted() { ++outstanding_; }
  bool is_complete(std::int32_t sequence) const;
  // Executor::wait() but for the recorder: what is taken, by time, then sequence.
  std::vector<FinishedSubmission> wait(Monitor::Lock& lock, Time until);
  // Of several processes: whether all of them stop, since one was asked to. The first one says so with what
  // it takes: the answer is the same in each behind the same wait().
  bool stops(bool asked);

 private:
  // What a process says of itself when it is asked whether it rests.
  struct State {
    bool rests = false;
    std::int64_t sent = 0, received = 0;  // messages, but for questions and answers of this kind
    std::vector<std::string> waiting;
  };
  enum class Kind : std::uint8_t { kOutside, kFinished, kTaken, kStop, kProbe, kState, kWhatTime, kTime };
  // Of the first process.
  struct Order {
    bool stops = false;
    std::vector<std::int32_t> sequences;  // to be taken next
  };

  bool several() const { return processes_ != nullptr; }
  bool leads() const { return processes_ == nullptr || processes_->speaks(); }
  void post(int process, Kind kind, ByteString content);
  void post_all(Kind kind, const ByteString& content);
  void hear(int from, ByteReader& message);
  void hear_failure(const Error& error);
  void hear_probe(ByteReader& message);
  void hear_state(int from, ByteReader& message);
  void hear_time(ByteReader& message);
  void ask_time();

  void mark_complete(FinishedSubmission finished);
  bool can_take() const;
  std::vector<FinishedSubmission> take();
  void announce(const std::vector<FinishedSubmission>& taken);
  State state() const;
  void check_progress();
  void check_states();

  Processes* const processes_;
  const int ranks_;
  const RankBlock here_;
  Monitor& monitor_;  // its mutex guards everything below
  Clock::time_point start_ = Clock::now();
  Outside outside_;
  bool joined_ = false;
  std::vector<bool> complete_;                // by sequence
  std::vector<FinishedSubmission> finished_;  // not yet taken
  std::deque<Order> orders_;
  bool stop_asked_ = false;  // of this process; of the first one: of any
  bool stops_ = false;       // with what was taken last
  std::int64_t outstanding_ = 0;
  bool owner_waits_ = false;
  std::optional<Error> failure_;
  std::atomic<std::int64_t> sent_ = 0;
  std::int64_t received_ = 0;
  // Of the first process: a round of questions, and what came of the one before.
  std::int32_t round_ = 0;
  std::map<int, State> states_;
  std::int64_t rested_at_ = -1;  // messages when all rested in the last round, or -1
  Clock::time_point next_round_;
  // The closest pair of clocks so far.
  int times_ = 0;
  Clock::time_point asked_;
  Clock::duration shortest_ = Clock::duration::max();
};

}  // namespace moebius
