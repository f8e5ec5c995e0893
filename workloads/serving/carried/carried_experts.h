// The experts of one instance that is carried out: where they stand, which weights move beside its next
// iteration, what its tokens were seen to choose. The balancer is that of a simulated service; what differs
// is that copies are counted, not drawn, and that weights are really moved.
#pragma once

#include <cstdint>
#include <vector>

#include "workloads/serving/balancing/expert_balancer.h"
#include "workloads/serving/carried/carried_service.h"

namespace moebius {

class CarriedExperts {
 public:
  // `course` outlives it; `instance` is the number among those of all pools.
  CarriedExperts(const CarriedService& service, const CarriedPool& pool, int instance, ExpertCourse& course);

  // Before an iteration that begins at `now` is written: from here places() and transfer() are those of it.
  void begin(Time now);
  ExpertSlotsPtr places(int layer) const { return places_[index_of(layer)]; }
  const ExpertTransferPtr& transfer() const { return transfer_; }  // null: nothing moves
  // What each slot of a member started as.
  SlotListPtr first_slots(int layer, int member) const { return first_[index_of(layer)][member]; }

  // Of the iteration: its tokens, their copies by layer and expert.
  void count(std::int64_t tokens, std::span<const double> copies) { balancer_.count(tokens, copies); }
  void end(Time now);  // it has ended: what moved is in place

  int layers() const { return course_.layers(); }
  int layer(int index) const { return course_.layer(index); }
  int experts() const { return course_.experts(); }
  ExpertBalancer& balancer() { return balancer_; }
  // As much as may move beside one iteration: every slot of as many layers gets an expert of another rank.
  ExpertTransferPtr largest_transfer() const;

 private:
  std::size_t index_of(int layer) const;
  void settle();  // what places() says

  const ExpertBalancePlan plan_;
  const BalancerShape shape_;
  ExpertCourse& course_;
  ExpertBalancer balancer_;
  std::uint64_t version_ = 0;                    // of the balancer, that places are of
  std::vector<ExpertSlotsPtr> places_;           // by layer with experts
  std::vector<std::vector<SlotListPtr>> first_;  // by layer with experts, member
  ExpertTransferPtr transfer_;
  bool changing_ = false;  // something has new places after this iteration
};

}  // namespace moebius
