#include "real/calibration/host_figures.h"

#include <sys/utsname.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <fstream>
#include <thread>

#include <fmt/format.h>

#include "hw/stopwatch.h"
#include "real/calibration/host_exchange.h"
#include "real/calibration/storage_figures.h"
#include "real/exchange.h"
#include "real/thread_clock.h"
#include "workloads/calibration/device/transfer_fit.h"
#include "workloads/crosscheck/cache_mixture.h"
#include "workloads/schedule/op.h"

namespace moebius {
namespace {

constexpr std::size_t kPoolBytes = std::size_t{128} << 20;  // that copies wander through
const std::vector<double> kSizes = {256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304};

std::string system_release() {
  utsname names{};
  return uname(&names) == 0 ? fmt::format("{} {}", names.sysname, names.release) : "unknown";
}

// From one half of a pool to the other, each time from the next place.
class Copies {
 public:
  Copies() : pool_(kPoolBytes, 1) {}

  double once(std::size_t bytes) {
    const std::size_t half = kPoolBytes / 2;
    if (at_ + bytes > half) at_ = 0;
    const Time start = thread_cpu_time();
    std::memcpy(pool_.data() + half + at_, pool_.data() + at_, bytes);
    const double seconds = (thread_cpu_time() - start).seconds();
    at_ += bytes;
    return seconds;
  }

 private:
  std::vector<char> pool_;
  std::size_t at_ = 0;
};

// Two ranks that meet again and again; the times of the second one count.
class Meetings {
 public:
  // Mean seconds of one meeting, of `times` in a row: the clock of a thread is slower than a short copy.
  double seconds(std::size_t bytes, int times) {
    std::thread other([&] { meet(0, bytes, times); });
    const double spent = meet(1, bytes, times);
    other.join();
    return spent / times;
  }

 private:
  // CPU seconds of all of them; the memory is there before.
  double meet(int rank, std::size_t bytes, int times) {
    const std::vector<float> piece(bytes / sizeof(float), 1);
    std::vector<float> mine(piece.size());
    const Exchange<float>::Pieces give{piece, piece};
    const Time start = thread_cpu_time();
    for (int i = 0; i < times; ++i) {
      const MeetingKey key{.ranks = {0, 1}, .group = static_cast<int>(GroupRole::kWorld), .round = i};
      exchange_.swap_pieces(key, {rank, rank, "a measured meeting"}, give,
                            [&](const Exchange<float>::Pieces& given) {
                              const auto& from = given[static_cast<std::size_t>(1 - rank)];
                              std::copy(from.begin(), from.end(), mine.begin());
                            });
    }
    return (thread_cpu_time() - start).seconds();
  }

  Monitor monitor_{2};
  Exchange<float> exchange_{monitor_};
};

TransferCurve measure_exchange(double seconds) {
  Meetings meetings;
  return measure_transfers({std::string(kExchange), kSizes, seconds}, [&](double bytes) {
    return meetings.seconds(static_cast<std::size_t>(bytes), 16);
  });
}

TransferCurve measure_copies(double seconds) {
  Copies copies;
  return measure_transfers({std::string(kOnDevice), kSizes, seconds},
                           [&](double bytes) { return copies.once(static_cast<std::size_t>(bytes)); });
}

// A thread that copies until it is told to stop.
class CopyingNeighbour {
 public:
  CopyingNeighbour()
      : thread_([this] {
          Copies copies;
          started_ = true;
          const auto start = std::chrono::steady_clock::now();
          for (; !stop_; bytes_ += kStep) copies.once(kStep);
          seconds_ = seconds_since(start);
        }) {
    while (!started_) std::this_thread::yield();
  }
  double bytes_per_second() {  // ends it
    stop_ = true;
    thread_.join();
    return bytes_ / seconds_;
  }

 private:
  static constexpr std::size_t kStep = 1 << 20;
  std::atomic<bool> stop_ = false, started_ = false;
  double bytes_ = 0, seconds_ = 1;
  std::thread thread_;
};

Interference measure_neighbours(OpBench& bench, double seconds) {
  CostQuery gemm{.kind = OpKind::kGemm, .shape = {.m = 128, .n = 512, .k = 512}, .dtype = DType::kBf16};
  gemm.cores = 1;
  const StoppingRule rule{.precision = 0.01, .least = 5, .most = 100, .most_seconds = seconds / 3};
  Interference found{.kernel = "gemm bf16 128 x 512 x 512", .beside = "copies on another core", .cores = 1};
  found.alone = bench.measure(gemm, rule).seconds;
  {
    CopyingNeighbour neighbour;
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds / 3));
    found.neighbour_alone = neighbour.bytes_per_second();
  }
  CopyingNeighbour neighbour;
  found.together = bench.measure(gemm, rule).seconds;
  found.neighbour_together = neighbour.bytes_per_second();
  return found;
}

}  // namespace

DeviceFigures measure_host_figures(OpBench& bench, const std::string& directory, const FiguresTime& time,
                                   HostWalks walks) {
  const double eighth = time.seconds / 8;
  DeviceFigures figures;
  figures.name = bench.device();
  figures.driver = system_release();
  const CostQuery smallest{.kind = OpKind::kAdd, .shape = {.m = 1, .n = 1}, .cores = 1, .hot = true};
  figures.launch = bench.measure(smallest, {.most_seconds = eighth}).seconds;
  figures.transfers = {measure_copies(eighth), measure_exchange(eighth)};
  for (TransferCurve& curve : measure_host_exchange(time.part(0.125), walks.hot))
    figures.transfers.push_back(std::move(curve));
  for (TransferCurve& curve : measure_host_exchange(time.part(0.125), walks.cold)) {
    curve.name = cold_exchange_name(curve.name);
    figures.transfers.push_back(std::move(curve));
  }
  if (std::thread::hardware_concurrency() > 1)
    figures.interference.push_back(measure_neighbours(bench, eighth));
  measure_storage(directory, time.last_part(0.25), figures);
  return figures;
}

std::string host_clocks() {
  std::ifstream in("/proc/cpuinfo");
  double sum = 0;
  int cores = 0;
  for (std::string line; std::getline(in, line);) {
    if (line.rfind("cpu MHz", 0) != 0) continue;
    sum += std::strtod(line.c_str() + line.find(':') + 1, nullptr);
    ++cores;
  }
  return cores > 0 ? fmt::format("{:.0f} MHz", sum / cores) : "";
}

}  // namespace moebius
