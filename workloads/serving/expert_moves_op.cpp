#include "workloads/serving/expert_moves_op.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

namespace moebius {
namespace {

void write_exchange(FragmentBuilder& builder, const PairBytesPtr& bytes, const std::vector<TensorId>& held,
                    const std::vector<TensorId>& come) {
  const Tensor& first = builder.tensor(held.front());
  Op op{.kind = OpKind::kAllToAll,
        .dtype = first.dtype,
        .lane = Lane::kDataComm,
        .role = Role::kExperts,
        .group = GroupRole::kExpert,
        .algorithm = Algorithm::kDirect,
        .match = builder.next_match(),
        .shape = {.m = first.held_rows(), .n = first.columns}};
  op.payload = {bytes->largest_before()};
  builder.pair_bytes = bytes;
  builder.emit(op, held, come);
}

PairBytesPtr bytes_of(const ExpertTransfer& transfer, int ranks, double expert_bytes) {
  PairBytes pairs{ranks, {}};
  for (int from = 0; from < ranks; ++from)
    for (int to = 0; to < ranks; ++to) pairs.bytes.push_back(transfer.count(from, to) * expert_bytes);
  return std::make_shared<const PairBytes>(std::move(pairs));
}

}  // namespace

void write_expert_moves(FragmentBuilder& builder, const PairBytesPtr& bytes) {
  const auto rows = [](double most) {
    return std::max<std::int64_t>(1, std::llround(std::ceil(most / element_bytes(DType::kBf16))));
  };
  const TensorId held = builder.add({.scope = Scope::kRank,
                                     .memory = MemoryKind::kWeights,
                                     .dtype = DType::kBf16,
                                     .role = Role::kExperts,
                                     .layer = -1,
                                     .key = parameter_key(Role::kExperts, -1, Part::kWeight),
                                     .rows = rows(bytes->largest_before()),
                                     .columns = 1});
  const TensorId come = builder.transient(rows(bytes->largest_after()), 1, DType::kBf16, Role::kExperts);
  write_exchange(builder, bytes, {held}, {come});
}

ArrivedExperts write_expert_transfer(LayerWriter& writer, const ExpertTransferPtr& transfer, int slots) {
  FragmentBuilder& builder = writer.builder();
  const std::int16_t layer_around = builder.layer;
  ArrivedExperts arrived;
  std::vector<TensorId> held, come;
  double expert_bytes = 0;  // of one layer
  for (const ExpertTransfer::Layer& layer : transfer->layers) {
    builder.layer = static_cast<std::int16_t>(layer.number);
    expert_bytes = 0;
    const ExpertLinears linears = expert_linears(writer);
    for (const Linear& linear : {linears.up, linears.down}) {
      held.push_back(writer.expert_weight(linear, slots));
      const Tensor weight = builder.tensor(held.back());
      come.push_back(builder.add({.dtype = weight.dtype,
                                  .role = weight.role,
                                  .layer = weight.layer,
                                  .rows = weight.rows,
                                  .columns = weight.columns,
                                  .experts = layer.most_arrivals()}));
      expert_bytes += static_cast<double>(weight.rows * weight.columns) * element_bytes(weight.dtype);
      arrived.matrices.push_back({come.back(), held.back(), layer.number});
    }
  }
  builder.layer = layer_around;
  builder.transfer = transfer;
  write_exchange(builder, bytes_of(*transfer, writer.plan().ep, expert_bytes), held, come);
  return arrived;
}

void write_placing(LayerWriter& writer, const ExpertTransfer& transfer, const ArrivedExperts& arrived) {
  FragmentBuilder& builder = writer.builder();
  for (const ArrivedExperts::Matrix& matrix : arrived.matrices) {
    const auto placed = transfer.of(matrix.layer).placings_at(writer.shard().expert).size();
    if (placed == 0) continue;
    const Tensor& weight = builder.tensor(matrix.held);
    builder.layer = weight.layer;
    builder.emit({.kind = OpKind::kPlaceExperts,
                  .dtype = weight.dtype,
                  .role = weight.role,
                  .shape = {.m = static_cast<std::int64_t>(placed) * weight.rows,
                            .n = weight.columns,
                            .groups = static_cast<std::int32_t>(placed)}},
                 {matrix.come}, {matrix.held});
  }
}

}  // namespace moebius
