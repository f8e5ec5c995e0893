// What a device does beside its kernels, measured on real/cuda/device.h: launches, copies, exchange between
// ranks that share it, neighbours.
#pragma once

#include <string>
#include <vector>

#include "hw/device_figures.h"
#include "real/cuda/gemm_library.h"

namespace moebius::cuda {

struct FiguresPlan {
  std::vector<double> bytes;                          // of transfers, ascending, multiples of 16
  std::int64_t gemm = 4096;                           // m, n and k of the product beside neighbours
  std::vector<int> neighbour_cores = {4, 8, 16, 32};  // that exchange kernels hold
  double seconds = 30;
};

// - launch: from one kernel of one element to the next, two hundred in a row.
// - launch_latency: from the call to a store of the kernel that the host sees, on an idle device; the kernel
// and
//   the way of the store are in it.
// - "h2d pinned", "d2h pinned", "d2d" by events; "h2d", "d2h" of pageable memory by the host's clock.
// - kExchange: a rank's stream waits for another's event and copies that rank's tensor by kernel (copy_flat),
//   from that event to its own.
// - A BF16 product beside a pinned copy from the host and beside copies on k multiprocessors (copy_on_cores);
// its
//   neighbour goes on longer than the products.
// Name, driver and date are left to the caller.
DeviceFigures measure_device_figures(const FiguresPlan& plan, GemmLibrary* library);

}  // namespace moebius::cuda
