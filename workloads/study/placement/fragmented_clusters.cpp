#include "workloads/study/placement/fragmented_clusters.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

#include "workloads/routing/random_stream.h"
#include "workloads/training/rank_placement.h"

namespace moebius {
namespace {

constexpr int kNodeDevices = 8;
constexpr int kLeastFree = 64;

template <class T, std::size_t N>
const T& one_of(const std::array<T, N>& values, RandomStream& stream) {
  return values[stream.below(N)];
}

// A preset, and what is changed of it.
struct FabricDraw {
  std::string_view preset;
  std::array<int, 2> leaf_ports;  // either
  int pod_leaves = 0;             // 0: as the preset has it
};

// A leaf of a rail-optimised fabric takes a port of a node, of the others eight, of the multi-plane one.
constexpr std::array kFabrics{
    FabricDraw{"clos-roce", {16, 32}},
    FabricDraw{"clos", {32, 64}},
    FabricDraw{"three-tier-clos", {16, 32}, 3},
    FabricDraw{"rail-optimised-clos-roce", {4, 8}},
    FabricDraw{"three-tier-rail-optimised-clos", {4, 8}, 2},
    FabricDraw{"multi-plane-fat-tree", {4, 8}},
    FabricDraw{"nvidia-superpod-h100", {4, 8}},
    FabricDraw{"a100-clos-roce", {16, 32}, 4},
    FabricDraw{"meta-roce-24k", {16, 32}, 4},
};

// Whose devices they are; 0: no one's.
class Tenancy {
 public:
  explicit Tenancy(int nodes) : owner_(nodes * kNodeDevices, 0) {}

  int taken() const { return static_cast<int>(owner_.size() - std::count(owner_.begin(), owner_.end(), 0)); }
  int devices() const { return static_cast<int>(owner_.size()); }

  void admit(int devices) {
    if (devices < kNodeDevices)
      part_of_node(devices);
    else
      whole_nodes(devices / kNodeDevices);
  }

  void let_go(RandomStream& stream) {
    std::vector<int> jobs;
    for (const int job : owner_)
      if (job > 0 && (jobs.empty() || jobs.back() != job)) jobs.push_back(job);
    if (jobs.empty()) return;
    const int leaving = jobs[stream.below(static_cast<std::uint32_t>(jobs.size()))];
    std::replace(owner_.begin(), owner_.end(), leaving, 0);
  }

  std::vector<std::int32_t> free() const {
    std::vector<std::int32_t> devices;
    for (std::size_t i = 0; i < owner_.size(); ++i)
      if (owner_[i] == 0) devices.push_back(static_cast<std::int32_t>(i));
    return devices;
  }

 private:
  int free_of(int node) const {
    const auto first = owner_.begin() + node * kNodeDevices;
    return static_cast<int>(std::count(first, first + kNodeDevices, 0));
  }
  int nodes() const { return devices() / kNodeDevices; }

  void take(int node, int devices) {
    for (int i = node * kNodeDevices; devices > 0; ++i) {
      if (owner_[i] != 0) continue;
      owner_[i] = last_;
      --devices;
    }
  }

  void part_of_node(int devices) {
    for (int node = 0; node < nodes(); ++node) {
      if (free_of(node) < devices) continue;
      ++last_;
      return take(node, devices);
    }
  }

  void whole_nodes(int wanted) {
    std::vector<int> found;
    for (int node = 0; node < nodes() && static_cast<int>(found.size()) < wanted; ++node)
      if (free_of(node) == kNodeDevices) found.push_back(node);
    if (static_cast<int>(found.size()) < wanted) return;  // turned away
    ++last_;
    for (const int node : found) take(node, kNodeDevices);
  }

  std::vector<int> owner_;
  int last_ = 0;
};

// So many tenants have come and gone that nothing is left of the order in which they first stood.
Tenancy after_others(int nodes, bool whole, RandomStream& stream) {
  constexpr std::array kWhole{8, 8, 16, 16, 24, 32, 48, 64};
  constexpr std::array kParts{1, 2, 2, 4, 4, 8, 16, 32};
  Tenancy tenancy(nodes);
  const double wanted = (0.33 + 0.33 * stream.unit()) * tenancy.devices();
  for (int i = 0; i < 40 * nodes; ++i) {
    if (tenancy.taken() < wanted)
      tenancy.admit(whole ? one_of(kWhole, stream) : one_of(kParts, stream));
    else
      tenancy.let_go(stream);
  }
  while (tenancy.devices() - tenancy.taken() < kLeastFree) tenancy.let_go(stream);
  return tenancy;
}

struct JobDraw {
  std::string model;
  int ranks = 0, tp = 1, pp = 1, ep = 1;
  int layers = 0;
};

JobDraw draw_job(int free, RandomStream& stream) {
  struct ModelDraw {
    std::string_view base;
    int experts;
    int heads;  // of keys: the largest tensor-parallel degree
  };
  constexpr std::array kModels{ModelDraw{"qwen3-30b-a3b", 128, 4}, ModelDraw{"mixtral-8x7b", 8, 8},
                               ModelDraw{"qwen3-235b-a22b", 128, 4}, ModelDraw{"llama-3.1-8b", 0, 8}};
  constexpr std::array kTensor{1, 2, 4, 8};
  constexpr std::array kPipeline{1, 2, 4};
  constexpr std::array kExpert{8, 16, 32};
  const ModelDraw& model = one_of(kModels, stream);
  JobDraw job;
  // The largest multiples of 32 leave room for several degrees; at most 128, so that every rank is simulated.
  const int most = std::min(128, free / 32 * 32);
  job.ranks = 32 * (1 + static_cast<int>(stream.below(static_cast<std::uint32_t>(most / 32))));
  job.pp = one_of(kPipeline, stream);
  job.tp = std::min(model.heads, one_of(kTensor, stream));
  if (job.ranks / 32 == 3) job.pp = std::min(job.pp, 2);
  job.layers = std::max(4, job.pp * 2);
  job.model = model.base;
  const int stage = job.ranks / job.pp;
  while (stage % job.tp != 0) job.tp /= 2;
  if (model.experts > 0) {
    job.ep = std::min(model.experts, one_of(kExpert, stream));
    while (stage % job.ep != 0) job.ep /= 2;
  }
  return job;
}

}  // namespace

FragmentedCluster fragmented_cluster(std::uint64_t seed) {
  constexpr std::array kOversubscription{1, 1, 2, 4};
  constexpr std::array<std::string_view, 3> kChips{"h800-sxm", "h100-sxm", "a100-sxm"};
  RandomStream stream(RandomStream::finalise(seed + 1));
  const FabricDraw& fabric = one_of(kFabrics, stream);
  const int nodes = 24 + 8 * static_cast<int>(stream.below(6));
  const bool whole = stream.below(3) > 0;
  const Tenancy tenancy = after_others(nodes, whole, stream);
  FragmentedCluster cluster;
  cluster.whole_nodes = whole;
  cluster.free = tenancy.free();
  const JobDraw job = draw_job(static_cast<int>(cluster.free.size()), stream);
  cluster.ranks = job.ranks;
  cluster.name = fmt::format("{}: {}, {} nodes, {} ranks of {} free, tp {} pp {} ep {}", seed, fabric.preset,
                             nodes, job.ranks, cluster.free.size(), job.tp, job.pp, job.ep);
  const std::string_view chip = one_of(kChips, stream);
  const int leaf_ports = one_of(fabric.leaf_ports, stream);
  const int oversubscription = one_of(kOversubscription, stream);
  const int replicas = job.ranks / job.tp / job.pp;
  const std::string pods =
      fabric.pod_leaves > 0 ? fmt::format(", \"pod_leaves\": {}", fabric.pod_leaves) : "";
  cluster.scenario = fmt::format(
      R"({{"moebius": 1, "kind": "training", "name": "{}", "seed": {},
  "model": {{"base": "{}", "layers": {}}},
  "cluster": {{
    "pools": [{{"name": "all", "accelerator": "{}", "node": "hgx-8", "nodes": {}}}],
    "fabric": {{"type": "{}", "leaf_ports": {}, "oversubscription": {}{}}}
  }},
  "plan": {{
    "tp": {{"attention": {}, "sequence_parallel": true}}, "pp": {{"degree": {}}}, "ep": {{"degree": {}}},
    "dp": {{"degree": {}, "zero": 1}},
    "placement": {{"devices": "{}"}},
    "memory": "report"
  }},
  "workload": {{"sequence_length": 4096, "global_batch": {}}},
  "timeline": {{"detail": "none"}}
}})",
      cluster.name, seed, job.model, job.layers, chip, nodes, fabric.preset, leaf_ports, oversubscription,
      pods, job.tp, job.pp, job.ep, replicas, device_ranges(cluster.free), replicas * job.pp * 2);
  return cluster;
}

}  // namespace moebius
