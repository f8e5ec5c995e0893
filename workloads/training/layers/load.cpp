// How a part of the batch comes to the rank that reads it.
#include "workloads/training/layers/lowering.h"

namespace moebius {

FragmentBuilder lower_load(const LoweringInput& input, const StageSpec& stage, const ForwardPass& forward) {
  FragmentBuilder builder("load " + stage.name(), Phase::kForward, stage.meetings);
  builder.launch = input.plan->launch;
  std::vector<TensorId> read, brought;
  Op copy{
      .kind = OpKind::kCopyFromHost, .dtype = DType::kInt32, .lane = Lane::kLoader, .role = Role::kInput};
  copy.shape.n = 1;
  for (const TensorId id : forward.read) {
    Tensor tensor = forward.builder.tensor(id);
    tensor.kept = false;
    brought.push_back(builder.add(tensor));
    copy.payload += tensor.bytes();
    copy.shape.m += tensor.rows;
    tensor.scope = Scope::kFragment;
    tensor.memory = MemoryKind::kTransient;
    tensor.key = 0;
    tensor.on_host = true;
    read.push_back(builder.add(tensor));
  }
  const std::int64_t tokens = builder.tensor(read.front()).rows;
  Op reading = input_op(input, tokens, static_cast<int>(read.size()));
  reading.lane = Lane::kLoader;
  builder.emit(reading, {}, read);
  builder.emit(copy, read, brought);
  return builder;
}

}  // namespace moebius
