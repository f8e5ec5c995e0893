// Keys of a serving plan that concern the engine around its kernels: what the host does and when, how
// decoding is launched, where tokens are chosen, how sequences hold the cache, how prompts are laid out.
#pragma once

#include "workloads/scenario/scenario_parts.h"
#include "workloads/serving/frameworks.h"

namespace moebius {

// Out of a plan's scheduler, for phases that are apart: when prompts join the sequences that decode.
void drop_joining_keys(Value& scheduler);

// `policy`, `host_overhead`, `pipeline`, `input_workers`, `output_workers`, `sampling`, `launch`,
// `captured_padding`, `captured_step`, `captured_doubled_from`, `captured_most`, `captured_counts`,
// `captured_prompts`, `slot_tokens`, `preemption`, `swap_space` of a plan's scheduler, after the keys that
// read_service_keys() knows.
void read_engine_keys(Section& scheduler, const Framework& framework, ServicePlan& service);
// `layout` of the plan.
void read_layout(Section& plan, ServicePlan& service);
// `model` and `acceptance_by_place` of speculation, after its other keys. Without `models` it describes.
void read_guesses(Section& section, const ModelCatalog* models, ServicePlan& service);
// Where the scenario first says something that only iterations which are timed know, when all its requests
// are there at once: guesses, users who ask again, the engine around iterations. Empty: nowhere.
struct NeedsTiming {
  const char* pointer = "";
  const char* what = "";
};
NeedsTiming needs_timing(const Scenario& scenario);
// What of them does not go together with the rest of the plan.
void check_engine(const Scenario& scenario, const Document& document);
// What of them an instance of a phase needs, once its degrees are set.
void set_engine(ServicePhase& phase, const Scenario& scenario);
// How far graphs go where the engine reckons that itself, by the devices and the degrees of each phase.
void show_captured(Scenario& scenario);

}  // namespace moebius
