// Weights of experts that change places among the ranks of an expert group: whose slots send them, whom they
// reach, and in which slots they are put there. Members are those of the group, slots are counted on their
// rank.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace moebius {

// The experts that slots hold, in the order of the slots.
using SlotListPtr = std::shared_ptr<const std::vector<std::int32_t>>;

struct ExpertTransfer {
  // An expert on its way; from the receiver itself where a further slot of its own gets it.
  struct Arrival {
    std::int32_t to = 0, from = 0, slot = 0;  // the sender's slot
    auto operator<=>(const Arrival&) const = default;
  };
  struct Placing {
    std::int32_t to = 0, arrival = 0, slot = 0;  // which of the receiver's arrivals; the receiver's slot
    bool operator==(const Placing&) const = default;
  };
  struct Layer {
    int number = 0;                 // of the model
    std::vector<Arrival> arrivals;  // ascending
    std::vector<Placing> placings;  // by receiver, then slot

    // Of one receiver: they stand in this order until they are put in place.
    std::span<const Arrival> arrivals_at(int member) const;
    std::span<const Placing> placings_at(int member) const;
    int most_arrivals() const;  // at one member
  };
  std::vector<Layer> layers;

  const Layer& of(int layer) const;  // CHECKs that it is there
  // Experts that go from a member to a member, over all layers.
  int count(int from, int to) const;
};

using ExpertTransferPtr = std::shared_ptr<const ExpertTransfer>;

}  // namespace moebius
