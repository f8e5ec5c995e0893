// What a tier needs for a piece: the figures that a simulated one is made with.
#pragma once

#include <span>

#include "hw/device_figures.h"
#include "hw/node.h"
#include "hw/units.h"

namespace moebius::kv {

// A piece of b bytes alone takes latency + work, work = max(b / rate, 1 / operations). Latencies of pieces in
// service pass side by side; the work is the device's, which does one piece after the other, in the order in
// which they come to it. So n equal pieces at a time come to min(n / (latency + work), 1 / work) pieces a
// second. Disks interleave large pieces: the sum of their times is right, which of them ends first is not
// told.
struct ServiceLaw {
  ByteRate rate;
  double operations = 0;  // a second; 0: no limit
  Time latency;

  double work(double bytes) const;  // seconds
};

struct TierLaw {
  ServiceLaw read, write;
  bool duplex = false;  // reads and writes have a device each; otherwise they share one
};

// A disk's data sheet. Flash is read and written by the same dies, so that reads and writes share its time.
TierLaw storage_law(const Storage& storage);

// A disk as measured: the latency of the curves at depth 1, and the best rate (bytes a second) and the best
// operations a second that any depth reached. run_error: curves of reads or of writes at depth 1 are missing.
TierLaw measured_storage_law(std::span<const TransferCurve> curves);

// The queue depth in a curve's name: "ssd read x8" is 8, "ssd read" 1; 0: the name is of something else.
int depth_of(std::string_view curve, std::string_view kind);

}  // namespace moebius::kv
