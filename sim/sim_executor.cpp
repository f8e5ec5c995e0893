#include "sim/sim_executor.h"

#include <utility>

#include <fmt/format.h>

#include "hw/error.h"
#include "sim/faults/chip_paces.h"
#include "sim/faults/failing_network.h"
#include "sim/machine.h"
#include "sim/machine_driver.h"
#include "sim/network/wire_meter.h"
#include "sim/simgrid_parts.h"

namespace moebius {
namespace {

// In the order in which it is made.
struct SimParts {
  std::unique_ptr<TransferPlans> plans;
  std::unique_ptr<MachineDriver> driver;                 // owns what a native network lives on
  std::unique_ptr<std::vector<Occurrence>> occurrences;  // of faults; null: none
  std::unique_ptr<Network> network;
  std::unique_ptr<NetworkCounters> counters;  // null: no one samples
  std::unique_ptr<ChipPaces> paces;           // null: no chip becomes slow
  std::unique_ptr<Machine> machine;
  double* mean_clock = nullptr;  // learns it at the end; null: no one asks
  WireMeter* settle = nullptr;   // told at the end what the network carried; null: it knows
};

class MachineExecutor : public SimExecutor {
 public:
  explicit MachineExecutor(SimParts parts) : parts_(std::move(parts)), machine_(*parts_.machine) {}

  Time now() const override { return machine_.now(); }
  void submit(const Submission& submission) override { machine_.submit(submission); }

  std::vector<Completion> wait(Time until) override {
    parts_.driver->run(machine_, until);
    if (!machine_.has_completions() && machine_.now() < until && machine_.outstanding() > 0) {
      throw run_error(fmt::format("deadlock at {}: {}", to_text(now()), machine_.describe_waiting()));
    }
    return machine_.take_completions();
  }

  void forget() override { machine_.forget_clocks(); }
  bool repeat() override { return machine_.repeat_clocks(); }
  double change() const override { return machine_.change_of_clocks(); }
  std::vector<BoardPast> pasts() const override { return machine_.pasts_of_clocks(); }
  void begin(const std::vector<BoardPast>& pasts) override { machine_.begin_clocks(pasts); }

  Time finish() override {
    Time end = now();
    while (machine_.outstanding() > 0) wait(kForever);
    end = std::max(end, now());
    if (parts_.counters) parts_.counters->finish(end);
    if (parts_.mean_clock != nullptr) *parts_.mean_clock = machine_.mean_clock();
    if (parts_.settle) parts_.settle->settle(*parts_.network);
    return end;
  }

 private:
  SimParts parts_;
  Machine& machine_;
};

std::unique_ptr<Network> make_network(const SimOptions& options, const Cluster& cluster,
                                      const TransferPlans& plans, SimGridParts& simgrid) {
  switch (options.detail) {
    case NetworkDetail::kAlphaBeta:
      return make_alpha_beta_network();
    case NetworkDetail::kFluid:
      return make_fluid_network(plans.wires());
    case NetworkDetail::kPacket:
      if (!cluster.damaged.empty())
        throw run_error(
            "packet by packet all ports are whole, but parts of the network are broken: use fluid");
      return make_packet_network(cluster.fabric, options.seed, options.packets);
    case NetworkDetail::kNative:
      return std::move(simgrid.network);
  }
  return nullptr;
}

void add_faults(SimParts& parts, const Cluster& cluster, Recorder& recorder, const SimOptions& options) {
  const FaultPlan& plan = *options.faults;
  parts.occurrences = std::make_unique<std::vector<Occurrence>>(occurrences(plan));
  options.fault_log->open(*parts.occurrences, recorder);
  parts.paces = std::make_unique<ChipPaces>(cluster.fabric, plan, *parts.occurrences, *options.fault_log);
  if (!plan.in_network()) return;
  parts.settle = options.meter;
  parts.network = make_failing_network({std::move(parts.network), cluster, parts.plans->wires(), plan,
                                        *parts.occurrences, *options.fault_log, options.seed});
}

WireSharing sharing_of(NetworkDetail detail) {
  if (detail == NetworkDetail::kAlphaBeta) return WireSharing::kNone;
  return detail == NetworkDetail::kNative ? WireSharing::kWires : WireSharing::kWiresAndPosting;
}

}  // namespace

std::unique_ptr<SimExecutor> make_sim_executor(const Cluster& cluster, const Layout& layout,
                                               std::vector<const CostSource*> cost_per_pool,
                                               Recorder& recorder, SimOptions options) {
  const bool native = options.detail == NetworkDetail::kNative;
  if (native && options.driver == Driver::kPlain) {
    throw run_error("the native network is SimGrid's own: it needs the SimGrid driver");
  }
  // Before SimGrid's engine is there: it does not survive being left half built.
  if (options.faults && options.faults->in_network() && options.detail != NetworkDetail::kFluid) {
    throw run_error(
        "parts of the network fail while messages are under way: only the fluid network knows how");
  }
  SimGridParts simgrid;
  if (options.driver == Driver::kSimGrid)
    simgrid = make_simgrid_parts({cluster, layout, native, options.seed});
  const bool with_pairs = native || options.detail == NetworkDetail::kPacket;
  SimParts parts;
  parts.plans = std::make_unique<TransferPlans>(cluster, layout,
                                                PlanOptions{with_pairs, options.seed, options.choices});
  if (options.meter) options.meter->open(cluster, layout, parts.plans->wires(), sharing_of(options.detail));
  parts.network = make_metered_network(make_network(options, cluster, *parts.plans, simgrid), options.meter);
  if (options.faults && !options.faults->empty()) add_faults(parts, cluster, recorder, options);
  const bool samples = recorder.options().counters.ns > 0 && recorder.options().detail != Detail::kNone;
  if (samples)
    parts.counters = std::make_unique<NetworkCounters>(parts.plans->wires(), *parts.network, recorder,
                                                       recorder.options().counters);
  parts.machine = std::make_unique<Machine>(MachineParts{cluster, layout, std::move(cost_per_pool), recorder,
                                                         *parts.plans, *parts.network, parts.counters.get(),
                                                         parts.paces.get(), options.powers});
  parts.mean_clock = options.mean_clock;
  parts.driver = simgrid.driver ? std::move(simgrid.driver) : make_plain_driver();
  return std::make_unique<MachineExecutor>(std::move(parts));
}

std::string simulator_version() {
  return has_simgrid() ? fmt::format("plain loop, SimGrid {}", simgrid_version()) : "plain loop";
}

}  // namespace moebius
