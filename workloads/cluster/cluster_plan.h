// A cluster over weeks: what runs on it, what breaks, and who mends it how. Plain data that the scenario
// reader checks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hw/units.h"
#include "workloads/cluster/checkpoints.h"
#include "workloads/cluster/delay.h"
#include "workloads/cluster/failure_kinds.h"

namespace moebius {

// From a fault until somebody knows.
struct DetectionPlan {
  double recall = 0;                // share of faults that monitoring sees, whatever they do
  Delay monitored;                  // then after this
  Delay crash, hang, slow, silent;  // otherwise by what the fault does: an exit, a watchdog, a look at losses
};

// From then until the job runs again, one after the other; loading its state comes on top.
struct RecoveryPlan {
  Delay isolate;  // which node it was
  Delay replace;  // a spare takes its place; not where a restart is enough
  Delay image;    // container images, onto the new node
  Delay cache;    // data sets, onto the new node
  Delay restart;  // processes, rendezvous, first step
};

struct CoolingPlan {
  double degrees_cooler = 0;         // than air
  double fewer_per_degree = 0.0384;  // of faults by heat: exp(-0.0384 x 7.5 degrees) = 0.75
  Watts saved;                       // of a node
};

struct PowerPlan {
  double busy = 0.85, idle = 0.2;  // share of an accelerator's power limit, while its job runs and while not
  double pue = 1.25;               // of the building over what the nodes draw
};

struct ClusterJob {
  std::string name = {};
  int nodes = 0;
  Time arrival = {};
  Time work = {};          // that it has to do; zero: until the end
  Time step = {};          // what is repeated at least when a step was under way
  Bytes state = {};        // a checkpoint's; of a job whose step is simulated, its model's unless stated
  std::string model = {};  // a name of the catalog, where it is stated
  double bytes_per_parameter = 0;  // of a checkpoint
  double tokens_per_s = 0;         // while it runs; 0: not known
};

struct FailureInTrace {
  Time time;
  int node = 0, kind = 0;
};

struct ClusterPlan {
  Time duration;
  int nodes = 0, devices_per_node = 8;
  int spares = 0;  // of the nodes, kept free for jobs that lose one
  std::vector<FailureKind> faults;
  std::vector<FailureInTrace> trace;  // beside the drawn ones
  DetectionPlan detection;
  RecoveryPlan recovery;
  CheckpointPlan checkpoint;
  CoolingPlan cooling;
  PowerPlan power;
  Watts node_power;              // with every device at its limit
  Watts overhead_power;          // of it, whatever devices do
  UsdPerHour node_price;         // 0: not known
  std::vector<ClusterJob> jobs;  // given nodes as they arrive, of equal ones the first here first
  int runs = 1;                  // with seeds of their own
};

}  // namespace moebius
