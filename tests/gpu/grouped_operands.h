// The product of all experts on a device without an executor: operands in its memory, and what a kernel
// leaves.
#pragma once

#include <optional>
#include <vector>

#include "real/cuda/kernels.h"
#include "tests/gpu/op_case.h"

namespace moebius {

enum class GroupedKind { kForward, kDgrad, kWgrad };

struct GroupedCase {
  GroupedKind kind = GroupedKind::kForward;
  std::vector<std::int32_t> rows;  // of each expert
  std::int64_t n = 0, k = 0;       // of a weight: [n,k]
  cuda::Storage operands = cuda::Storage::kBf16, result = cuda::Storage::kBf16;
};

class GroupedOperands {
 public:
  explicit GroupedOperands(const GroupedCase& grouped) : case_(grouped) {
    std::vector<std::int32_t> lists{0};
    for (const std::int32_t rows : case_.rows) lists.push_back(lists.back() + rows);
    copies_ = lists.back();
    std::int32_t tiles = 0;
    for (const std::int32_t rows : case_.rows) {
      lists.push_back(tiles);
      tiles += (rows + static_cast<int>(cuda::kGemmTile) - 1) / static_cast<int>(cuda::kGemmTile);
    }
    lists.push_back(tiles);
    const auto experts = static_cast<std::int64_t>(case_.rows.size());
    auto* first_row = static_cast<std::int32_t*>(take(lists.size() * sizeof(std::int32_t)));
    cuda::copy_to_device(stream_, first_row, lists.data(), lists.size() * sizeof(std::int32_t));
    const bool wgrad = case_.kind == GroupedKind::kWgrad, forward = case_.kind == GroupedKind::kForward;
    const std::int64_t n = case_.n, k = case_.k;
    const bool coded = is_scaled(case_.operands);
    const cuda::Operand a = operand(1, copies_, forward ? k : n, case_.operands);
    const cuda::Operand b =
        wgrad ? operand(2, copies_, k, case_.operands)
              : operand(2, experts * n, k, coded ? cuda::Storage::kFp8Blocks : cuda::Storage::kBf16, n);
    const cuda::Operand c = operand(3, wgrad ? experts * n : copies_, forward ? n : k, case_.result);
    all_ = {.product =
                {.a = a, .b = b, .c = c, .a_transposed = wgrad, .b_transposed = forward, .accumulate = wgrad},
            .groups = static_cast<int>(experts),
            .first_row = first_row,
            .first_tile = first_row + experts + 1,
            .row_tiles = tiles};
    cuda::synchronise(stream_);
  }
  ~GroupedOperands() {
    cuda::synchronise(stream_);
    for (void* memory : memory_) cuda::release(memory);
    cuda::destroy(stream_);
  }
  GroupedOperands(const GroupedOperands&) = delete;
  GroupedOperands& operator=(const GroupedOperands&) = delete;

  const cuda::GroupedGemm& all() const { return all_; }
  void multiply_by_warps() { grouped_gemm_by_warps(stream_, all_); }

  // Whether warpgroups take it, perhaps once operands are transposed: makes room for those.
  bool suits_warpgroups() {
    if (warpgroups_take(all_)) return true;
    if ((turned_ = turned_form(all_))) {
      cuda::Operand& w = turned_->product.b;
      w.data = take(w.elements());
      w.scales = static_cast<float*>(take(num_scales(w) * sizeof(float)));
      return true;
    }
    if (!warpgroups_take_turned_rows(all_)) return false;
    a_turned_ = static_cast<std::uint8_t*>(take(turned_bytes(all_, all_.product.a)));
    b_turned_ = static_cast<std::uint8_t*>(take(turned_bytes(all_, all_.product.b)));
    return true;
  }
  bool turns() const { return turned_ || a_turned_ != nullptr; }
  void turn() {
    if (turned_) turn_experts(stream_, all_.product.b, turned_->product.b);
    if (a_turned_ == nullptr) return;
    turn_rows(stream_, all_, all_.product.a, a_turned_);
    turn_rows(stream_, all_, all_.product.b, b_turned_);
  }
  void multiply_by_warpgroups(int width) {
    if (a_turned_ != nullptr) return grouped_gemm_of_turned_rows(stream_, all_, {a_turned_, b_turned_});
    grouped_gemm_by_warpgroups(stream_, turned_.value_or(all_), width);
  }

  // What run() leaves in c, which begins with the same numbers each time.
  template <class Run>
  std::vector<float> result(const Run& run) {
    const cuda::Operand& c = all_.product.c;
    fill_operand(3, c);
    run();
    std::vector<char> bytes(c.elements() * element_size(c.storage));
    cuda::copy_to_host(stream_, bytes.data(), c.data, bytes.size());
    cuda::synchronise(stream_);
    std::vector<float> values;
    const cuda::Operand here{
        .data = bytes.data(), .rows = c.rows, .columns = c.columns, .storage = c.storage};
    for (std::int64_t i = 0; i < c.elements(); ++i) values.push_back(load(here, i));
    return values;
  }

  // Seconds of one of several runs after each other, once the first ones are over.
  template <class Run>
  double seconds(const Run& run) {
    constexpr int kTimes = 20;
    const cuda::Event start = cuda::make_event(), end = cuda::make_event();
    for (int i = 0; i < 3; ++i) run();
    cuda::record(start, stream_);
    for (int i = 0; i < kTimes; ++i) run();
    cuda::record(end, stream_);
    cuda::synchronise(end);
    const double all = static_cast<double>(cuda::elapsed(start, end).ns) * 1e-9;
    cuda::destroy(start);
    cuda::destroy(end);
    return all / kTimes;
  }
  double operations() const {
    return 2.0 * static_cast<double>(copies_) * static_cast<double>(case_.n) * static_cast<double>(case_.k);
  }

 private:
  void* take(std::size_t bytes) {
    memory_.push_back(cuda::allocate(bytes + 16));
    return memory_.back();
  }
  cuda::Operand operand(std::uint64_t seed, std::int64_t rows, std::int64_t columns, cuda::Storage storage,
                        std::int64_t period = 0) {
    cuda::Operand x{.rows = rows, .columns = columns, .storage = storage, .period = period};
    x.data = take(x.elements() * element_size(storage));
    if (is_scaled(storage)) x.scales = static_cast<float*>(take(num_scales(x) * sizeof(float)));
    fill_operand(seed, x);
    return x;
  }
  // Numbers that go round, with a stretch of their own for each seed, quantised where x is.
  void fill_operand(std::uint64_t seed, const cuda::Operand& x) {
    static const std::vector<float> numbers = random_numbers(7, 65521);
    std::vector<float> values(x.elements());
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = numbers[(i + seed * 1009) % numbers.size()];
    if (x.storage == cuda::Storage::kBf16) {
      std::vector<std::uint16_t> bits;
      for (const float value : values) bits.push_back(cuda::to_bf16(value));
      cuda::copy_to_device(stream_, x.data, bits.data(), bits.size() * sizeof bits[0]);
    } else if (x.storage == cuda::Storage::kFp32) {
      cuda::copy_to_device(stream_, x.data, values.data(), values.size() * sizeof values[0]);
    } else {
      void* plain = cuda::allocate(values.size() * sizeof values[0]);
      cuda::copy_to_device(stream_, plain, values.data(), values.size() * sizeof values[0]);
      cuda::quantise(stream_, {.data = plain, .rows = x.rows, .columns = x.columns}, x);
      cuda::synchronise(stream_);
      cuda::release(plain);
    }
    cuda::synchronise(stream_);
  }

  GroupedCase case_;
  cuda::Stream stream_ = cuda::make_stream();
  std::vector<void*> memory_;
  std::int64_t copies_ = 0;
  cuda::GroupedGemm all_;
  std::optional<cuda::GroupedGemm> turned_;
  std::uint8_t *a_turned_ = nullptr, *b_turned_ = nullptr;
};

}  // namespace moebius
