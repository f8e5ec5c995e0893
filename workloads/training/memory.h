// Device memory of a training step, per rank class, from the tensors of its fragments in the order they run.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "hw/units.h"
#include "workloads/schedule/fragment.h"

namespace moebius {

struct ClassMemory {
  std::array<Bytes, kNumMemoryKinds> at_peak{};  // by kind, at the moment of the peak
  Bytes peak;
  int peak_microbatches = 0;  // microbatches whose activations are alive at the peak
};

struct MemoryReport {
  std::vector<ClassMemory> classes;
  int worst_class = 0;
  Bytes capacity;  // of one device
  Bytes peak() const { return classes[worst_class].peak; }
  bool fits() const { return peak() <= capacity; }
};

}  // namespace moebius
