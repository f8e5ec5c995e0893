#include "real/cuda/cuda_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>

#include "hw/error.h"
#include "hw/stopwatch.h"
#include "real/cuda/cuda_case.h"
#include "real/cuda/cuda_neighbours.h"
#include "real/cuda/device_memory.h"
#include "real/cuda/kernels.h"
#include "workloads/calibration/device/transfer_fit.h"

namespace moebius::cuda {
namespace {

using Clock = std::chrono::steady_clock;

struct Bench {
  Stream stream = make_stream(), other = make_stream();
  EventPool events;
  DeviceBuffer from, to;
  PinnedBuffer pinned;
  std::vector<char> pageable;

  explicit Bench(std::size_t bytes) : from(bytes), to(bytes), pinned(bytes), pageable(bytes, 1) {}
  ~Bench() {
    for (const Stream one : {stream, other}) {
      try {
        synchronise(one);
      } catch (const Error&) {  // a device that failed has said so before
      }
      destroy(one);
    }
  }
  Bench(const Bench&) = delete;

  // Of what `give` gives to the stream, between two events.
  template <class Give>
  double seconds_of(const Give& give) {
    const EventRef start = events.recorded(stream);
    give(stream);
    const EventRef end = events.recorded(stream);
    synchronise(end.get());
    return std::max(1e-9, elapsed(start.get(), end.get()).seconds());
  }
};

Operand one_number(void* memory) {
  return {.data = memory, .rows = 1, .columns = 1};
}

// One op after the other as the executor gives them: a kernel between two events.
double measure_launch() {
  constexpr int kOps = 200;
  CudaCase one(operands_of({.kind = OpKind::kAdd, .shape = {.m = 1, .n = 8}}), {}, nullptr);
  const auto row = [&] {
    const EventRef start = one.issue().start;
    EventRef end;
    for (int i = 0; i < kOps; ++i) end = one.issue().end;
    synchronise(end.get());
    return std::max(1e-9, elapsed(start.get(), end.get()).seconds());
  };
  row();
  return row() / (kOps + 1);
}

// The host looks at a word that the kernel writes.
double measure_launch_latency(Bench& bench) {
  const Operand x = one_number(bench.from.data()), y = one_number(bench.pinned.data());
  fill(bench.stream, bench.from.data(), 0, sizeof(float));  // 0 + 0 is written: the word shows it by its bits
  std::vector<double> seconds;
  for (int i = 0; i < 51; ++i) {
    synchronise(bench.stream);
    std::atomic_ref<std::uint32_t> word(*static_cast<std::uint32_t*>(bench.pinned.data()));
    word = 1;
    const auto start = Clock::now();
    add(bench.stream, x, x, y);
    while (word.load() == 1) {
    }
    seconds.push_back(seconds_since(start));
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds[seconds.size() / 2];
}

// A rank brings its tensor, another reads it where it stands.
double exchange_seconds(Bench& bench, std::size_t bytes) {
  const auto count = static_cast<std::int64_t>(bytes / sizeof(std::uint16_t));
  const Operand x{.data = bench.from.data(), .rows = 1, .columns = count, .storage = Storage::kBf16};
  const Operand y{.data = bench.to.data(), .rows = 1, .columns = count, .storage = Storage::kBf16};
  const EventRef ready = bench.events.recorded(bench.other);
  wait(bench.stream, ready);
  copy_flat(bench.stream, x, 0, y, 0, count);
  const EventRef read = bench.events.recorded(bench.stream);
  synchronise(read.get());
  return std::max(1e-9, elapsed(ready.get(), read.get()).seconds());
}

std::vector<TransferCurve> measure_copies(Bench& bench, const FiguresPlan& plan) {
  const auto curve = [&](std::string_view name, const std::function<double(std::size_t)>& once) {
    return measure_transfers({std::string(name), plan.bytes, plan.seconds / 10},
                             [&](double bytes) { return once(static_cast<std::size_t>(bytes)); });
  };
  const auto by_host = [&](const auto& give) {
    const auto start = Clock::now();
    give(bench.stream);
    synchronise(bench.stream);
    return seconds_since(start);
  };
  void *a = bench.from.data(), *b = bench.to.data(), *pinned = bench.pinned.data(),
       *plain = bench.pageable.data();
  return {
      curve(kHostToDevice,
            [&](std::size_t n) {
              return bench.seconds_of([=](Stream s) { copy_to_device(s, a, pinned, n); });
            }),
      curve(
          kDeviceToHost,
          [&](std::size_t n) { return bench.seconds_of([=](Stream s) { copy_to_host(s, pinned, a, n); }); }),
      curve("h2d", [&](std::size_t n) { return by_host([=](Stream s) { copy_to_device(s, a, plain, n); }); }),
      curve("d2h", [&](std::size_t n) { return by_host([=](Stream s) { copy_to_host(s, plain, a, n); }); }),
      curve(kOnDevice,
            [&](std::size_t n) { return bench.seconds_of([=](Stream s) { copy_on_device(s, b, a, n); }); }),
      curve(kExchange, [&](std::size_t n) { return exchange_seconds(bench, n); })};
}

std::vector<Interference> measure_beside(Bench& bench, const FiguresPlan& plan, GemmLibrary* library) {
  const auto bytes = static_cast<std::size_t>(plan.bytes.back());
  void *a = bench.from.data(), *b = bench.to.data(), *pinned = bench.pinned.data();
  GemmBesideNeighbours product(plan.gemm, library);
  std::vector<Interference> all = {product.measure({std::string(kHostToDevice), 0, [=](Stream s) {
                                                      copy_to_device(s, a, pinned, bytes);
                                                      return bytes;
                                                    }})};
  for (const int cores : plan.neighbour_cores)
    all.push_back(product.measure({fmt::format("exchange on {} cores", cores), cores, [=](Stream s) {
                                     return copy_on_cores(s, a, b, bytes, {cores, 1});
                                   }}));
  return all;
}

}  // namespace

DeviceFigures measure_device_figures(const FiguresPlan& plan, GemmLibrary* library) {
  Bench bench(static_cast<std::size_t>(plan.bytes.back()));
  DeviceFigures figures;
  figures.launch = measure_launch();
  figures.launch_latency = measure_launch_latency(bench);
  figures.transfers = measure_copies(bench, plan);
  figures.interference = measure_beside(bench, plan, library);
  return figures;
}

}  // namespace moebius::cuda
