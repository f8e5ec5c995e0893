// Which requests of one replica share its next iteration: continuous batching in its plainest form. Waiting
// requests are prefilled whole as soon as there is room among the running ones; else all running ones decode
// a token each; a request that has all its tokens leaves before the next iteration.
#pragma once

#include <deque>
#include <vector>

#include "workloads/schedule/batch.h"
#include "workloads/serving/kv/page_pool.h"
#include "workloads/serving/plan.h"

namespace moebius {

struct ServedRequest {
  std::int32_t id = 0, prompt = 0, output = 0;
  std::int32_t generated = 0;            // tokens, those of the iteration that was given last included
  std::vector<std::int32_t> pages = {};  // of the cache
};

class Batching {
 public:
  Batching(const ServingPlan& plan, std::deque<ServedRequest> waiting);

  // The next iteration. A padding token where nothing is left to do: the other replicas need this one's
  // experts.
  Batch next();
  // Whether everything has been given its last token.
  bool done() const;
  const PagePool& pool() const { return pool_; }

 private:
  void retire();
  Batch prefill();
  Batch decode();
  Batch padding() const;
  BatchSequence admit(ServedRequest request);

  ServingPlan plan_;
  std::deque<ServedRequest> waiting_;
  std::vector<ServedRequest> running_;
  PagePool pool_;
  std::int32_t padding_page_;
};

// Pages that `plan` needs for its longest requests, and one for padding.
std::int32_t cache_pages(const ServingPlan& plan, const ServingWorkload& workload);

}  // namespace moebius
