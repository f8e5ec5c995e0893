#include "sim/network/wire_meter.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "hw/error.h"

namespace moebius {
namespace {

constexpr int kNumRows = 16;

struct Row {
  int number;
  const char* tier;
  bool in_network = true;
};

Row row_of(WireKind kind) {
  switch (kind) {
    case WireKind::kScaleUpOut:
      return {0, "scale-up out", false};
    case WireKind::kScaleUpIn:
      return {1, "scale-up in", false};
    case WireKind::kScaleUpPair:
      return {2, "scale-up pair", false};
    case WireKind::kBoardOut:
      return {3, "board out", false};
    case WireKind::kBoardIn:
      return {4, "board in", false};
    case WireKind::kHostOut:
      return {12, "host link out", false};
    case WireKind::kHostIn:
      return {13, "host link in", false};
    case WireKind::kHostMemory:
      return {14, "host memory", false};
    case WireKind::kNicOut:
    case WireKind::kNicOutPort:
      return {5, "NIC out"};
    case WireKind::kNicIn:
    case WireKind::kNicInPort:
      return {6, "NIC in"};
    case WireKind::kLeafUp:
    case WireKind::kLeafUpPort:
      return {7, "leaf up"};
    case WireKind::kLeafDown:
    case WireKind::kLeafDownPort:
      return {8, "leaf down"};
    case WireKind::kPodUp:
    case WireKind::kPodUpPort:
      return {9, "pod up"};
    case WireKind::kPodDown:
    case WireKind::kPodDownPort:
      return {10, "pod down"};
    case WireKind::kRegionLink:
      return {11, "region"};
  }
  return {15, ""};
}

// What NICs post, in messages: see WireTable::posting().
constexpr int kPosting = kNumWireKinds + 1;
constexpr Row kPostingRow{15, "NIC posting", false};

Row row_of(int kind) {
  return kind == kPosting ? kPostingRow : row_of(static_cast<WireKind>(kind));
}

// Ports that a wire is one of, or the bundle of: they count together, whether or not each carried anything.
int siblings(WireKind kind, const Fabric& fabric) {
  switch (kind) {
    case WireKind::kNicOutPort:
    case WireKind::kNicInPort:
      return fabric.spec().nic_ports;
    case WireKind::kLeafUp:
    case WireKind::kLeafDown:
    case WireKind::kLeafUpPort:
    case WireKind::kLeafDownPort:
      return fabric.leaf_uplinks();
    case WireKind::kPodUp:
    case WireKind::kPodDown:
    case WireKind::kPodUpPort:
    case WireKind::kPodDownPort:
      return fabric.leaf_uplinks() * fabric.spine_uplinks();
    case WireKind::kScaleUpOut:
    case WireKind::kScaleUpIn:
    case WireKind::kScaleUpPair:
    case WireKind::kBoardOut:
    case WireKind::kBoardIn:
    case WireKind::kNicOut:
    case WireKind::kNicIn:
    case WireKind::kRegionLink:
    case WireKind::kHostOut:
    case WireKind::kHostIn:
    case WireKind::kHostMemory:
      return 1;
  }
  return 1;
}

bool is_bundle(WireKind kind) {
  return kind == WireKind::kLeafUp || kind == WireKind::kLeafDown || kind == WireKind::kPodUp ||
         kind == WireKind::kPodDown;
}

const char* name_of(Routing routing) {
  switch (routing) {
    case Routing::kSpray:
      return "spray";
    case Routing::kEcmp:
      return "ecmp";
    case Routing::kAdaptive:
      return "adaptive";
    case Routing::kStatic:
      return "static";
  }
  return "";
}

// The capacity of a switch's ports, those that work, once for each switch that carried anything.
class Ports {
 public:
  explicit Ports(const Cluster& cluster)
      : fabric_(cluster.fabric), health_(cluster.fabric, cluster.damaged) {}

  void count(WireId wire, TierUse& tier) {
    const int ports = siblings(wire.kind, fabric_);
    if (is_bundle(wire.kind)) {
      tier.ports += ports;
      tier.capacity += fabric_.capacity(wire).value;
      return;
    }
    const int first = wire.index / ports * ports;
    if (!counted_.insert({wire.kind, first}).second) return;
    for (int port = first; port < first + ports; ++port) {
      const double share = health_.share({wire.kind, port});
      tier.ports += share > 0;
      tier.capacity += fabric_.capacity({wire.kind, port}).value * share;
    }
  }

 private:
  const Fabric& fabric_;
  PathHealth health_;
  std::set<WireId> counted_;
};

// Folding: what messages through host memory load alike is simulated on some of the hosts.
class HostMemories {
 public:
  HostMemories(const StandIns& stand_ins, const WireTable& table, const std::vector<double>& carried)
      : stand_ins_(stand_ins) {
    for (std::size_t wire = 0; wire < carried.size(); ++wire) {
      const int number = static_cast<int>(wire);
      if (carried[wire] > 0 && table.kind(number) == static_cast<int>(WireKind::kHostMemory))
        ++simulated_[stand_ins.alike_host(table.index(number))];
    }
  }

  double times(std::int32_t host) const {
    return stand_ins_.num_alike(host) / simulated_.at(stand_ins_.alike_host(host));
  }

 private:
  const StandIns& stand_ins_;
  std::map<std::int32_t, double> simulated_;
};

class MeteredNetwork : public Network {
 public:
  MeteredNetwork(std::unique_ptr<Network> network, WireMeter* meter)
      : network_(std::move(network)), meter_(meter) {}

  void start(std::int32_t transfer, const Step& step, std::uint64_t id, Time now) override {
    if (meter_) meter_->add(step);
    if (step.flow_by_flow) count_flows(transfer, step, now);
    network_->start(transfer, step, id, now);
  }
  Time next_event() override { return network_->next_event(); }
  void set_capacity(int wire, double share, Time now) override { network_->set_capacity(wire, share, now); }
  double carried(int wire) const override { return network_->carried(wire); }
  std::vector<double> left(std::int32_t transfer, Time now) override { return network_->left(transfer, now); }
  void replace(std::int32_t transfer, const Step& step, Time now) override {
    network_->replace(transfer, step, now);
  }
  void advance(Time now, std::vector<std::int32_t>& ended) override {
    const std::size_t before = ended.size();
    network_->advance(now, ended);
    for (std::size_t i = before; i < ended.size(); ++i) {
      if (static_cast<std::size_t>(ended[i]) >= flows_of_.size()) continue;
      flows_ -= std::exchange(flows_of_[ended[i]], 0);
    }
  }

 private:
  void count_flows(std::int32_t transfer, const Step& step, Time now) {
    if (flows_of_.size() <= static_cast<std::size_t>(transfer)) flows_of_.resize(transfer + 1, 0);
    flows_of_[transfer] = static_cast<std::int64_t>(step.flows.size());
    flows_ += flows_of_[transfer];
    if (flows_ > kMostSingleFlows)
      throw run_error(
          fmt::format("routing looks at each flow by itself, at most {} at a time; {} are under way at {}: "
                      "use fewer ranks "
                      "or queue pairs, or \"routing\": \"spray\" or \"adaptive\"",
                      kMostSingleFlows, flows_, to_text(now)));
    if (meter_) meter_->flows_under_way(flows_);
  }

  std::unique_ptr<Network> network_;
  WireMeter* meter_;
  std::vector<std::int64_t> flows_of_;  // by transfer
  std::int64_t flows_ = 0;
};

}  // namespace

void WireMeter::open(const Cluster& cluster, const Layout& layout, const WireTable& table,
                     WireSharing sharing) {
  cluster_ = &cluster;
  table_ = &table;
  sharing_ = sharing;
  stand_ins_ = StandIns(cluster.fabric, layout);
}

void WireMeter::add(const Step& step) {
  carried_.resize(table_->size(), 0);
  for (const FlowClass& flow : step.flows) {
    for (const Link& link : flow.links) carried_[link.wire] += flow.bytes * link.weight;
  }
  passed_.resize(table_->size(), 0);
  for (const Step::Passed& passed : step.passed) {
    carried_[passed.wire] += passed.bytes;
    passed_[passed.wire] += passed.bytes;
  }
  if (step.members) add_members(step);
  add_forwarded(step);
}

// Of the steps that have been counted.
void WireMeter::spread(std::vector<Beyond>& beyond) const {
  beyond.resize(table_->size());
  for (const auto& [members, times] : begun_) {
    for (const MemberLoad& load : *members) {
      beyond[load.wire].bytes += times * load.beyond;
      beyond[load.wire].stand_in = load.stand_in;
    }
  }
}

void WireMeter::add_members(const Step& step) {
  if (begun_.size() >= kMostCounted) {
    spread(beyond_);
    begun_.clear();
    place_.clear();
  }
  const auto [at, is_new] = place_.try_emplace(step.members.get(), begun_.size());
  if (is_new) begun_.emplace_back(step.members, 0);
  ++begun_[at->second].second;
}

// Of the wires that one stands for: what the one that carried most did beyond the mean of them; by stand-in.
std::vector<double> WireMeter::most_beyond() const {
  std::vector<Beyond> beyond = beyond_;
  spread(beyond);
  std::vector<double> most(table_->size());
  for (int wire = 0; wire < table_->size(); ++wire) {
    const auto [bytes, stand_in] = beyond[wire];
    if (stand_in < 0) continue;
    most[stand_in] = std::max(most[stand_in], bytes);
  }
  return most;
}

void WireMeter::add_forwarded(const Step& step) {
  if (cluster_->fabric.spec().by_host.empty()) return;
  std::map<std::int32_t, double> busy;
  bool through_host = false;
  for (const FlowClass& flow : step.flows) {
    for (const Link& link : flow.links) {
      busy[link.wire] += flow.bytes * link.weight / table_->capacity(link.wire);
      through_host = through_host || table_->kind(link.wire) == static_cast<int>(WireKind::kHostMemory);
    }
  }
  if (!through_host) return;
  std::array<double, kNumRows> longest{};
  for (const auto& [wire, seconds] : busy) {
    if (table_->kind(wire) == kNumWireKinds) continue;  // copies inside a device
    double& row = longest[row_of(table_->kind(wire)).number];
    row = std::max(row, seconds);
  }
  for (int row = 0; row < kNumRows; ++row) forwarded_[row] += longest[row];
  forwarded_seconds_ += step.alone;
}

void WireMeter::settle(const Network& network) {
  carried_.resize(table_->size(), 0);
  passed_.resize(table_->size(), 0);
  for (int wire = 0; wire < table_->size(); ++wire) carried_[wire] = network.carried(wire) + passed_[wire];
}

void WireMeter::flows_under_way(std::int64_t flows) {
  most_flows_ = std::max(most_flows_, flows);
}

NetworkUse WireMeter::use() const {
  const FabricSpec& spec = cluster_->fabric.spec();
  NetworkUse use;
  if (spec.tiers > 0) use.routing = name_of(spec.routing);
  use.queue_pairs = spec.queue_pairs;
  use.damaged = static_cast<int>(cluster_->damaged.size());
  use.shares_wires = sharing_ != WireSharing::kNone;
  use.most_flows = most_flows_;
  use.folded = stand_ins_.folded();
  std::array<TierUse, kNumRows> rows;
  std::array<double, kNumRows> forwarded = forwarded_;
  Ports ports(*cluster_);
  const std::vector<double> beyond = most_beyond();
  const HostMemories hosts(stand_ins_, *table_, carried_);
  std::array<double, kNumRows> num_ports{};
  for (std::size_t wire = 0; wire < carried_.size(); ++wire) {
    const int kind = table_->kind(static_cast<int>(wire));
    if (kind == kNumWireKinds || carried_[wire] <= 0) continue;  // copies inside a device
    if (kind == kPosting && sharing_ == WireSharing::kWires) continue;
    const WireId id{kind == kPosting ? WireKind::kNicOut : static_cast<WireKind>(kind),
                    table_->index(static_cast<int>(wire))};
    const double capacity = table_->capacity(static_cast<int>(wire));
    const Row row = row_of(kind);
    TierUse one, &tier = rows[row.number];
    if (kind == kPosting) {
      one.ports = 1;
      one.capacity = capacity;
    } else {
      ports.count(id, one);
    }
    tier.tier = row.tier;
    tier.in_network = row.in_network;
    tier.counts_messages = kind == kPosting;
    const bool of_host = id.kind == WireKind::kHostMemory;
    const double times = stand_ins_.times(id) * (of_host ? hosts.times(id.index) : 1);
    num_ports[row.number] += static_cast<double>(one.ports) * times;
    tier.ports = std::llround(num_ports[row.number]);
    tier.capacity += one.capacity * times;
    tier.bytes += carried_[wire] * times;
    tier.longest = std::max(tier.longest, (carried_[wire] + beyond[wire]) / capacity);
  }
  for (int kind = 0; kind <= kPosting; ++kind) {
    if (kind == kNumWireKinds) continue;
    const Row row = row_of(kind);
    double& seconds = forwarded[row.number];
    if (seconds > 0) use.forwarding.push_back({row.tier, std::exchange(seconds, 0)});
  }
  use.forwarding_seconds = forwarded_seconds_;
  for (TierUse& tier : rows) {
    if (tier.bytes > 0) use.tiers.push_back(std::move(tier));
  }
  return use;
}

std::unique_ptr<Network> make_metered_network(std::unique_ptr<Network> network, WireMeter* meter) {
  return std::make_unique<MeteredNetwork>(std::move(network), meter);
}

}  // namespace moebius
