// `moebius calibrate --device`: measures a device and writes its profile, which then answers for its ops.
#pragma once

#include <string>
#include <vector>

#include "hw/profile.h"
#include "workloads/calibration/device/device_under_test.h"

namespace moebius {

struct DeviceCalibration {
  std::string out;           // the profile's file
  double budget = 0;         // seconds, of all calls that go on from each other; 0: as the device says
  std::uint64_t seed = 1;    // of the order
  std::string storage = {};  // a catalog's file for the drive that `out` is on; empty: none
};

struct CalibrationReport {
  Profile profile = {};
  int measured = 0, refused = 0, left_out = 0, resumed = 0;  // cases
  std::vector<std::string> missing = {};                     // tables that could not be made
  double seconds = 0;        // of all measurements, those of earlier calls included
  bool interrupted = false;  // by Ctrl-C: no profile, the journal stays
  std::string journal = {};
};

// Measures the device's plan in an order drawn by the seed, what matters most first, so that drift of the
// device does not look like a trend; what the budget does not hold is left out. What no profile goes without
// is measured all the same with the device's own budget, and is an input_error with a shorter one. Each
// result is in out +
// ".journal.jsonl" at once; a second call goes on from there, and the file is removed when the profile is
// written. Errors as CaseJournal's and save_profile().
CalibrationReport calibrate_device(const DeviceUnderTest& device, const DeviceCalibration& request);

// Device, cases, tables with their errors, transfers, interference, seconds.
std::string to_text(const CalibrationReport& report);

// The whole command: report on stdout, the sentence about an interruption on stderr; returns the exit code.
int calibrate_and_tell(const DeviceUnderTest& device, const DeviceCalibration& request);

}  // namespace moebius
