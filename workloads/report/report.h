// The result of a run: for people (text) and for scripts (one JSON object, SI units, the keys of the
// command-line contract). Equal runs give equal reports but for wall_s, cpu_s and max_rss_bytes.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "workloads/cluster/cluster_figures.h"
#include "workloads/cost/measuring_facts.h"
#include "workloads/flows.h"
#include "workloads/report/advice_rows.h"
#include "workloads/report/collective_choice.h"
#include "workloads/report/fault_facts.h"
#include "workloads/report/network_use.h"
#include "workloads/routing/expert_loads.h"
#include "workloads/scenario/scenario.h"
#include "workloads/schedule/metrics.h"
#include "workloads/serving/figures.h"
#include "workloads/serving/kv/kv_replay.h"
#include "workloads/serving/system/service_figures.h"
#include "workloads/tenants.h"
#include "workloads/training/reinforcement.h"
#include "workloads/training/state/memory.h"

namespace moebius {

struct QueueFigures;

// By pool of a simulated cluster, what a device draws idle; nothing where it is not known what work draws
// (Metrics::joules_by_class is then without it).
struct IdleWatts {
  std::vector<std::optional<double>> of_pool;

  std::optional<double> of(std::size_t pool) const {
    return pool < of_pool.size() ? of_pool[pool] : std::nullopt;
  }
};

struct RunFacts {
  std::string executor, detail;  // "sim", "fluid"
  bool on_cluster = true;        // times are those of the scenario's devices; false: of whatever executed it
  std::vector<std::pair<std::string, std::string>> provenance;  // cost sources, versions, schedule hash
  std::vector<double> losses;  // by step from the run's first one on, of an executor that computes numbers
  std::vector<std::vector<std::int32_t>> tokens;   // by request, of an executor that generates them
  std::optional<MeasuringFacts> measured = {};     // emulation: the ops that costs were made of
  std::optional<NetworkUse> network = {};          // of a simulated one
  std::vector<CollectiveChoice> collectives = {};  // simulation: the distinct ones, at most kMostChoices
  std::vector<FaultFacts> faults = {};             // that happened in a simulated run
  double wall_s = 0, cpu_s = 0, max_rss_bytes = 0;
  std::int64_t dropped_spans = 0;
  IdleWatts idle_watts = {};
  std::optional<double> resent_share =
      {};  // packets sent again, for each distinct one; where there are packets
};

struct Report {
  const Scenario* scenario = nullptr;
  RunFacts facts;
  Metrics metrics;
  std::optional<MemoryReport> memory;  // training, serving
  std::optional<ServingFigures> serving;
  std::optional<ServiceFigures> service = {};              // serving by a whole system, beside `serving`
  std::vector<TenantFigures> tenants = {};                 // a collective scenario with several
  std::optional<FlowTimes> flows = {};                     // a collective scenario of flows
  std::optional<Advice> advice = {};                       // training, where it was asked for
  ExpertLoads experts = {};                                // training with experts that are not loaded evenly
  std::optional<ReinforcementFigures> reinforcement = {};  // training, where a step has other phases
  std::optional<kv::ReplayFigures> replay = {};            // of a cache
  std::optional<ClusterFigures> cluster = {};              // over weeks
  std::shared_ptr<const QueueFigures> queues = {};         // of many jobs over weeks, beside `cluster`

  std::int64_t devices() const { return service ? service->devices() : scenario->ranks(); }
};

std::string report_json(const Report& report);  // ends with a newline
// Of a job that is not run since it does not fit: what it needs.
std::string unfit_json(const Scenario& scenario, const MemoryReport& memory);
std::string report_text(const Report& report);
std::string memory_text(const MemoryReport& memory);  // the breakdown by kind of the fullest rank

// The number at a dotted path of the report's JSON ("network.sent_bytes"); nothing when there is none.
std::optional<double> report_value(const std::string& json, const std::string& path);
// The paths at which it has one, or null where there could be one.
std::vector<std::string> report_names(const std::string& json);

}  // namespace moebius
