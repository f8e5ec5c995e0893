// A scenario with the workload that it stands for: from here its schedule is decided.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "workloads/collective.h"
#include "workloads/flows.h"
#include "workloads/scenario/scenario.h"
#include "workloads/serving/serving.h"
#include "workloads/tenants.h"
#include "workloads/training/training.h"

namespace moebius {

// Changes to a scenario file from outside it.
struct Changes {
  std::vector<std::string> sets;  // "/json/pointer=value"
  std::optional<std::uint64_t> seed;
  bool unfold = false;  // every rank by itself, every op in the timeline
};

// Its values and seed, in the document itself.
void apply(const Changes& changes, Document& document);

struct Job;

// A phase of a step of reinforcement learning.
struct JobPhase {
  RlPhase phase = RlPhase::kRollout;
  std::unique_ptr<Job> job;
};

struct Job {
  Scenario scenario;
  std::unique_ptr<Training> training;  // one of the five; none of a replay
  std::unique_ptr<CollectiveRun> collective;
  std::unique_ptr<TenantsRun> tenants;  // a collective scenario with several
  std::unique_ptr<Serving> serving;
  std::optional<MemoryReport> memory;            // training, serving
  std::unique_ptr<FlowsRun> flows = nullptr;     // a collective scenario of flows
  std::vector<JobPhase> phases = {};             // training with reinforcement: the others of a step
  std::vector<std::unique_ptr<Job>> steps = {};  // of a cluster's jobs, where they are simulated; else null
  // Of a cluster with queues: a job of that shape alone on so many cards of that pool.
  std::function<std::unique_ptr<Job>(int shape, int pool, int cards)> read_shape = {};
  // The same job once more, of which nothing was carried out; of jobs with a schedule that a document says.
  std::function<std::unique_ptr<Job>()> read_again = {};
  bool is_phase = false;                      // of another job, in whose process it runs
  bool rehearses = false;                     // a run for the clocks at its begin, which may be the last one
  bool as_if_alone = false;                   // simulated: by closed forms, whatever detail is asked for
  std::unique_ptr<Workload> again = nullptr;  // what another run issued, in the place of what decides

  // Serving by a whole system whose iterations are timed: no single workload, perform() alone carries it out.
  // Carried out op by op (carried_job.h) it is one.
  bool is_service() const { return !scenario.service.phases.empty() && !serving; }
  const Layout& layout() const;
  Workload& workload();
};

// Where names in a scenario are looked up.
struct Library {
  explicit Library(const std::string& data_dir) : data(data_dir), hardware(data_dir), models(data_dir) {}
  std::string data;
  Catalog hardware;
  ModelCatalog models;
};

Job read_job(const std::string& file, const Changes& changes, const Library& library);
Job read_job(Document document, const Changes& changes, const Library& library);

// run_error with the breakdown when the step does not fit on the devices and the plan does not say "report".
void require_fit(const Job& job);
bool lacks_memory(const Job& job);  // where it has to fit

// input_error for a replay of a cache, whose requests are replayed and no ops scheduled, and for a whole
// service, of which only what iterations take is scheduled.
void require_schedule(const Job& job);

// run_error for what only the simulator carries out: flows between NICs, an all-to-all of unequal parts,
// faults of the network.
void require_executable(const Job& job);

// run_error when this machine cannot execute the job: its memory does not hold what all ranks hold together.
// input_error when ranks are folded: numbers need every one.
void require_host(const Job& job);

}  // namespace moebius
