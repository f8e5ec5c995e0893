#include "workloads/serving/kv/tier_law.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "hw/error.h"

namespace moebius::kv {
namespace {

ServiceLaw measured_law(std::span<const TransferCurve> curves, std::string_view kind) {
  ServiceLaw law;
  bool alone = false;
  for (const TransferCurve& curve : curves) {
    const int depth = depth_of(curve.name, kind);
    if (depth == 0) continue;
    if (depth == 1) {
      alone = true;
      law.latency = time_from_seconds(std::max(0.0, curve.latency));
    }
    for (std::size_t i = 0; i < curve.bytes.size(); ++i) {
      law.operations = std::max(law.operations, depth / curve.seconds[i]);
      law.rate.value = std::max(law.rate.value, depth * curve.bytes[i] / curve.seconds[i]);
    }
  }
  if (!alone) throw run_error(fmt::format("no curve \"{}\" among what was measured of the disk", kind));
  return law;
}

}  // namespace

double ServiceLaw::work(double bytes) const {
  return std::max(Bytes{bytes} / rate, operations > 0 ? 1 / operations : 0.0);
}

TierLaw storage_law(const Storage& storage) {
  return {.read = {storage.read_rate, storage.read_iops, storage.read_latency},
          .write = {storage.write_rate, storage.write_iops, storage.write_latency}};
}

TierLaw measured_storage_law(std::span<const TransferCurve> curves) {
  return {.read = measured_law(curves, kStorageRead), .write = measured_law(curves, kStorageWrite)};
}

int depth_of(std::string_view curve, std::string_view kind) {
  if (curve.substr(0, kind.size()) != kind) return 0;
  curve.remove_prefix(kind.size());
  if (curve.empty()) return 1;
  if (curve.substr(0, 2) != " x") return 0;
  curve.remove_prefix(2);
  int depth = 0;
  const auto [end, error] = std::from_chars(curve.data(), curve.data() + curve.size(), depth);
  return error == std::errc{} && end == curve.data() + curve.size() && depth > 0 ? depth : 0;
}

}  // namespace moebius::kv
