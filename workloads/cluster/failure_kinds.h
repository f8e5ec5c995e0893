// What breaks in a cluster, how often, and what that does to a job.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hw/units.h"
#include "workloads/cluster/delay.h"

namespace moebius {

enum class FailureUnit : std::uint8_t {
  kNode,    // each node of the cluster, whether a job is on it or not
  kDevice,  // each accelerator
  kJob,     // each job that runs: its own software
};

enum class FailureEffect : std::uint8_t {
  kCrash,   // the job stops at once
  kHang,    // the job stands still and says nothing
  kSlow,    // one node drags all others
  kSilent,  // results are wrong from here on, and nobody knows
};

struct FailureKind {
  std::string name;
  FailureUnit unit = FailureUnit::kNode;
  double per_hour = 0;  // of one unit
  FailureEffect effect = FailureEffect::kCrash;
  int nodes = 1;      // neighbours that it takes along: a switch, a power feed. 0: none, a restart is enough
  Delay repair = {};  // of a node, until it can be used again
  bool by_heat = false;    // happens less often where it is cooler
  double slow_factor = 1;  // kSlow: how much longer everything takes
};

// A published mix of causes, by name: its total rate can be set apart from its shares.
struct FailureMix {
  std::string_view name, help;
  double per_node_day = 0;  // all kinds together, on nodes of 8 accelerators
  std::vector<FailureKind> kinds;
};
std::span<const FailureMix> failure_mixes();

// Interruptions of one node of `devices` accelerators an hour, those of jobs' own software left out.
double node_rate(std::span<const FailureKind> kinds, int devices);

}  // namespace moebius
