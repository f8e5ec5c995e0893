#include "sim/sim_executor.h"

#include <utility>

#include <fmt/format.h>

#include "hw/error.h"
#include "sim/machine.h"
#include "sim/machine_driver.h"
#include "sim/network/wire_meter.h"
#include "sim/simgrid_driver.h"

namespace moebius {
namespace {

class SimExecutor : public Executor {
 public:
  SimExecutor(std::unique_ptr<TransferPlans> plans, std::unique_ptr<Network> network,
              std::unique_ptr<NetworkCounters> counters, std::unique_ptr<MachineDriver> driver,
              std::unique_ptr<Machine> machine)
      : plans_(std::move(plans)),
        driver_(std::move(driver)),
        network_(std::move(network)),
        counters_(std::move(counters)),
        machine_(std::move(machine)) {}

  Time now() const override { return machine_->now(); }
  void submit(const Submission& submission) override { machine_->submit(submission); }

  std::vector<Completion> wait(Time until) override {
    driver_->run(*machine_, until);
    if (!machine_->has_completions() && machine_->now() < until && machine_->outstanding() > 0) {
      throw run_error(fmt::format("deadlock at {}: {}", to_text(now()), machine_->describe_waiting()));
    }
    return machine_->take_completions();
  }

  Time finish() override {
    Time end = now();
    while (machine_->outstanding() > 0) wait(kForever);
    end = std::max(end, now());
    if (counters_) counters_->finish(end);
    return end;
  }

 private:
  std::unique_ptr<TransferPlans> plans_;
  std::unique_ptr<MachineDriver> driver_;  // owns what a native network lives on
  std::unique_ptr<Network> network_;
  std::unique_ptr<NetworkCounters> counters_;  // null: no one samples
  std::unique_ptr<Machine> machine_;
};

std::unique_ptr<Network> make_network(const SimOptions& options, const Cluster& cluster,
                                      const TransferPlans& plans, SimGridParts& simgrid) {
  switch (options.detail) {
    case NetworkDetail::kAlphaBeta:
      return make_alpha_beta_network();
    case NetworkDetail::kFluid:
      return make_fluid_network(plans.wires());
    case NetworkDetail::kPacket:
      return make_packet_network(cluster.fabric, options.seed, options.packets);
    case NetworkDetail::kNative:
      return std::move(simgrid.network);
  }
  return nullptr;
}

}  // namespace

std::unique_ptr<Executor> make_sim_executor(const Cluster& cluster, const Layout& layout,
                                            std::vector<const CostSource*> cost_per_pool, Recorder& recorder,
                                            SimOptions options) {
  const bool native = options.detail == NetworkDetail::kNative;
  if (native && options.driver == Driver::kPlain) {
    throw run_error("the native network is SimGrid's own: it needs the SimGrid driver");
  }
  SimGridParts simgrid;
  if (options.driver == Driver::kSimGrid) simgrid = make_simgrid_parts(cluster, layout, native, options.seed);
  const bool with_pairs = native || options.detail == NetworkDetail::kPacket;
  auto plans = std::make_unique<TransferPlans>(cluster, layout,
                                               PlanOptions{with_pairs, options.seed, options.choices});
  if (options.meter) options.meter->open(cluster, layout, plans->wires());
  std::unique_ptr<Network> network =
      make_metered_network(make_network(options, cluster, *plans, simgrid), options.meter);
  std::unique_ptr<NetworkCounters> counters;
  if (recorder.options().counters.ns > 0)
    counters =
        std::make_unique<NetworkCounters>(plans->wires(), *network, recorder, recorder.options().counters);
  auto machine = std::make_unique<Machine>(
      MachineParts{cluster, layout, std::move(cost_per_pool), recorder, *plans, *network, counters.get()});
  auto driver = simgrid.driver ? std::move(simgrid.driver) : make_plain_driver();
  return std::make_unique<SimExecutor>(std::move(plans), std::move(network), std::move(counters),
                                       std::move(driver), std::move(machine));
}

std::string simulator_version() {
  return has_simgrid() ? fmt::format("plain loop, SimGrid {}", simgrid_version()) : "plain loop";
}

}  // namespace moebius
