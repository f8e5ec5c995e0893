// A product on a device while something else runs there. Part of measure_device_figures() (cuda_figures.h).
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "hw/device_figures.h"
#include "real/cuda/cuda_case.h"

namespace moebius::cuda {

// Memory of its own.
class DeviceBuffer {
 public:
  explicit DeviceBuffer(std::size_t bytes) : data_(allocate(bytes)) {}
  ~DeviceBuffer() { release(data_); }
  DeviceBuffer(const DeviceBuffer&) = delete;
  void* data() const { return data_; }

 private:
  void* data_;
};
class PinnedBuffer {
 public:
  explicit PinnedBuffer(std::size_t bytes) : data_(allocate_pinned(bytes)) {}
  ~PinnedBuffer() { release_pinned(data_); }
  PinnedBuffer(const PinnedBuffer&) = delete;
  void* data() const { return data_; }

 private:
  void* data_;
};

struct Neighbour {
  std::string name;
  int cores = 0;                             // that it holds
  std::function<std::size_t(Stream)> round;  // gives one round to the stream; the bytes that it moves
};

class GemmBesideNeighbours {
 public:
  // BF16, m = n = k = size; `library` as CudaCase's.
  GemmBesideNeighbours(std::int64_t size, GemmLibrary* library);
  ~GemmBesideNeighbours();
  GemmBesideNeighbours(const GemmBesideNeighbours&) = delete;

  // The median of ten products in a row, alone and beside rounds of the neighbour that begin before the first
  // and go on behind the last; the neighbour's rate over as many rounds alone and then.
  Interference measure(const Neighbour& neighbour);

 private:
  double median_seconds(int products);
  double rate(const Neighbour& neighbour, int rounds);

  std::int64_t size_;
  CudaCase product_;
  EventPool events_;
  Stream stream_;
};

}  // namespace moebius::cuda
