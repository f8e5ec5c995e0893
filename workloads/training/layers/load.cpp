// How a part of the batch comes to the rank that reads it.
#include <algorithm>

#include "workloads/schedule/host_load.h"
#include "workloads/training/layers/lowering.h"

namespace moebius {

FragmentBuilder lower_load(const LoweringInput& input, const StageSpec& stage, const ForwardPass& forward,
                           bool first) {
  FragmentBuilder builder("load " + stage.name(), Phase::kForward, stage.meetings);
  builder.launch = input.plan->launch;
  std::vector<TensorId> prepared, read, brought;
  Op copy{.kind = OpKind::kCopyFromHost, .dtype = DType::kInt32, .lane = Lane::kLoader, .role = Role::kInput};
  copy.shape.n = 1;
  for (const TensorId id : forward.streams) {
    Tensor tensor = forward.builder.tensor(id);
    tensor.kept = false;
    const bool goes_on = std::find(forward.read.begin(), forward.read.end(), id) != forward.read.end();
    if (goes_on) brought.push_back(builder.add(tensor));
    tensor.scope = Scope::kFragment;
    tensor.memory = MemoryKind::kTransient;
    tensor.key = 0;
    tensor.on_host = true;
    prepared.push_back(builder.add(tensor));
    if (!goes_on) continue;
    read.push_back(prepared.back());
    copy.payload += tensor.bytes();
    copy.shape.m += tensor.rows;
  }
  const std::int64_t tokens = builder.tensor(prepared.front()).rows;
  Op reading = input_op(input, tokens, static_cast<int>(prepared.size()));
  reading.lane = Lane::kLoader;
  if (first) reading.shape.kv = kFirstLoad;
  builder.emit(reading, {}, prepared);
  builder.emit(copy, read, brought);
  return builder;
}

}  // namespace moebius
