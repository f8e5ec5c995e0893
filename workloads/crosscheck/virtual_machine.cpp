#include "workloads/crosscheck/virtual_machine.h"

#include <fmt/format.h>

#include "hw/error.h"

namespace moebius {
namespace {

const TransferCurve& exchange_of(const Profile& profile, const std::string& file) {
  const TransferCurve* exchange = profile.device ? profile.device->transfer(kExchange) : nullptr;
  if (!profile.device)
    throw input_error(
        fmt::format("{}: /device: expected what calibrate --device writes, found tables alone", file));
  if (exchange == nullptr || exchange->rate <= 0)
    throw input_error(fmt::format(
        "{}: /device/transfers: expected \"{}\", the exchange between ranks, found none", file, kExchange));
  return *exchange;
}

void require_kind_of_device(const Profile& profile, const std::string& file, bool on_host) {
  if ((profile.accelerator == kHostAccelerator) == on_host) return;
  throw input_error(fmt::format("{}: /accelerator: expected {} for --executor {}, found \"{}\"", file,
                                on_host ? "\"host\"" : "that of a GPU", on_host ? "host" : "cuda",
                                profile.accelerator));
}

Accelerator chip_of(const Profile& profile) {
  Accelerator chip = profile.reference;
  if (chip.kernel_floor.ns == 0) chip.kernel_floor = time_from_seconds(profile.device->launch);
  return chip;
}

ExchangeRate rate_of(const TransferCurve& curve) {
  return {{curve.rate}, time_from_seconds(curve.latency)};
}

// One node of `devices`; what joins them carries nothing, as all communication is LocalExchange.
Fabric fabric_of(int devices, ByteRate rate) {
  FabricSpec spec;
  spec.type = "single-node";
  spec.tiers = 0;
  spec.rail_optimised = false;
  FabricPool pool;
  pool.nodes = 1;
  pool.devices_per_node = devices;
  pool.link_rate = rate;
  return Fabric(std::move(spec), {pool});
}

std::string describe(const Profile& profile, int ranks, bool on_host) {
  return fmt::format("{} virtual ranks on {}{}", ranks, profile.device->name,
                     on_host ? ", each a core of its own, run one at a time" : ", which they share");
}

}  // namespace

VirtualMachine virtual_machine(const Profile& profile, const std::string& file, std::string_view executor,
                               int ranks) {
  const bool on_host = executor == "host";
  require_kind_of_device(profile, file, on_host);
  const TransferCurve& exchange = exchange_of(profile, file);
  Pool pool;
  pool.name = "virtual";
  pool.accelerator = chip_of(profile);
  pool.node.id = "virtual";
  pool.node.accelerators = on_host ? ranks : 1;
  pool.nodes = 1;
  VirtualMachine machine{{{pool}, fabric_of(pool.node.accelerators, {exchange.rate})}, {}, {}};
  machine.cluster.exchange =
      LocalExchange{.wire = rate_of(exchange), .packs = on_host, .element_bytes = on_host ? 4.0 : 0.0};
  for (const TransferCurve& curve : profile.device->transfers)
    if (curve.name.starts_with(kExchange) && curve.rate > 0)
      machine.cluster.exchange->kinds.emplace(curve.name, rate_of(curve));
  for (int rank = 0; rank < ranks; ++rank) machine.device_of_rank.push_back(on_host ? rank : 0);
  machine.description = describe(profile, ranks, on_host);
  return machine;
}

Layout placed_on(const VirtualMachine& machine, const Layout& layout) {
  CHECK(machine.device_of_rank.size() == static_cast<std::size_t>(layout.ranks),
        fmt::format("{} ranks on a machine of {}", layout.ranks, machine.device_of_rank.size()));
  Layout placed = layout;
  placed.device_of_rank = machine.device_of_rank;
  return placed;
}

}  // namespace moebius
