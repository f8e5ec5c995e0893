#include "real/host/host_run.h"

#include <memory>
#include <vector>

#include <fmt/format.h>

#include "hw/error.h"
#include "real/host/host_executor.h"
#include "real/processes/held_everywhere.h"

namespace moebius {
namespace {

using Host = HostExecutor<float>;

HostOptions options_of(const Job& job, Companions& companions) {
  HostOptions options;
  options.seed = job.scenario.seed;
  if (job.serving) options.prompts = &job.serving->prompts();
  options.adam.learning_rate = job.scenario.training.learning_rate;
  options.constants = companions.constants();
  options.weights = companions.weights();
  options.stacked = companions.stacked();
  options.states = companions.states();
  options.observer = companions.observer();
  return options;
}

std::vector<double> losses_of(const Host& host) {
  std::vector<double> losses;
  losses.reserve(host.num_steps());
  for (int step = 0; step < host.num_steps(); ++step) losses.push_back(host.loss(step));
  return losses;
}

OpDurations durations_of(const Host& host) {
  OpDurations durations;
  for (const OpTime& time : host.op_times()) durations.set(time.sequence, time.op, time.cpu);
  return durations;
}

std::vector<HeldValues> held_by(const Host& host, std::int32_t rank, MemoryKind memory) {
  std::vector<HeldValues> all;
  for (const HeldTensor<float>& held : host.held(rank, memory))
    all.push_back({held.tensor, {held.values.begin(), held.values.end()}});
  return all;
}

// What of a run several processes can share.
void require_shareable(const Job& job, const RealRun& request) {
  if (!request.dump_activations.empty())
    throw run_error("--dump-activations: the layers' outputs are put together in one process only");
  if (job.serving)
    throw run_error(fmt::format("{}: requests are answered in one process only", job.scenario.name));
}

struct Shared {
  std::shared_ptr<Companions> companions;
  int ranks;
  ReadHeld held;  // of ranks here
};

// The checkpoint is written by the first process, with what all of them hold.
void share(StartedExecutor& engine, Processes& processes, const Shared& shared) {
  engine.facts.provenance.emplace_back("processes", processes.describe(shared.ranks));
  if (!engine.save) return;
  engine.save = [&processes, shared](int step) {
    const ReadHeld everywhere = held_everywhere(processes, shared.ranks, shared.held);
    if (processes.speaks()) shared.companions->save(step, everywhere);
  };
}

}  // namespace

StartedExecutor start_host(const Job& job, const Layout& layout, Recorder& recorder, const RealRun& request) {
  require_host(job);
  if (request.processes != nullptr) require_shareable(job, request);
  const auto companions = std::make_shared<Companions>(job, layout, request);
  // From here the weights are those of the model, and there is room for what is left behind.
  HostOptions options = options_of(job, *companions);
  options.one_at_a_time = request.measured;
  options.processes = request.processes;
  std::unique_ptr<Host> host = make_host_executor(layout, recorder, options);
  StartedExecutor engine;
  engine.losses = [&host = *host] { return losses_of(host); };
  engine.tensor = [&host = *host](int rank, std::uint32_t key) { return host.tensor(rank, key); };
  engine.tell_transfers = [&host = *host](GroupLedger& ledger) {
    for (const Transfer& t : host.transfers()) ledger.moved(t.sequence, t.op, t.rank, t.sent_bytes);
  };
  if (request.measured) engine.durations = [&host = *host] { return durations_of(host); };
  const ReadHeld held = [&host = *host](std::int32_t rank, MemoryKind memory) {
    return held_by(host, rank, memory);
  };
  accompany(engine, job, companions, held);
  if (request.processes != nullptr) {
    share(engine, *request.processes, {companions, layout.ranks, held});
    engine.stops = [&host = *host](bool asked) { return host.stops(asked); };
  }
  engine.executor = std::move(host);
  engine.facts.executor = "host";
  engine.facts.detail = request.measured ? "ranks in turns, CPU time" : "threads";
  engine.facts.on_cluster = false;
  return engine;
}

}  // namespace moebius
