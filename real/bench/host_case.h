// One op with operands of its own on the host, to be executed again and again.
#pragma once

#include <map>
#include <vector>

#include "real/bench/op_operands.h"
#include "real/host/op_context.h"

namespace moebius {

// Random numbers as each format stores them, made once: a pattern that fills operands of any size.
class Patterns {
 public:
  explicit Patterns(std::uint64_t seed) : seed_(seed) {}
  Matrix<float> matrix(const OperandSpec& spec);

 private:
  const std::vector<float>& pattern(DType dtype, Contents contents);

  std::uint64_t seed_;
  std::map<std::pair<DType, Contents>, std::vector<float>> made_;
};

class HostCase {
 public:
  HostCase(OpOperands operands, Patterns& patterns);

  double execute();                  // seconds of this thread on its core
  void flush();                      // the operands leave all caches
  void touch_first();                // reads the first operand, unless the op changes it in place
  std::vector<float> output(int i);  // of the last execution; for tests

 private:
  void make_fragment();
  void fill(Patterns& patterns);

  OpOperands operands_;
  std::vector<std::int32_t> inputs_, outputs_;  // ids in the fragment
  Submission submission_;
  RankClass place_;
  HostOptions options_;
  TensorStore<float> store_{StoreOptions{}};
  RoutePlans routes_;
};

}  // namespace moebius
