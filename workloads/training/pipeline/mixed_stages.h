// Training over pools of different kinds: ranks fill the pools in order, so that a pipeline stage may stand
// in several of them, and stages differ in speed and memory.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "hw/cluster.h"
#include "workloads/training/plan.h"
#include "workloads/training/state/memory.h"

namespace moebius {

// Whether some stage's ranks stand in pools that are not alike.
bool stages_are_mixed(const Cluster& cluster, const TrainingPlan& plan);

// For TrainingPlan::stage_speeds: of each stage the slowest of its chips, at the rate (FLOP/s) that `rate`
// says; empty where all are alike.
std::vector<double> stage_speeds(const Cluster& cluster, const TrainingPlan& plan,
                                 const std::function<double(const Pool&)>& rate);

// Sentences about groups that should stay inside one vendor and do not: tensor, context, expert. They run,
// over whatever joins the vendors.
std::vector<std::string> groups_across_vendors(const Cluster& cluster, const TrainingPlan& plan);

// BF16 FLOP/s of the first `ranks` devices together.
double peak_of_devices(const Cluster& cluster, int ranks);

// Makes the class that fills its own device most the worst one, with that device's capacity.
void judge_by_class(const Cluster& cluster, const Layout& layout, MemoryReport& report);

}  // namespace moebius
