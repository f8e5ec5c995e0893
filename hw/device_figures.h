// What a device was found to do beside its kernels: launches, copies, exchange between ranks that share it,
// how much neighbours slow each other down. Measured by `moebius calibrate --device`, kept in its profile;
// together with the kernels it is all that the machine of ranks on this device is simulated with.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace moebius {

// Names of transfers that others look up; a device has those that it can do.
inline constexpr std::string_view kExchange =
    "exchange";  // one rank reads another's memory on the same device
inline constexpr std::string_view kHostToDevice = "h2d pinned";
inline constexpr std::string_view kDeviceToHost = "d2h pinned";
inline constexpr std::string_view kOnDevice = "d2d";  // device memory to device memory, bytes counted once
inline constexpr std::string_view kStorageRead =
    "ssd read";  // at queue depth 1; others carry their depth: "ssd read x8"
inline constexpr std::string_view kStorageWrite = "ssd write";

// Seconds against bytes of one kind of transfer, each the median of repeated measurements.
struct TransferCurve {
  std::string name;
  std::vector<double> bytes;    // ascending, positive
  std::vector<double> seconds;  // of each
  std::vector<double> spread;   // relative: half of the distance between the quartiles, over the median

  // Least squares of relative errors: seconds = latency + bytes / rate.
  double latency = 0;    // seconds
  double rate = 0;       // bytes per second
  double fit_error = 0;  // median relative error of the line at the points
};

// A kernel beside something else that runs at the same time.
struct Interference {
  std::string kernel;                                  // "gemm bf16 4096 x 4096 x 4096"
  std::string beside;                                  // "h2d pinned", "exchange on 16 cores"
  int cores = 0;                                       // that the neighbour holds
  double alone = 0, together = 0;                      // seconds of the kernel
  double neighbour_alone = 0, neighbour_together = 0;  // bytes per second of the neighbour
};

struct DeviceFigures {
  std::string name;    // as it calls itself: "NVIDIA H200", "Intel(R) Xeon(R) ..."
  std::string driver;  // "580.65.06, CUDA 13.0"; of the host: the kernel's release
  std::string date;    // "2026-11-22"
  std::string clocks;  // before and after: "1980 MHz .. 1755 MHz"
  double launch =
      0;  // seconds from one op that does nothing to the next, as executors give them, back to back
  double launch_latency = 0;  // seconds from the call to the start of a kernel on an idle device
  std::vector<TransferCurve> transfers;
  std::vector<Interference> interference;
  std::string left_out = {};  // what was not measured, and why: "the disk: ..."; empty: nothing

  const TransferCurve* transfer(std::string_view name) const {
    for (const TransferCurve& curve : transfers)
      if (curve.name == name) return &curve;
    return nullptr;
  }
};

}  // namespace moebius
