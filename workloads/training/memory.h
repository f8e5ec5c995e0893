// Device memory of a training step, per rank class, from the tensors of its fragments in the order they run:
// weights, gradients and optimizer states stay; activations live from the forward pass of their microbatch to
// their last use in its reverse pass; the rest lives inside a fragment.
#pragma once

#include <array>
#include <span>
#include <string>
#include <vector>

#include "hw/units.h"
#include "workloads/schedule/fragment.h"

namespace moebius {

using MemoryByKind = std::array<Bytes, kNumMemoryKinds>;

Bytes total(const MemoryByKind& memory);

struct ClassMemory {
  MemoryByKind at_peak{};  // at the moment of the peak
  Bytes peak = {};
  int peak_microbatches = 0;      // whose activations are alive at the peak
  std::vector<Bytes> after_pass;  // memory in use after each pass of a step
};

struct MemoryReport {
  std::vector<ClassMemory> classes;
  int worst_class = 0;
  Bytes capacity = {};  // of one device
  Bytes peak() const { return classes[worst_class].peak; }
  bool fits() const { return peak() <= capacity; }
};

// One pass of a class: the fragment it runs and what it does to the number of microbatches alive.
struct MemoryPass {
  const Fragment* fragment = nullptr;
  int microbatches = 0;  // +1 forward, -1 once the weights' gradients are written, 0 otherwise
  int begun = 0;         // alive meanwhile beside those before, where a pair begins one and ends another
};

ClassMemory memory_of_passes(std::span<const MemoryPass> passes);

}  // namespace moebius
