// CUDA devices as the executor sees them: memory, streams, events, copies. The header is free of CUDA, so
// that what stands above it compiles everywhere; device.cu is the device, and tests bring some of CPU
// threads.
//
// All functions throw run_error that names the call and CUDA's own words when they fail.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "hw/units.h"

namespace moebius::cuda {

struct DeviceFacts {
  std::string name;
  int major = 0, minor = 0;  // compute capability
  int multiprocessors = 0;
  double memory_bytes = 0;
  int driver_version = 0, runtime_version = 0;  // 13000: 13.0
  double l2_bytes = 0;
};

// Makes every device that is visible ready, in the order of their numbers, and lets them read each other's
// memory where the machine can; the first one is then the calling thread's. "no CUDA device: ..." with both
// versions when there is none.
std::vector<DeviceFacts> open_devices();
// The first one alone, for the calling thread; the same errors.
DeviceFacts open_device();
// What the calling thread makes from here on stands on this device, and it gives work to streams of this one.
void use_device(int device);

inline constexpr int kScratch = 6144;  // floats that the threads of a kernel's team share

// Streams and events are handles; a stream executes in order.
struct StreamState;
struct EventState;
using Stream = StreamState*;
using Event = EventState*;

Stream make_stream();
void destroy(Stream stream);
Event make_event();
void destroy(Event event);
void record(Event event, Stream stream);
void wait(Stream stream, Event event);  // what is given to the stream from here runs after the recorded work
void synchronise(Event event);          // the calling thread sleeps until then
void synchronise(Stream stream);
Time elapsed(Event from,
             Event to);  // both completed; to the precision of CUDA's events, about half a microsecond

// Kernels that are given to the device at once, as a CUDA graph.
struct GraphState;
using Graph = GraphState*;
// From here what is given to the stream is kept: kernels, copies and fills alone.
void begin_capture(Stream stream);
// Runs what was kept. `graph` is null at first; a later call changes what it became where only operands and
// sizes differ, which costs less than making it anew.
void launch_captured(Stream stream, Graph& graph);
void destroy(Graph graph);

void* allocate(std::size_t bytes);  // slow, and may wait for the device: not in the middle of a step
void release(void* memory);
void* allocate_pinned(std::size_t bytes);  // the host's, which copies reach without a stop
void release_pinned(void* memory);

// In the order of the stream. `from` of the first may be changed as soon as it returns; the second is there
// when the stream has come to it.
void copy_to_device(Stream stream, void* to, const void* from, std::size_t bytes);
void copy_to_host(Stream stream, void* to, const void* from, std::size_t bytes);
void copy_on_device(Stream stream, void* to, const void* from, std::size_t bytes);
// Between devices, or within one.
struct DevicePlace {
  void* memory;
  int device;
};
void copy_between(Stream stream, const DevicePlace& to, const DevicePlace& from, std::size_t bytes);
void fill(Stream stream, void* memory, std::uint8_t byte, std::size_t bytes);

}  // namespace moebius::cuda
