// One op on the host and on the device, on equal operands: what both leave in its outputs.
#pragma once

#include <string>
#include <vector>

#include "tests/gpu/device_tests.h"
#include "tests/unit/real/hand_made.h"
#include "workloads/routing/routing.h"

namespace moebius {

// An operand: a tensor of the whole run, with the values that it starts from.
struct OperandCase {
  std::int64_t rows = 0, columns = 0;
  DType dtype = DType::kFp32;
  std::vector<float> values = {};  // empty: an output that does not exist before
  int experts = 0;                 // above 0: a weight, of so many matrices one below the other
};

// Numbers of random sign around `size`, different for each seed.
inline std::vector<float> random_numbers(std::uint64_t seed, std::int64_t count, double size = 1) {
  std::vector<float> x;
  for (std::int64_t i = 0; i < count; ++i) {
    double sum = 0;
    for (std::uint64_t part = 0; part < 4; ++part) sum += random_unit(random_bits(seed, i, part)) - 0.5;
    x.push_back(static_cast<float>(size * 1.7 * sum));  // four uniform numbers: variance 1/3
  }
  return x;
}

inline OperandCase random_operand(std::uint64_t seed, std::int64_t rows, std::int64_t columns,
                                  DType dtype = DType::kBf16, double size = 1) {
  return {rows, columns, dtype, random_numbers(seed, rows * columns, size)};
}

inline OperandCase random_weight(std::uint64_t seed, std::int64_t rows, std::int64_t columns, DType dtype,
                                 double size = 1, int experts = 1) {
  OperandCase weight = random_operand(seed, rows, columns, dtype, size);
  weight.experts = experts;
  return weight;
}

struct OpCase {
  std::string name;
  Op op;
  std::vector<OperandCase> inputs, outputs;
  bool in_place = false;  // outputs are the inputs
  RoutePtr route = nullptr;
  BatchPtr batch = nullptr;
  ExpertTransferPtr transfer = nullptr;
};

inline constexpr std::uint32_t kFirstInput = 1, kFirstOutput = 100;

struct OpResults {
  std::vector<std::vector<float>> host, device;  // by output
};

inline Tensor tensor_of(const OperandCase& operand, std::uint32_t key) {
  Tensor tensor = kept(key, operand.rows, operand.columns);
  tensor.dtype = operand.dtype;
  if (operand.experts > 0) {
    tensor.memory = MemoryKind::kWeights;
    tensor.rows /= operand.experts;
    tensor.experts = operand.experts;
  }
  return tensor;
}

inline FragmentPtr fragment_of(const OpCase& one) {
  FragmentBuilder builder("one op", Phase::kForward);
  std::vector<TensorId> inputs, outputs;
  for (std::size_t i = 0; i < one.inputs.size(); ++i)
    inputs.push_back(builder.add(tensor_of(one.inputs[i], kFirstInput + i)));
  for (std::size_t i = 0; i < one.outputs.size(); ++i)
    outputs.push_back(builder.add(tensor_of(one.outputs[i], kFirstOutput + i)));
  if (one.in_place) outputs = inputs;
  Op op = one.op;
  if (one.route) op.route = builder.add_route(one.route);
  if (one.batch) op.batch = builder.add_batch(one.batch);
  builder.transfer = one.transfer;
  builder.emit(op, inputs, outputs);
  return builder.freeze_it();
}

template <class SomeExecutor>
std::vector<std::vector<float>> execute_case(const OpCase& one, SomeExecutor& executor, Recorder& recorder) {
  const auto set = [&](const std::vector<OperandCase>& operands, std::uint32_t first) {
    for (std::size_t i = 0; i < operands.size(); ++i) {
      if (!operands[i].values.empty()) executor.set_parameter(0, first + i, operands[i].values);
    }
  };
  set(one.inputs, kFirstInput);
  set(one.outputs, kFirstOutput);
  const Submission submission{.fragment = fragment_of(one), .after = {}};
  recorder.submitted(submission);
  executor.submit(submission);
  executor.finish();
  std::vector<std::vector<float>> results;
  const std::uint32_t first = one.in_place ? kFirstInput : kFirstOutput;
  for (std::size_t i = 0; i < (one.in_place ? one.inputs : one.outputs).size(); ++i)
    results.push_back(executor.tensor(0, first + i));
  return results;
}

inline const cuda::CudaOptions kPlainKernels = {.library_gemm = false, .tensor_cores = false};

// All on one rank, which is alone in every group.
inline OpResults execute_both(const OpCase& one, cuda::CudaOptions options = kPlainKernels) {
  const Layout layout = one_group(1, GroupRole::kExpert);
  OpResults results;
  {
    Recorder recorder(layout, RecorderOptions{});
    HostExecutor<float> host(layout, recorder, {});
    results.host = execute_case(one, host, recorder);
  }
  Recorder recorder(layout, RecorderOptions{});
  options.poison = true;
  const auto device = make_cuda_executor(layout, recorder, options);
  results.device = execute_case(one, *device, recorder);
  return results;
}

}  // namespace moebius
