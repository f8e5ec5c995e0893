// Shared experts among the routed ones, as the plan of a service has them: always-chosen experts of the
// layer's grouped products, which have slots as the others do and receive tokens as they do.
//   fused: every rank of an expert group has a copy of each, for its own tokens ("shared experts fusion" of
//   SGLang, sgl-project/sglang pull requests 4918 and, under expert parallelism, 20089).
//   routed: each is placed by its load, that of all tokens, so that it takes as many of the slots as tokens
//   need (the shared expert ranks of CloudMatrix-Infer, Zuo et al. 2025, arXiv 2506.12708).
#pragma once

#include "models/model.h"
#include "workloads/routing/routing.h"
#include "workloads/serving/plan.h"

namespace moebius {

// What layers compute under the plan: the model, or the same with its shared experts among the routed ones.
Model served_model(const Model& model, const ServingPlan& plan);

// Slots of a layer that are dealt evenly: those of routed experts stand each for an expert of its own, behind
// them the always-chosen ones, with the slots that even loads give them. `experts`: of served_model. None
// where experts are their slots.
ExpertSlotsPtr even_slots(const ServingPlan& plan, const Experts& experts);

}  // namespace moebius
