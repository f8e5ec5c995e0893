#include "workloads/training/pipeline/two_batch.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <utility>

namespace moebius {
namespace {

bool is_exchange(const Op& op) {
  return op.kind == OpKind::kDispatch || op.kind == OpKind::kCombine;
}

// In the order of the fragment, cut where computing would wait.
Pieces pieces_of(const Fragment& fragment) {
  Pieces pieces;
  std::vector<std::int32_t>& first = pieces.first = {0};
  const auto num_ops = static_cast<std::int32_t>(fragment.ops.size());
  pieces.ops.resize(num_ops);
  std::iota(pieces.ops.begin(), pieces.ops.end(), 0);
  for (std::int32_t i = 0; i < num_ops; ++i) {
    const Op& op = fragment.ops[i];
    if (op.lane != Lane::kCompute || op.fused) continue;  // a fused op stays with the one before it
    for (int d = 0; d < op.num_dependencies; ++d) {
      const std::int32_t before = fragment.dependencies[op.first_dependency + d];
      // A piece waits for what was sent before it began.
      if (is_exchange(fragment.ops[before]) && before >= first.back()) {
        first.push_back(i);
        break;
      }
    }
  }
  first.push_back(num_ops);
  return pieces;
}

class Overlap {
 public:
  // Half 0 is the backward pass.
  Overlap(const Fragment& backward, const Fragment& forward) : halves_{&backward, &forward} {
    fragment_.name = backward.name + " beside " + forward.name;
    fragment_.phase = Phase::kBackward;
    fragment_.launch = backward.launch;
    fragment_.one_expert_call = backward.one_expert_call;
    fragment_.ops.reserve(backward.ops.size() + forward.ops.size());
    fragment_.tensors.reserve(backward.tensors.size() + forward.tensors.size());
    fragment_.operands.reserve(backward.operands.size() + forward.operands.size());
    fragment_.dependencies.reserve(backward.dependencies.size() + forward.dependencies.size());
    for (int half = 0; half < 2; ++half) {
      const Fragment& given = *halves_[half];
      add_tensors(given, half);
      routes_[half] = static_cast<std::int32_t>(fragment_.routes.size());
      fragment_.routes.insert(fragment_.routes.end(), given.routes.begin(), given.routes.end());
      batches_[half] = static_cast<std::int32_t>(fragment_.batches.size());
      fragment_.batches.insert(fragment_.batches.end(), given.batches.begin(), given.batches.end());
      places_[half].resize(given.ops.size());
    }
  }

  FragmentPtr write(const Pieces& first, const Pieces& second, std::size_t lag) {
    for (std::size_t i = 0; i < std::max(first.count(), lag + second.count()); ++i) {
      if (i < first.count()) add_piece(0, first, i);
      if (i >= lag && i - lag < second.count()) add_piece(1, second, i - lag);
    }
    link_graphs(fragment_.captured);
    fragment_.pair_bytes = halves_[0]->pair_bytes;
    return freeze(std::move(fragment_));
  }

 private:
  // Parameters that both halves use are one tensor.
  void add_tensors(const Fragment& given, int half) {
    for (const Tensor& tensor : given.tensors) {
      const auto next = static_cast<std::int32_t>(fragment_.tensors.size());
      if (tensor.scope == Scope::kRank || tensor.scope == Scope::kStep) {
        const auto [known, is_new] = parameters_.try_emplace({tensor.scope, tensor.key}, next);
        tensors_[half].push_back(known->second);
        if (!is_new) {
          fragment_.tensors[known->second].freed |= tensor.freed;
          continue;
        }
      } else {
        tensors_[half].push_back(next);
      }
      fragment_.tensors.push_back(tensor);
      fragment_.tensors.back().second = half == 0 && tensor.scope == Scope::kMicrobatch;
    }
  }

  void add_piece(int half, const Pieces& pieces, std::size_t i) {
    for (std::int32_t at = pieces.first[i]; at < pieces.first[i + 1]; ++at) add_op(half, pieces.ops[at]);
  }

  void add_op(int half, std::int32_t index) {
    const Fragment& given = *halves_[half];
    Op op = given.ops[index];
    op.second = half == 0;
    if (op.route >= 0) op.route += routes_[half];
    if (op.batch >= 0) op.batch += batches_[half];
    const std::int32_t first_dependency = op.first_dependency, first_tensor = op.first_tensor;
    op.first_dependency = static_cast<std::int32_t>(fragment_.dependencies.size());
    op.first_tensor = static_cast<std::int32_t>(fragment_.operands.size());
    for (int i = 0; i < op.num_dependencies; ++i)
      fragment_.dependencies.push_back(places_[half][given.dependencies[first_dependency + i]]);
    for (int i = 0; i < op.num_inputs + op.num_outputs; ++i)
      fragment_.operands.push_back(tensors_[half][given.operands[first_tensor + i]]);
    places_[half][index] = static_cast<std::int32_t>(fragment_.ops.size());
    fragment_.ops.push_back(op);
    add_captured(half, index);
  }

  // Each half's graphs stay its own.
  void add_captured(int half, std::int32_t index) {
    if (halves_[0]->captured.empty() && halves_[1]->captured.empty()) return;
    const Fragment& given = *halves_[half];
    Captured& captured = fragment_.captured.emplace_back();
    if (given.captured.empty()) return;
    captured = given.captured[index];
    if (captured.first >= 0) captured.first = places_[half][captured.first];
  }

  std::array<const Fragment*, 2> halves_;
  Fragment fragment_;
  std::array<std::vector<std::int32_t>, 2> tensors_, places_;  // of the halves, here
  std::array<std::int32_t, 2> routes_{}, batches_{};
  std::map<std::pair<Scope, std::uint32_t>, std::int32_t> parameters_;  // by key
};

}  // namespace

FragmentPtr overlap(const Fragment& backward, const Fragment& forward) {
  return Overlap(backward, forward).write(pieces_of(backward), pieces_of(forward), 0);
}

FragmentPtr overlap(PiecedPass first, PiecedPass second, std::size_t lag) {
  return Overlap(first.pass, second.pass).write(first.pieces, second.pieces, lag);
}

}  // namespace moebius
