// What a communication op moves, ready for a network: steps one after the other, each a latency and then
// flows side by side. Built once for a group and payload, then used by every op that repeats it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace moebius {

struct Link {
  std::int32_t wire = 0;  // index in the WireTable
  double weight = 1;      // so many flows of the class cross the wire
};

// Flows of equal rate: each carries `bytes`; at rate x they take weight * x of every wire that they cross.
struct FlowClass {
  double bytes = 0;
  std::vector<Link> links;  // at least one
  double most_rate =
      0;  // bytes per second that each flow can use at most (protocol, copy engine); 0: no limit
  std::uint8_t queue = 0;  // priority queue: a wire serves the flows of queue 0 with what higher queues leave
};

// One message between two devices: the same traffic, not folded, for networks that look at every message.
struct PairFlow {
  std::int32_t from = 0, to = 0;
  double bytes = 0;
  double most_rate = 0;         // see FlowClass
  std::int32_t queue_pair = 0;  // which of the message's flows it is, where they have paths of their own
  double messages = 0;          // see Edge
  std::int32_t path = -1;       // of the fabric's, where that is decided (FlowPaths::single()); -1: it is not
  bool climbs = false;          // see Traffic; native messages change rail in the node all the same
};

struct StepParts;

// What one of the wires that a simulated one stands for carries beyond the mean of them.
struct MemberLoad {
  std::int32_t wire = 0, stand_in = 0;
  double beyond = 0;  // bytes; below 0: so many fewer
};

struct Step {
  double latency = 0;  // s, paid before the first byte arrives
  double alone = 0;    // s, latency included, on an idle network
  double own = 0;      // s, without latency: of the group's bytes alone, where it stands for several groups
  std::vector<FlowClass> flows;
  bool flow_by_flow = false;  // most of the flow classes are single flows (FlowPaths::single())
  struct Passed {
    std::int32_t wire = 0;
    double bytes = 0;
  };
  // Over wires that are no bottleneck and therefore in no flow; and, below 0, where a wire's flows are those
  // of the fullest of many, what the mean of these carries less. For accounts.
  std::vector<Passed> passed;
  std::shared_ptr<const std::vector<MemberLoad>> members;  // where those that one stands for differ; or null
  std::shared_ptr<const StepParts> parts;  // where ways may change under way (Cluster::ports_may_fail)
  std::vector<PairFlow> pairs;             // filled for networks of single messages only
  double pair_latency =
      0;  // s, the largest of the pairs' own: the part of `latency` that the native network pays itself
};

struct TransferPlan {
  std::vector<Step> steps;   // none: nothing to move
  std::int16_t slowest = 0;  // member that would end last on an idle network; 0 when all are equal
  double memory_bytes = 0;   // that each member's chip reads and writes for it while it flows
  std::int16_t cores = 0;    // of each member's chip that it holds from when the member is ready to its end
  double held = 0;           // s, from its beginning, that it holds every core of its members' chips

  double alone() const {
    double seconds = 0;
    for (const Step& step : steps) seconds += step.alone;
    return seconds;
  }
  // What the group takes were no other that it stands for under way.
  double by_itself() const {
    double seconds = 0;
    for (const Step& step : steps) seconds += step.latency + step.own;
    return seconds;
  }
  // Without the time before the first byte arrives.
  double flowing() const {
    double seconds = alone();
    for (const Step& step : steps) seconds -= step.latency;
    return seconds;
  }
};

}  // namespace moebius
