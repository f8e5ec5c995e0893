#include "workloads/training/state/memory.h"

#include <algorithm>
#include <initializer_list>
#include <map>
#include <set>
#include <tuple>

namespace moebius {
namespace {

constexpr int kOfAny = -1;  // member: rows are the largest over the group

// How many rows of a tensor a member of the expert group holds.
enum class RowsOf : std::uint8_t { kAll, kCopies, kReceived };

// What the ops of a fragment say about one of its tensors.
struct Use {
  std::int32_t first = -1, last = -1;  // ops between which it must be held
  RowsOf rows = RowsOf::kAll;
  std::int32_t route = -1;  // of the fragment
  bool second = false;      // of the second microbatch
};

// Its rows are of a matrix, not of tokens.
bool is_state(const Tensor& tensor) {
  return tensor.scope == Scope::kRank || tensor.scope == Scope::kStep;
}

RowsOf rows_by_route(const Tensor& tensor, const Route& route) {
  if (is_state(tensor) || tensor.rows == 0) return RowsOf::kAll;
  if (tensor.rows == route.max_rows_of_rank()) return RowsOf::kCopies;
  return tensor.rows == route.max_received_tokens() ? RowsOf::kReceived : RowsOf::kAll;
}

// Rows that come from other ranks or go back to them, as those sent them.
bool is_exchanged(const Op& op, int operand) {
  const auto is = [&](std::initializer_list<OpKind> kinds) {
    return std::find(kinds.begin(), kinds.end(), op.kind) != kinds.end();
  };
  if (is({OpKind::kDispatch, OpKind::kUnpermute, OpKind::kPermuteGrad})) return operand == op.num_inputs;
  return is({OpKind::kCombine, OpKind::kPermute, OpKind::kUnpermuteGrad}) && operand == 0;
}

// The library's all-to-all sends a row for each expert of a token, so that what came is as many as copies by
// expert, which are sorted into another buffer.
bool sends_copies(const Fragment& fragment) {
  return std::any_of(fragment.ops.begin(), fragment.ops.end(), [](const Op& op) {
    const bool routed = op.kind == OpKind::kDispatch || op.kind == OpKind::kCombine;
    return routed && op.algorithm == Algorithm::kLibrary;
  });
}

// A fragment as all members see it.
struct KnownFragment {
  std::vector<Use> uses;       // by tensor
  std::vector<bool> written;   // by tensor
  std::vector<bool> released;  // by tensor
  std::vector<std::int32_t> of_step;  // kStep tensors
};

std::vector<Use> uses_of(const Fragment& fragment, bool by_route) {
  std::vector<Use> uses(fragment.tensors.size());
  const bool copies = sends_copies(fragment);
  for (std::size_t i = 0; i < fragment.ops.size(); ++i) {
    const Op& op = fragment.ops[i];
    for (int j = 0; j < op.num_inputs + op.num_outputs; ++j) {
      const std::int32_t tensor = fragment.operands[op.first_tensor + j];
      Use& use = uses[tensor];
      if (use.first < 0) use.first = static_cast<std::int32_t>(i);
      use.last = static_cast<std::int32_t>(i);
      if (op.route < 0 || is_state(fragment.tensors[tensor])) continue;
      const bool exchanged = copies && is_exchanged(op, j) && fragment.tensors[tensor].rows > 0;
      if (!exchanged && (!by_route || use.rows != RowsOf::kAll)) continue;
      use.route = op.route;
      use.second = op.second;
      use.rows = exchanged ? RowsOf::kCopies
                           : rows_by_route(fragment.tensors[tensor], *fragment.routes[op.route]);
    }
  }
  return uses;
}

std::vector<bool> written_here(const Fragment& fragment) {
  std::vector<bool> written(fragment.tensors.size(), false);
  for (const Op& op : fragment.ops) {
    for (int i = 0; i < op.num_outputs; ++i) written[fragment.output(op, i)] = true;
  }
  return written;
}

std::vector<bool> released_here(const Fragment& fragment) {
  std::vector<bool> gone(fragment.tensors.size(), false);
  for (const std::int32_t tensor : released(fragment)) gone[tensor] = true;
  return gone;
}

int rows_of(const Use& use, const Route& route, int member) {
  if (use.rows == RowsOf::kCopies)
    return member == kOfAny ? route.max_rows_of_rank() : route.rows_of_rank(member);
  return member == kOfAny ? route.max_received_tokens() : route.received_tokens(member);
}

double bytes_of(const Tensor& tensor, const Use& use, const MemoryPass& pass, int member) {
  const double all = tensor.bytes().value;
  if (use.rows == RowsOf::kAll) return all;
  const std::vector<RoutePtr>* drawn = use.second ? pass.second_routes : pass.routes;
  const RoutePtr& route = (drawn != nullptr ? *drawn : pass.fragment->routes)[use.route];
  return all * rows_of(use, *route, member) / static_cast<double>(tensor.rows);
}

// What running a fragment does to memory, relative to what was in use before it.
struct FragmentMemory {
  MemoryByKind at_peak{};  // what it found may be below zero (freed meanwhile)
  MemoryByKind kept{};     // activations and what is of the step after it: written here minus last used here
  double kept_on_host = 0;
};

// Microbatch tensors count from where they are written, and no more from where the reverse pass has used
// them; those of the step from where they are `born`, written while they are not there, until they are freed.
class Walk {
 public:
  Walk(const MemoryPass& pass, const KnownFragment& known, const std::vector<std::int32_t>& born, int member)
      : pass_(pass), fragment_(*pass.fragment), known_(known), born_(born), member_(member) {}

  FragmentMemory run() {
    FragmentMemory memory;
    std::vector<double> change(fragment_.ops.size() + 1, 0);
    each([&](const Tensor& tensor, std::int32_t from, std::int32_t until, double bytes) {
      const bool stays = outlives(tensor);
      if (stays && tensor.on_host) memory.kept_on_host += bytes;
      if (tensor.on_host) return;
      if (stays) memory.kept[static_cast<int>(kind_after(tensor))] += {bytes};
      change[from] += bytes;
      if (!stays) change[until] -= bytes;
    });
    double now = 0, most = 0;
    std::int32_t peak = -1;
    for (std::size_t i = 0; i < fragment_.ops.size(); ++i) {
      now += change[i];
      if (now > most) most = now, peak = static_cast<std::int32_t>(i);
    }
    each([&](const Tensor& tensor, std::int32_t from, std::int32_t until, double bytes) {
      const bool there = from <= peak && (outlives(tensor) || peak < until);
      if (there && !tensor.on_host) memory.at_peak[static_cast<int>(tensor.memory)] += {bytes};
    });
    return memory;
  }

 private:
  static bool outlives(const Tensor& tensor) {
    return tensor.scope == Scope::kMicrobatch || tensor.scope == Scope::kStep;
  }
  // As what it counts between passes.
  static MemoryKind kind_after(const Tensor& tensor) {
    return tensor.scope == Scope::kStep ? tensor.memory : MemoryKind::kActivations;
  }

  template <class Visit>
  void each_of_step(const Visit& visit) const {
    for (const std::int32_t t : born_) {
      const std::int32_t from = known_.uses[t].first;
      visit(fragment_.tensors[t], from, from, fragment_.tensors[t].kept_bytes().value);
    }
    for (const std::int32_t t : known_.of_step) {
      if (!fragment_.tensors[t].freed) continue;
      const auto end = static_cast<std::int32_t>(fragment_.ops.size());
      const std::int32_t after = known_.uses[t].first >= 0 ? known_.uses[t].last + 1 : end;
      visit(fragment_.tensors[t], after, after, -fragment_.tensors[t].kept_bytes().value);
    }
  }

  // visit(tensor, first op at which its bytes count, first op at which they do not, bytes).
  template <class Visit>
  void each(const Visit& visit) const {
    each_of_step(visit);
    for (std::size_t t = 0; t < fragment_.tensors.size(); ++t) {
      const Tensor& tensor = fragment_.tensors[t];
      const Use& use = known_.uses[t];
      if (use.first < 0 || is_state(tensor)) continue;
      const double bytes = bytes_of(tensor, use, pass_, member_);
      const bool stays = tensor.scope == Scope::kMicrobatch;
      if (!stays || known_.written[t]) visit(tensor, use.first, use.last + 1, bytes);
      if (stays && known_.released[t]) visit(tensor, use.last + 1, use.last + 1, -bytes);
    }
  }

  const MemoryPass& pass_;
  const Fragment& fragment_;
  const KnownFragment& known_;
  const std::vector<std::int32_t>& born_;
  int member_;
};

std::vector<std::int32_t> of_step(const Fragment& fragment) {
  std::vector<std::int32_t> tensors;
  for (std::size_t t = 0; t < fragment.tensors.size(); ++t)
    if (fragment.tensors[t].scope == Scope::kStep) tensors.push_back(static_cast<std::int32_t>(t));
  return tensors;
}

// What is there of a step's own tensors from pass to pass.
class Standing {
 public:
  // Of those of a fragment what it writes while it is not there; then what it frees is gone.
  std::vector<std::int32_t> run(const Fragment& fragment, const KnownFragment& known) {
    std::vector<std::int32_t> born;
    for (const std::int32_t t : known.of_step)
      if (known.written[t] && keys_.insert(fragment.tensors[t].key).second) born.push_back(t);
    for (const std::int32_t t : known.of_step)
      if (fragment.tensors[t].freed) keys_.erase(fragment.tensors[t].key);
    return born;
  }

 private:
  std::set<std::uint32_t> keys_;
};

// Weights, gradients and states: every kRank tensor once.
MemoryByKind resident(std::span<const MemoryPass> passes, bool on_host) {
  MemoryByKind memory{};
  std::set<std::uint32_t> seen;
  std::set<const Fragment*> fragments;
  for (const MemoryPass& pass : passes) {
    if (!fragments.insert(pass.fragment).second) continue;
    for (const Tensor& tensor : pass.fragment->tensors) {
      if (tensor.scope != Scope::kRank || tensor.on_host != on_host || !seen.insert(tensor.key).second)
        continue;
      memory[static_cast<int>(tensor.memory)] += tensor.kept_bytes();
    }
  }
  return memory;
}

// What all members of a class have in common.
struct KnownPasses {
  std::map<const Fragment*, KnownFragment> fragments;
  MemoryByKind resident{}, on_host{};
};

KnownPasses known_passes(std::span<const MemoryPass> passes, bool by_route) {
  KnownPasses known{{}, resident(passes, false), resident(passes, true)};
  for (const MemoryPass& pass : passes) {
    const Fragment& fragment = *pass.fragment;
    const auto [place, added] = known.fragments.try_emplace(&fragment);
    if (added)
      place->second = {uses_of(fragment, by_route), written_here(fragment), released_here(fragment),
                       of_step(fragment)};
  }
  return known;
}

ClassMemory memory_of_member(std::span<const MemoryPass> passes, const KnownPasses& common, int member) {
  ClassMemory result;
  result.resident = common.resident;
  result.on_host = common.on_host;
  using Drawn = std::tuple<const Fragment*, const std::vector<RoutePtr>*, const std::vector<RoutePtr>*,
                           std::vector<std::int32_t>>;
  std::map<Drawn, FragmentMemory> known;
  Standing standing;
  MemoryByKind alive{};
  double on_host = 0, most_on_host = 0;
  int microbatches = 0;
  for (const MemoryPass& pass : passes) {
    const KnownFragment& fragment = common.fragments.at(pass.fragment);
    const std::vector<std::int32_t> born = standing.run(*pass.fragment, fragment);
    const auto [place, added] = known.try_emplace({pass.fragment, pass.routes, pass.second_routes, born});
    if (added) place->second = Walk(pass, fragment, born, member).run();
    const FragmentMemory& memory = place->second;
    MemoryByKind now = result.resident;
    for (int kind = 0; kind < kNumMemoryKinds; ++kind) {
      now[kind] += memory.at_peak[kind];
      now[kind] += alive[kind];
    }
    const int during = microbatches + std::max(pass.microbatches, pass.begun);
    if (total(now) > result.peak)
      result.peak = total(now), result.at_peak = now, result.peak_microbatches = during;
    for (int kind = 0; kind < kNumMemoryKinds; ++kind) alive[kind] += memory.kept[kind];
    on_host += memory.kept_on_host;
    most_on_host = std::max(most_on_host, on_host);
    microbatches += pass.microbatches;
    result.after_pass.push_back(total(result.resident) + total(alive));
  }
  result.on_host[static_cast<int>(MemoryKind::kActivations)] += {most_on_host};
  return result;
}

}  // namespace

Bytes total(const MemoryByKind& memory) {
  Bytes sum = {};
  for (const Bytes bytes : memory) sum += bytes;
  return sum;
}

Bytes MemoryReport::host_peak() const {
  if (worst_on_host >= 0) return total(classes[worst_on_host].on_host);
  Bytes most = {};
  for (const ClassMemory& memory : classes) most = std::max(most, total(memory.on_host));
  return most;
}

ClassMemory memory_of_passes(std::span<const MemoryPass> passes, std::span<const int> members) {
  const bool drawn = std::any_of(passes.begin(), passes.end(),
                                 [](const MemoryPass& pass) { return pass.routes != nullptr; });
  const KnownPasses known = known_passes(passes, drawn || !members.empty());
  if (members.empty()) return memory_of_member(passes, known, kOfAny);
  ClassMemory fullest;
  for (const int member : members) {
    ClassMemory memory = memory_of_member(passes, known, member);
    if (memory.peak > fullest.peak) fullest = std::move(memory);
  }
  return fullest;
}

}  // namespace moebius
