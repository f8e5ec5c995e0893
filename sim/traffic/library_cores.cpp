#include "sim/traffic/library_cores.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "workloads/cost/nodes_tuner.h"

namespace moebius {
namespace {

// NCCL takes a channel less while one has fewer bytes than 64 for each of its 512 threads (src/enqueue.cc).
constexpr double kBytesOfChannel = 32 * kKiB;
constexpr int kInSwitch = 16;   // NVLS
constexpr int kPushCores = 16;  // Transformer Engine, initialize_ub(): num_sm of "pipeline"
// Three lanes of collectives may wait for their peers at once; what is computed until these come needs the
// rest.
constexpr int kLeastShare = 4;

int cores_of_channels(const Accelerator& chip, int channels, double bytes) {
  if (chip.independent_engines || channels <= 0) return 0;
  const double filled = std::ceil(bytes / kBytesOfChannel);
  if (filled < channels) channels = static_cast<int>(filled);
  return std::min(channels, chip.cores / kLeastShare);
}

// Sends and receives have a power of two of them; between nodes two for each peer.
int channels_to_peers(int channels, int peers, bool between_nodes) {
  if (channels <= 0) return 0;
  const int all = static_cast<int>(std::bit_ceil(static_cast<unsigned>(channels)));
  return between_nodes ? std::min(all, 2 * peers) : all;
}

// Whom the busiest member sends something.
int peers_of(const CollectiveQuery& query, int members) {
  if (query.matrix == nullptr) return members - 1;
  int most = 0;
  for (int from = 0; from < members; ++from) {
    int peers = 0;
    for (int to = 0; to < members; ++to) peers += from != to && query.matrix->at(from, to) > 0;
    most = std::max(most, peers);
  }
  return most;
}

}  // namespace

int cores_of_call(const Accelerator& chip, const LinkConstants& link, const CollectiveCall& call,
                  Protocol protocol) {
  const int channels = call.kind == OpKind::kAllToAll
                           ? channels_to_peers(link.channels, call.devices - 1, false)
                           : link.channels;
  return cores_of_channels(chip, protocol == Protocol::kInSwitch ? std::min(channels, kInSwitch) : channels,
                           call.bytes);
}

int cores_of_call(const Accelerator& chip, const NodesCall& call) {
  if (call.link.channels <= 0) return 0;
  const int channels = nccl_channels(call);
  const bool to_each = call.call.kind == OpKind::kAllToAll;
  return cores_of_channels(
      chip, to_each ? channels_to_peers(channels, call.call.devices - 1, true) : channels, call.call.bytes);
}

int cores_of_push_kernels(const Accelerator& chip) {
  return chip.independent_engines ? 0 : std::min(kPushCores, chip.cores / kLeastShare);
}

int cores_of_members(const CollectiveQuery& query, const GroupSites& group, const Cluster& cluster) {
  int fewest = 0;
  const Pool* last = nullptr;
  for (const Member& member : group.members) {
    const Pool* pool = &cluster.pool_of(member.device);
    if (pool == last) continue;
    last = pool;
    const auto link = link_constants(pool->accelerator);
    if (!link) return 0;
    const int channels =
        query.kind == OpKind::kAllToAll
            ? channels_to_peers(link->channels, peers_of(query, group.size()), group.nodes.size() > 1)
            : link->channels;
    const int cores = cores_of_channels(pool->accelerator, channels, query.bytes);
    if (cores == 0) return 0;
    fewest = fewest == 0 ? cores : std::min(fewest, cores);
  }
  return fewest;
}

}  // namespace moebius
