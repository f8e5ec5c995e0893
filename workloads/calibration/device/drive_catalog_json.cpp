#include "workloads/calibration/device/drive_catalog_json.h"

#include <filesystem>

#include <nlohmann/json.hpp>

#include <fmt/format.h>

#include "hw/error.h"
#include "workloads/report/run_directory.h"
#include "workloads/serving/kv/tier_law.h"

namespace moebius {
namespace {

constexpr const char* kSource = "CALIBRATED";

nlohmann::ordered_json fact(nlohmann::ordered_json value) {
  return {{"value", std::move(value)}, {"source", kSource}, {"status", "measured"}};
}

}  // namespace

std::string drive_catalog(const DeviceFigures& figures, Bytes capacity) {
  const kv::TierLaw law = kv::measured_storage_law(figures.transfers);
  const auto rate = [](const kv::ServiceLaw& way) { return fact(fmt::format("{:.6g} B/s", way.rate.value)); };
  const auto latency = [](const kv::ServiceLaw& way) { return fact(fmt::format("{} ns", way.latency.ns)); };
  nlohmann::ordered_json entry{{"read_rate", rate(law.read)},
                               {"write_rate", rate(law.write)},
                               {"read_iops", fact(law.read.operations)},
                               {"write_iops", fact(law.write.operations)},
                               {"read_latency", latency(law.read)},
                               {"write_latency", latency(law.write)},
                               {"capacity", fact(fmt::format("{:.0f} B", capacity.value))}};
  const std::string source =
      fmt::format("moebius calibrate, beside {} ({}), {}", figures.name, figures.driver, figures.date);
  const nlohmann::ordered_json json{{"sources", {{kSource, source}}},
                                    {"storage", {{std::string(kMeasuredDrive), std::move(entry)}}}};
  return json.dump(2) + "\n";
}

void save_drive_catalog(const std::string& file, const DeviceFigures& figures,
                        const std::string& measured_at) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::absolute(measured_at).parent_path();
  std::error_code error;
  const fs::space_info space = fs::space(folder, error);
  if (error) throw run_error(fmt::format("the drive of {}: {}", folder.string(), error.message()));
  write_file(file, drive_catalog(figures, {static_cast<double>(space.capacity)}));
}

}  // namespace moebius
