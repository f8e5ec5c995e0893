#include "workloads/cost/collective_model.h"

#include <algorithm>
#include <cmath>

#include "hw/error.h"

namespace moebius {
namespace {

constexpr double kMicrosecond = 1e-6;
// A step's flags and its data overlap, the more the longer both are.
constexpr double kOverlapLL = 1.5, kOverlapChunks = 2;
constexpr double kLL128Share = 120.0 / 128;
// NCCL: 16 KiB to each peer by LL is NCCL_P2P_LL_THRESHOLD; LL words carry as many flags as data.
constexpr double kLLToEach = 32 * kKiB;
constexpr double kLLRateToEach = 6.5e9;          // of one peer's channel; a word of 8 bytes in four data
constexpr double kMessage = 8.4 * kMicrosecond;  // Simple between two: NCCL's base latency of that protocol

struct TunerProtocol {
  Protocol protocol;
  double base, step_own, step_shared;  // seconds; a step over a port of its own, over PCIe
};
// NCCL 2.28.3, src/graph/tuning.cc, baseLatencies and hwLatencies of rings.
constexpr TunerProtocol kTuner[] = {{Protocol::kLL, 6.6e-6, 0.6e-6, 1.0e-6},
                                    {Protocol::kLL128, 14.0e-6, 1.9e-6, 2.5e-6},
                                    {Protocol::kSimple, 8.4e-6, 3.4e-6, 5.7e-6}};
constexpr double kTunerInSwitch = 25e-6;         // hwLatencies of NVLS
constexpr double kTunerInSwitchUse = 15.0 / 16;  // one of 16 channels is left out

double steps_of(const CollectiveCall& call) {
  return (call.kind == OpKind::kAllReduce ? 2 : 1) * (call.devices - 1);
}

double together(double latency, double data, double overlap) {
  return std::pow(std::pow(latency, overlap) + std::pow(data, overlap), 1 / overlap);
}

double tuner_rate(const LinkConstants& link, Protocol protocol, double nominal) {
  if (protocol == Protocol::kLL) return std::min(link.ll_most, nominal / 2);
  return protocol == Protocol::kLL128 ? 0.92 * nominal : nominal;
}

// A member's own share, which its channels copy besides what they send: out of place.
double own_copy(const LinkConstants& link, const CollectiveCall& call) {
  if (call.kind == OpKind::kBroadcast) return 0;  // the root writes both copies of what it reads once
  return call.bytes / call.devices / link.copy_rate;
}

double spread(const LinkConstants& link, double bytes) {
  return link.spread * std::sqrt(bytes);
}

// n - 1 messages at once: a step, and one for each doubling of the peers among whom the channels are shared.
double messages_ll(const LinkConstants& link, const CollectiveCall& call, double rate) {
  const double each = call.bytes / call.devices;
  return link.launch + link.step_ll * (1 + std::log2(call.devices)) + link.message_more +
         std::max(each / kLLRateToEach, wire_bytes(call) / rate);
}

// Seconds in which data moves, by a ring's protocol.
double data_of(const LinkConstants& link, const CollectiveCall& call, Protocol protocol) {
  const double wire = wire_bytes(call), rate = library_rate(link, call.devices);
  if (protocol == Protocol::kLL) return wire / (link.rate_ll * rate / link.rate_two);
  if (protocol == Protocol::kLL128) return wire / (rate * kLL128Share) + spread(link, wire);
  return wire / rate + own_copy(link, call) + spread(link, wire);
}

// Never faster than what the catalog says that the link achieves.
double ring_data(const LinkConstants& link, const CollectiveCall& call, Protocol protocol) {
  const double least = link.own_ports ? wire_bytes(call) / link.achieved : 0;
  return std::max(least, data_of(link, call, protocol));
}

double ring_steps(const LinkConstants& link, const CollectiveCall& call, Protocol protocol, double many) {
  const double step = protocol == Protocol::kLL      ? link.step_ll + link.step_ll_growth * many
                      : protocol == Protocol::kLL128 ? link.step_ll128
                                                     : link.step_simple;
  return steps_of(call) * (step + link.neighbour_more);
}

CollectiveFigures all_to_all(const LinkConstants& link, const CollectiveCall& call, Protocol protocol) {
  const double wire = wire_bytes(call);
  if (protocol == Protocol::kLL) {
    const double rate = link.rate_ll * library_rate(link, call.devices) / link.rate_two;
    return {protocol, messages_ll(link, call, rate), rate};
  }
  const double data = ring_data(link, call, Protocol::kSimple);
  return {Protocol::kSimple, link.launch + together(kMessage + link.message_more, data, kOverlapChunks),
          wire / data};
}

bool switch_reduces(const LinkConstants& link, const CollectiveCall& call) {
  return link.in_switch_share > 0 && call.kind == OpKind::kAllReduce && call.devices >= kLeastInSwitch;
}

// Bytes of the buffer a second. Every link carries the buffer and, besides, one part of it for each that
// reduces a part; the constant was measured between eight. The flags of the switch are as long on their way
// among more.
double in_switch_rate(const LinkConstants& link, int devices) {
  const double heads = std::min(devices, kMostHeads);
  return link.rate_in_switch * (1 + 1.0 / kLeastInSwitch) / (1 + 1 / heads);
}

// Frameworks' sizes. One-shot: vLLM and SGLang, custom_all_reduce.cuh (2 devices always, 512 KiB between 4,
// 256 KiB between 8); TensorRT-LLM one-shot as far as its own kernels go. Limits: as the frameworks'
// timings leave their own kernels for NCCL's.
struct FrameworkRule {
  std::string_view framework;
  double one_shot_four, one_shot_eight;
  double most_two, most_four, most_eight;
  bool over_pcie;  // between two devices without ports of their own
};
constexpr double kMiB = 1024 * kKiB, kAll = 1e18;
constexpr FrameworkRule kFrameworks[] = {
    {"sglang", 512 * kKiB, 256 * kKiB, 16 * kMiB, 16 * kMiB, 16 * kMiB, true},
    {"vllm", 512 * kKiB, 256 * kKiB, 8 * kMiB, 8 * kMiB, 8 * kMiB, true},
    {"trtllm", kAll, kAll, 8 * kMiB, 2 * kMiB, 512 * kKiB, false},
};

const FrameworkRule& rule_of(const FrameworkConstants& framework) {
  for (const FrameworkRule& rule : kFrameworks)
    if (rule.framework == framework.framework) return rule;
  CHECK(false, framework.framework);
  return kFrameworks[0];
}

double one_shot_limit(const FrameworkRule& rule, int devices) {
  if (devices <= 2) return kAll;
  return devices <= 4 ? rule.one_shot_four : rule.one_shot_eight;
}

}  // namespace

std::string_view to_string(Protocol protocol) {
  switch (protocol) {
    case Protocol::kLL:
      return "LL";
    case Protocol::kLL128:
      return "LL128";
    case Protocol::kSimple:
      return "Simple";
    case Protocol::kInSwitch:
      return "in-switch";
    case Protocol::kOneShot:
      return "one-shot";
    case Protocol::kTwoShot:
      return "two-shot";
  }
  return "";
}

// Between 2 devices and 8 as if each doubling took the same share; beyond 8 as between 8.
double library_rate(const LinkConstants& link, int devices) {
  const double share = std::log(std::min(devices, 8) / 2.0) / std::log(4.0);
  return link.rate_two * std::pow(link.rate_eight / link.rate_two, share);
}

double in_switch_step(const LinkConstants& link) {
  return link.step_in_switch + 2 * link.message_more;
}

double wire_bytes(const CollectiveCall& call) {
  if (call.kind == OpKind::kBroadcast) return call.bytes;
  return call.bytes * (call.devices - 1) / call.devices * (call.kind == OpKind::kAllReduce ? 2 : 1);
}

Protocol nccl_protocol(const LinkConstants& link, const CollectiveCall& call) {
  if (link.one_protocol) return Protocol::kLL;
  if (call.kind == OpKind::kAllToAll)
    return call.bytes / call.devices <= kLLToEach ? Protocol::kLL : Protocol::kSimple;
  const double nominal = link.nominal > 0 ? link.nominal : library_rate(link, call.devices);
  Protocol best = Protocol::kSimple;
  double least = -1;
  const auto offer = [&](Protocol protocol, double seconds) {
    if (least >= 0 && seconds >= least) return;
    least = seconds;
    best = protocol;
  };
  for (const TunerProtocol& row : kTuner) {
    if (row.protocol == Protocol::kLL128 && !link.has_ll128) continue;
    const double step = link.own_ports ? row.step_own : row.step_shared;
    // Where channels take the devices in one order, it counts one step of a broadcast, else one a device.
    const double pass = link.one_order ? 1 : call.devices;
    const double steps = call.kind == OpKind::kBroadcast ? pass : steps_of(call);
    offer(row.protocol, row.base + steps * step + wire_bytes(call) / tuner_rate(link, row.protocol, nominal));
  }
  if (switch_reduces(link, call)) {  // two operations at once
    const double rate = 2 * nominal * link.in_switch_share * kTunerInSwitchUse;
    offer(Protocol::kInSwitch, kTunerInSwitch + wire_bytes(call) / rate);
  }
  return best;
}

CollectiveFigures nccl_figures(const LinkConstants& link, const CollectiveCall& call, Protocol protocol) {
  CHECK(call.devices >= 2 && (call.kind == OpKind::kAllReduce || call.kind == OpKind::kAllGather ||
                              call.kind == OpKind::kReduceScatter || call.kind == OpKind::kBroadcast ||
                              call.kind == OpKind::kAllToAll),
        std::string(to_string(call.kind)));
  if (call.kind == OpKind::kAllToAll) return all_to_all(link, call, protocol);
  const double many = call.bytes / (call.bytes + kManyLines);
  const double launch = link.launch + link.launch_growth * many;
  if (protocol == Protocol::kInSwitch) {
    const double data = call.bytes / in_switch_rate(link, call.devices) + spread(link, call.bytes);
    return {protocol, launch + together(in_switch_step(link), data, kOverlapChunks), call.bytes / data};
  }
  const double data = ring_data(link, call, protocol);
  const double overlap = protocol == Protocol::kSimple ? kOverlapChunks : kOverlapLL;
  return {protocol, launch + together(ring_steps(link, call, protocol, many), data, overlap),
          wire_bytes(call) / data};
}

CollectiveFigures nccl_figures(const LinkConstants& link, const CollectiveCall& call) {
  return nccl_figures(link, call, nccl_protocol(link, call));
}

double framework_limit(const FrameworkConstants& framework, const LinkConstants& link, int devices) {
  const FrameworkRule& rule = rule_of(framework);
  if (devices > 8 || (!link.own_ports && (devices > 2 || !rule.over_pcie))) return 0;
  if (devices <= 2) return rule.most_two;
  return devices <= 4 ? rule.most_four : rule.most_eight;
}

CollectiveFigures framework_figures(const FrameworkConstants& framework, const LinkConstants& link,
                                    const CollectiveCall& call) {
  if (call.kind != OpKind::kAllReduce || call.bytes > framework_limit(framework, link, call.devices))
    return nccl_figures(link, call);
  const double launch = framework.launch + framework.doubling * std::log2(call.devices) +
                        framework.growth * call.bytes / (call.bytes + kManyLines);
  if (call.bytes <= one_shot_limit(rule_of(framework), call.devices))
    return {Protocol::kOneShot, launch + link.message_more + (call.devices - 1) * call.bytes / framework.rate,
            framework.rate};
  return {Protocol::kTwoShot,
          launch + framework.second_step + 2 * link.message_more + wire_bytes(call) / framework.rate,
          framework.rate};
}

}  // namespace moebius
