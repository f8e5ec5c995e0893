#include "sim/sim_run.h"

#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "hw/mixed_pools.h"
#include "sim/faults/fault_log.h"
#include "sim/network/network.h"
#include "sim/network/wire_meter.h"
#include "workloads/cost/clock_power.h"
#include "workloads/cost/cost_source.h"
#include "workloads/measured_stacks.h"
#include "workloads/native_scales.h"
#include "workloads/option_checks.h"

namespace moebius {
namespace {

// Of the pool and of those like it, those that the ranks stand on: what stands in which of them is the same.
int boards_of(const Cluster& cluster, const Pool& pool, const Layout& layout) {
  std::vector<const Pool*> pools;
  for (const Pool& other : cluster.pools)
    if (alike(other, pool)) pools.push_back(&other);
  std::vector<std::int32_t> boards;
  for (const std::int32_t device : layout.device_of_rank)
    if (std::find(pools.begin(), pools.end(), &cluster.pool_of(device)) != pools.end())
      boards.push_back(device);
  if (!std::is_sorted(boards.begin(), boards.end())) std::sort(boards.begin(), boards.end());
  boards.erase(std::unique(boards.begin(), boards.end()), boards.end());
  return std::max(1, static_cast<int>(boards.size()));
}

bool any_limit(const std::vector<ClockPower>& powers) {
  return std::any_of(powers.begin(), powers.end(), [](const ClockPower& power) { return power.limit > 0; });
}

std::string clock_text(double clock, const std::vector<ClockPower>& powers) {
  double most = 1;
  for (const ClockPower& power : powers) most = std::max(most, power.draws);
  const std::string text = fmt::format("{:.1f}% of the full one: boards at their power limit", 100 * clock);
  return most > 1 ? fmt::format("{}, paced by the one that draws most, {:.0f}% more than usual", text,
                                100 * (most - 1))
                  : text;
}

}  // namespace

const std::vector<std::pair<std::string, NetworkDetail>>& network_details() {
  static const std::vector<std::pair<std::string, NetworkDetail>> table{
      {"alpha-beta", NetworkDetail::kAlphaBeta},
      {"fluid", NetworkDetail::kFluid},
      {"packet", NetworkDetail::kPacket},
      {"native", NetworkDetail::kNative}};
  return table;
}

const std::vector<std::pair<std::string, Driver>>& drivers() {
  static const std::vector<std::pair<std::string, Driver>> table{{"simgrid", Driver::kSimGrid},
                                                                 {"plain", Driver::kPlain}};
  return table;
}

namespace {

// Packet by packet a fabric says what a packet is, and messages go from device to device.
void require_packets(const Scenario& scenario) {
  const FabricSpec& spec = scenario.cluster->fabric.spec();
  if (spec.transport.ideal)
    throw input_error(
        fmt::format("{}: /cluster/fabric/transport: --detail packet needs one that says what a packet is: "
                    "expected \"eqds\", found \"ideal\"",
                    scenario.file));
  if (!spec.by_host.empty())
    throw input_error(
        fmt::format("{}: /cluster/fabric/forwarding: --detail packet carries messages from device to device: "
                    "expected \"rdma\", found some that go through host memory",
                    scenario.file));
  if (!scenario.cluster->damaged.empty())
    throw input_error(fmt::format(
        "{}: /cluster/failed: --detail packet has ports that are all whole: expected no part, found "
        "{}: use --detail fluid",
        scenario.file, scenario.cluster->damaged.size()));
}

}  // namespace

void require_network(const Job& job, const SimOptions& options, bool names_detail, bool names_driver) {
  const NetworkDetail detail = options.detail;
  if (!names_detail && !names_driver) return;
  const std::string option = names_detail ? "--detail " + name_of(network_details(), detail)
                                          : "--driver " + name_of(drivers(), options.driver);
  if (job.scenario.replay)
    throw input_error(fmt::format("{}: {} counts for nothing: a replay of a cache moves no bytes",
                                  job.scenario.file, option));
  if (detail == NetworkDetail::kNative && options.driver == Driver::kPlain)
    throw input_error(fmt::format(
        "{}: expected --driver simgrid, found plain: the native network is SimGrid's own", option));
  if (detail == NetworkDetail::kNative && job.is_service())
    throw input_error(fmt::format(
        "{}: /plan/steps: --detail native is of one run on SimGrid, and iterations that are timed "
        "one by one have a simulator each: expected \"full\", found \"surface\"",
        job.scenario.file));
  const bool simulates =
      !job.scenario.operations ||
      std::any_of(job.steps.begin(), job.steps.end(), [](const auto& step) { return step != nullptr; });
  if (simulates && detail == NetworkDetail::kPacket) require_packets(job.scenario);
  if (simulates) return;
  throw input_error(fmt::format("{}: {} counts for nothing: weeks of a cluster go by events{}",
                                job.scenario.file, option,
                                job.scenario.operations->queueing ? ", steps of its shapes by closed forms"
                                                                  : ", and no step is simulated"));
}

StartedExecutor start_simulator(const Job& job, const Layout& layout, Recorder& recorder, const SimRun& run) {
  if (!run.costs) require_native_scales(job);
  StartedExecutor engine;
  std::vector<const CostSource*> costs;
  const auto powers = std::make_shared<std::vector<ClockPower>>();
  for (const Pool& pool : job.scenario.cluster->pools) {
    std::shared_ptr<const CostSource> source;
    if (run.costs) {
      source = run.costs(pool.accelerator);  // measured ones hold the clocks of their measurement
    } else {
      const std::vector<Profile> profiles = profiles_for(job.scenario, pool.accelerator, run.data);
      source = make_cost_source(pool.accelerator, profiles, kernels_for(job.scenario, profiles),
                                product_scales(job.scenario));
      powers->push_back(limited_by_hungriest(clock_power(pool.accelerator, profiles),
                                             job.scenario.cluster->variation.power,
                                             boards_of(*job.scenario.cluster, pool, layout)));
      const ClockPower& power = powers->back();
      engine.facts.idle_watts.of_pool.push_back(power.most() > 0 ? std::optional(power.idle) : std::nullopt);
    }
    engine.keepers.push_back(source);
    costs.push_back(source.get());
    engine.facts.provenance.emplace_back("cost of " + pool.accelerator.id, source->description());
  }
  const auto choices = std::make_shared<std::vector<CollectiveChoice>>();
  engine.keepers.push_back(choices);
  SimOptions options = run.options;
  // SimGrid has one engine in a process, and it is the job's whose phase this is.
  if (job.is_phase) options.driver = Driver::kPlain;
  if (job.as_if_alone) options.detail = NetworkDetail::kAlphaBeta;
  if (job.rehearses && options.driver == Driver::kSimGrid && any_limit(*powers)) {
    engine.stands_in = true;
    options.driver = Driver::kPlain;
    if (options.detail == NetworkDetail::kNative) options.detail = NetworkDetail::kFluid;
  }
  options.seed = job.scenario.seed;
  const auto meter = std::make_shared<WireMeter>();
  engine.keepers.push_back(meter);
  options.meter = meter.get();
  const auto packets = std::make_shared<PacketCounts>();
  engine.keepers.push_back(packets);
  options.packets = packets.get();
  const auto clock = std::make_shared<double>(1);
  engine.keepers.push_back(clock);
  options.mean_clock = clock.get();
  engine.keepers.push_back(powers);
  if (!powers->empty()) options.powers = powers.get();
  const auto log = std::make_shared<FaultLog>();
  engine.keepers.push_back(log);
  options.faults = &job.scenario.faults;
  options.fault_log = log.get();
  options.choices = choices.get();
  auto executor = make_sim_executor(*job.scenario.cluster, layout, costs, recorder, options);
  engine.clocks = executor.get();
  engine.executor = std::move(executor);
  engine.tell_facts = [meter, choices, packets, log, clock, powers](RunFacts& facts) {
    constexpr double kSeen = 0.9995;  // what the line below would not round to the full one
    if (*clock < kSeen) facts.provenance.emplace_back("clock", clock_text(*clock, *powers));
    facts.network = meter->use();
    facts.collectives = *choices;
    facts.faults = log->facts();
    if (packets->packets > 0)
      facts.resent_share = static_cast<double>(packets->resent) / static_cast<double>(packets->packets);
  };
  engine.facts.executor = "sim";
  engine.facts.detail = name_of(network_details(), options.detail);
  engine.facts.provenance.emplace_back("driver", name_of(drivers(), options.driver));
  engine.facts.provenance.emplace_back("simulator", simulator_version());
  return engine;
}

}  // namespace moebius
