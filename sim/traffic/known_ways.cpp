// What messages load at the wires of their ways: part of StepBuilder.
#include "sim/traffic/step_builder.h"

namespace moebius {
namespace {

// Whose a wire is: of one device, and so folded with it; of a pair of devices; or of many.
enum class Owner { kDevice, kPair, kMany };

Owner owner_of(WireKind kind) {
  switch (kind) {
    case WireKind::kScaleUpOut:
    case WireKind::kScaleUpIn:
    case WireKind::kNicOut:
    case WireKind::kNicIn:
    case WireKind::kBoardOut:
    case WireKind::kBoardIn:
    case WireKind::kHostOut:
    case WireKind::kHostIn:
      return Owner::kDevice;
    case WireKind::kScaleUpPair:
    case WireKind::kNicOutPort:  // by ports nothing is folded
    case WireKind::kNicInPort:
      return Owner::kPair;
    case WireKind::kLeafUp:
    case WireKind::kLeafDown:
    case WireKind::kPodUp:
    case WireKind::kPodDown:
    case WireKind::kLeafUpPort:
    case WireKind::kLeafDownPort:
    case WireKind::kPodUpPort:
    case WireKind::kPodDownPort:
    case WireKind::kRegionLink:
    case WireKind::kHostMemory:
      return Owner::kMany;
  }
  return Owner::kMany;
}

bool leaves_sender(WireKind kind) {
  return kind == WireKind::kScaleUpOut || kind == WireKind::kScaleUpPair || kind == WireKind::kNicOut ||
         kind == WireKind::kNicOutPort;
}

// Whether a wire is part of a message's way from NIC to NIC.
bool is_beyond_node(WireKind kind) {
  return kind != WireKind::kScaleUpOut && kind != WireKind::kScaleUpIn && kind != WireKind::kScaleUpPair &&
         kind != WireKind::kBoardOut && kind != WireKind::kBoardIn && kind != WireKind::kHostOut &&
         kind != WireKind::kHostIn && kind != WireKind::kHostMemory;
}

}  // namespace

StepBuilder::KnownWay& StepBuilder::place_of_way(int from, int to, const Way& way) {
  known_ways_.resize(std::size_t{1} << kWayBits);
  const std::uint64_t ends = static_cast<std::uint64_t>(from) << 32 | static_cast<std::uint32_t>(to);
  const std::uint64_t key = ends * 4 + static_cast<std::uint64_t>(way.part);
  return known_ways_[key * 0x9e3779b97f4a7c15u >> (64 - kWayBits)];
}

void StepBuilder::take_hop(const Hop& hop, const Way& way) {
  if (hop.load.wire < 0) return;
  Load load = hop.load;
  load.bytes = way.bytes;
  load.flows = 1;
  add(load);
}

// Wires get their numbers here, in the order of the way.
void StepBuilder::take_way(int from, int to, const Way& way, KnownWay* learned) {
  if (learned != nullptr) {
    learned->from = from;
    learned->to = to;
    learned->part = way.part;
    learned->change = way.change;
    learned->hops.clear();
  }
  path_.clear();
  sites_.fabric().route(from, to, path_, way.change);
  for (const WireId wire : path_) {
    const bool is_shared = owner_of(wire.kind) == Owner::kMany;
    Hop hop;
    if (wire.kind == WireKind::kNicOut) hop.nic = wire.index;
    if (hop.nic >= 0 && way.messages > 0) add_posting(hop.nic, way.messages);
    if (way.part == Part::kAll || is_shared == (way.part == Part::kShared)) hop.load = load_on(wire);
    take_hop(hop, way);
    if (learned != nullptr) learned->hops.push_back(hop);
  }
}

StepBuilder::Load StepBuilder::load_on(WireId wire) {
  const int index = table_.wire(wire);
  // The sender's own wire stays in any case, so that every flow has one.
  if (!can_bind_[static_cast<int>(wire.kind)] && !leaves_sender(wire.kind)) {
    if (sites_.folded()) return {.wire = -1};  // the wires of all others would be missing
    return {.wire = index, .stand_in = index, .carried = Carried::kFree};
  }
  const Carried carried = singly_ && is_beyond_node(wire.kind) ? Carried::kInFlows : Carried::kByItself;
  switch (owner_of(wire.kind)) {
    case Owner::kDevice:
      return {.wire = index,
              .device = wire.index,
              .stand_in = table_.wire({wire.kind, sites_.stand_in(wire.index)}),
              .carried = carried,
              .of_nic = wire.kind == WireKind::kNicOut || wire.kind == WireKind::kNicIn};
    case Owner::kPair: {
      const bool of_nic = wire.kind == WireKind::kNicOutPort || wire.kind == WireKind::kNicInPort;
      const int device = of_nic ? wire.index / sites_.fabric().spec().nic_ports : -1;
      return {.wire = index,
              .device = device,
              .stand_in = table_.wire(sites_.stand_in(wire)),
              .carried = carried};
    }
    case Owner::kMany:
      return {.wire = index, .stand_in = table_.wire(sites_.stand_in(wire)), .carried = carried};
  }
  return {.wire = -1};
}

}  // namespace moebius
