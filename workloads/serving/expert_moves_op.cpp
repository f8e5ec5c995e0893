#include "workloads/serving/expert_moves_op.h"

#include <algorithm>
#include <cmath>

namespace moebius {

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
  Op op{.kind = OpKind::kAllToAll,
        .dtype = DType::kBf16,
        .lane = Lane::kDataComm,
        .role = Role::kExperts,
        .group = GroupRole::kExpert,
        .algorithm = Algorithm::kDirect,
        .match = builder.next_match(),
        .shape = {.m = builder.tensor(held).rows, .n = 1}};
  op.payload = {bytes->largest_before()};
  builder.pair_bytes = bytes;
  builder.emit(op, {held}, {come});
}

}  // namespace moebius
