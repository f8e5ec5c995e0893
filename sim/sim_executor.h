// Predicts: an Executor that runs submissions on the machine model of a cluster.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "hw/cluster.h"
#include "workloads/cost/cost_source.h"
#include "workloads/report/collective_choice.h"
#include "workloads/schedule/board_clocks.h"
#include "workloads/schedule/executor.h"
#include "workloads/schedule/layout.h"
#include "workloads/schedule/recorder.h"

namespace moebius {

class FaultLog;
struct ClockPower;
struct FaultPlan;
struct PacketCounts;
class WireMeter;

enum class NetworkDetail : std::uint8_t {
  kAlphaBeta,  // every transfer as if alone
  kFluid,      // flow classes share wires by max-min
  kPacket,     // every message packet by packet under a receiver-driven transport; slow
  kNative,     // SimGrid's own communications, message by message; few at a time
};

enum class Driver : std::uint8_t {
  kSimGrid,  // one at a time in a process
  kPlain,    // the same timeline to the byte, without SimGrid; not for kNative
};

struct SimOptions {
  NetworkDetail detail = NetworkDetail::kFluid;
  Driver driver = Driver::kPlain;
  std::uint64_t seed = 1;             // of what picks paths
  const FaultPlan* faults = nullptr;  // that happen under way; with a log, both must outlive the executor
  FaultLog* fault_log = nullptr;
  WireMeter* meter = nullptr;  // accounts of what the wires carried; must outlive the executor
  std::vector<CollectiveChoice>* choices =
      nullptr;                      // where the run notes how its collectives go; null: nowhere
  PacketCounts* packets = nullptr;  // of kPacket: learns what was sent; must outlive the executor
  // By pool: boards that lower their clocks at their power limit; null: none does. Must outlive the executor.
  const std::vector<ClockPower>* powers = nullptr;
  double* mean_clock = nullptr;  // learns that of the chips, a share of the full one; must outlive the executor
};

class SimExecutor : public Executor, public BoardClocks {};

// `cost_per_pool`: one for each pool of the cluster. All arguments must outlive the executor. Throws
// run_error when SimGrid is asked for and not there.
std::unique_ptr<SimExecutor> make_sim_executor(const Cluster& cluster, const Layout& layout,
                                               std::vector<const CostSource*> cost_per_pool, Recorder& recorder,
                                               SimOptions options);

bool has_simgrid();
// "plain loop" or "plain loop, SimGrid 3.32.0": what this build can drive the machine with.
std::string simulator_version();

}  // namespace moebius
