#include "workloads/report/network_comparison.h"

#include <array>
#include <filesystem>
#include <optional>

#include <fmt/format.h>

#include "hw/file_bytes.h"
#include "hw/units.h"
#include "workloads/report/report.h"
#include "workloads/report/run_directory.h"

namespace moebius {
namespace {

constexpr std::array kTimes = {"collective.time_s", "step_time_s", "run_time_s"};

std::string json_of(const std::string& run) {
  const std::filesystem::path file = report_file(run);
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) return "";
  const FileBytes bytes(file.string());
  return std::string(bytes.data(), bytes.size());
}

std::optional<double> time_of(const std::string& json) {
  for (const char* path : kTimes) {
    if (const auto value = report_value(json, path)) return value;
  }
  return std::nullopt;
}

std::string row(const char* name, const std::string& a, const std::string& b) {
  return fmt::format("  {:<28} {:>12} {:>12}\n", name, a, b);
}

}  // namespace

std::string compare_networks(const std::string& run_a, const std::string& run_b) {
  const std::string a = json_of(run_a), b = json_of(run_b);
  if (a.empty() || b.empty()) return "";
  const auto time_a = time_of(a), time_b = time_of(b);
  const auto share_a = report_value(a, "network.bisection_share"),
             share_b = report_value(b, "network.bisection_share");
  const auto uneven_a = report_value(a, "network.port_imbalance"),
             uneven_b = report_value(b, "network.port_imbalance");
  if (!time_a || !time_b || !share_a || !share_b || !uneven_a || !uneven_b) return "";
  std::string text = row("network", "a", "b");
  const auto seconds = [](double value) { return to_text(time_from_seconds(value)); };
  text += row("time", seconds(*time_a), seconds(*time_b));
  text += row("share of bisection", fmt::format("{:.1f}%", 100 * *share_a),
              fmt::format("{:.1f}%", 100 * *share_b));
  text +=
      row("port imbalance (max/mean)", fmt::format("{:.2f}", *uneven_a), fmt::format("{:.2f}", *uneven_b));
  return text + fmt::format("  b takes {:.3f} of a's time: {:.2f} times as fast\n", *time_b / *time_a,
                            *time_a / *time_b);
}

}  // namespace moebius
