#include "real/cuda/cuda_run.h"

#include <algorithm>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "hw/error.h"
#include "hw/new_file.h"
#include "real/cuda/cuda_executor.h"
#include "real/cuda/near_copy.h"

namespace moebius {
namespace {

void require_formats(const Job& job) {
  if (job.scenario.training.lengths)
    throw run_error(fmt::format("{}: packed sequences are not available on cuda yet; on host they are",
                                job.scenario.file));
  if (job.scenario.training.adapters.any())
    throw run_error(
        fmt::format("{}: /workload/lora is not available on cuda yet; on host it is", job.scenario.file));
  if (job.scenario.plan.scaling != Scaling::kBlock)
    throw run_error(
        fmt::format("{}: /plan/precision/scaling \"{}\" is not available on cuda yet: "
                    "available: \"block\"; on host \"tensor\" and \"micro\" too",
                    job.scenario.file, to_string(job.scenario.plan.scaling)));
  if (job.scenario.plan.cp > 1 && job.scenario.plan.context != ContextKind::kAllGather)
    throw run_error(fmt::format(
        "{}: /plan/context \"{}\" is not available on cuda yet: available: \"all-gather\"; on host "
        "all three",
        job.scenario.file, job.scenario.plan.zigzag() ? "ring" : "ulysses"));
  if (job.scenario.training.input_ahead > 0)
    throw run_error(
        fmt::format("{}: /workload/input is not available on cuda yet; on host it is", job.scenario.file));
  const TrainingPlan& plan = job.scenario.plan;
  if (plan.accumulation != Accumulation::kShards || plan.regather > 0)
    throw run_error(
        fmt::format("{}: /plan/dp/accumulate and reshard_after_forward are not available on cuda yet: "
                    "available: \"shards\" and true; on host all",
                    job.scenario.file));
  if (job.scenario.plan.tp_chunks > 0)
    throw run_error(
        fmt::format("{}: /plan/tp/overlap true is not available on cuda yet: available: false; on host both",
                    job.scenario.file));
}

// Keys of preempted sequences: what is copied from the host must stand there when the copy is asked for.
void require_no_swap(const Job& job) {
  for (const CarriedPool& pool : job.serving->service().pools)
    if (pool.rules.instance.replica.host_pages > 0)
      throw run_error(
          fmt::format("{}: /plan/scheduler/preemption \"swap\" is executed on the host and simulated, not on "
                      "CUDA devices so far",
                      job.scenario.file));
}

void require_device(const Job& job) {
  require_executable(job);
  if (job.serving && job.scenario.serving.experts_apart())
    throw run_error(
        fmt::format("{}: experts apart from attention (/plan/separation/attention_ffn) are executed on the "
                    "host and simulated, "
                    "not on CUDA devices so far",
                    job.scenario.file));
  if (job.serving) require_no_swap(job);
  const std::vector<double> there = cuda_memories();
  const std::vector<RankClass>& classes = job.layout().classes;
  const int ranks = job.layout().ranks;
  if (static_cast<int>(classes.size()) < ranks) {
    const char* part = job.collective || job.tenants ? "/workload" : "/plan";
    throw input_error(fmt::format("{}: {}/fold: cuda executes every rank; add --set {}/fold=false",
                                  job.scenario.file, part, part));
  }
  const std::vector<int> device_of_rank = cuda::devices_of_ranks(ranks, static_cast<int>(there.size()));
  std::vector<double> needed(there.size(), 0);
  for (std::size_t i = 0; job.memory && i < classes.size(); ++i)
    needed[device_of_rank[classes[i].representative()]] += job.memory->classes[i].peak.value;
  for (std::size_t device = 0; device < there.size(); ++device) {
    if (needed[device] <= there[device]) continue;
    const auto on_it = std::count(device_of_rank.begin(), device_of_rank.end(), static_cast<int>(device));
    throw run_error(fmt::format("{}: the {} ranks{} hold {} together, the device has {}", job.scenario.file,
                                on_it, there.size() > 1 ? fmt::format(" on device {}", device) : "",
                                to_text(Bytes{needed[device]}), to_text(Bytes{there[device]})));
  }
}

cuda::CudaOptions options_of(const Job& job, Companions& companions, const RealRun& request) {
  cuda::CudaOptions options;
  options.turns = request.measured;
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

}  // namespace

StartedExecutor start_cuda(const Job& job, const Layout& layout, Recorder& recorder, const RealRun& request) {
  require_formats(job);
  require_device(job);
  if (!request.trace_kernels.empty()) {
    require_apart("--trace-kernels", request.trace_kernels, job.scenario.file);
    require_writable(request.trace_kernels);  // before the work
  }
  const auto companions = std::make_shared<Companions>(job, layout, request);
  std::unique_ptr<CudaExecutor> device =
      make_cuda_executor(layout, recorder, options_of(job, *companions, request));
  if (!request.trace_kernels.empty()) device->trace_kernels();
  StartedExecutor engine;
  engine.losses = [&device = *device] {
    std::vector<double> losses;
    losses.reserve(device.num_steps());
    for (int step = 0; step < device.num_steps(); ++step) losses.push_back(device.loss(step));
    return losses;
  };
  engine.tensor = [&device = *device](int rank, std::uint32_t key) { return device.tensor(rank, key); };
  engine.tell_transfers = [&device = *device](GroupLedger& ledger) {
    for (const Transfer& t : device.transfers()) ledger.moved(t.sequence, t.op, t.rank, t.sent_bytes);
  };
  engine.facts.executor = "cuda";
  engine.facts.detail = "streams";
  engine.facts.on_cluster = false;
  engine.facts.provenance = device->description();
  accompany(engine, job, companions,
            [&device = *device](std::int32_t rank, MemoryKind memory) { return device.held(rank, memory); });
  if (!request.trace_kernels.empty()) {
    engine.leave = [&device = *device, leave = std::move(engine.leave), path = request.trace_kernels] {
      if (leave) leave();
      cuda::write_activities(path, device.take_trace());
    };
  }
  engine.executor = std::move(device);
  return engine;
}

}  // namespace moebius
