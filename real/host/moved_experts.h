// Weights of experts on their way between ranks, matrix by matrix.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "hw/error.h"
#include "real/host/op_context.h"
#include "workloads/schedule/expert_transfer.h"

namespace moebius {

// What goes to each member, one expert after the other; `size` elements each.
template <class Real>
std::vector<std::vector<Real>> packed_experts(const Matrix<Real>& held, const ExpertTransfer::Layer& layer,
                                              int from, int members, std::int64_t size) {
  std::vector<std::vector<Real>> packed(members);
  for (const ExpertTransfer::Arrival& arrival : layer.arrivals) {
    if (arrival.from != from) continue;
    const auto first = held.values.begin() + arrival.slot * size;
    packed[arrival.to].insert(packed[arrival.to].end(), first, first + size);
  }
  return packed;
}

// Carries out a kAllToAll of experts for one member. `swap(bytes of an element, give, take)` is the exchange.
// What comes stands in the order of its arrival, which is that of the senders; it is of its format already.
template <class Real, class Swap>
void move_experts(OpContext<Real>& c, int member, int members, const Swap& swap) {
  using Pieces = std::vector<std::span<const Real>>;
  for (int i = 0; i < c.op().num_inputs; ++i) {
    const Tensor& weight = c.input_tensor(i);
    const ExpertTransfer::Layer& layer = c.submission().fragment->transfer->of(weight.layer);
    const std::int64_t size = weight.rows * weight.columns;
    const auto packed = packed_experts(c.in(i), layer, member, members, size);
    Matrix<Real> come(c.output_tensor(i).held_rows(), weight.columns);
    swap(element_bytes(weight.dtype), Pieces(packed.begin(), packed.end()), [&](const Pieces& pieces) {
      std::size_t brought = 0;
      for (const auto& piece : pieces) brought += piece.size();
      const auto expected = layer.arrivals_at(member).size() * static_cast<std::size_t>(size);
      CHECK(brought == expected, fmt::format("{} elements of experts, {} expected", brought, expected));
      auto next = come.values.begin();
      for (const auto& piece : pieces) next = std::copy(piece.begin(), piece.end(), next);
    });
    c.store().write_unrounded(c.output_id(i), std::move(come));
  }
}

// Between the memories of one rank: values stay as they are. States that no update has made yet are none: the
// first update begins them.
template <class Real>
void copy_between_memories(OpContext<Real>& c) {
  for (int i = 0; i < c.op().num_inputs; ++i) {
    const bool state = c.input_tensor(i).memory == MemoryKind::kOptimizer;
    if (state && !c.store().holds(c.input_id(i)) && !c.store().restores_states()) continue;
    c.store().write_unrounded(c.output_id(i), Matrix<Real>(c.in(i)));
  }
}

}  // namespace moebius
