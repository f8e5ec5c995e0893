// One instance of a service on its ranks: the iterations that its replicas decide as ops, and the pages of
// their caches by number.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "workloads/serving/carried/cache_moves.h"
#include "workloads/serving/carried/carried_experts.h"
#include "workloads/serving/carried/carried_layout.h"
#include "workloads/serving/carried/prompt_book.h"
#include "workloads/serving/iteration_routes.h"
#include "workloads/serving/kv/page_tables.h"
#include "workloads/serving/separation/separated_iteration.h"

namespace moebius {

// What the service knows of a sequence.
struct CarriedSequence {
  std::int32_t request = 0, prompt = 0;  // its number, and the tokens that it came with
};

// What all instances of a service go by.
struct CarriedBooks {
  const PromptBook* prompts = nullptr;
  const PopularityBook* popularities = nullptr;
  ExpertCourse* course = nullptr;  // of the clock
};

struct RankWork {
  std::int32_t rank_class = 0;
  FragmentPtr fragment;
};

class CarriedInstance {
 public:
  // All outlive it.
  CarriedInstance(const CarriedService& service, const CarriedLayout& layout, int number,
                  const CarriedBooks& books);

  void place_pages(Instance& decides);  // before anything is decided
  const ServingPlan& plan() const { return job_.plan; }
  int first_rank(int replica) const { return place_.first_rank + replica * job_.plan.tp; }

  // Of the iteration that was decided: a batch a replica, padding where one has nothing to do.
  using Known = std::function<CarriedSequence(std::int32_t id)>;
  std::vector<BatchPtr> batches(const Instance& decided, const Known& known) const;
  // What its ranks do in it, with experts where they stand at `now`; and when it has ended.
  std::vector<RankWork> iteration(const std::vector<BatchPtr>& batches, Time now);
  void iteration_ended(Time now);
  // Keys that go or come before it, of replicas that have such; forgets them.
  std::vector<RankWork> swaps();
  // A sequence's cache, between a replica here and ranks of the world group from `peer` on.
  std::vector<RankWork> move(bool send, int replica, std::int32_t id, const CarriedSequence& of, int peer);

  // Iterations as large as they get, for the memory that they need: prompts, or a full batch at its end.
  std::vector<BatchPtr> full_batches(bool decode) const;
  std::int32_t pages() const { return tables_.empty() ? 0 : pages_; }
  std::int32_t peak_pages() const;  // of the fullest replica
  // The work of such an iteration, beside which as many experts move as ever do.
  std::vector<RankWork> largest_iteration(const std::vector<BatchPtr>& batches);
  CarriedExperts* experts() { return experts_ ? &*experts_ : nullptr; }  // null: none are placed

 private:
  // Batches by rank, and those by replica that ranks attend to by heads; none otherwise.
  std::vector<RankWork> work_of(const std::vector<BatchPtr>& batches, const ExpertTransferPtr& transfer,
                                const std::vector<BatchPtr>& wholes = {});
  void count_copies(const std::vector<BatchPtr>& batches);
  void pad(Batch& batch) const;
  void pad_to_longest(const std::vector<std::shared_ptr<Batch>>& batches) const;
  void add_padding(Batch& batch, int i) const;
  int replica_of(const RankClass& rank_class) const;
  std::vector<const RankClass*> classes_of(int replica) const;
  RankClass within(const RankClass& rank_class) const;

  ServingJob job_;
  ServingShape shape_;
  const Layout& layout_;
  InstancePlace place_;
  int end_class_;
  std::int32_t pages_, host_pages_;
  IterationRoutes routes_;
  std::optional<SeparatedIteration> separated_;  // where experts stand apart
  std::optional<CarriedExperts> experts_;        // where they are placed
  std::vector<kv::PageTables> tables_;           // by replica
};

}  // namespace moebius
