// Plans of a search as changes to a scenario file.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "workloads/study/search/training_space.h"

namespace moebius {

// Whether a key is one of PlanDegrees.
bool is_degree(const std::string& pointer);
// One that stands inside of what the pointer leads to.
std::optional<std::string> degree_below(const std::string& pointer);
std::vector<Assignment> degree_settings(const PlanDegrees& degrees, int nodes_per_token);

// By its name, quoted as JSON; input_error for another one.
PipelineKind schedule_of(const std::string& json, const std::string& file);
std::string name_of(PipelineKind schedule);

// Whether a key says where state stands, and when it travels, but nothing of what is computed.
bool says_where_state_stands(const std::string& pointer);

// As values of a bundle, where the scenario's own is not among them.
void add_own(const Document& base, StudyAxis& axis);
// Every combination of the axes' values that the reader takes with every degree 1. input_error when it takes
// none, with what it says of the first.
std::vector<PlanBundle> bundles_of(const Document& base, const std::vector<StudyAxis>& axes);

// "tp 1 · pp 16 (dualpipe) · ep 64 · cp 1 · dp 128 · microbatch 1"
std::string degrees_text(const PlanDegrees& degrees, int dp);
// What else differs from the scenario's plan, in words; empty for nothing.
std::string bundle_text(const TrainingPlan& plan);

}  // namespace moebius
