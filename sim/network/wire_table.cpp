#include "sim/network/wire_table.h"

#include <fmt/format.h>

#include "hw/error.h"

namespace moebius {

std::int32_t& WireTable::entry(int kind, int index) {
  std::vector<std::int32_t>& wires = index_[kind];
  if (wires.size() <= static_cast<std::size_t>(index)) wires.resize(index + 1, -1);
  return wires[index];
}

int WireTable::insert(double capacity) {
  CHECK(capacity > 0, fmt::format("capacity {}", capacity));
  capacities_.push_back(capacity);
  return size() - 1;
}

int WireTable::wire(WireId id) {
  std::int32_t& known = entry(static_cast<int>(id.kind), id.index);
  if (known < 0) known = insert(cluster_.fabric.capacity(id).value);
  return known;
}

int WireTable::local_copy(int device) {
  std::int32_t& known = entry(kNumWireKinds, device);
  if (known < 0 && cluster_.exchange) known = insert(cluster_.exchange->wire.rate.value);
  if (known < 0) {
    const Accelerator& chip = cluster_.pool_of(device).accelerator;
    known = insert(chip.memory_rate.value * chip.memory_efficiency / 2);
  }
  return known;
}

int WireTable::posting(int nic) {
  const Time each = cluster_.fabric.spec().message_time;
  if (each.ns <= 0) return -1;
  std::int32_t& known = entry(kNumWireKinds + 1, nic);
  if (known < 0) known = insert(1 / each.seconds());
  return known;
}

}  // namespace moebius
