#include "real/cuda/cuda_bench.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "hw/error.h"
#include "real/bench/op_text.h"
#include "real/bench/repetitions.h"
#include "real/cuda/catalog_name.h"
#include "real/cuda/cuda_case.h"

namespace moebius {
namespace {

using cuda::CudaCase;
using cuda::EventRef;
using cuda::IssuedOp;
using cuda::Stream;

// Multiprocessors that are held while this lives.
class Occupied {
 public:
  explicit Occupied(int multiprocessors) {
    if (multiprocessors <= 0) return;
    words_ = static_cast<int*>(cuda::allocate_pinned(2 * sizeof(int)));
    words_[0] = words_[1] = 0;
    stream_ = cuda::make_stream();
    cuda::occupy(stream_, multiprocessors, words_, words_ + 1);
    if (wait_until_held(multiprocessors)) return;
    leave();
    throw run_error(fmt::format("{} multiprocessors could not be held: something else runs on the device",
                                multiprocessors));
  }
  ~Occupied() {
    try {
      leave();
    } catch (const Error&) {  // a device that failed has said so before
    }
  }
  Occupied(const Occupied&) = delete;

 private:
  bool wait_until_held(int multiprocessors) {
    const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (std::atomic_ref<int>(words_[0]).load() < multiprocessors) {
      if (std::chrono::steady_clock::now() > patience) return false;
      std::this_thread::yield();
    }
    return true;
  }
  void leave() {
    if (words_ == nullptr) return;
    std::atomic_ref<int>(words_[1]).store(1);
    cuda::synchronise(stream_);
    cuda::destroy(stream_);
    cuda::release_pinned(words_);
    words_ = nullptr;
  }

  int* words_ = nullptr;  // held, stop
  Stream stream_ = nullptr;
};

// Twice the L2, so that nothing of before is left in it.
class FlushBuffer {
 public:
  explicit FlushBuffer(double l2_bytes)
      : bytes_(static_cast<std::size_t>(std::max(2 * l2_bytes, 1e6))), memory_(cuda::allocate(bytes_)) {}
  ~FlushBuffer() { cuda::release(memory_); }
  FlushBuffer(const FlushBuffer&) = delete;

  void write(Stream stream) { cuda::fill(stream, memory_, ++round_, bytes_); }

 private:
  std::size_t bytes_;
  void* memory_;
  std::uint8_t round_ = 0;
};

double seconds_between(const EventRef& from, const EventRef& to) {
  return cuda::elapsed(from.get(), to.get()).seconds();
}

// What two events tell that have nothing between them: the device's own time from one to the next.
double empty_seconds(CudaCase& one) {
  std::vector<double> seconds;
  for (int i = 0; i < 11; ++i) {
    const EventRef from = one.mark(), to = one.mark();
    cuda::synchronise(to.get());
    seconds.push_back(seconds_between(from, to));
  }
  return summary_of(seconds).seconds;
}

class CudaBench : public OpBench {
 public:
  CudaBench() : facts_(cuda::open_device()), library_(cuda::open_gemm_library(no_library_)) {}

  OpMeasurement measure(const CostQuery& query, const StoppingRule& rule) override {
    OpMeasurement all{.repetitions = rule.most};
    double spread_seconds = 0;
    try {
      for (const CostQuery& part : parts_of(query)) {
        const OpMeasurement one = measure_part(part, rule);
        all.seconds += one.seconds;
        spread_seconds += one.spread * one.seconds;
        all.repetitions = std::min(all.repetitions, one.repetitions);
      }
    } catch (const Error& error) {
      throw run_error(fmt::format("{}: {}", describe(query), error.what()));
    }
    all.spread = all.seconds > 0 ? spread_seconds / all.seconds : 0;
    return all;
  }
  std::string device() const override {
    return fmt::format("cuda:0, {}, products by {}", facts_.name,
                       library_ ? library_->description() : "the plain kernel");
  }
  int cores() const override { return facts_.multiprocessors; }
  std::string chip() const override { return cuda::catalog_name(facts_); }

 private:
  OpMeasurement measure_part(const CostQuery& query, const StoppingRule& rule) {
    CudaCase one(operands_of(query), {}, library_.get());
    FlushBuffer flush(facts_.l2_bytes);
    const auto run = [&](int batch) { return query.hot ? hot(one, batch) : cold(one, flush, batch); };
    run(1);  // memory and code are there from here on
    const int batch = batch_of(run(1));
    run(batch);
    const bool shared = query.cores > 0 && query.cores < facts_.multiprocessors;
    const Occupied others(shared ? facts_.multiprocessors - query.cores : 0);
    return repeat(rule, [&] { return run(batch); });
  }

  // Events resolve half a microsecond; ops shorter than 20 us are repeated until 200 are together.
  static int batch_of(double seconds) {
    if (seconds >= 20e-6) return 1;
    return std::clamp(static_cast<int>(std::ceil(200e-6 / std::max(seconds, 1e-7))), 2, 64);
  }

  static double without(double seconds, double empty) { return std::max(seconds - empty, seconds / 10); }

  // The mean over a batch of executions, each after a flush and between events of its own.
  static double cold(CudaCase& one, FlushBuffer& flush, int batch) {
    std::vector<IssuedOp> issued;
    for (int i = 0; i < batch; ++i) {
      flush.write(one.stream());
      issued.push_back(one.issue());
    }
    cuda::synchronise(issued.back().end.get());
    double sum = 0;
    for (const IssuedOp& op : issued) sum += seconds_between(op.start, op.end);
    return without(sum / batch, empty_seconds(one));
  }

  // One after the other, between two events.
  static double hot(CudaCase& one, int batch) {
    const IssuedOp first = one.issue();
    IssuedOp last = first;
    for (int i = 1; i < batch; ++i) last = one.issue();
    cuda::synchronise(last.end.get());
    return without(seconds_between(first.start, last.end), empty_seconds(one)) / batch;
  }

  cuda::DeviceFacts facts_;
  std::string no_library_;
  std::unique_ptr<cuda::GemmLibrary> library_;
};

}  // namespace

std::unique_ptr<OpBench> make_cuda_bench() {
  return std::make_unique<CudaBench>();
}

}  // namespace moebius
