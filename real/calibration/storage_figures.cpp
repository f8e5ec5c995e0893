#include "real/calibration/storage_figures.h"

#include <filesystem>

#include <fmt/format.h>

#include "hw/error.h"
#include "real/tiers/storage_figures.h"

namespace moebius {

std::string directory_of(const std::string& file) {
  const std::string directory = std::filesystem::path(file).parent_path().string();
  return directory.empty() ? "." : directory;
}

void measure_storage(const std::string& directory, const FiguresTime& time, DeviceFigures& figures) {
  try {
    kv::StorageFigures disk = kv::measure_storage(directory, time);
    if (!disk.direct) return;
    for (TransferCurve& curve : disk.curves) figures.transfers.push_back(std::move(curve));
  } catch (const Error&) {
    if (time.spent())
      figures.left_out = fmt::format(
          "the disk: {:.3g} s of the budget of {:g} s, for all that comes before the ops, did not hold it",
          time.share * time.budget, time.budget);
  }
}

}  // namespace moebius
