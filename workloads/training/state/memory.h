// Device memory of a training step, per rank class, from the tensors of its fragments in the order they run:
// weights, gradients and optimizer states stay; activations live from the forward pass of their microbatch to
// their last use in its reverse pass; what is of a step (Scope::kStep) from the pass that writes it to the
// one that frees it; the rest lives inside a fragment, from the op that begins it to the
// last that touches it. What stands in host memory is counted apart.
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
  MemoryByKind at_peak{};   // at the moment of the peak
  MemoryByKind resident{};  // of it, what stays for the whole run
  MemoryByKind on_host{};   // in host memory, at its fullest pass
  Bytes peak = {};
  int peak_microbatches = 0;      // whose activations are alive at the peak
  std::vector<Bytes> after_pass;  // memory in use after each pass of a step; of all, where steps differ
};

struct MemoryReport {
  std::vector<ClassMemory> classes;
  int worst_class = 0;
  int worst_on_host = -1;    // whose host memory is fullest, where nodes differ; -1: the one that needs most
  Bytes capacity = {};       // of one device
  Bytes reserve = {};        // of it, what the step's tensors leave to others: context, libraries, fragments
  Bytes host_capacity = {};  // of one device's share of its node
  Bytes peak() const { return classes[worst_class].peak; }
  Bytes room() const { return capacity - reserve; }
  bool fits() const { return peak() <= room(); }
  Bytes host_peak() const;  // the fullest rank's
  bool fits_on_host() const { return host_peak().value == 0 || host_peak() <= host_capacity; }
};

// One pass of a class: the fragment it runs and what it does to the number of microbatches alive.
struct MemoryPass {
  const Fragment* fragment = nullptr;
  int microbatches = 0;  // +1 forward, -1 once the weights' gradients are written, 0 otherwise
  int begun = 0;         // alive meanwhile beside those before, where a pair begins one and ends another
  // In place of the fragment's, where another step or microbatch draws its own: of its ops, of those of the
  // submission's second microbatch. Null: the fragment's.
  const std::vector<RoutePtr>* routes = nullptr;
  const std::vector<RoutePtr>* second_routes = nullptr;
};

// `members`: of the expert group that the class stands for, where they hold unequal numbers of tokens: the
// fullest of them counts, each with the rows of its own in every layer. Empty: all hold as much as the
// fullest of each layer.
ClassMemory memory_of_passes(std::span<const MemoryPass> passes, std::span<const int> members = {});

}  // namespace moebius
