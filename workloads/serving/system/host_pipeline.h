// What the processor does for requests and iterations, and when: a request is turned into tokens, an engine's
// loop decides and prepares an iteration, tokens are chosen, checked, turned into text and sent. Each stage
// takes time on a lane of its own or of the loop; what waits for whom follows from that.
#pragma once

#include <cstdint>
#include <vector>

#include "hw/clock_end.h"
#include "hw/units.h"

namespace moebius {

struct HostCosts {
  Time per_iteration, per_sequence;  // of the loop before the device can begin: schedule, tables, operands
  // Of the loop behind the launch of each iteration: the kernels that choose its tokens are submitted while
  // the device is at its layers, so that it waits only where these take less.
  Time per_submission;
  bool overlapped = false;  // the loop prepares an iteration beside the device's work of the one before
  bool by_change = false;   // per_sequence counts for sequences that came, went or got pages, not for all
  Time per_request, per_prompt_token, per_image;  // of a request before it can be scheduled
  Time reception;            // of a request before that, beside all others: the network, a web server
  Time reception_per_token;  // and for each token of its prompt: text that is received and read
  Time per_sample;         // of a sequence whose token the host chooses, before the next iteration can begin
  Time per_token;          // that is generated: stop check, text, sending
  bool parallel = false;   // requests and tokens have workers of their own; otherwise the loop does it all
  int input_workers = 1;   // of the whole service, each with one request at a time
  int output_workers = 1;  // of an instance, which share the tokens of an iteration

  Time of_request(std::int64_t prompt, std::int64_t images) const {
    return later(later(per_request, repeated(per_prompt_token, prompt)), repeated(per_image, images));
  }
  Time receiving(std::int64_t prompt) const {
    return later(reception, repeated(reception_per_token, prompt));
  }
  bool takes_time() const;
};

// Of one iteration.
struct HostWork {
  std::int64_t sequences = 0, changes = 0;  // of the fullest replica
  std::int64_t samples = 0;                 // sequences that get a token, likewise
  std::int64_t tokens = 0;                  // that come of it, on all replicas
  // Nothing was left when the iteration before ended: what is in this one has come since, or at that moment.
  bool anew = false;
};

struct HostTotals {
  Time loop;    // it works
  Time output;  // workers of tokens do
  Time waits;   // the device has nothing to do, since the loop is not done
  void add(const HostTotals& other);
};

// The processor of one instance.
class HostLane {
 public:
  explicit HostLane(const HostCosts& costs) : costs_(costs) {}

  // The loop takes a request in before its next iteration.
  void take_in(Time work) { pending_ = later(pending_, work); }
  // Both are lanes of one engine, whose loop prepares one iteration after the other. `first` outlives this.
  void share_loop(HostLane& first) { first_ = &first; }

  struct Turn {
    Time end;    // the next iteration can be decided
    Time shown;  // its tokens are with those who asked
  };
  // An iteration that is decided at `now` and takes the device so long. Not overlapped: the loop's work, the
  // device's or the submission's, whichever is longer, and what the loop does with the tokens, one after the
  // other. Overlapped: the loop worked for it since the device began the iteration before, behind that one's
  // submission, if that has just ended and left something to prepare.
  Turn turn(Time now, Time device, const HostWork& work);
  // Both parts of it: when the device begins, and what comes of that.
  Time begin(Time now, const HostWork& work);
  Turn end(Time device, const HostWork& work);
  const HostTotals& totals() const { return totals_; }

 private:
  Time start(Time now, Time before, bool anew);
  Time show(Time ready, Time after);
  Time& loop_free() { return first_ != nullptr ? first_->loop_free_ : loop_free_; }

  HostCosts costs_;
  HostLane* first_ = nullptr;  // whose loop it is; null: its own
  Time pending_;
  Time begun_, ended_ = Time{-1};  // the last iteration on the device
  Time loop_free_, output_free_;
  Time after_;  // the loop's work with the tokens of the last iteration
  HostTotals totals_;
};

// Workers that take one request after the other, in the order of arrival.
class HostWorkers {
 public:
  explicit HostWorkers(int workers) : free_(workers) {}
  // When a request that comes now and takes one of them so long is done; calls in the order of time.
  Time serve(Time now, Time work);
  Time busy() const { return busy_; }

 private:
  std::vector<Time> free_;  // since when each is
  Time busy_;
};

}  // namespace moebius
