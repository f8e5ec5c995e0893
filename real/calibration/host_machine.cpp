#include "real/calibration/host_machine.h"

#include <algorithm>

#include "real/bench/host_bench.h"
#include "real/calibration/host_device.h"
#include "real/calibration/host_exchange.h"
#include "workloads/cost/emulated.h"
#include "workloads/crosscheck/cache_mixture.h"
#include "workloads/schedule/local_exchange.h"

namespace moebius {
namespace {

constexpr double kExchangeSeconds = 2;

// Ops without a curve of their own copy as a gather of 32-bit numbers does.
TransferCurve plain_exchange(const std::vector<TransferCurve>& curves) {
  const std::string gather = exchange_name(OpKind::kAllGather, DType::kFp32);
  TransferCurve curve = *std::find_if(curves.begin(), curves.end(),
                                      [&](const TransferCurve& known) { return known.name == gather; });
  curve.name = kExchange;
  return curve;
}

}  // namespace

MeasuredMachine measure_host_machine(const Job& job) {
  require_fit(job);
  require_host(job);
  const std::size_t touched = touched_bytes(job);
  const auto ops = std::make_shared<MeasuredOps>(
      MeasuringDevice{make_host_bench(1, touched), free_host_memory(), host_bytes}, "");
  const auto recipes = std::make_shared<Recipes>();
  Profile profile;
  profile.accelerator = profile.reference.id = kHostAccelerator;
  profile.reference.architecture = kHostEngine;
  profile.reference.cores = 1;
  // Ops of one core meet no neighbour on its memory: the rate bounds nothing.
  profile.reference.memory_rate = {1e15};
  profile.reference.memory_efficiency = 1;
  profile.device.emplace();
  profile.device->name = ops->device();
  profile.device->transfers = measure_host_exchange({.seconds = kExchangeSeconds}, touched);
  profile.device->transfers.push_back(plain_exchange(profile.device->transfers));
  return {profile, "measured", [ops, recipes](const Accelerator& chip) {
            return warm(std::make_shared<EmulatedCosts>(ops, recipes, chip));
          }};
}

}  // namespace moebius
