// A job on the simulator: the costs of its chips found, the executor started.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sim/sim_executor.h"
#include "workloads/perform/perform.h"

namespace moebius {

// As the command line and reports call them.
const std::vector<std::pair<std::string, NetworkDetail>>& network_details();
const std::vector<std::pair<std::string, Driver>>& drivers();

struct SimRun {
  std::string data;  // directory of catalogs and profiles beside the embedded ones; may be empty
  SimOptions options;
  // Who says what ops cost on the chips of a pool; empty: make_cost_source.
  std::function<std::shared_ptr<const CostSource>(const Accelerator&)> costs = {};
};

// Input error where a network is to be simulated at a detail, or by a driver that was named, and the job has
// none (weeks of a cluster go by events, and no step of theirs is simulated so; a cache is replayed), or not
// what the detail needs.
void require_network(const Job& job, const SimOptions& options, bool names_detail, bool names_driver);

// Errors are those of make_cost_source and make_sim_executor.
StartedExecutor start_simulator(const Job& job, const Layout& layout, Recorder& recorder, const SimRun& run);

}  // namespace moebius
