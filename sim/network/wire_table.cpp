#include "sim/network/wire_table.h"

#include <fmt/format.h>

#include "hw/error.h"

namespace moebius {

std::int32_t& WireTable::entry(int kind, int index) {
  std::vector<std::int32_t>& wires = index_[kind];
  if (wires.size() <= static_cast<std::size_t>(index)) wires.resize(index + 1, -1);
  return wires[index];
}

std::string_view wire_kind_name(int kind) {
  if (kind == kNumWireKinds + 1) return "posting";
  return kind == kNumWireKinds ? "copy" : to_string(static_cast<WireKind>(kind));
}

std::string WireTable::name(int wire) const {
  return fmt::format("{} {}", wire_kind_name(kind(wire)), index(wire));
}

int WireTable::insert(int kind, int index, double capacity) {
  CHECK(capacity > 0, fmt::format("capacity {}", capacity));
  capacities_.push_back(capacity);
  ids_.emplace_back(kind, index);
  return size() - 1;
}

int WireTable::wire(WireId id) {
  std::int32_t& known = entry(static_cast<int>(id.kind), id.index);
  if (known < 0) {
    const double left = health_.share(id);  // nothing crosses a broken wire, whatever it could carry
    const double capacity = cluster_.fabric.capacity(id).value * (left > 0 ? left : 1);
    known = insert(static_cast<int>(id.kind), id.index, capacity);
  }
  return known;
}

int WireTable::local_copy(int device) {
  std::int32_t& known = entry(kNumWireKinds, device);
  if (known < 0 && cluster_.exchange)
    known = insert(kNumWireKinds, device, cluster_.exchange->wire.rate.value);
  if (known < 0) {
    const Accelerator& chip = cluster_.pool_of(device).accelerator;
    known = insert(kNumWireKinds, device, chip.memory_rate.value * chip.memory_efficiency / 2);
  }
  return known;
}

int WireTable::posting(int nic) {
  const Time each = cluster_.fabric.spec().message_time;
  if (each.ns <= 0) return -1;
  std::int32_t& known = entry(kNumWireKinds + 1, nic);
  if (known < 0) known = insert(kNumWireKinds + 1, nic, 1 / each.seconds());
  return known;
}

}  // namespace moebius
