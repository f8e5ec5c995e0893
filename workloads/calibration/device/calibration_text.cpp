#include <fmt/format.h>

#include "hw/percent.h"
#include "workloads/calibration/device/calibrate_device.h"
#include "workloads/calibration/device/drive_catalog_json.h"

namespace moebius {
namespace {

std::string time_text(double seconds) {
  if (seconds < 1e-6) return fmt::format("{:.0f} ns", seconds * 1e9);
  if (seconds < 1e-3) return fmt::format("{:.2f} us", seconds * 1e6);
  return seconds < 1 ? fmt::format("{:.2f} ms", seconds * 1e3) : fmt::format("{:.1f} s", seconds);
}

std::string reference_text(const Accelerator& chip) {
  std::string peaks;
  for (int i = 0; i < kNumDTypes; ++i)
    if (chip.peak[static_cast<std::size_t>(i)].value > 0)
      peaks += fmt::format(", {} {:.3g} GFLOP/s", to_string(static_cast<DType>(i)),
                           chip.peak[static_cast<std::size_t>(i)].value / 1e9);
  return fmt::format("  {}: {} cores{}, memory {:.3g} GB/s (streams reach {:.0f}%), shortest kernel {}\n",
                     chip.id, chip.cores, peaks, chip.memory_rate.value / 1e9, 100 * chip.memory_efficiency,
                     time_text(chip.kernel_floor.seconds()));
}

std::string table_text(const ProfileTable& table) {
  const HeldOut& out = table.held_out;
  std::string line =
      fmt::format("  {:<28} {:>6} {:>8} {:>7}", table.name, table.sites.size() * table.grid_size(),
                  percent(table.spread), percent(table.fit_error));
  line += out.rows > 0 ? fmt::format(" {:>8} {:>8} {:>6} {:>7}", out.rows, percent(out.median),
                                     percent(out.p90), percent(out.worst))
                       : fmt::format(" {:>8} {:>8} {:>6} {:>7}", 0, "-", "-", "-");
  for (const HeldOutPart& part : out.parts)
    line += fmt::format("   {}: {} ({} rows)", part.name, percent(part.median), part.rows);
  return line + "\n";
}

std::string transfer_text(const TransferCurve& curve) {
  return fmt::format("  {:<28} latency {:>9}, rate {:>8.3g} GB/s, {} sizes, line misses {}%\n", curve.name,
                     time_text(curve.latency), curve.rate / 1e9, curve.bytes.size(),
                     percent(curve.fit_error));
}

std::string interference_text(const Interference& found) {
  std::string text = fmt::format("  {} beside {}: {} instead of {}", found.kernel, found.beside,
                                 time_text(found.together), time_text(found.alone));
  if (found.neighbour_alone > 0)
    text += fmt::format("; its neighbour {:.3g} instead of {:.3g} GB/s", found.neighbour_together / 1e9,
                        found.neighbour_alone / 1e9);
  return text + "\n";
}

}  // namespace

std::string to_text(const CalibrationReport& report) {
  const DeviceFigures& device = *report.profile.device;
  std::string text =
      fmt::format("{} ({}), {}, clocks {}\n", device.name, device.driver, device.date, device.clocks);
  text += reference_text(report.profile.reference);
  text +=
      fmt::format("{} ops measured, {} refused, {} left out, {} of them by earlier calls; {:.0f} s in all\n",
                  report.measured, report.refused, report.left_out, report.resumed, report.seconds);
  text += fmt::format("\n  {:<28} {:>6} {:>8} {:>7} {:>8} {:>8} {:>6} {:>7}\n", "table (errors in %)",
                      "values", "spread", "fit", "kept out", "median", "p90", "worst");
  for (const ProfileTable& table : report.profile.tables) text += table_text(table);
  for (const std::string& missing : report.missing) text += fmt::format("  no table: {}\n", missing);
  text += fmt::format("\nlaunch {}, from call to start {}\n", time_text(device.launch),
                      time_text(device.launch_latency));
  for (const TransferCurve& curve : device.transfers) text += transfer_text(curve);
  for (const Interference& found : device.interference) text += interference_text(found);
  if (!device.left_out.empty()) text += fmt::format("  not measured: {}\n", device.left_out);
  return text;
}

int calibrate_and_tell(const DeviceUnderTest& device, const DeviceCalibration& request) {
  const CalibrationReport report = calibrate_device(device, request);
  if (report.interrupted) {
    fmt::print(stderr, "moebius: interrupted; the same command goes on from {}\n", report.journal);
    return 130;
  }
  fmt::print("{}", to_text(report));
  if (!request.storage.empty()) save_drive_catalog(request.storage, *report.profile.device, request.out);
  return 0;
}

}  // namespace moebius
