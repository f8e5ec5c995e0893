// Machines of one scenario: pools of equal nodes joined by a fabric. Devices are numbered pool by pool, node
// by node.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hw/accelerator.h"
#include "hw/fabric/fabric.h"
#include "hw/fabric/path_health.h"
#include "hw/node.h"
#include "hw/reader.h"
#include "hw/speed_variation.h"

namespace moebius {

struct Pool {
  std::string name;
  Accelerator accelerator;
  Node node;
  int nodes = 0;
  std::string region = {};  // where it stands; of one cluster all pools name one, or none does

  int devices() const { return nodes * node.accelerators; }
};

struct ExchangeRate {
  ByteRate rate;
  Time latency;  // where nothing is copied
};

// How ranks exchange that stand together on one device, or each on a core of one host: every member copies
// what it gets from where it stands, round by round, and what it copies passes a wire of its device.
struct LocalExchange {
  ExchangeRate wire;         // of one device, shared by its ranks; a latency for each round
  bool packs = false;        // routed rows are copied once more, by their sender (host)
  double element_bytes = 0;  // of what is copied, whatever the op's format (host: 4); 0: as the format says
  // Ops that do more or less than copy, by name ("exchange all_reduce bf16"); a latency for all rounds.
  std::map<std::string, ExchangeRate, std::less<>> kinds = {};

  const ExchangeRate& of(std::string_view name) const {
    const auto known = kinds.find(name);
    return known == kinds.end() ? wire : known->second;
  }
};

// What decides how long a collective takes: the wires and their latency alone; the chip's library (NCCL, or
// oneCCL inside a node: launch, protocols, its tuner); or, for all-reduce of one scale-up domain, the kernels
// of a serving framework before it. See workloads/cost/collective_model.h and nodes_model.h.
enum class CollectiveSource : std::uint8_t { kStructure, kLibrary, kSglang, kTrtllm, kVllm };
std::string_view to_string(CollectiveSource source);  // "library"

// How a rank that reads a part of a step's batch gets it into its host's memory: from storage, while workers
// prepare what came before; whichever takes longer decides.
struct Loader {
  double token_bytes = 4;    // of a token as it is stored
  ByteRate storage;          // that one rank gets; 0: no limit
  double batch_seconds = 0;  // of one worker, for a microbatch
  int workers = 1;           // each with a microbatch of its own; no more than are read ahead

  // From one microbatch to the next; of the first, for which no worker has begun before, all of it.
  double seconds(double tokens, bool first = false) const {
    const double reading = storage.value > 0 ? tokens * token_bytes / storage.value : 0;
    return std::max(reading, batch_seconds / (first ? 1 : workers));
  }
};

struct Cluster {
  std::vector<Pool> pools;
  Fabric fabric;
  // Set for a machine of virtual ranks: communication is this and nothing else, and holds no cores; compute
  // ops hold their whole device, whatever number of cores they ask for, as executors give it to them.
  std::optional<LocalExchange> exchange = {};
  std::vector<PartHealth> damaged = {};  // parts of the fabric that are broken or slowed from the start
  Place damaged_at = {};                 // where a scenario says so
  bool ports_may_fail = false;           // parts will break while a run goes on
  CollectiveSource collectives = CollectiveSource::kStructure;
  // Algorithms that a workload names are the library's, too, where it has them.
  bool library_as_named = false;
  bool copy_engines = false;      // gather and exchange inside a scale-up domain, so that these hold no cores
  SpeedVariation variation = {};  // of devices of one kind
  std::optional<Loader> loader = {};  // none: batches are there
  Time launch = {};                   // of a kernel, or of a captured graph, by the host

  const Pool& pool_of(int device) const;
  // Whether it matters by which port a message goes: there is a choice, and it is not made alike for all
  // (routing by flows), or something is broken. Then no device stands for another.
  bool by_ports() const;
};

// Line rate of one NIC of the pool, per direction: the fabric's where that states one, else the node's (a
// rented one has NICs of its own), else what its accelerators bring.
ByteRate nic_line_rate(const Pool& pool, const FabricSpec& spec);

// A pool as the fabric sees it. Rates are what large transfers achieve: the scale-up link (over PCIe, the
// host link) times link_efficiency, the NIC (nic_line_rate) times transport_efficiency. The pool must fit
// together: see problem_of(Pool).
FabricPool part_of_fabric(const Pool& pool, const FabricSpec& spec);

// The regions of the pools by name, in the order in which they first appear; one without a name when no pool
// names any.
std::vector<std::string> region_names(const std::vector<Pool>& pools);

// Why an accelerator cannot stand in such a node, as a sentence; empty when it can.
std::string problem_of(const Pool& pool);

// The cluster, or the error at `place` that says what does not fit: a pool in itself, two pools of one name,
// a fabric that cannot join so many nodes.
Cluster build_cluster(std::vector<Pool> pools, FabricSpec spec, const Place& place);

}  // namespace moebius
