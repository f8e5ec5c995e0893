// Attention on tensor cores: beside the plain kernels, for forms that no model of the other tests has, and
// how fast it is. Figures are shown, not judged.
#include <catch2/catch.hpp>

#include <cstring>

#include <fmt/format.h>

#include "real/cuda/kernels.h"
#include "real/cuda/tolerances.h"
#include "tests/gpu/device_tests.h"
#include "workloads/routing/routing.h"

namespace moebius {
namespace {

using cuda::Operand;

bool on_cpu_threads() {
  return cuda::open_device().major == 0;  // whose times say nothing
}

// Operands of attention, forward and backward, in a device's memory.
class AttentionCase {
 public:
  explicit AttentionCase(const cuda::Attention& form)
      : stream_(cuda::make_stream()), from_(cuda::make_event()), to_(cuda::make_event()), a_(form) {
    const std::int64_t queries = a_.sequences * a_.queries;
    const std::int64_t keys = tiles(a_.keys, a_.chunk) * a_.chunk * a_.sequences + a_.sequences * a_.chunk;
    a_.q = random(1, queries, a_.heads * a_.head_dim);
    a_.k = random(2, keys, a_.kv_heads * a_.head_dim);
    a_.v = random(3, keys, a_.kv_heads * a_.v_dim);
    o_ = room(queries, a_.heads * a_.v_dim, cuda::Storage::kBf16);
    g_ = {.d_o = random(4, queries, a_.heads * a_.v_dim),
          .o = o_,
          .lse = room(queries, a_.heads, cuda::Storage::kFp32),
          .dq = room(queries, a_.heads * a_.head_dim, cuda::Storage::kBf16),
          .dk = room(keys, a_.kv_heads * a_.head_dim, cuda::Storage::kBf16),
          .dv = room(keys, a_.kv_heads * a_.v_dim, cuda::Storage::kBf16)};
    g_.dot = room(queries, a_.heads, cuda::Storage::kFp32);
    REQUIRE(cuda::flash_takes(a_));
    REQUIRE(cuda::flash_grad_takes(a_, g_));
    g_.workspace = room(cuda::flash_grad_workspace(a_), 1, cuda::Storage::kFp32);
  }
  ~AttentionCase() {
    cuda::synchronise(stream_);
    for (void* memory : memory_) cuda::release(memory);
    cuda::destroy(from_), cuda::destroy(to_), cuda::destroy(stream_);
  }
  AttentionCase(const AttentionCase&) = delete;

  void forward(bool tensor_cores) {
    tensor_cores ? cuda::flash_attention(stream_, a_, o_, g_.lse) : cuda::attention(stream_, a_, o_, g_.lse);
  }
  void backward(bool tensor_cores) {
    tensor_cores ? cuda::flash_attention_grad(stream_, a_, g_) : cuda::attention_grad(stream_, a_, g_);
  }
  // o, lse, dq, dk, dv.
  std::vector<Operand> results() const { return {o_, g_.lse, g_.dq, g_.dk, g_.dv}; }
  std::vector<float> values(const Operand& x) {
    std::vector<std::uint8_t> bytes(static_cast<std::size_t>(x.elements() * element_size(x.storage)));
    cuda::copy_to_host(stream_, bytes.data(), x.data, bytes.size());
    cuda::synchronise(stream_);
    Operand here = x;
    here.data = bytes.data();
    std::vector<float> values;
    for (std::int64_t i = 0; i < x.elements(); ++i) values.push_back(cuda::load(here, i));
    return values;
  }
  std::vector<std::vector<float>> all_values() {
    std::vector<std::vector<float>> all;
    for (const Operand& x : results()) all.push_back(values(x));
    return all;
  }

  // Seconds of one of `times` executions.
  template <class Give>
  double time(int times, const Give& give) {
    give();
    cuda::record(from_, stream_);
    for (int i = 0; i < times; ++i) give();
    cuda::record(to_, stream_);
    cuda::synchronise(to_);
    return cuda::elapsed(from_, to_).seconds() / times;
  }
  // Of two products, and of five: what is computed twice counts once.
  double forward_operations() const { return operations(a_.head_dim + a_.v_dim); }
  double backward_operations() const { return operations(3 * a_.head_dim + 2 * a_.v_dim); }

 private:
  double operations(std::int64_t width) const {
    double pairs = 0;
    for (std::int64_t i = 0; i < a_.queries; ++i)
      pairs += static_cast<double>(a_.last_seen(i) - a_.first_seen(i));
    return 2 * pairs * static_cast<double>(a_.sequences * a_.heads * width);
  }
  static std::int64_t tiles(std::int64_t rows, std::int64_t tile) { return (rows + tile - 1) / tile; }
  Operand room(std::int64_t rows, std::int64_t columns, cuda::Storage storage) {
    const auto bytes = static_cast<std::size_t>(rows * columns * cuda::element_size(storage));
    memory_.push_back(cuda::allocate(bytes));
    cuda::fill(stream_, memory_.back(), 0xff, bytes);  // NaN: what is not written shows
    return {.data = memory_.back(), .rows = rows, .columns = columns, .storage = storage};
  }
  // Numbers of a bounded range are drawn quickly, and a large matrix repeats them.
  Operand random(std::uint64_t seed, std::int64_t rows, std::int64_t columns) {
    const Operand x = room(rows, columns, cuda::Storage::kBf16);
    const std::int64_t count = std::min<std::int64_t>(x.elements(), 1000003);
    std::vector<std::uint16_t> numbers(static_cast<std::size_t>(x.elements()));
    for (std::int64_t i = 0; i < x.elements(); ++i) {
      const auto at = static_cast<std::size_t>(i);
      numbers[at] = i < count
                        ? cuda::to_bf16(static_cast<float>(
                              3.4 * (random_unit(random_bits(seed, static_cast<std::uint64_t>(i), 0)) - 0.5)))
                        : numbers[at - static_cast<std::size_t>(count)];
    }
    cuda::copy_to_device(stream_, x.data, numbers.data(), 2 * numbers.size());
    cuda::synchronise(stream_);
    return x;
  }

  cuda::Stream stream_;
  cuda::Event from_, to_;
  std::vector<void*> memory_;
  cuda::Attention a_;
  Operand o_;
  cuda::AttentionGrad g_;
};

double size_of_numbers(const std::vector<float>& x) {
  double squares = 0;
  for (const float v : x) squares += static_cast<double>(v) * v;
  return std::sqrt(squares / static_cast<double>(x.size()));
}

}  // namespace

TEST_CASE("attention on tensor cores beside the plain kernels") {
  NEEDS_DEVICE();
  using Form = cuda::Attention;
  cuda::open_device();
  // The first keys' sums are up to 15 times the root mean square of all here, not 4.
  constexpr double kError = 2 * cuda::kFlashError, kLeast = 1e-2;
  // Keys in several chunks, some of them seen by no query; fewer queries than keys; heads that are widened;
  // tiles that end within a chunk; partial sums of dk and dv.
  for (const Form& form : {Form{.sequences = 2,
                          .queries = 150,
                          .keys = 300,
                          .heads = 6,
                          .kv_heads = 2,
                          .head_dim = 64,
                          .v_dim = 64,
                          .chunk = 100},
                           Form{.sequences = 1,
                           .queries = 200,
                           .keys = 333,
                           .heads = 8,
                           .kv_heads = 2,
                           .head_dim = 128,
                           .v_dim = 128,
                           .chunk = 333},
                           Form{.sequences = 3,
                           .queries = 65,
                           .keys = 192,
                           .heads = 2,
                           .kv_heads = 1,
                           .head_dim = 128,
                           .v_dim = 64,
                           .window = 70,
                           .chunk = 64,
                           .score_scale = 1.5},
                           Form{.sequences = 1,
                           .queries = 257,
                           .keys = 257,
                           .heads = 2,
                           .kv_heads = 2,
                           .head_dim = 192,
                           .v_dim = 128,
                           .chunk = 257},
                           Form{.sequences = 2,
                           .queries = 130,
                           .keys = 140,
                           .heads = 2,
                           .kv_heads = 1,
                           .head_dim = 144,
                           .v_dim = 48,
                           .window = 33,
                           .chunk = 70},
                           Form{.sequences = 1,
                           .queries = 1,
                           .keys = 1,
                           .heads = 1,
                           .kv_heads = 1,
                           .head_dim = 16,
                           .v_dim = 16,
                           .chunk = 1}}) {
    AttentionCase one(form);
    std::vector<std::vector<float>> found[3];
    for (int i = 0; i < 3; ++i) {  // twice on tensor cores, which give equal bits
      one.forward(i < 2);
      one.backward(i < 2);
      found[i] = one.all_values();
    }
    for (std::size_t x = 0; x < found[0].size(); ++x) {
      CAPTURE(form.queries, form.keys, form.head_dim, form.v_dim, x);
      // One key alone has no gradient but what rounding leaves of the difference of equals.
      const double rms = std::max(size_of_numbers(found[2][x]), kLeast);
      std::size_t far = 0;
      for (std::size_t i = 0; i < found[0][x].size(); ++i)
        far += !cuda::near_enough(found[0][x][i], found[2][x][i], rms, kError, one.results()[x].storage);
      CHECK(far == 0);
      CHECK(std::memcmp(found[0][x].data(), found[1][x].data(), 4 * found[0][x].size()) == 0);
    }
  }
}

TEST_CASE("attention on tensor cores, timed") {
  NEEDS_DEVICE();
  using Form = cuda::Attention;
  const bool small = on_cpu_threads();
  const std::vector<Form> forms = small ? std::vector<Form>{Form{.queries = 70,
                                                                 .keys = 70,
                                                                 .heads = 2,
                                                                 .kv_heads = 1,
                                                                 .head_dim = 64,
                                                                 .v_dim = 64,
                                                                 .chunk = 70}}
                                        : std::vector<Form>{Form{.queries = 2048,
                                                                 .keys = 2048,
                                                                 .heads = 32,
                                                                 .kv_heads = 4,
                                                                 .head_dim = 128,
                                                                 .v_dim = 128,
                                                                 .chunk = 2048},
                                                            Form{.queries = 4096,
                                                                 .keys = 4096,
                                                                 .heads = 128,
                                                                 .kv_heads = 128,
                                                                 .head_dim = 192,
                                                                 .v_dim = 128,
                                                                 .chunk = 4096}};
  for (const Form& form : forms) {
    AttentionCase one(form);
    const int times = small ? 1 : 10;
    const double forward = one.time(times, [&] { one.forward(true); });
    const double backward = one.time(times, [&] { one.backward(true); });
    CHECK(forward > 0);
    CHECK(backward > 0);
    if (!small)
      WARN(fmt::format(
          "{} queries, {} heads, {} kv heads, {}/{}: forward {:.1f} us ({:.0f} TFLOP/s), backward "
          "{:.1f} us ({:.0f} TFLOP/s)",
          form.queries, form.heads, form.kv_heads, form.head_dim, form.v_dim, forward * 1e6,
          one.forward_operations() / forward * 1e-12, backward * 1e6,
          one.backward_operations() / backward * 1e-12));
  }
}

}  // namespace moebius
