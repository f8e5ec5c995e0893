#include "real/cuda/cuda_run.h"

#include <algorithm>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "hw/error.h"
#include "real/cuda/cuda_executor.h"
#include "real/cuda/near_copy.h"

namespace moebius {
namespace {

void require_device(const Job& job) {
  const std::vector<double> there = cuda_memories();
  const std::vector<RankClass>& classes = job.layout().classes;
  if (static_cast<int>(classes.size()) < job.scenario.ranks()) {
    throw run_error(fmt::format("{}: cuda executes every rank; add --set {}/fold=false", job.scenario.name,
                                job.training ? "/plan" : "/workload"));
  }
  const std::vector<int> device_of_rank =
      cuda::devices_of_ranks(job.scenario.ranks(), static_cast<int>(there.size()));
  std::vector<double> needed(there.size(), 0);
  for (std::size_t i = 0; job.memory && i < classes.size(); ++i)
    needed[device_of_rank[classes[i].representative()]] += job.memory->classes[i].peak.value;
  for (std::size_t device = 0; device < there.size(); ++device) {
    if (needed[device] <= there[device]) continue;
    const auto ranks = std::count(device_of_rank.begin(), device_of_rank.end(), static_cast<int>(device));
    throw run_error(fmt::format("{}: the {} ranks{} hold {} together, the device has {}", job.scenario.name,
                                ranks, there.size() > 1 ? fmt::format(" on device {}", device) : "",
                                to_text(Bytes{needed[device]}), to_text(Bytes{there[device]})));
  }
}

void require_drawn_weights(const Job& job, const std::string& dump_activations) {
  if (!dump_activations.empty())
    throw input_error("--dump-activations: cuda does not dump activations yet: use --executor host");
  const bool starts = job.scenario.weights != "random";
  if (!starts && job.scenario.save.empty()) return;
  throw input_error(fmt::format("{}: {}: cuda does not read or write checkpoints yet: use --executor host",
                                job.scenario.file, starts ? "/plan/weights" : "/plan/save"));
}

}  // namespace

StartedExecutor start_cuda(const Job& job, const Layout& layout, Recorder& recorder,
                           const std::string& dump_activations) {
  require_drawn_weights(job, dump_activations);
  require_device(job);
  cuda::CudaOptions options;
  options.seed = job.scenario.seed;
  std::unique_ptr<CudaExecutor> device = make_cuda_executor(layout, recorder, options);
  StartedExecutor engine;
  engine.losses = [&device = *device] {
    std::vector<double> losses;
    for (int step = 0; step < device.num_steps(); ++step) losses.push_back(device.loss(step));
    return losses;
  };
  engine.tell_transfers = [&device = *device](GroupLedger& ledger) {
    for (const Transfer& t : device.transfers()) ledger.moved(t.sequence, t.op, t.rank, t.sent_bytes);
  };
  engine.facts.executor = "cuda";
  engine.facts.detail = "streams";
  engine.facts.on_cluster = false;
  engine.facts.provenance = device->description();
  engine.executor = std::move(device);
  return engine;
}

}  // namespace moebius
