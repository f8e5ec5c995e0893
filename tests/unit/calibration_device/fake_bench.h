// A device without a device: every op takes what a law says, a few per cent more or less.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <string>

#include "hw/error.h"
#include "models/layer_math.h"
#include "workloads/calibration/device/device_under_test.h"
#include "workloads/cost/roofline.h"
#include "workloads/routing/routing.h"

namespace moebius {

// One core of 20 GFLOP/s (half of it in FP8) and 5 GB/s, whose products start after 3 us and whose streams
// after 1 us; attention takes twice its arithmetic.
inline double law_seconds(const CostQuery& query) {
  const double bytes = least_bytes(query) / 5e9;
  if (!uses_tensor_cores(query.kind)) return 1e-6 + bytes;
  const double rate = query.dtype == DType::kFp8 ? 10e9 : 20e9;
  const bool attends = query.kind == OpKind::kAttention || query.kind == OpKind::kAttentionGrad;
  return 3e-6 + bytes + (attends ? 2 : 1) * op_flops(query.kind, loaded_shape(query)).value / rate;
}

class FakeBench : public OpBench {
 public:
  double noise = 0;  // relative; the same for the same call
  std::string name = "a made-up core";
  std::map<OpKind, std::string> refuses;
  std::function<void(int)> at_call = {};  // with the number of the call
  int calls = 0;

  OpMeasurement measure(const CostQuery& query, const StoppingRule&) override {
    ++calls;
    if (at_call) at_call(calls);
    if (const auto refusal = refuses.find(query.kind); refusal != refuses.end())
      throw run_error(refusal->second);
    const double drawn = 2 * random_unit(random_bits(7, calls)) - 1;
    return {law_seconds(query) * (1 + noise * drawn), noise / 2, 5};
  }
  std::string device() const override { return name; }
  int cores() const override { return 1; }
};

inline DeviceFigures made_up_figures() {
  DeviceFigures figures;
  figures.name = "a made-up core";
  figures.driver = "none 1.0";
  figures.date = "2026-01-02";
  figures.clocks = "unknown .. unknown";
  figures.launch = 1e-7;
  figures.transfers.push_back({"exchange", {1024, 65536}, {2e-6, 8e-6}, {0.01, 0.02}, 1.9e-6, 1.1e10, 0.003});
  figures.interference.push_back({"gemm", "copies", 1, 0.001, 0.0012, 4e9, 3.5e9});
  return figures;
}

inline DeviceUnderTest made_up_device(std::unique_ptr<OpBench> bench) {
  DeviceUnderTest device;
  device.reference.id = "made-up";
  device.reference.architecture = "cpu-core";
  device.reference.cores = 1;
  device.reference.clock = {2e9};
  device.sizes = host_case_sizes();
  device.sustained = true;
  device.bench = std::move(bench);
  device.measure_figures = [](const FiguresTime&) { return made_up_figures(); };
  device.clocks = [] { return std::string("2000 MHz"); };
  return device;
}

}  // namespace moebius
