#include "workloads/training/memory.h"

#include <algorithm>
#include <map>
#include <set>

namespace moebius {
namespace {

// What running a fragment does to memory, relative to what was in use before it.
struct FragmentMemory {
  double peak_activations = 0,
         peak_transient = 0;  // at its fullest moment; activations may be below zero (freed meanwhile)
  double kept = 0;            // activations after it: written here minus last used here
};

// The span of ops between which each tensor must be held.
struct Life {
  std::int32_t first = -1, last = -1;
};

std::vector<Life> lives(const Fragment& fragment) {
  std::vector<Life> lives(fragment.tensors.size());
  for (std::size_t i = 0; i < fragment.ops.size(); ++i) {
    const Op& op = fragment.ops[i];
    for (int j = 0; j < op.num_inputs + op.num_outputs; ++j) {
      Life& life = lives[fragment.operands[op.first_tensor + j]];
      if (life.first < 0) life.first = static_cast<std::int32_t>(i);
      life.last = static_cast<std::int32_t>(i);
    }
  }
  return lives;
}

std::vector<bool> written_here(const Fragment& fragment) {
  std::vector<bool> written(fragment.tensors.size(), false);
  for (const Op& op : fragment.ops) {
    for (int i = 0; i < op.num_outputs; ++i) written[fragment.output(op, i)] = true;
  }
  return written;
}

FragmentMemory fragment_memory(const Fragment& fragment) {
  std::vector<double> transient(fragment.ops.size() + 1, 0), activations(fragment.ops.size() + 1, 0);
  FragmentMemory memory;
  const std::vector<Life> life = lives(fragment);
  const std::vector<bool> written = written_here(fragment);
  for (std::size_t t = 0; t < fragment.tensors.size(); ++t) {
    const Tensor& tensor = fragment.tensors[t];
    const double bytes = tensor.bytes().value;
    if (life[t].first < 0 || tensor.scope == Scope::kRank) continue;
    if (tensor.scope == Scope::kFragment) {
      transient[life[t].first] += bytes;
      transient[life[t].last + 1] -= bytes;
    } else if (written[t]) {
      activations[life[t].first] += bytes;
      memory.kept += bytes;
    }
  }
  for (const std::int32_t t : released(fragment)) {
    const double bytes = fragment.tensors[t].bytes().value;
    activations[life[t].last + 1] -= bytes;
    memory.kept -= bytes;
  }
  double t = 0, a = 0, peak = 0;
  for (std::size_t i = 0; i < fragment.ops.size(); ++i) {
    t += transient[i];
    a += activations[i];
    if (t + a > peak) peak = t + a, memory.peak_transient = t, memory.peak_activations = a;
  }
  return memory;
}

// Weights, gradients and states: every kRank tensor once.
MemoryByKind resident(std::span<const MemoryPass> passes) {
  MemoryByKind memory{};
  std::set<std::uint32_t> seen;
  std::set<const Fragment*> fragments;
  for (const MemoryPass& pass : passes) {
    if (!fragments.insert(pass.fragment).second) continue;
    for (const Tensor& tensor : pass.fragment->tensors) {
      if (tensor.scope != Scope::kRank || !seen.insert(tensor.key).second) continue;
      memory[static_cast<int>(tensor.memory)] += tensor.bytes();
    }
  }
  return memory;
}

}  // namespace

Bytes total(const MemoryByKind& memory) {
  Bytes sum = {};
  for (const Bytes bytes : memory) sum += bytes;
  return sum;
}

ClassMemory memory_of_passes(std::span<const MemoryPass> passes) {
  const MemoryByKind fixed = resident(passes);
  std::map<const Fragment*, FragmentMemory> known;
  ClassMemory result;
  double alive = 0;
  int microbatches = 0;
  for (const MemoryPass& pass : passes) {
    const auto [place, added] = known.try_emplace(pass.fragment);
    if (added) place->second = fragment_memory(*pass.fragment);
    const FragmentMemory& memory = place->second;
    MemoryByKind now = fixed;
    now[static_cast<int>(MemoryKind::kActivations)] += {alive + memory.peak_activations};
    now[static_cast<int>(MemoryKind::kTransient)] += {memory.peak_transient};
    const int during = microbatches + std::max(pass.microbatches, pass.begun);
    if (total(now) > result.peak)
      result.peak = total(now), result.at_peak = now, result.peak_microbatches = during;
    alive += memory.kept;
    microbatches += pass.microbatches;
    result.after_pass.push_back(total(fixed) + Bytes{alive});
  }
  return result;
}

}  // namespace moebius
