// Relations between the keys of a scenario of collectives, each one sentence.
#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "workloads/scenario/new_names.h"
#include "workloads/scenario/scenario_flows.h"
#include "workloads/scenario/scenario_parts.h"
#include "workloads/schedule/algorithms.h"

namespace moebius {

namespace {

void check_bytes(Bytes bytes, const Place& place) {
  constexpr double kMostBytes = 0x1p60;  // sizes are counted in 64 bits
  if (bytes.value > kMostBytes)
    place.fail(fmt::format("expected at most {}, found {}", to_text(Bytes{kMostBytes}), to_text(bytes)));
  if (bytes.value > 0 && bytes.value < 1)
    place.fail(fmt::format("expected a byte at least, found {}", to_text(bytes)));
}

void check_algorithm(OpKind operation, Algorithm algorithm, const Place& place) {
  if (has_algorithm(operation, algorithm)) return;
  std::vector<std::string_view> names;
  for (const AlgorithmRow& row : algorithm_rows()) {
    if (has_algorithm(operation, row.value)) names.push_back(row.name);
  }
  place.fail(fmt::format("{} has no algorithm \"{}\": expected auto, {}", to_string(operation),
                         to_string(algorithm), fmt::join(names, ", ")));
}

// Each device holds one rank of one tenant.
void check_devices(const std::vector<Tenant>& tenants, int devices, const Document& document) {
  std::map<std::int64_t, std::string_view> owners;
  for (std::size_t i = 0; i < tenants.size(); ++i) {
    const Tenant& tenant = tenants[i];
    const std::string at = fmt::format("/workload/tenants/{}", i);
    for (int rank = 0; rank < tenant.ranks; ++rank) {
      const std::int64_t device = tenant.device(rank);
      if (device >= devices)
        place_at(document, at + "/ranks")
            .fail(fmt::format("rank {} would stand on device {} of {}", rank, device, devices));
      const auto [owner, is_new] = owners.try_emplace(device, tenant.name);
      if (!is_new)
        place_at(document, at + "/first")
            .fail(fmt::format("device {} holds a rank of \"{}\" already", device, owner->second));
    }
  }
}

void check_tenants(const std::vector<Tenant>& tenants, int devices, const Document& document) {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < tenants.size(); ++i) {
    const Tenant& tenant = tenants[i];
    const auto place = [&](std::string_view key) {
      return place_at(document, fmt::format("/workload/tenants/{}/{}", i, key));
    };
    require_one_line(tenant.name, place("name"));
    if (!names.insert(tenant.name).second)
      place("name").fail(fmt::format("two are named \"{}\"", tenant.name));
    if (tenant.stride < tenant.block)
      place("stride").fail(
          fmt::format("expected at least the block of {}, found {}", tenant.block, tenant.stride));
    check_algorithm(tenant.operation, tenant.algorithm, place("algorithm"));
    check_bytes(tenant.bytes, place("bytes"));
  }
  check_devices(tenants, devices, document);
}

// Each holds a core of those that communication may have.
void check_channels(int channels, const Accelerator& chip, const Place& place) {
  if (chip.channel_rate.value <= 0)
    place.fail(
        fmt::format("the rate of one channel of {} is not known: expected no channels, or an "
                    "accelerator with \"channel_rate\"",
                    chip.id));
  const int cores = chip.independent_engines ? chip.general_cores : std::max(1, chip.cores);
  if (cores > 0 && channels > cores)
    place.fail(
        fmt::format("each channel holds a core, and {} has {} for communication: expected at most as "
                    "many channels, found {}",
                    chip.id, cores, channels));
}

// The operation has the algorithm, and the chips' channels have a rate where their number is given.
void check_library(const Scenario& scenario, const Document& document) {
  const CollectiveWorkload& work = scenario.collective;
  check_algorithm(work.operation, work.algorithm, place_at(document, "/workload/algorithm"));
  if (work.channels == 0) return;
  const Place place = place_at(document, "/workload/channels");
  for (const Pool& pool : scenario.cluster->pools) check_channels(work.channels, pool.accelerator, place);
}

}  // namespace

void check_collective(const Scenario& scenario, const Document& document) {
  const CollectiveWorkload& work = scenario.collective;
  check_library(scenario, document);
  int devices = 0;
  for (const Pool& pool : scenario.cluster->pools) devices += pool.devices();
  if (!work.tenants.empty()) return check_tenants(work.tenants, devices, document);
  if (work.ranks > devices) {
    place_at(document, "/workload/ranks")
        .fail(fmt::format("{} ranks do not fit on the {} devices of the cluster", work.ranks, devices));
  }
  if (work.flows) check_flows(work, document);
  if (work.flows && work.flows->pattern == FlowPattern::kList) {
    for (std::size_t i = 0; i < work.flows->list.size(); ++i)
      check_bytes(work.flows->list[i].bytes,
                  place_at(document, fmt::format("/workload/flows/{}/bytes", i)));
    return;
  }
  const int width = scenario.cluster->pools.front().node.accelerators;
  if (work.groups > 1 && work.ranks % (width * work.groups) != 0) {
    place_at(document, "/workload/groups")
        .fail(fmt::format("{} ranks on nodes of {} do not make {} groups of equally many whole nodes",
                          work.ranks, width, work.groups));
  }
  check_bytes(work.bytes, place_at(document, "/workload/bytes"));
  if (!work.flows && work.group_ranks() > width) check_reached(*scenario.cluster, work.ranks);
  if (work.operation == OpKind::kSend && (work.ranks != 2 || work.groups != 1)) {
    place_at(document, "/workload/ranks").fail(fmt::format("send-recv needs 2 ranks, found {}", work.ranks));
  }
}

}  // namespace moebius
