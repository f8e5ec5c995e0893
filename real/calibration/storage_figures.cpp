#include "real/calibration/storage_figures.h"

#include <filesystem>

#include "hw/error.h"
#include "real/tiers/storage_figures.h"

namespace moebius {

std::string directory_of(const std::string& file) {
  const std::string directory = std::filesystem::path(file).parent_path().string();
  return directory.empty() ? "." : directory;
}

std::vector<TransferCurve> measure_storage(const std::string& directory, const FiguresTime& time) {
  try {
    kv::StorageFigures figures = kv::measure_storage(directory, time);
    return figures.direct ? std::move(figures.curves) : std::vector<TransferCurve>{};
  } catch (const Error&) {
    time.require_left();
    return {};
  }
}

}  // namespace moebius
