// How long one collective takes that has the links of one scale-up domain for itself: launch, steps,
// protocol, channels. NCCL's protocols (LL: 8 bytes of data and flag in one word; LL128: 120 of 128 bytes are
// data; Simple: chunks and flags apart), its all-reduce in the switch, and the one-shot and two-shot
// all-reduce of serving frameworks. Pure functions; constants in hw/catalog/collectives.json
// (collective_constants.h).
#pragma once

#include <cstdint>
#include <string_view>

#include "models/op_kind.h"
#include "workloads/cost/collective_constants.h"

namespace moebius {

enum class Protocol : std::uint8_t { kLL, kLL128, kSimple, kInSwitch, kOneShot, kTwoShot };
std::string_view to_string(Protocol protocol);

// bytes: as nccl-tests counts them: the whole buffer (all-gather: gathered; reduce-scatter: before it is
// scattered; all-to-all: what one member sends, its own share included).
struct CollectiveCall {
  // kAllReduce, kAllGather, kReduceScatter, kBroadcast, kAllToAll; CHECKed
  OpKind kind = OpKind::kAllReduce;
  int devices = 2;  // at least 2
  double bytes = 0;
};

inline constexpr double kKiB = 1024;
// More channels and threads run, and the kernel starts and ends later, as a buffer grows past this many
// bytes.
inline constexpr double kManyLines = 10e3;

// Devices that each reduce a part of the buffer in the switch (NCCL_MAX_NVLS_ARITY).
inline constexpr int kMostHeads = 32;
// All-reduce in the switch: NCCL sets it up between the eight devices of a board.
inline constexpr int kLeastInSwitch = 8;

// What a member sends at least, over all its steps; of a broadcast all but the last one.
double wire_bytes(const CollectiveCall& call);

// Bytes per second that a member of a ring of so many sends at most by Simple, by what was measured between 2
// and 8.
double library_rate(const LinkConstants& link, int devices);

// The latency of an all-reduce in the switch: a load that reduces, and a store that goes to all.
double in_switch_step(const LinkConstants& link);

// The protocol that NCCL's tuner takes: the least of its own estimates, base latency + steps x latency +
// bytes / rate, with the constants of NCCL 2.28 (src/graph/tuning.cc). All-to-all is sends and receives: LL
// up to 32 KiB to each.
Protocol nccl_protocol(const LinkConstants& link, const CollectiveCall& call);

// What one call takes and what bounds it.
struct CollectiveFigures {
  Protocol protocol = Protocol::kSimple;
  double seconds = 0;    // from launch to end
  double most_rate = 0;  // bytes per second that a member sends at most while it sends
};

CollectiveFigures nccl_figures(const LinkConstants& link, const CollectiveCall& call);
// By a protocol that the caller names.
CollectiveFigures nccl_figures(const LinkConstants& link, const CollectiveCall& call, Protocol protocol);

// A framework's own all-reduce: one-shot (every member reads all others' buffers) up to a size, two-shot
// (reduce-scatter, all-gather) beyond it, NCCL beyond the framework's limit and between more than two devices
// without a port each.
CollectiveFigures framework_figures(const FrameworkConstants& framework, const LinkConstants& link,
                                    const CollectiveCall& call);
// Up to how many bytes the framework's kernels are used between so many devices; 0: not at all.
double framework_limit(const FrameworkConstants& framework, const LinkConstants& link, int devices);

}  // namespace moebius
