#include "viz/ui/glossary.h"

#include <cctype>
#include <map>

namespace moebius::viz {

std::string glossary(const std::string& word) {
  static const std::map<std::string, const char*> kMeanings{
      {"ttft", "Time to first token: from a request's arrival to its first output token."},
      {"tpot",
       "Time per output token: the mean time between the output tokens of one request, the first left out."},
      {"itl", "Inter-token latency: each single gap between two output tokens, over all requests."},
      {"end to end", "From a request's arrival to its last output token."},
      {"goodput", "Requests a second that meet the goals (SLA) set for them."},
      {"slo attainment", "The share of requests that meet the goals set for them."},
      {"mfu",
       "Model FLOPs utilisation: the model's floating-point operations a second over what the devices could "
       "do."},
      {"compute", "Time in which a compute op ran on the device."},
      {"exposed communication", "Communication that no compute hides: the device waits for it."},
      {"hidden communication", "Communication that runs beside compute."},
      {"waiting", "Waiting for peers that nothing hides."},
      {"bubble", "Time in which a pipeline stage has nothing to do, for lack of a microbatch."},
      {"optimizer", "States and steps of the optimizer: master weights and moments of Adam."},
      {"weights", "Parameters of the model as they are held on the device."},
      {"gradients", "Sums of gradients over microbatches till the optimizer's step."},
      {"activations", "Results of the forward pass that the backward pass reads."},
      {"transient", "Working memory of ops, gone when they end."},
      {"cache", "Keys and values of earlier tokens (KV cache)."},
      {"critical path",
       "The chain of ops that the run's end waited for: what is shortened there shortens the run."},
      {"dispatch", "All-to-all that sends each token to the devices that hold its experts."},
      {"combine", "All-to-all that brings the experts' results back to each token's device."},
      {"microbatch", "A part of the batch that goes through the pipeline as a whole."},
      {"lane", "Ops of one lane of a rank run one after the other, like a stream of a GPU."},
      {"rank class", "Ranks that do the same work; one of them is simulated for all."},
      {"submission", "One issue of a fragment: a stretch of the schedule that a rank was given as a whole."},
      {"fragment",
       "A frozen stretch of work of one rank, such as one stage's forward pass of one microbatch."},
      {"measured", "The duration comes from a table of measurements of this chip."},
      {"interpolated", "The duration lies between measurements of this chip."},
      {"extrapolated", "The duration lies beyond the measurements of this chip: trust it less."},
      {"analytic", "The duration comes from a model of the kernel: tiles, waves, roofline."},
      {"roofline", "The duration is what peak compute and memory rate allow: a lower bound."},
      {"network", "The duration comes from the simulated network, shared with what runs beside it."},
      {"executed", "The duration was measured when the op ran on a device."},
      {"makespan", "From the beginning of the run to the end of its last op."},
      {"expert", "One of the MLPs among which a router chooses for each token."},
      {"busiest expert", "Tokens of the expert with the most of them, over the mean of all experts."},
      {"busiest rank", "Tokens of the rank with the most of them, over the mean of all ranks of the group."},
      {"rebalance", "Experts are moved or copied to other ranks so that their loads become equal (EPLB)."},
      {"hit share", "Blocks of prompts that were found in the cache, of all that were asked for."},
      {"hbm", "Memory on the device's package: fastest and smallest tier."},
      {"dram", "The host's memory."},
      {"remote_dram", "Memory of another node, over the network."},
      {"remote_ssd", "A drive of another node, over the network."},
      {"balancedness",
       "Mean over fullest rank, 1 when all carry the same: the share of the time that none waits."},
      {"waiting requests", "Requests that have come and not yet been admitted to a batch."},
      {"running requests", "Requests of which a batch holds tokens."},
      {"cache blocks", "Blocks of the cache of keys and values that are in use."},
      {"computed", "Not found: computed anew."},
      {"ssd", "Local solid-state storage."},
      {"prefill", "The iteration that reads a request's prompt and yields its first token."},
      {"decode", "Iterations that yield one token for each request of the batch."},
      {"handover", "Moving a request's cache from a prefill to a decode instance."},
      {"queue", "Waiting to be admitted to a batch."},
      {"scale-up", "The network inside a node or rack: NVLink, XPU-Link, HCCS."},
      {"nic", "The device's or node's port into the scale-out network."},
      {"leaf-up", "Links from leaf switches up to spines."},
      {"busy", "The share of time in which a link carries data."},
      {"imbalance", "The busiest over the mean: 1 when all are alike."},
      {"achieved", "Work divided by duration; beside the peak of the chip it says how good the kernel is."},
      {"waited for",
       "What kept this op from beginning sooner: what it depends on, what held its lane, or what ended at "
       "that moment."},
      {"capacity", "What the device has."},
      {"p50", "Half of all are at most so long."},
      {"p90", "Nine of ten are at most so long."},
      {"p95", "95 of 100 are at most so long."},
      {"p99", "99 of 100 are at most so long."},
  };
  std::string key = word;
  for (char& c : key) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const auto found = kMeanings.find(key);
  return found == kMeanings.end() ? "" : found->second;
}

}  // namespace moebius::viz
