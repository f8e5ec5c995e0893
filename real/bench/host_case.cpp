#include "real/bench/host_case.h"

#include <algorithm>
#include <cmath>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

#include <fmt/format.h>

#include "hw/error.h"
#include "real/bench/case_tensors.h"
#include "real/rounding.h"
#include "real/thread_clock.h"
#include "workloads/routing/routing.h"
#include "workloads/training/layers/builder.h"

namespace moebius {
namespace {

constexpr std::size_t kLine = 64;                                  // bytes
constexpr std::int64_t kPatternRows = 512, kPatternColumns = 128;  // a scale for each row

// Whole numbers below `below`, spread over all of them.
Matrix<float> random_ids(const OperandSpec& spec, std::uint64_t seed) {
  Matrix<float> ids(spec.rows, spec.columns);
  for (std::size_t i = 0; i < ids.values.size(); ++i) {
    const double number = random_unit(random_bits(seed, i)) * static_cast<double>(spec.below);
    ids.values[i] = static_cast<float>(std::floor(number));
  }
  return ids;
}

#if defined(__x86_64__)
// Line after line; the optimised instruction, where the processor has it, does not wait for the line before.
__attribute__((target("clflushopt"))) void flush_lines_fast(const char* first, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; i += kLine) _mm_clflushopt(const_cast<char*>(first) + i);
}
void flush_lines(const char* first, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; i += kLine) _mm_clflush(first + i);
}

bool has_fast_flush() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & bit_CLFLUSHOPT) != 0;
}

void leave_caches(const std::vector<float>& values) {
  static const bool fast = has_fast_flush();
  const char* first = reinterpret_cast<const char*>(values.data());
  fast ? flush_lines_fast(first, values.size() * sizeof(float))
       : flush_lines(first, values.size() * sizeof(float));
  _mm_mfence();
}
#else
// No instruction for it: a walk over more than the caches hold.
void leave_caches(const std::vector<float>&) {
  constexpr std::size_t kBytes = std::size_t{256} << 20;
  static thread_local std::vector<char> other(kBytes);
  for (std::size_t i = 0; i < kBytes; i += kLine) other[i] = static_cast<char>(other[i] + 1);
}
#endif

}  // namespace

const std::vector<float>& Patterns::pattern(DType dtype, Contents contents) {
  std::vector<float>& values = made_[{dtype, contents}];
  if (!values.empty()) return values;
  for (std::int64_t i = 0; i < kPatternRows * kPatternColumns; ++i) {
    const auto unit = static_cast<float>(random_unit(random_bits(seed_, i)));
    values.push_back(contents == Contents::kPositive ? 0.05f + 0.9f * unit : 2 * unit - 1);
  }
  round_matrix<float>(values, kPatternRows, kPatternColumns, dtype);
  return values;
}

Matrix<float> Patterns::matrix(const OperandSpec& spec) {
  if (spec.contents == Contents::kIds) return random_ids(spec, seed_);
  const std::vector<float>& from = pattern(spec.dtype, spec.contents);
  Matrix<float> filled(spec.rows, spec.columns);
  for (std::size_t at = 0; at < filled.values.size(); at += from.size())
    std::copy_n(from.begin(), std::min(from.size(), filled.values.size() - at), filled.values.begin() + at);
  return filled;
}

HostCase::HostCase(OpOperands operands, Patterns& patterns) : operands_(std::move(operands)) {
  place_.ranks = {0};
  make_fragment();
  store_.begin(submission_);
  fill(patterns);
}

void HostCase::make_fragment() {
  FragmentBuilder builder("one op", Phase::kForward);
  std::uint32_t key = 0;
  for (const OperandSpec& spec : operands_.inputs)
    inputs_.push_back(builder.add(tensor_of(spec, ++key, true)));
  for (const OperandSpec& spec : operands_.outputs)
    outputs_.push_back(builder.add(tensor_of(spec, ++key, spec.changed)));
  if (operands_.in_place) outputs_ = inputs_;
  if (operands_.route) {
    const RoutePtr route = stand_in_route();
    operands_.op.route = builder.add_route(route);
    routes_.put(route, std::move(*operands_.route));
  }
  if (operands_.batch) operands_.op.batch = builder.add_batch(operands_.batch);
  builder.transfer = operands_.transfer;
  builder.emit(operands_.op, inputs_, outputs_);
  submission_.fragment = builder.freeze_it();
}

// What stands there is of its format already.
void HostCase::fill(Patterns& patterns) {
  for (std::size_t i = 0; i < inputs_.size(); ++i)
    store_.write_unrounded(inputs_[i], patterns.matrix(operands_.inputs[i]));
  for (std::size_t i = 0; i < operands_.outputs.size(); ++i) {
    if (operands_.outputs[i].changed)
      store_.write_unrounded(outputs_[i], patterns.matrix(operands_.outputs[i]));
  }
}

// Results of the last execution go first, as a schedule frees what nobody reads any more.
double HostCase::execute() {
  store_.release(0);
  OpContext<float> context({0, &place_, &options_, &store_, &routes_}, submission_, 0);
  const Time start = thread_cpu_time();
  compute(context);
  return (thread_cpu_time() - start).seconds();
}

void HostCase::flush() {
  for (const std::int32_t id : inputs_) leave_caches(store_.read(id).values);
  for (const std::int32_t id : outputs_) {
    if (store_.describe(id).scope == Scope::kRank) leave_caches(store_.read(id).values);
  }
}

void HostCase::touch_first() {
  if (operands_.in_place || inputs_.empty()) return;
  float sum = 0;
  for (const float value : store_.read(inputs_[0]).values) sum += value;
  [[maybe_unused]] volatile float sink = sum;  // the reads are not left out
}

std::vector<float> HostCase::output(int i) {
  return store_.read(outputs_[i]).values;
}

}  // namespace moebius
