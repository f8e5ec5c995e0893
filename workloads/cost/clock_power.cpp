#include "workloads/cost/clock_power.h"

#include <algorithm>
#include <string_view>

#include "hw/normal_law.h"
#include "workloads/cost/architecture.h"
#include "workloads/cost/power.h"
#include "workloads/cost/roofline.h"

namespace moebius {
namespace {

// BF16: medians over GEMMs of 0.1 to 2 ms at 60% of the peak and more, of (P - idle - J/byte x bytes a
// second) / (FLOP a second) x (ratio of times)^2, P and the times being those of 0.3 to 1 s of replays at the
// limit, the ratio to nine replays (AIConfigurator: gemm_power of vLLM 0.22.0 beside gemm of
// TensorRT-LLM 1.3.0rc20, both cuBLAS). H200: 426 pairs, 7.0e-13 at the limit; B200: 301, 4.7e-13. FP8, FP4
// on B200: the same of one stack, gemm_power of TensorRT-LLM 1.3.0rc15 beside its gemm; the pass that
// quantises, at memory speed, is taken off times and energies, and P is the limit, since that campaign's
// readings are means over pauses too (690 W of BF16 products that the limit makes 14% longer). 62 pairs of
// FP8, 3.7 to 4.8e-13 (tenths), 53 of FP4, 2.6 to 3.3e-13. Hopper's FP8 tables show no fall with a kernel's
// length. tests/unit/sim/power_governor_test.cpp finds them again.
struct Measured {
  std::string_view generation;
  DType operands = DType::kBf16;
  double joule = 0;
};
// Of a chip by itself. GB200: five BF16 GEMMs of normal numbers, of 65,536 rows, at 1.65 to 1.81 PFLOP/s for
// five calls and 1.44 to 1.52 for seconds at 1,170 W, at 1.2 to 1.45 GHz (marin-community/marin, logbook of
// 2026-09-30, M30C-003); as above, with the idle power of power_on() and 95 W of device memory.
struct MeasuredChip {
  std::string_view chip;
  DType operands = DType::kBf16;
  double joule = 0;
};
constexpr std::array<MeasuredChip, 1> kMeasuredChips = {{{"gb200-nvl72", DType::kBf16, 7.15e-13}}};

constexpr std::array<Measured, 4> kMeasured = {{{"hopper", DType::kBf16, 9.25e-13},
                                                {"blackwell", DType::kBf16, 5.88e-13},
                                                {"blackwell", DType::kFp8, 4.3e-13},
                                                {"blackwell", DType::kFp4, 3e-13}}};

// Attention of Blackwell takes 6.7% longer in replays for a second than in nine (B200, median of 149 kernels
// of TensorRT-LLM's at 800 TFLOP/s and more, at 980 W of 1000; its energy at full clock, found as above, is
// the profile's of BF16 within 2%); FlashAttention-4 there falls from 1,450 to 1,237 TFLOP/s within a hundred
// replays (flashinfer-ai/flashinfer pull request 2899). Hopper's does not: README of hw/profiles.
constexpr std::string_view kAttentionExceeds = "blackwell";

constexpr int kSteps = 6;  // from 1 to within 1e-6 of any clock above a half

constexpr std::array<DType, 2> kSixteenBits = {DType::kBf16, DType::kFp16};  // the same units

// Boards of one tray share what feeds them: four of GB200 at once are 6% slower than one alone, at 1,320 to
// 1,450 TFLOP/s (the same logbook). A cluster's work all at once, so that is what counts: products take as
// much more energy as brings the clock there, which falls with the cube root.
struct SharedTray {
  std::string_view chip;
  double clock = 1;  // of that alone
};
constexpr std::array<SharedTray, 1> kSharedTrays = {{{"gb200-nvl72", 0.94}}};

double beside_others(const Accelerator& chip) {
  for (const SharedTray& tray : kSharedTrays)
    if (chip.is(tray.chip)) return 1 / (tray.clock * tray.clock * tray.clock);
  return 1;
}

// At the full clock of the chip: its own, or that of the measured one of its generation.
double energy_at_full_clock(const Accelerator& chip, DType operands, double clock_ratio) {
  for (const MeasuredChip& measured : kMeasuredChips)
    if (chip.is(measured.chip) && measured.operands == operands) return measured.joule * beside_others(chip);
  return full_clock_energy(chip, operands) * clock_ratio * clock_ratio * beside_others(chip);
}

}  // namespace

double full_clock_energy(const Accelerator& chip, DType operands) {
  const Architecture* built = find_architecture(chip.architecture);
  if (built == nullptr) return 0;
  for (const Measured& measured : kMeasured)
    if (measured.generation == built->generation && measured.operands == operands) return measured.joule;
  return 0;
}

ClockPower clock_power(const Accelerator& chip, const std::vector<Profile>& profiles) {
  const Profile* known = profile_with_power(profiles);
  const bool has_peak =
      std::any_of(chip.peak.begin(), chip.peak.end(), [](FlopRate peak) { return peak.value > 0; });
  if (known == nullptr || !has_peak) return {};
  const ProfilePower carried = power_on(chip, *known);
  ClockPower power{.idle = carried.idle, .joule_per_byte = carried.joule_per_byte};
  const bool falls = full_clock_energy(chip, DType::kBf16) > 0;
  (falls ? power.limit : power.ceiling) = board_limit(chip, *known);
  if (chip.is(known->accelerator)) power.timed_limit = known->power.limit;
  power.memory_rate = chip.memory_rate.value;
  // Full clock is the chip's own: at a lower one the same products cost less.
  const double share = chip.peak_share();
  power.attention_exceeds = falls && find_architecture(chip.architecture)->generation == kAttentionExceeds;
  for (int i = 0; i < kNumDTypes; ++i) {
    const DType executed = executed_dtype(chip, static_cast<DType>(i));
    const auto at = static_cast<std::size_t>(i);
    const bool is_short = std::find(kSixteenBits.begin(), kSixteenBits.end(), executed) != kSixteenBits.end();
    const DType as = is_short ? DType::kBf16 : executed;
    const double product = energy_at_full_clock(chip, as, full_clock_ratio(chip, *known));
    power.joule_per_flop[at] = share * share * carried.joule_per_flop[static_cast<std::size_t>(as)];
    power.exceeds[at] = product > 0;
    power.joule_per_product[at] = product > 0 ? share * share * product : power.joule_per_flop[at];
    power.peak[at] = chip.peak_of(executed).value;
  }
  return power;
}

ClockPower limited_by_hungriest(ClockPower power, double spread, int boards) {
  if (power.limit <= 0) return power;
  power.draws = 1 + spread * expected_largest(boards);
  return power;
}

double bytes_of_transfer(OpKind kind, double payload, int ranks) {
  if (kind == OpKind::kSend || kind == OpKind::kRecv || is_host_copy(kind) || kind == OpKind::kBroadcast)
    return payload;
  if (ranks < 2 || kind == OpKind::kDispatch || kind == OpKind::kCombine) return 0;
  const double leaves = payload * (ranks - 1) / ranks;
  return (kind == OpKind::kAllReduce ? 4 : 2) * leaves;
}

// The same work takes as long as it took, but for what follows the clock. With D = limit - idle, per second:
// D (rest + full / c) = steady + clocked c^2, or
//   clocked c^3 + (steady - D rest) c - D full = 0,
// which is convex and has one root above 0: Newton's steps from above stay above it.
double clock_at_limit(const ClockPower& power, const DrawnWork& work) {
  const double dynamic = power.limit - power.idle, slope = work.steady - dynamic * work.rest;
  double clock = 1;
  for (int i = 0; i < kSteps; ++i) {
    const double above = work.clocked * clock * clock * clock + slope * clock - dynamic * work.full;
    if (above <= 0) break;
    clock -= above / (3 * work.clocked * clock * clock + slope);
  }
  return std::max(kLeastClock, clock);
}

double sustained_clock(const ClockPower& power, const WorkOnChip& work) {
  if (power.limit <= 0 || work.seconds <= 0) return 1;
  const OpEnergy energy = energy_of(power, work);
  if (!energy.follows_clock) return 1;
  return clock_at_limit(
      power, {.clocked = energy.clocked / work.seconds, .steady = energy.steady / work.seconds, .full = 1});
}

// What ran at a board's limit, or below, when it was timed draws that and no more; under another limit it may
// exceed it.
OpEnergy energy_of(const ClockPower& power, const WorkOnChip& work) {
  const double most = std::max(0.0, power.most() - power.idle) * work.seconds;
  const double timed_limit = power.timed_limit > 0 ? power.timed_limit : power.most();
  const double timed = std::max(0.0, timed_limit - power.idle) * work.seconds;
  const double moved = power.joule_per_byte * work.bytes;
  OpEnergy energy{.steady = std::min(moved, most)};
  if (!uses_tensor_cores(work.kind)) return energy;
  const auto type = static_cast<std::size_t>(work.dtype);
  const bool attention = is_any_attention(work.kind);
  energy.clocked = work.flops * (attention ? power.joule_per_flop[type] : power.joule_per_product[type]);
  energy.follows_clock = power.limit > 0 && work.flops * power.memory_rate > work.bytes * power.peak[type];
  if (attention ? !power.attention_exceeds : !power.exceeds[type])
    energy.clocked = std::min(energy.clocked, timed - std::min(moved, timed));
  energy.clocked *= power.draws;
  return energy;
}

}  // namespace moebius
