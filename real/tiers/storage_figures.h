// How fast a disk is as a tier of the cache: measured through SsdTier, as the cache would use it.
#pragma once

#include <string>
#include <vector>

#include "hw/device_figures.h"
#include "workloads/calibration/device/figures_time.h"

namespace moebius::kv {

struct StorageFigures {
  std::string description;            // of the tier that was measured
  bool direct = false;                // past the page cache: otherwise the figures are those of the cache
  std::vector<TransferCurve> curves;  // "ssd read", "ssd read x8", "ssd read x32", "ssd write", ...
};

// In a file of 256 MiB in `directory` (less where less is free), filled before, gone afterwards: pieces of
// 4 KiB to 4 MiB at random places, depths 1, 8 and 32 kept up from submission to completion, in that
// time. The seconds of a point are those of one piece among `depth`: depth x time / pieces (Little's
// law), the median of up to nine parts of the time; at depth 1 the hand-over between threads is part of it.
// run_error: the disk's. input_error: a budget that is spent.
StorageFigures measure_storage(const std::string& directory, const FiguresTime& time);

}  // namespace moebius::kv
