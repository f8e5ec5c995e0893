// The device memory of one rank: blocks that go round without CUDA's allocator once a step has been seen. A
// block may be taken while work that used it is still to run: the taker's stream then waits for that work.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "real/cuda/device.h"
#include "real/cuda/storage.h"
#include "workloads/schedule/op.h"

namespace moebius::cuda {

// An event that goes back to its pool when nobody refers to it any more, so that it is never recorded anew
// while someone may still wait for it.
using EventRef = std::shared_ptr<EventState>;

// From here the stream waits for what was recorded; on the event's own stream it does so anyway.
void wait(Stream stream, const EventRef& event);

class EventPool {
 public:
  EventPool();
  EventRef recorded(Stream stream);  // an event recorded there now

 private:
  friend void wait(Stream stream, const EventRef& event);
  struct Free;
  struct Return;
  std::shared_ptr<Free> free_;  // lives until the last event is back
};

struct Block {
  void* memory = nullptr;
  std::size_t bytes = 0;
};

class DeviceMemory {
 public:
  // `pinned`: of the host instead, which copies reach without a stop.
  explicit DeviceMemory(bool pinned = false) : pinned_(pinned) {}
  ~DeviceMemory();  // everything taken is back, and no work of it is under way
  DeviceMemory(const DeviceMemory&) = delete;

  Block take(std::size_t bytes, Stream stream);
  void give(const Block& block, std::vector<EventRef> users);  // from any thread
  std::size_t reserved() const;                                // bytes of the device, in use or not

 private:
  struct Idle {
    void* memory;
    std::vector<EventRef> users;
  };
  void* cut(std::size_t bytes);

  const bool pinned_;
  mutable std::mutex mutex_;
  std::map<std::size_t, std::vector<Idle>> idle_;  // by size
  std::vector<void*> slabs_;
  char* next_ = nullptr;  // in the newest slab
  std::size_t left_ = 0, reserved_ = 0;
};

// A matrix of its own in the memory of a rank; the block goes back when the last reference goes.
struct DeviceTensor {
  // `period`: of kFp8Blocks; 0: all rows
  DeviceTensor(DeviceMemory& from, Stream stream, std::int64_t rows, std::int64_t columns, Storage storage,
               std::int64_t period = 0);
  ~DeviceTensor();
  DeviceTensor(const DeviceTensor&) = delete;

  Operand operand;
  Lane writer_lane = Lane::kCompute;
  EventRef written;                           // by the op that wrote it last
  std::array<EventRef, kNumLanes> used = {};  // the last op on each lane that touched it

 private:
  DeviceMemory& memory_;
  Block block_;
};
using TensorRef = std::shared_ptr<DeviceTensor>;

}  // namespace moebius::cuda
