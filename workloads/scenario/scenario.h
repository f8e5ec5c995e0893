// One scenario file, validated: plain structs, no behaviour. The only reader of scenario files.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hw/catalog.h"
#include "hw/cluster.h"
#include "hw/document.h"
#include "hw/fault.h"
#include "models/model.h"
#include "workloads/cluster/cluster_plan.h"
#include "workloads/scenario/flow_pattern.h"
#include "workloads/scenario/section.h"
#include "workloads/schedule/op.h"
#include "workloads/schedule/recorder.h"
#include "workloads/serving/kv/kv_replay.h"
#include "workloads/serving/plan.h"
#include "workloads/serving/published_scales.h"
#include "workloads/serving/system/service_plan.h"
#include "workloads/serving/traffic/traffic_source.h"
#include "workloads/training/pipeline/dynamic_slicing.h"
#include "workloads/training/plan.h"
#include "workloads/training/reinforcement.h"

namespace moebius {

enum class ScenarioKind : std::uint8_t { kTraining, kCollective, kServing, kKvReplay, kCluster };
std::string_view to_string(ScenarioKind kind);
std::string_view dispatch_name(Algorithm exchange);  // as key `dispatch` has it: "deepep"

struct Expectation {
  std::string metric;  // dotted path into the report: "step_time_s", "breakdown.exposed_communication_s"
  double value = 0;
  double tolerance = 0;  // relative; 0: shown beside ours, not judged
  std::string source;
  std::string known_miss;  // reason; empty: a miss fails
  // Of a known miss, ours over the figure less one when it was recorded; nothing: it may be any.
  std::optional<double> known_difference = {};

  // Whether a difference is that of the known miss or a smaller one, to half a percentage point.
  bool excuses(double difference) const;
};

// One of several collectives that share a fabric, each on devices of its own: rank i stands on device
// first + i / block * stride + i % block.
struct Tenant {
  std::string name;
  OpKind operation = OpKind::kAllReduce;
  Algorithm algorithm = Algorithm::kAuto;
  Bytes bytes = {};
  int ranks = 0;
  int first = 0, block = 1, stride = 1;
  int repeat = 1;  // so many, one after the other
  int queue = 0;   // see Op::queue

  std::int64_t device(int rank) const { return first + std::int64_t{rank / block} * stride + rank % block; }
};

// One collective on one fabric.
struct CollectiveWorkload {
  OpKind operation = OpKind::kAllReduce;  // kSend stands for a send with its receive, kRecv for flows
  Algorithm algorithm = Algorithm::kAuto;
  Bytes bytes;  // see Op::payload for what it counts
  int ranks = 0;
  int groups = 1;  // that do the same side by side; a group has every groups-th node
  DType dtype = DType::kFp32;
  int channels = 0;  // cores that hold the collective, each with a channel; 0: as many as it needs, none held
  PairBytesPtr matrix = {};                 // all-to-all: who sends how much to whom; null: all alike
  bool fold = true;                         // simulate one rank for all, where they do the same
  std::vector<Tenant> tenants = {};         // instead of the one operation; `ranks` counts those of all
  std::optional<FlowsWorkload> flows = {};  // instead of the one operation, on the first `ranks` devices

  int group_ranks() const { return ranks / groups; }
};

// Requests replayed against one cache of blocks; no devices.
struct KvReplayWorkload {
  TrafficSource traffic;
  kv::ReplayCache cache;
};

struct QueuePlan;

// A cluster over weeks. Steps of a job may come from a training scenario of its own: a path relative to this
// file.
struct OperationsScenario {
  ClusterPlan plan;
  std::vector<std::string> job_scenarios;  // of each job; empty: its step is given, or does not matter
  std::shared_ptr<const QueuePlan> queueing =
      {};  // many jobs that are drawn instead of those of the plan; or null
};

struct Scenario {
  ScenarioKind kind = ScenarioKind::kTraining;
  std::string file;  // as the user wrote it
  std::string name;
  std::uint64_t seed = 1;
  std::optional<Cluster> cluster;  // always set once read, but for a replay
  std::string kernels;             // the software whose measured kernels count; empty: the profile's first
  Place kernels_at;                // where that stands (check_stacks())
  std::array<std::string_view, 2> stacks = {};  // otherwise: of a service's framework, see Framework::stacks
  Fp8Scales fp8_scales = Fp8Scales::kBlock;     // of a service's 8-bit products
  Model model;                                  // training, serving
  TrainingPlan plan;
  TrainingWorkload training;
  std::string weights = "random";  // a checkpoint to start from, or drawn from the seed
  bool resume = false;             // training: go on from the checkpoint's optimizer state and step
  std::string save;                // training: directory for a checkpoint at the end; empty: none
  int save_every = 0;              // and after so many steps each; 0: at the end alone
  ServingPlan serving;
  ServingWorkload served;
  ServicePlan service;  // serving: where its steps are not carried out one by one
  ServiceTraffic traffic;
  ServiceGoal goal;                          // serving
  std::optional<Reinforcement> rl;           // training: the other phases of a step
  std::optional<DynamicSlices> slices = {};  // training with dynamic slicing, once it is a job
  bool enforce_memory = true;  // training, serving: what does not fit on the devices is a failure
  CollectiveWorkload collective;
  std::optional<KvReplayWorkload> replay;
  std::optional<OperationsScenario> operations = {};
  // Folding was wanted, but no rank stands for another: see Cluster::by_ports(), several_kinds().
  bool unfolded = false;
  FaultPlan faults;  // that happen under way; simulated only
  std::vector<Expectation> expect;
  RecorderOptions timeline;
  std::vector<Setting> settings;  // every key with the value in use, in the order of reading

  int ranks() const;
};

// Throws input_error for anything that is not exactly right; from here everything inside is consistent:
// degrees multiply to the ranks, experts divide, batches divide, the ranks fit on the devices.
Scenario read_scenario(const Document& document, const Catalog& catalog, const ModelCatalog& models);

// The pipeline schedules that a training plan may name, for `list schedules`.
std::span<const Named<PipelineKind>> pipeline_schedules();

}  // namespace moebius
