#include "workloads/study/placement/placement_cost.h"

#include <algorithm>

namespace moebius {
namespace {

// Messages there and back, and those of tied embeddings, share the pipeline's wires.
GroupRole kind_of(GroupRole role) {
  return role == GroupRole::kPrevious || role == GroupRole::kTied ? GroupRole::kNext : role;
}

}  // namespace

CommunicationLoads::CommunicationLoads(const Fabric& fabric, const std::vector<RankExchange>& exchanges,
                                       int ranks)
    : fabric_(fabric),
      exchanges_(exchanges),
      device_of_rank_(ranks, kNowhere),
      exchanges_of_rank_(ranks),
      shares_(exchanges.size()),
      wire_numbers_(kNumWireKinds) {
  for (std::size_t i = 0; i < exchanges.size(); ++i) {
    const GroupRole role = kind_of(exchanges[i].role);
    const auto known = std::find(role_of_kind_.begin(), role_of_kind_.end(), role);
    kind_of_.push_back(static_cast<int>(known - role_of_kind_.begin()));
    if (known == role_of_kind_.end()) role_of_kind_.push_back(role);
    for (const std::int32_t rank : exchanges[i].ranks)
      exchanges_of_rank_[rank].push_back(static_cast<std::int32_t>(i));
  }
  loads_.resize(role_of_kind_.size());
}

std::int32_t CommunicationLoads::wire_of(WireId id) {
  std::vector<std::int32_t>& numbers = wire_numbers_[static_cast<int>(id.kind)];
  if (static_cast<std::size_t>(id.index) >= numbers.size()) numbers.resize(id.index + 1, -1);
  if (numbers[id.index] < 0) {
    numbers[id.index] = static_cast<std::int32_t>(seconds_of_byte_.size());
    const double capacity = fabric_.capacity(id).value;
    seconds_of_byte_.push_back(capacity > 0 ? 1 / capacity : 0);
    for (std::vector<double>& loads : loads_) loads.push_back(0);
  }
  return numbers[id.index];
}

const std::vector<std::int32_t>& CommunicationLoads::wires_between(std::int32_t from, std::int32_t to) {
  const auto [known, is_new] = ways_.try_emplace({from, to});
  if (!is_new) return known->second;
  std::vector<WireId> wires;
  fabric_.route(from, to, wires);
  for (const WireId& wire : wires) known->second.push_back(wire_of(wire));
  return known->second;
}

void CommunicationLoads::add_edge(std::int32_t from, std::int32_t to, double bytes, Share& share) {
  for (const std::int32_t wire : wires_between(from, to))
    share.parts.push_back({wire, bytes * seconds_of_byte_[wire]});
}

// `members` by device. A node's members pass on what they have, and so many of them as the next node holds
// send it there, a part each.
void CommunicationLoads::add_ring(const RankExchange& exchange, const std::vector<Member>& members,
                                  Share& share) {
  std::vector<std::size_t> begins;
  for (std::size_t i = 0; i < members.size(); ++i)
    if (i == 0 || members[i].node != members[i - 1].node) begins.push_back(i);
  const std::size_t nodes = begins.size();
  begins.push_back(members.size());
  for (std::size_t node = 0; node < nodes; ++node) {
    const std::size_t first = begins[node], held = begins[node + 1] - first;
    for (std::size_t i = 0; i < held && held > 1; ++i)
      add_edge(members[first + i].device, members[first + (i + 1) % held].device, exchange.around, share);
    if (nodes == 1) break;
    const std::size_t next = begins[(node + 1) % nodes], there = begins[(node + 1) % nodes + 1] - next;
    const std::size_t rings = std::min(held, there);
    for (std::size_t i = 0; i < rings; ++i)
      add_edge(members[first + i].device, members[next + i].device,
               exchange.around / static_cast<double>(rings), share);
  }
}

CommunicationLoads::Share CommunicationLoads::share_of(const RankExchange& exchange) {
  std::vector<Member> members;
  for (std::size_t i = 0; i < exchange.ranks.size(); ++i) {
    const std::int32_t device = device_of_rank_[exchange.ranks[i]];
    if (device != kNowhere)
      members.push_back({static_cast<std::int32_t>(i), device, fabric_.node_of(device)});
  }
  Share share;
  const auto device_at = [&](std::int32_t index) { return device_of_rank_[exchange.ranks[index]]; };
  for (const VolumeEdge& edge : exchange.edges)
    if (device_at(edge.from) != kNowhere && device_at(edge.to) != kNowhere)
      add_edge(device_at(edge.from), device_at(edge.to), edge.bytes, share);
  std::sort(members.begin(), members.end(),
            [](const Member& a, const Member& b) { return a.device < b.device; });
  if (exchange.around > 0 && members.size() > 1) add_ring(exchange, members, share);
  for (const Member& from : members)
    for (const Member& to : members)
      if (exchange.between > 0 && from.index != to.index)
        add_edge(from.device, to.device, exchange.between, share);
  for (std::size_t i = 1; i < members.size(); ++i)
    share.latency =
        std::max(share.latency, fabric_.latency(members[i - 1].device, members[i].device).seconds());
  share.latency *= exchange.calls;
  // The same wire once: a group's edges meet on few of them.
  std::sort(share.parts.begin(), share.parts.end(),
            [](const Part& a, const Part& b) { return a.wire < b.wire; });
  std::size_t kept = 0;
  for (std::size_t i = 0; i < share.parts.size(); ++i) {
    if (kept > 0 && share.parts[kept - 1].wire == share.parts[i].wire)
      share.parts[kept - 1].seconds += share.parts[i].seconds;
    else
      share.parts[kept++] = share.parts[i];
  }
  share.parts.resize(kept);
  return share;
}

void CommunicationLoads::apply(const Share& share, int kind, double sign) {
  for (const Part& part : share.parts) loads_[kind][part.wire] += sign * part.seconds;
}

void CommunicationLoads::replace(std::int32_t exchange, Share share) {
  apply(shares_[exchange], kind_of_[exchange], -1);
  shares_[exchange] = std::move(share);
  apply(shares_[exchange], kind_of_[exchange], 1);
}

void CommunicationLoads::place(const std::vector<std::int32_t>& device_of_rank) {
  device_of_rank_ = device_of_rank;
  for (std::vector<double>& loads : loads_) std::fill(loads.begin(), loads.end(), 0);
  for (std::size_t i = 0; i < exchanges_.size(); ++i) {
    shares_[i] = share_of(exchanges_[i]);
    apply(shares_[i], kind_of_[i], 1);
  }
  before_.clear();
  devices_before_.clear();
}

void CommunicationLoads::move(const std::vector<std::pair<std::int32_t, std::int32_t>>& device_of) {
  before_.clear();
  devices_before_.clear();
  std::vector<std::int32_t> touched;
  for (const auto& [rank, device] : device_of) {
    devices_before_.push_back({rank, device_of_rank_[rank]});
    device_of_rank_[rank] = device;
    touched.insert(touched.end(), exchanges_of_rank_[rank].begin(), exchanges_of_rank_[rank].end());
  }
  std::sort(touched.begin(), touched.end());
  touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
  for (const std::int32_t exchange : touched) {
    before_.push_back({exchange, shares_[exchange]});
    replace(exchange, share_of(exchanges_[exchange]));
  }
}

void CommunicationLoads::undo() {
  for (auto& [exchange, share] : before_) replace(exchange, std::move(share));
  for (const auto& [rank, device] : devices_before_) device_of_rank_[rank] = device;
  before_.clear();
  devices_before_.clear();
}

std::map<GroupRole, double> CommunicationLoads::by_role() const {
  std::map<GroupRole, double> seconds;
  for (std::size_t kind = 0; kind < loads_.size(); ++kind)
    for (const double load : loads_[kind])
      seconds[role_of_kind_[kind]] = std::max(seconds[role_of_kind_[kind]], load);
  std::vector<double> latency(loads_.size(), 0);
  for (std::size_t i = 0; i < shares_.size(); ++i)
    latency[kind_of_[i]] = std::max(latency[kind_of_[i]], shares_[i].latency);
  for (std::size_t kind = 0; kind < loads_.size(); ++kind) seconds[role_of_kind_[kind]] += latency[kind];
  return seconds;
}

PlacementCost CommunicationLoads::cost() const {
  PlacementCost cost;
  for (const std::vector<double>& loads : loads_) {
    double longest = 0;
    for (const double load : loads) {
      longest = std::max(longest, load);
      cost.mean += load;
    }
    cost.seconds += longest;
  }
  std::vector<double> latency(loads_.size(), 0);
  for (std::size_t i = 0; i < shares_.size(); ++i)
    latency[kind_of_[i]] = std::max(latency[kind_of_[i]], shares_[i].latency);
  for (const double kind : latency) cost.seconds += kind;
  cost.mean /= static_cast<double>(device_of_rank_.size());
  return cost;
}

}  // namespace moebius
