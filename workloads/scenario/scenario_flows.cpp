// The keys of a collective scenario of flows, and what they must agree on.
#include "workloads/scenario/scenario_flows.h"

#include <array>

#include <fmt/format.h>

#include "workloads/scenario/scenario_parts.h"

namespace moebius {
namespace {

constexpr std::array kPatterns{
    Named<FlowPattern>{"permutation", FlowPattern::kPermutation, "each sends one and receives one"},
    Named<FlowPattern>{"incast", FlowPattern::kIncast, "fan_in of them send to receiver"},
    Named<FlowPattern>{"all-to-all", FlowPattern::kAllToAll, "each sends to each other one"},
    Named<FlowPattern>{"list", FlowPattern::kList, "as listed in flows"},
};

std::vector<DeviceFlow> read_list(Section& section) {
  std::vector<DeviceFlow> list;
  for (Section& row : section.objects("flows", false, "pattern list: who sends how much to whom")) {
    DeviceFlow flow;
    flow.from = static_cast<std::int32_t>(row.integer("from", {0, 1 << 20}, std::nullopt, "device"));
    flow.to = static_cast<std::int32_t>(row.integer("to", {0, 1 << 20}, std::nullopt, "device"));
    flow.bytes = row.bytes("bytes", std::nullopt, "of payload");
    row.finish();
    list.push_back(flow);
  }
  return list;
}

void check_list(const FlowsWorkload& flows, int devices, const Document& document) {
  if (flows.list.empty())
    place_at(document, "/workload/flows").fail("expected at least one flow, found none");
  for (std::size_t i = 0; i < flows.list.size(); ++i) {
    const DeviceFlow& flow = flows.list[i];
    const std::string at = fmt::format("/workload/flows/{}", i);
    if (const int device = std::max(flow.from, flow.to); device >= devices)
      place_at(document, at + (device == flow.to ? "/to" : "/from"))
          .fail(fmt::format("device {} is none of the {} ranks", device, devices));
    if (flow.from == flow.to)
      place_at(document, at + "/to").fail(fmt::format("device {} sends to itself", flow.from));
    if (!(flow.bytes.value > 0)) place_at(document, at + "/bytes").fail("expected more than 0 B, found 0 B");
  }
}

}  // namespace

std::string_view to_string(FlowPattern pattern) {
  for (const auto& row : kPatterns)
    if (row.value == pattern) return row.name;
  return "";
}

void read_flows(Section& section, bool flows, CollectiveWorkload& work) {
  FlowsWorkload read;
  read.pattern = section.choice<FlowPattern>("pattern", kPatterns, FlowPattern::kPermutation,
                                             "operation flows: who sends to whom");
  const auto number = [&](std::string_view key, std::int64_t least, std::int64_t otherwise,
                          std::string_view help) {
    return static_cast<int>(section.integer(key, {static_cast<double>(least), 1 << 20}, otherwise, help));
  };
  read.fan_in = number("fan_in", 1, 1, "pattern incast: so many senders, drawn from the seed");
  read.receiver = number("receiver", 0, 0, "pattern incast: the device that receives");
  read.list = read_list(section);
  const bool incast = flows && read.pattern == FlowPattern::kIncast;
  section.allow_only("pattern", flows, "operation \"flows\"");
  section.allow_only("fan_in", incast, "pattern \"incast\"");
  section.allow_only("receiver", incast, "pattern \"incast\"");
  section.allow_only("flows", flows && read.pattern == FlowPattern::kList, "pattern \"list\"");
  section.allow_only("algorithm", !flows, "a collective operation");
  section.allow_only("channels", !flows, "a collective operation");
  section.allow_only("matrix", !flows, "a collective operation");
  section.allow_only("groups", !flows, "a collective operation");
  section.allow_only("fold", !flows, "a collective operation");
  if (flows) work.flows = std::move(read);
}

void check_flows(const CollectiveWorkload& work, const Document& document) {
  const FlowsWorkload& flows = *work.flows;
  if (flows.pattern == FlowPattern::kList) check_list(flows, work.ranks, document);
  if (flows.pattern == FlowPattern::kIncast && flows.receiver >= work.ranks)
    place_at(document, "/workload/receiver")
        .fail(fmt::format("device {} is none of the {} ranks", flows.receiver, work.ranks));
  if (flows.pattern == FlowPattern::kIncast && flows.fan_in >= work.ranks)
    place_at(document, "/workload/fan_in")
        .fail(fmt::format("{} senders and a receiver are more than the {} ranks", flows.fan_in, work.ranks));
  if (const std::int64_t count = num_flows(flows, work.ranks); count > kMostFlows)
    place_at(document, "/workload/ranks")
        .fail(fmt::format("{} flows: expected at most {}", count, kMostFlows));
}

}  // namespace moebius
