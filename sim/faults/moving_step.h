// A step whose messages change their ways while they are under way: taken apart into what each message has
// left on each wire of each of its paths, and put together again as flows.
//
// A part that cannot go on (its path is broken, and its sender waits) stays on the broken wire, where it
// stands still; what it has left on the other wires of its path is held back, and loads nothing. When it
// moves, what it had left on a tier goes to the same tier of its new paths, so that every tier carries each
// byte once. Tiers that the old path did not have carry the most that it had left on any. A pipeline (see
// Traffic::lockstep) stands still as a whole.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "sim/network/transfer.h"
#include "sim/network/wire_table.h"
#include "sim/traffic/flow_paths.h"
#include "sim/traffic/step_parts.h"

namespace moebius {

class MovingStep {
 public:
  struct Part {
    StepPart part;
    bool stalled = false;
    double left() const;  // bytes, the most on any wire

   private:
    friend class MovingStep;
    struct Carry {
      std::int32_t wire = 0;  // of the table; kCrossing: a single flow over all wires from NIC to NIC
      double bytes = 0;
      std::int32_t flow = -1;  // of step(); -1: held back
    };
    std::vector<Carry> carries;
  };

  // `step` has parts; of each of its flows the share `left` is left (Network::left()).
  MovingStep(const Step& step, const std::vector<double>& left, FlowPaths& paths, WireTable& table);

  std::vector<Part>& parts() { return parts_; }
  std::vector<WireId> way(const StepPart& part) const;
  // What the part has left, by these ways instead, which share it.
  std::vector<Part> moved(const Part& part, const std::vector<FlowPath>& ways) const;
  // Spreads what parts that go on have left between two leaves over the paths between them anew, as adaptive
  // switches do.
  void level();
  // Makes step() of the parts; `broken` says which wires of the table stalled parts stand still on. Where all
  // that these have left is held back, a byte that is no one's stands on one of them, so that the step does
  // not end before they go on. Returns false where nothing is left.
  bool rebuild(const std::function<bool(std::int32_t)>& broken);
  const Step& step() const { return step_; }
  // With Network::left() of step(), before parts() are looked at again.
  void settle(const std::vector<double>& left);

 private:
  static constexpr std::int32_t kCrossing = -1, kPipeline = -2;
  struct Bundle {
    double bytes = 0, flows = 0;
    std::vector<Link> links;
    std::int32_t from = -1, to = -1;  // the message at hand and its flows
    double of_message = 0;
    int messages = 0;
  };

  std::vector<std::int32_t> wires_of(const StepPart& part) const;
  std::int32_t broken_wire(const StepPart& part, const std::function<bool(std::int32_t)>& broken) const;
  std::vector<std::int32_t> crossing_wires(const StepPart& part) const;
  Part whole(const StepPart& part) const;
  using Tiers = std::map<int, double>;  // bytes left, the most on any wire of the tier
  Tiers tiers_of(const Part& part) const;
  struct Message {
    StepPart part;  // all its paths
    Tiers left;
  };
  std::vector<Message> take_between_leaves();
  int tier_of(std::int32_t wire) const { return wire < 0 ? wire : table_.kind(wire); }
  std::vector<Part> spread(const StepPart& part, const Tiers& left, const std::vector<FlowPath>& ways) const;
  bool between_leaves(const Part& part) const;
  std::int32_t bundle(std::int32_t& known);
  std::int32_t load_wire(const StepPart& part, std::int32_t wire, double bytes);
  std::int32_t load_crossing(const StepPart& part, double bytes);
  std::int32_t load_pipeline(const StepPart& part, double bytes);
  void take_left(const Step& original, const std::vector<double>& left);
  void take_pipelines(const Step& original, const std::vector<double>& left, std::vector<double>& mine);
  void take_flows(const Step& original, const std::vector<double>& left, std::vector<double>& mine);
  void keep(const FlowClass& flow, double bytes);

  FlowPaths& paths_;
  WireTable& table_;
  StepParts shape_;  // its parts are in parts_
  std::uint8_t queue_ = 0;
  Step step_;
  std::vector<FlowClass> before_;  // of the step before, which the network knows until it is given this one
  std::vector<Part> parts_;
  std::vector<FlowClass> others_;                // of the step that no part tells of
  std::map<double, std::vector<Link>> besides_;  // of pipelines by size: wires that no part tells of
  // Of the last rebuild(): the flows, and where to find them.
  std::vector<Bundle> bundles_;
  std::map<std::int32_t, std::int32_t> by_wire_;
  std::map<std::array<std::int32_t, 3>, std::int32_t> by_nics_;
  std::map<double, std::int32_t> by_size_;
  std::map<std::pair<std::int32_t, std::int32_t>, std::size_t> link_of_;  // of pipelines, by flow and wire
};

}  // namespace moebius
