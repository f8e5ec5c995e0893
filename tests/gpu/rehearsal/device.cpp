// Devices of CPU threads behind real/cuda/device.h: each stream is a queue with a thread that works it off,
// events and waits mean what they mean on a GPU, memory starts as NaN. Work that is not ordered really runs
// in any order: threads pause now and then. Where there are several devices (MOEBIUS_REHEARSED_DEVICES), work
// on one cannot touch the memory of another, but for copies between the two.
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "hw/error.h"
#include "real/cuda/rehearsal.h"
#include "tests/gpu/rehearsal/guarded_memory.h"
#include "tests/gpu/rehearsal/kernel_trace.h"
#include "workloads/routing/routing.h"

namespace moebius::cuda {

using Clock = std::chrono::steady_clock;

namespace {

GuardedMemory memory;
thread_local int current = 0;  // device of the calling thread

int count_devices() {
  const char* count = std::getenv("MOEBIUS_REHEARSED_DEVICES");
  return count == nullptr ? 1 : std::atoi(count);
}

void demand(bool holds, const char* rule) {
  if (holds) return;
  std::fprintf(stderr, "rehearsal: %s\n", rule);
  std::abort();
}

}  // namespace

// One recording of an event: who waits for it keeps it, whatever the event records next.
struct Recording {
  std::mutex mutex;
  std::condition_variable changed;
  bool passed = false;
  Clock::time_point time;

  void pass() {
    std::lock_guard lock(mutex);
    passed = true;
    time = Clock::now();
    changed.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return passed; });
  }
};

struct EventState {
  const int device = current;
  std::mutex mutex;
  std::shared_ptr<Recording> last;

  std::shared_ptr<Recording> recording() {
    std::lock_guard lock(mutex);
    return last;
  }
};

struct StreamState {
  const int device = current;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> work;
  bool busy = false, closed = false;
  bool captures = false;
  std::vector<std::function<void()>> captured;
  std::thread thread{[this] { run(); }};

  void run() {
    std::unique_lock lock(mutex);
    for (std::uint64_t count = 0;; ++count) {
      changed.wait(lock, [&] { return closed || !work.empty(); });
      if (work.empty()) return;
      const std::function<void()> next = std::move(work.front());
      work.pop_front();
      busy = true;
      lock.unlock();
      if (random_bits(reinterpret_cast<std::uintptr_t>(this), count) % 64 == 0)
        std::this_thread::sleep_for(std::chrono::microseconds(200));
      next();
      lock.lock();
      busy = false;
      changed.notify_all();
    }
  }
};

DeviceFacts open_device() {
  current = 0;
  return {"rehearsal on CPU threads", 0, 0, 1, 1e9, 0, 0, 1e6};
}
std::vector<DeviceFacts> open_devices() {
  return std::vector<DeviceFacts>(count_devices(), open_device());
}
void use_device(int device) {
  current = device;
}

Stream make_stream() {
  return new StreamState;
}
void destroy(Stream stream) {
  {
    std::lock_guard lock(stream->mutex);
    stream->closed = true;
    stream->changed.notify_all();
  }
  stream->thread.join();
  delete stream;
}

// What touches no memory: events are no kernels.
void give(Stream stream, std::function<void()> work) {
  std::lock_guard lock(stream->mutex);
  if (stream->captures) return stream->captured.push_back(std::move(work));
  stream->work.push_back(std::move(work));
  stream->changed.notify_all();
}

void enqueue(Stream stream, std::function<void()> work) {
  demand(stream->device == current, "work is given to a stream of another device");
  give(stream,
       [device = stream->device, work = traced(stream, std::move(work))] { memory.with({device}, work); });
}

struct GraphState {
  int launches = 0;
};

void begin_capture(Stream stream) {
  CHECK(!stream->captures, "a capture in a capture");
  stream->captures = true;
}

void launch_captured(Stream stream, Graph& graph) {
  if (graph == nullptr) graph = new GraphState;
  ++graph->launches;
  stream->captures = false;
  give(stream, [works = std::move(stream->captured)] {
    for (const auto& work : works) work();
  });
  stream->captured.clear();
}

void destroy(Graph graph) {
  delete graph;
}

Event make_event() {
  return new EventState;
}
void destroy(Event event) {
  delete event;
}

void record(Event event, Stream stream) {
  CHECK(!stream->captures, "an event in a capture");
  const auto recording = std::make_shared<Recording>();
  {
    std::lock_guard lock(event->mutex);
    event->last = recording;
  }
  demand(event->device == stream->device, "an event is recorded on a stream of another device");
  give(stream, [=] { recording->pass(); });
}

void wait(Stream stream, Event event) {
  CHECK(!stream->captures, "a wait in a capture");
  give(stream, [recording = event->recording()] { recording->wait(); });
}

void synchronise(Event event) {
  event->recording()->wait();
}

void synchronise(Stream stream) {
  std::unique_lock lock(stream->mutex);
  stream->changed.wait(lock, [&] { return stream->work.empty() && !stream->busy; });
}

Time elapsed(Event from, Event to) {
  demand(from->device == to->device, "the time between events of two devices");
  return {
      std::chrono::duration_cast<std::chrono::nanoseconds>(to->recording()->time - from->recording()->time)
          .count()};
}

void* allocate(std::size_t bytes) {
  return memory.take(bytes, current);
}
void release(void* freed) {
  memory.give(freed);
}
void* allocate_pinned(std::size_t bytes) {
  return std::malloc(bytes);
}
void release_pinned(void* pinned) {
  std::free(pinned);
}

void copy_to_device(Stream stream, void* to, const void* from, std::size_t bytes) {
  const char* first = static_cast<const char*>(from);
  const auto copy = std::make_shared<std::vector<char>>(first, first + bytes);
  enqueue(stream, [=] { std::memcpy(to, copy->data(), bytes); });
}
void copy_to_host(Stream stream, void* to, const void* from, std::size_t bytes) {
  enqueue(stream, [=] { std::memcpy(to, from, bytes); });
}
void copy_on_device(Stream stream, void* to, const void* from, std::size_t bytes) {
  enqueue(stream, [=] { std::memmove(to, from, bytes); });
}
void copy_between(Stream stream, const DevicePlace& to, const DevicePlace& from, std::size_t bytes) {
  give(stream, [=] {
    memory.with({to.device, from.device}, [&] { std::memcpy(to.memory, from.memory, bytes); });
  });
}
void fill(Stream stream, void* to, std::uint8_t byte, std::size_t bytes) {
  enqueue(stream, [=] { std::memset(to, byte, bytes); });
}

}  // namespace moebius::cuda
