#include "sim/traffic/library_cores.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "workloads/cost/nodes_tuner.h"

namespace moebius {
namespace {

// NCCL takes a channel less while one has fewer bytes than 64 for each of its 512 threads (src/enqueue.cc).
constexpr double kBytesOfChannel = 32 * kKiB;
constexpr int kInSwitch = 16;  // NVLS
// Three lanes of collectives may wait for their peers at once; what is computed until these come needs the
// rest.
constexpr int kLeastShare = 4;

int cores_of_channels(const Accelerator& chip, int channels, double bytes) {
  if (chip.independent_engines || channels <= 0) return 0;
  const double filled = std::ceil(bytes / kBytesOfChannel);
  if (filled < channels) channels = static_cast<int>(filled);
  return std::min(channels, chip.cores / kLeastShare);
}

// Sends and receives have a power of two of them.
int channels_of(OpKind kind, int channels) {
  return kind == OpKind::kAllToAll && channels > 0
             ? static_cast<int>(std::bit_ceil(static_cast<unsigned>(channels)))
             : channels;
}

}  // namespace

int cores_of_call(const Accelerator& chip, const LinkConstants& link, const CollectiveCall& call,
                  Protocol protocol) {
  const int channels = channels_of(call.kind, link.channels);
  return cores_of_channels(chip, protocol == Protocol::kInSwitch ? std::min(channels, kInSwitch) : channels,
                           call.bytes);
}

int cores_of_call(const Accelerator& chip, const NodesCall& call) {
  if (call.link.channels <= 0) return 0;
  return cores_of_channels(chip, channels_of(call.call.kind, nccl_channels(call)), call.call.bytes);
}

}  // namespace moebius
