#include "workloads/serving/system/device_reserve.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace moebius {
namespace {

// SGLang, server_args.py: cuda_graph_max_bs.
struct CapturedSequences {
  double below = 0;  // GiB of a device
  int of_few = 0, of_many = 0;
};
constexpr std::array<CapturedSequences, 4> kCaptured = {
    {{20, 8, 8}, {35, 24, 80}, {60, 32, 160}, {160, 256, 512}}};
constexpr int kManyDevices = 4, kMostCaptured = 512;

}  // namespace

int captured_sequences(Bytes memory, int devices) {
  constexpr double kGib = 1024.0 * 1024 * 1024;
  for (const CapturedSequences& row : kCaptured)
    if (memory.value / kGib < row.below) return devices < kManyDevices ? row.of_few : row.of_many;
  return kMostCaptured;
}

// Sequences are captured as those of one stage; all of its stages' devices count (server_args.py: tp_size x
// pp_size / 8 GiB).
double share_beside(const DeviceReserve& reserve, Bytes memory, const EngineSize& engine) {
  constexpr double kMib = 1024.0 * 1024, kLarge = 60 * 1024, kLeastPromptTokens = 2048;
  constexpr int kManyCaptured = 300;
  const double mebibytes = memory.value / kMib;
  const int dp = engine.dp, of_stage = dp * engine.tp;
  const int captured = engine.captured > 0 ? engine.captured : captured_sequences(memory, of_stage);
  double kept = reserve.always + reserve.per_captured * captured + reserve.per_device * of_stage * engine.pp;
  kept += reserve.per_prompt_token * std::max(kLeastPromptTokens, static_cast<double>(engine.prompt_tokens));
  if (dp > 1) kept += dp * captured * reserve.per_captured_of_replica;
  if (dp > 1 && captured > kManyCaptured) kept += dp * captured * reserve.above_300_of_replica;
  if (mebibytes > kLarge) kept = std::max(kept, reserve.least);
  return std::round(1000 * (1 - kept / mebibytes)) / 1000;
}

}  // namespace moebius
