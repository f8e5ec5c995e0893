#include "sim/emulate_run.h"

#include <cstdio>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "workloads/cost/emulated.h"
#include "workloads/native_scales.h"

namespace moebius {
namespace {

// Costs from the model, while the ops that are asked for are written down in the order of asking.
class ListingCosts : public CostSource {
 public:
  ListingCosts(std::unique_ptr<CostSource> model, EmulatedCosts measured, std::vector<OpKey>& ops)
      : model_(std::move(model)), measured_(std::move(measured)), ops_(ops) {}

  Cost cost(const CostQuery& query) const override {
    for (OpKey& key : measured_.needs(query)) {
      if (seen_.insert(to_text(key)).second) ops_.push_back(std::move(key));
    }
    return model_->cost(query);
  }
  std::string description() const override { return model_->description(); }

 private:
  std::unique_ptr<CostSource> model_;
  EmulatedCosts measured_;
  std::vector<OpKey>& ops_;
  mutable std::set<std::string> seen_;
};

struct Measuring {
  std::shared_ptr<MeasuredOps> ops;
  std::shared_ptr<Recipes> recipes = std::make_shared<Recipes>();

  EmulatedCosts costs(const Accelerator& chip) const { return {ops, recipes, chip}; }
};

// The plain driver: SimGrid allows one engine in a process. Which ops there are hangs on no network.
std::vector<OpKey> ops_of(Job job, const Measuring& measuring, const std::string& data) {
  std::vector<OpKey> ops;
  SimRun run{data, {NetworkDetail::kAlphaBeta, Driver::kPlain}};
  run.costs = [&](const Accelerator& chip) {
    return std::make_shared<ListingCosts>(make_cost_source(chip, data), measuring.costs(chip), ops);
  };
  job.scenario.faults.faults.clear();  // the closed form knows none, and they ask for no other ops
  Workload& workload = job.workload();
  Recorder recorder(workload.layout(), {.detail = Detail::kNone});
  const StartedExecutor listing = start_simulator(job, workload.layout(), recorder, run);
  execute(workload, *listing.executor, recorder);
  return ops;
}

}  // namespace

StartedExecutor start_emulation(const Job& job, const Layout& layout, Recorder& recorder,
                                const EmulateRun& run) {
  require_native_scales(job);
  Measuring measuring{std::make_shared<MeasuredOps>(run.device(), run.journal)};
  std::vector<OpKey> ops;  // a part of a whole service, which no document says, is met as it goes
  if (job.read_again) ops = ops_of(std::move(*job.read_again()), measuring, run.simulation.data);
  const std::string note = measuring.ops->note(ops);
  if (!note.empty()) fmt::print(stderr, "emulate: {}", note);
  measuring.ops->measure_all(ops);
  // From here the simulator finds what it asks for; an op that the listing did not meet is measured then.
  SimRun simulation = run.simulation;
  simulation.costs = [&](const Accelerator& chip) {
    return std::make_shared<EmulatedCosts>(measuring.costs(chip));
  };
  StartedExecutor engine = start_simulator(job, layout, recorder, simulation);
  engine.facts.executor = "emulate";
  engine.tell_facts = [tell = std::move(engine.tell_facts), known = measuring.ops](RunFacts& facts) {
    tell(facts);
    facts.measured = known->facts();
  };
  return engine;
}

}  // namespace moebius
