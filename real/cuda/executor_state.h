// The inside of CudaExecutor: the threads, and what they hand to each other.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <thread>

#include "hw/error.h"
#include "real/cuda/cuda_communication.h"
#include "real/cuda/cuda_executor.h"
#include "real/cuda/device_clock.h"

namespace moebius {

// Each rank has two threads. One gives the ops of its submissions to the device, in order; it waits for other
// ranks only where they meet, and for submissions that come before only until those have been given. The
// other follows the device, submission by submission, and tells what happened.
struct CudaExecutor::State {
  State(const Layout& given_layout, Recorder& given_recorder, const cuda::CudaOptions& given_options);
  ~State();

  void submit(const Submission& submission);
  std::vector<Completion> wait(Time until);
  Time now() const {
    return {std::chrono::duration_cast<std::chrono::nanoseconds>(cuda::HostClock::now() - start).count()};
  }
  std::vector<float> values_of(int rank, const cuda::TensorRef& tensor);
  Time clock_drift();

  // A submission whose work the device has got.
  struct Issued {
    Submission submission;
    std::vector<cuda::IssuedOp> ops;
    std::vector<cuda::EventRef> ends;  // the last of each lane
  };
  using IssuedPtr = std::shared_ptr<Issued>;
  struct Done {
    Completion completion;
    std::vector<Span> spans;
  };
  // What a rank has to show; its follower's, until all is complete.
  struct Results {
    std::map<int, double> loss;  // by step
    std::vector<Transfer> transfers;
    std::array<Time, kNumLanes> lane_end = {};
  };

  void place_ranks();
  void end_threads();
  template <class Life>
  void guarded(int rank, const Life& life);  // a thread: until the run stops or fails
  void issue_all(int rank);
  Submission next_submission(int rank);
  IssuedPtr issue(int rank, const Submission& submission);
  static void make_routes(cuda::DeviceRank& rank, const Fragment& fragment);
  void wait_for_predecessors(cuda::DeviceRank& rank, const Submission& submission);
  void wait_for_followed(cuda::DeviceRank& rank, const Submission& submission, std::int32_t op);
  cuda::IssuedOp issue_op(cuda::DeviceRank& rank, const Issued& issued, std::int32_t index);
  void tell_observer(cuda::DeviceRank& rank, const Submission& submission, const Op& op);
  void follow_all(int rank);
  Done follow(int rank, const Issued& issued, cuda::DeviceClock& clock);
  Span span_of(int rank, const Issued& issued, std::int32_t index, const cuda::DeviceClock& clock);
  void take_loss(int rank, const Issued& issued, std::int32_t index);
  void complete(Done done);
  void fail(const Error& error);
  std::vector<Completion> take_finished();
  void check_progress() const;

  const Layout layout;
  Recorder& recorder;
  const cuda::CudaOptions options;
  const std::vector<cuda::DeviceFacts> devices;
  const std::vector<int> device_of_rank;
  std::string no_library;                                     // why there is none
  std::vector<std::unique_ptr<cuda::GemmLibrary>> libraries;  // by device; null: none
  const cuda::HostClock::time_point start = cuda::HostClock::now();
  std::deque<cuda::DeviceTurns> turns;  // by device in use, where ranks take turns
  std::vector<std::unique_ptr<cuda::DeviceRank>> ranks;
  std::string no_nccl;                   // why there is none
  std::unique_ptr<cuda::Nccl> nccl;      // null: none, or one device
  std::unique_ptr<cuda::OpTrace> trace;  // null: none; set before the first submission
  std::vector<cuda::Anchor> anchors;     // by device in use
  Monitor monitor;                       // its mutex guards everything from here to `last_end`
  cuda::DeviceExchange exchange;
  std::condition_variable given;                 // to followers
  std::vector<std::deque<Submission>> queues;    // by rank
  std::vector<std::deque<IssuedPtr>> under_way;  // by rank
  std::map<std::int32_t, IssuedPtr> issued;      // by sequence, until complete
  std::vector<bool> completed;                   // by sequence
  std::vector<Done> finished;                    // not yet reported
  std::int64_t outstanding = 0, on_device = 0;
  std::optional<Error> failure;
  Time last_end;
  std::vector<Results> results;
  std::vector<std::thread> threads;
};

}  // namespace moebius
