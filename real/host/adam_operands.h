// What the op of the optimizer works on, as executors on the host and on devices read it.
#pragma once

#include <cstdint>

#include <fmt/format.h>

#include "hw/error.h"
#include "real/host/op_context.h"

namespace moebius {

// The operands of one parameter; without a master, `master` is the weight.
struct AdamIds {
  std::int32_t gradient, weight, master, first, second;
};

// The inputs of the op: of each parameter the gradient, the weight, the master (where k of the shape is 0)
// and both moments; where gradients are clipped, the sum of their squares last.
template <class Context>
class AdamInputs {
 public:
  explicit AdamInputs(const Context& c) : c_(c), has_master_(c.shape().k == 0) {
    CHECK(c.op().num_inputs % each() <= 1, fmt::format("{} operands", c.op().num_inputs));
  }
  int parameters() const { return c_.op().num_inputs / each(); }
  bool clipped() const { return c_.op().num_inputs % each() == 1; }
  int squares() const { return c_.op().num_inputs - 1; }  // the index of the sum
  AdamIds parameter(int i) const {
    const int at = i * each(), moments = at + each() - 2;
    return {c_.input_id(at), c_.input_id(at + 1), c_.input_id(has_master_ ? at + 2 : at + 1),
            c_.input_id(moments), c_.input_id(moments + 1)};
  }

 private:
  int each() const { return has_master_ ? 5 : 4; }

  const Context& c_;
  bool has_master_;
};

// The parameter that the op updates by this tensor. Of one that stands in the memory of the host the op has a
// copy, which lives in the fragment only and has no key: nothing tells that it is a bias, or an adapter.
inline std::int32_t home_of(const Fragment& fragment, std::int32_t weight) {
  if (fragment.tensors[weight].scope == Scope::kRank) return weight;
  for (const Op& op : fragment.ops) {
    for (int i = 0; op.kind == OpKind::kCopyFromHost && i < op.num_outputs; ++i)
      if (fragment.output(op, i) == weight) return fragment.input(op, i);
  }
  CHECK(false, fmt::format("{}: tensor {} is updated and stands nowhere", fragment.name, weight));
}

// Of a parameter with so many elements, those that this member updates.
template <class Context>
FlatShard own_shard(const Context& c, std::int64_t elements) {
  const GroupRole group = c.op().group;
  if (group == GroupRole::kNone) return flat_shard(elements, 1, 0);
  return flat_shard(elements, c.size_of(group), c.index_in(group));
}

}  // namespace moebius
