// One iteration of serving whose experts stand apart from attention, as a fragment of each kind of rank. The
// microbatches of the iteration go round one after the other: attention of a layer, tokens to the experts
// (A2F: dispatch), the layer's MLP, results back (F2A: combine), attention of the next layer. Both sides
// write the exchanges in one order, so that any executor finds its way:
//
//   attention  a0 >0 a1 >1 a2 >2 | <0 a0 >0 <1 a1 >1 <2 a2 >2 | ...
//   experts       >0    >1    >2 | f0 <0 >0 f1 <1 >1 f2 <2 >2 | ...
//
// The exchanges of the two directions have lanes of their own. A layer of m microbatches, each with Ta of
// attention, Tf of experts and Tc for a way, takes max(m Ta, m Tf, Ta + Tf + 2 Tc): with equal stages and
// ways of no length two microbatches keep both sides busy, with ways as long as half a stage three do
// (MegaScale-Infer, arXiv 2504.02263, section 4.1, which states the same condition).
//
// Attention ranks have routers, norms, embeddings, heads and shared experts, whose tokens need not travel;
// expert ranks have routed experts, and each a whole copy of the MLP of dense layers.
#pragma once

#include <functional>
#include <vector>

#include "workloads/serving/lower.h"

namespace moebius {

struct SeparatedPass {
  const ServingShape& shape;
  int microbatches = 1;
  bool decodes = false;
  LaunchMode launch = LaunchMode::kHidden;
  std::function<RoutePtr(int layer, int microbatch)> route;
  std::optional<bool> absorbed = {};  // see Iteration
};

// `batches`: of the replica, by microbatch.
FragmentPtr lower_attention_rank(const SeparatedPass& pass, const std::vector<BatchPtr>& batches);
// `member`: of the expert ranks; where one stands for all, the first.
FragmentPtr lower_expert_rank(const SeparatedPass& pass, int member);

}  // namespace moebius
