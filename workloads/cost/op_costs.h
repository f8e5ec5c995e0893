// Stand-alone costs of the compute ops of one fragment on one chip, asked for once for each number of cores.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <unordered_set>
#include <utility>
#include <vector>

#include "hw/accelerator.h"
#include "hw/cluster.h"
#include "workloads/cost/clock_power.h"
#include "workloads/cost/cost_source.h"
#include "workloads/schedule/fragment.h"

namespace moebius {

// For several members with loads of their own: that of the slowest one.
struct OpCost {
  double seconds = 0;
  double memory_bytes = 0;
  double first = 1, mean = 1;  // of the members' durations, as a share of `seconds`
  Origin origin = Origin::kRoofline;
  float error = 0;
  std::int16_t slowest = 0;  // index in the expert group; 0 when all are equal
  OpEnergy energy = {};      // of the mean one; on a chip whose power is known
  bool operator==(const OpCost&) const = default;
};

// Each cost once: the ops of all layers and fragments have a few hundred between them, which stay in the
// caches where one for each op would not.
class DistinctCosts {
 public:
  // Stays where it is as long as this object.
  const OpCost& the_one_like(const OpCost& cost) { return *costs_.insert(cost).first; }

 private:
  struct Hash {
    std::size_t operator()(const OpCost& cost) const {
      const std::hash<double> hash;
      return hash(cost.seconds) + 31 * hash(cost.memory_bytes) + 961 * hash(cost.energy.clocked);
    }
  };
  std::unordered_set<OpCost, Hash> costs_;
};

// What the op asks a cost source at so many cores, without loads of members: its shape, and the formats of
// what it reads and adds to.
CostQuery query_of(const Fragment& fragment, const Op& op, int cores);

class OpCosts {
 public:
  // `members`: which members of the expert group the class simulates; not needed for ops without member
  // loads. `power`: null where the clock stays full.
  OpCosts(const Fragment& fragment, const Accelerator& accelerator, const CostSource& source,
          DistinctCosts& distinct, std::vector<std::int32_t> members,
          const std::optional<Loader>& loader = {}, const ClockPower* power = nullptr)
      : fragment_(fragment),
        accelerator_(accelerator),
        source_(source),
        distinct_(distinct),
        members_(std::move(members)),
        loader_(loader),
        power_(power) {}

  // Stays valid as long as the distinct costs.
  const OpCost& at(std::int32_t op, int cores) {
    for (const AtCores& known : costs_) {
      if (known.cores == cores && known.of_op[op] != nullptr) return *known.of_op[op];
    }
    return find(op, cores);
  }

 private:
  // Side by side, for ops follow each other.
  struct AtCores {
    int cores = 0;
    std::vector<const OpCost*> of_op;  // null: not asked for yet
  };
  const OpCost& find(std::int32_t op, int cores);
  OpCost evaluate(const Op& op, int cores);
  // Of one member by itself.
  OpEnergy energy(const Op& op, double flops, double seconds, double memory_bytes) const;
  OpCost joined(const Op& op, OpCost cost) const;
  OpCost further_columns(const Op& op, int cores) const;
  OpCost slowest_member(const Op& op, int cores);
  OpCost find_slowest(const Op& op, int cores) const;
  Cost member_cost(const Op& op, int member, CostQuery query) const;

  const Fragment& fragment_;
  const Accelerator& accelerator_;
  const CostSource& source_;
  DistinctCosts& distinct_;
  std::vector<std::int32_t> members_;
  std::optional<Loader> loader_;
  const ClockPower* power_;
  std::vector<AtCores> costs_;
  struct OfMembers {  // layers that share a route have the same work for each member
    OpKind kind = OpKind::kGroupedGemm;
    Shape shape;
    DType dtype = DType::kBf16;
    std::optional<DType> weights;
    DType summed = DType::kFp32;
    const Route* route = nullptr;
    int cores = 0;
    bool for_whole_chip = false;
    bool operator==(const OfMembers&) const = default;
  };
  std::vector<std::pair<OfMembers, OpCost>> of_members_;
};

}  // namespace moebius
