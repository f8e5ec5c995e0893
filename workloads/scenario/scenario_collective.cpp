// The workload of a collective scenario.
#include <array>
#include <optional>
#include <vector>

#include "hw/dtype.h"
#include "workloads/scenario/scenario_flows.h"
#include "workloads/scenario/scenario_parts.h"
#include "workloads/schedule/algorithms.h"

namespace moebius {

namespace {

constexpr std::array kOperations{
    Named<OpKind>{"all-reduce", OpKind::kAllReduce, "bytes: the whole buffer"},
    Named<OpKind>{"reduce-scatter", OpKind::kReduceScatter, "bytes: the whole buffer"},
    Named<OpKind>{"all-gather", OpKind::kAllGather, "bytes: the gathered buffer"},
    Named<OpKind>{"broadcast", OpKind::kBroadcast, "bytes: the whole buffer"},
    Named<OpKind>{"all-to-all", OpKind::kAllToAll, "bytes: what one rank holds before"},
    Named<OpKind>{"send-recv", OpKind::kSend, "bytes: the message"},
    Named<OpKind>{"flows", OpKind::kRecv, "bytes: each flow; see pattern"},
};

// The library's table, and the choice among it.
std::span<const Named<Algorithm>> algorithms() {
  static const std::vector<Named<Algorithm>> names = [] {
    std::vector<Named<Algorithm>> rows{{"auto", Algorithm::kAuto, "the one that suits size and ranks"}};
    for (const AlgorithmRow& row : algorithm_rows()) rows.push_back({row.name, row.value, row.help});
    return rows;
  }();
  return names;
}

constexpr std::array kDTypes{Named<DType>{"fp32", DType::kFp32, ""}, Named<DType>{"bf16", DType::kBf16, ""},
                             Named<DType>{"fp16", DType::kFp16, ""}, Named<DType>{"fp8", DType::kFp8, ""}};

// One of `bytes`, `elements` of the format, and the rows of a matrix says how much it is.
void read_size(Section& section, CollectiveWorkload& work) {
  const bool counted = section.given("elements"), given = section.given("bytes");
  const bool elsewhere = counted || section.given("matrix");
  work.bytes = section.bytes("bytes", elsewhere ? std::optional<Bytes>(Bytes{0}) : std::nullopt,
                             "see the operation for what it counts");
  const std::int64_t elements = section.integer(
      "elements", {0, 0x1p52}, 0, "instead of bytes: of `dtype`, each with its share of the format's scales");
  if (counted && given) section.place_of("elements").fail("expected either bytes or elements, found both");
  if (counted) work.bytes = {static_cast<double>(elements) * element_bytes(work.dtype)};
  work.matrix = read_matrix(section, work);
  if (work.matrix) work.bytes = {work.matrix->largest_before()};
}

// Those of a group, for tenants.
constexpr std::span<const Named<OpKind>> kGroupOperations(kOperations.data(), kOperations.size() - 2);

Tenant read_tenant(Section& section) {
  Tenant tenant;
  tenant.name = section.text("name", std::nullopt, "in the report");
  tenant.operation =
      section.choice<OpKind>("operation", kGroupOperations, std::nullopt, "what its ranks do together");
  tenant.algorithm = section.choice<Algorithm>("algorithm", algorithms(), Algorithm::kAuto, "how");
  tenant.bytes = section.bytes("bytes", std::nullopt, "see the operation for what it counts");
  const auto number = [&](std::string_view key, double least, std::optional<std::int64_t> otherwise,
                          std::string_view help) {
    return static_cast<int>(section.integer(key, {least, 1 << 20}, otherwise, help));
  };
  tenant.ranks = number("ranks", 2, std::nullopt, "how many");
  tenant.first = number("first", 0, 0, "the device of its first rank");
  tenant.block = number("block", 1, 1, "so many ranks on neighbouring devices");
  tenant.stride =
      number("stride", 1, tenant.block, "devices from the start of one block to that of the next");
  tenant.repeat = number("repeat", 1, 1, "so many operations beside the others, one after the other");
  tenant.queue = static_cast<int>(
      section.integer("queue", {0, 7}, 0, "priority queue, 7 the highest; 0: the fabric's data_queue"));
  section.finish();
  return tenant;
}

}  // namespace

void read_collective_workload(Section section, Scenario& scenario) {
  CollectiveWorkload& work = scenario.collective;
  for (Section& tenant :
       section.objects("tenants", false, "several at once, in the place of operation, bytes and ranks")) {
    work.tenants.push_back(read_tenant(tenant));
    work.ranks += work.tenants.back().ranks;
  }
  work.dtype = section.choice<DType>("dtype", kDTypes, DType::kFp32, "of the elements");
  work.fold = section.boolean("fold", true, "simulate one rank for all that do the same");
  if (section.given("tenants")) {
    if (work.tenants.empty()) section.place_of("tenants").fail("expected at least one tenant, found none");
    return section.finish();
  }
  work.operation =
      section.choice<OpKind>("operation", kOperations, std::nullopt, "what the ranks do together");
  work.algorithm = section.choice<Algorithm>("algorithm", algorithms(), Algorithm::kAuto,
                                             "how; one that is named goes by its wires and their latency "
                                             "alone unless /cluster/collectives is written");
  read_flows(section, work.operation == OpKind::kRecv, work);
  work.ranks = static_cast<int>(
      section.integer("ranks", {2, 1 << 20}, std::nullopt, "the first devices of the cluster"));
  if (!work.flows || work.flows->pattern != FlowPattern::kList) read_size(section, work);
  work.channels = static_cast<int>(section.integer(
      "channels", {0, 1024}, 0, "cores that it holds and copies with; 0: as many as needed, none held"));
  work.groups = static_cast<int>(section.integer(
      "groups", {1, 1 << 20}, 1, "equal groups that do it side by side, each on every groups-th node"));
  section.can_be_replaced({"operation", "bytes", "ranks"});
  section.finish();
}

}  // namespace moebius
