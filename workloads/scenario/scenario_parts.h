// The parts of the scenario reader. Each read_* declares the keys of one object; with a describing section it
// reads nothing and only declares. The catalogs are null when describing.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>

#include "workloads/scenario/scenario.h"
#include "workloads/scenario/schema.h"
#include "workloads/scenario/section.h"

namespace moebius {

inline constexpr double kMostRanks = 1 << 20;

// What becomes of a scenario whose state does not fit; true: it fails.
inline constexpr std::array kMemoryRules{
    Named<bool>{"enforce", true, "what does not fit fails"},
    Named<bool>{"report", false, "it is simulated all the same, and the report says so"},
};

// An index from 0, declared always and read where it is given; an absent one is made known to suggestions.
inline constexpr int kAbsent = -1;
int read_index(Section& section, bool describing, std::string_view key, std::string_view help);
inline constexpr std::string_view kSpineNumbers =
    "the spine; of two tiers, pod x spines + uplink x spines / uplinks of a leaf; of three, pod x uplinks "
    "of a leaf + uplink";

std::span<const Named<ScenarioKind>> scenario_kinds();
DescriptionPtr describe_scenario(ScenarioKind kind);

void read_cluster(Section section, Scenario& scenario, const Catalog* catalog);
// Broken parts of the network, with where they are said; checked once the network stands.
struct FailedPart {
  PartHealth part;
  Place place;
};
std::vector<FailedPart> read_failed(Section& cluster, bool describing);
void set_failed(const std::vector<FailedPart>& failed, Cluster& cluster);
// Of a job over the first `ranks` devices, all of whose nodes send each other something.
void check_reached(const Cluster& cluster, int ranks);
// Keys `faults` and `failover` of any kind, checked against the cluster, which is told of them.
void read_faults(Section& top, Scenario& scenario, bool describing);
Algorithm read_dispatch(Section& experts, Algorithm otherwise = Algorithm::kAuto);  // key `dispatch`
void read_training_plan(Section section, Scenario& scenario);
// The training plan of a document by itself, with the settings in use; what holds between them is not
// checked.
struct ReadPlan {
  TrainingPlan plan;
  std::vector<Setting> settings;
};
ReadPlan read_plan(const Document& document, const Model& model);
void read_pipeline(Section section, TrainingPlan& plan);
void read_training_workload(Section section, Scenario& scenario);
void read_serving_plan(Section section, Scenario& scenario, const Catalog* catalog,
                       const ModelCatalog* models);
void read_serving_workload(Section section, Scenario& scenario);
void read_classes(Section& top, Scenario& scenario);  // key `sla`
std::string read_weights(Section& section);           // key `weights` of a plan: a path or "random"
void read_collective_workload(Section section, Scenario& scenario);
void read_replay(Section& top, Scenario& scenario);
// Key `matrix` of an all-to-all: rows of quantities, or {"zipf": exponent} of what one rank holds.
PairBytesPtr read_matrix(Section& section, const CollectiveWorkload& work);
std::vector<Expectation> read_expectations(Section& top);
RecorderOptions read_timeline(Section section, bool serving);

// Relations between keys: each violation is one sentence at the key that breaks it. Sets what is derived
// (plan.dp).
void check_folding(const Scenario& scenario, const Document& document);
void check_idle_keys(const Scenario& scenario, const Document& document);
void check_training(Scenario& scenario, const Document& document);
void check_stages(const Scenario& scenario, const Document& document);  // of a pipeline
void check_passes(const Scenario& scenario, const Document& document);
void check_serving(Scenario& scenario, const Document& document);
void check_collective(const Scenario& scenario, const Document& document);

// Where a pointer stands in a document; the nearest container that exists when it does not, and whose
// framework says it.
Place place_at(const Document& document, std::string_view pointer);

}  // namespace moebius
