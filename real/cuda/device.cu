// real/cuda/device.h on the CUDA runtime.
#include <cuda_runtime.h>

#include <cmath>

#include "hw/error.h"
#include "real/cuda/device.h"

namespace moebius::cuda {
namespace {

cudaStream_t native(Stream stream) {
  return reinterpret_cast<cudaStream_t>(stream);
}
cudaEvent_t native(Event event) {
  return reinterpret_cast<cudaEvent_t>(event);
}

// An error that is thrown is told: who catches it and goes on must not meet it again at the next launch.
void check(cudaError_t status, const char* call) {
  if (status == cudaSuccess) return;
  cudaGetLastError();
  throw run_error(std::string("CUDA: ") + call + ": " + cudaGetErrorString(status));
}

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

std::string versions(const DeviceFacts& facts) {
  const std::string driver =
      facts.driver_version == 0 ? "no driver" : "driver for CUDA " + version_text(facts.driver_version);
  return driver + ", runtime " + version_text(facts.runtime_version);
}

}  // namespace

namespace {

int count_devices() {
  DeviceFacts facts;
  int count = 0;
  cudaDriverGetVersion(&facts.driver_version);
  cudaRuntimeGetVersion(&facts.runtime_version);
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess || count == 0) {
    const std::string reason = status == cudaSuccess ? "none is visible" : cudaGetErrorString(status);
    throw run_error("no CUDA device: " + reason + " (" + versions(facts) + ")");
  }
  return count;
}

DeviceFacts start_device(int device) {
  use_device(device);
  // Threads that wait leave the cores. A context that is there already keeps to what it has.
  if (cudaSetDeviceFlags(cudaDeviceScheduleBlockingSync) != cudaSuccess) cudaGetLastError();
  check(cudaFree(nullptr), "cudaFree");  // creates the context now
  cudaDeviceProp properties;
  check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  DeviceFacts facts;
  cudaDriverGetVersion(&facts.driver_version);
  cudaRuntimeGetVersion(&facts.runtime_version);
  facts.name = properties.name;
  facts.major = properties.major;
  facts.minor = properties.minor;
  facts.multiprocessors = properties.multiProcessorCount;
  facts.memory_bytes = static_cast<double>(properties.totalGlobalMem);
  facts.l2_bytes = properties.l2CacheSize;
  return facts;
}

// Copies between devices then go directly; where they cannot, CUDA takes them by way of the host.
void reach_others(int device, int count) {
  use_device(device);
  for (int other = 0; other < count; ++other) {
    int can = 0;
    if (other == device || cudaDeviceCanAccessPeer(&can, device, other) != cudaSuccess || can == 0) continue;
    const cudaError_t status = cudaDeviceEnablePeerAccess(other, 0);
    if (status != cudaSuccess) cudaGetLastError();  // it is already, or it stays by way of the host
  }
}

}  // namespace

void use_device(int device) {
  check(cudaSetDevice(device), "cudaSetDevice");
}

std::vector<DeviceFacts> open_devices() {
  std::vector<DeviceFacts> devices;
  const int count = count_devices();
  for (int device = 0; device < count; ++device) devices.push_back(start_device(device));
  for (int device = 0; device < count; ++device) reach_others(device, count);
  use_device(0);
  return devices;
}

DeviceFacts open_device() {
  count_devices();
  return start_device(0);
}

Stream make_stream() {
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  return reinterpret_cast<Stream>(stream);
}

void destroy(Stream stream) {
  cudaStreamDestroy(native(stream));
}

Event make_event() {
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, cudaEventBlockingSync), "cudaEventCreateWithFlags");
  return reinterpret_cast<Event>(event);
}

void destroy(Event event) {
  cudaEventDestroy(native(event));
}
void record(Event event, Stream stream) {
  check(cudaEventRecord(native(event), native(stream)), "cudaEventRecord");
}
void wait(Stream stream, Event event) {
  check(cudaStreamWaitEvent(native(stream), native(event), 0), "cudaStreamWaitEvent");
}
void synchronise(Event event) {
  check(cudaEventSynchronize(native(event)), "cudaEventSynchronize");
}
void synchronise(Stream stream) {
  check(cudaStreamSynchronize(native(stream)), "cudaStreamSynchronize");
}

Time elapsed(Event from, Event to) {
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, native(from), native(to)), "cudaEventElapsedTime");
  return {std::llround(static_cast<double>(milliseconds) * 1e6)};
}

// Relaxed: a library may load its kernels while they are captured.
void begin_capture(Stream stream) {
  check(cudaStreamBeginCapture(native(stream), cudaStreamCaptureModeRelaxed), "cudaStreamBeginCapture");
}

void launch_captured(Stream stream, Graph& graph) {
  cudaGraph_t captured = nullptr;
  check(cudaStreamEndCapture(native(stream), &captured), "cudaStreamEndCapture");
  auto executable = reinterpret_cast<cudaGraphExec_t>(graph);
  cudaGraphExecUpdateResultInfo difference;
  if (executable != nullptr && cudaGraphExecUpdate(executable, captured, &difference) != cudaSuccess) {
    cudaGetLastError();  // that they differ too much is no error of ours
    cudaGraphExecDestroy(executable);
    executable = nullptr;
    graph = nullptr;
  }
  const cudaError_t made =
      executable != nullptr ? cudaSuccess : cudaGraphInstantiate(&executable, captured, 0);
  cudaGraphDestroy(captured);
  check(made, "cudaGraphInstantiate");
  graph = reinterpret_cast<Graph>(executable);
  check(cudaGraphLaunch(executable, native(stream)), "cudaGraphLaunch");
}

void destroy(Graph graph) {
  cudaGraphExecDestroy(reinterpret_cast<cudaGraphExec_t>(graph));
}

void* allocate(std::size_t bytes) {
  void* memory = nullptr;
  const cudaError_t status = cudaMalloc(&memory, bytes);
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    std::size_t free_bytes = 0, all = 0;
    cudaMemGetInfo(&free_bytes, &all);
    throw run_error("the device's memory is full: " + std::to_string(bytes >> 20) + " MiB asked for, " +
                    std::to_string(free_bytes >> 20) + " of " + std::to_string(all >> 20) + " MiB free");
  }
  check(status, "cudaMalloc");
  return memory;
}

void release(void* memory) {
  cudaFree(memory);
}

void* allocate_pinned(std::size_t bytes) {
  void* memory = nullptr;
  check(cudaMallocHost(&memory, bytes), "cudaMallocHost");
  return memory;
}

void release_pinned(void* memory) {
  cudaFreeHost(memory);
}

void copy_to_device(Stream stream, void* to, const void* from, std::size_t bytes) {
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, native(stream)), "cudaMemcpyAsync");
}
void copy_to_host(Stream stream, void* to, const void* from, std::size_t bytes) {
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, native(stream)), "cudaMemcpyAsync");
}
void copy_on_device(Stream stream, void* to, const void* from, std::size_t bytes) {
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, native(stream)), "cudaMemcpyAsync");
}
void copy_between(Stream stream, const DevicePlace& to, const DevicePlace& from, std::size_t bytes) {
  check(cudaMemcpyPeerAsync(to.memory, to.device, from.memory, from.device, bytes, native(stream)),
        "cudaMemcpyPeerAsync");
}
void fill(Stream stream, void* memory, std::uint8_t byte, std::size_t bytes) {
  check(cudaMemsetAsync(memory, byte, bytes, native(stream)), "cudaMemsetAsync");
}

}  // namespace moebius::cuda
