// What decides the clock of a board under load. A product at full clock can draw more than the board may: it
// then lowers its clock until the mean over some tens of milliseconds is at the limit. Tables of kernels that
// were timed for a moment hold the times at full clock.
//
// Energies at full clock: J/byte and idle watts of the profile (ProfilePower); J/FLOP of BF16 products, and
// on Blackwell of FP8 and FP4 ones, from pairs of measurements of one GEMM, some replays and 0.3 to 1 s of
// them (full_clock_energy()); of all other arithmetic the profile's, whose rows ran at the limit or below, so
// that an op of that kind alone never exceeds it (but for Blackwell's attention, whose pairs say that it
// does).
#pragma once

#include <array>
#include <vector>

#include "hw/accelerator.h"
#include "hw/profile.h"
#include "models/op_kind.h"

namespace moebius {

struct ClockPower {
  double idle = 0, limit = 0;  // watts; limit 0: the clock stays full
  double ceiling = 0;          // watts that a board without such a limit draws at most; 0: not known
  double timed_limit = 0;      // that of the board whose kernels were timed; 0: the same
  double joule_per_byte = 0;   // of device memory
  std::array<double, kNumDTypes>
      joule_per_product{},                 // a FLOP of a GEMM at full clock, by type of the operands
      joule_per_flop{};                    // of the products of attention
  std::array<bool, kNumDTypes> exceeds{};  // products of the type draw what they draw, not the limit at most
  bool attention_exceeds = false;          // so does attention
  std::array<double, kNumDTypes> peak{};   // FLOP a second
  double memory_rate = 0;
  double draws = 1;  // this board for its arithmetic, against one in the middle, of which all else here tells

  double most() const { return limit > 0 ? limit : ceiling; }  // watts; 0: nothing is known of what it draws
};

// Of the first profile that knows the power; nothing where none does. A ceiling and no limit where no pair of
// measurements tells what products draw at full clock (A100: sim/README.md, "Clocks at the power limit"):
// energies are then those of rows at the limit or below.
ClockPower clock_power(const Accelerator& chip, const std::vector<Profile>& profiles);

// Joule of one FLOP of a GEMM at the full clock of the measured chip, by generation of the architecture; 0:
// not measured.
double full_clock_energy(const Accelerator& chip, DType operands);

// What a board does in a second at full clock, on average.
struct DrawnWork {
  double clocked = 0, steady = 0;  // watts: as OpEnergy has them
  double full = 0, rest = 0;       // seconds: of work that follows the clock; of all else
};
inline constexpr double kLeastClock = 0.4;
// Share of the full clock at which the work draws the board's limit; 1 where it draws less at full clock.
double clock_at_limit(const ClockPower& power, const DrawnWork& work);

// The board whose arithmetic draws most among `boards`, where what they draw has a standard deviation of
// `spread` of the mean. What one in the middle just carries out at full clock, this one does not.
ClockPower limited_by_hungriest(ClockPower power, double spread, int boards);

struct WorkOnChip {
  OpKind kind = OpKind::kGemm;
  DType dtype = DType::kBf16;  // product_dtype()
  double flops = 0, bytes = 0;
  double seconds = 0;  // at full clock
};

struct OpEnergy {
  double clocked = 0;  // joule at full clock; falls with the clock's square (voltage follows the clock)
  double steady = 0;   // joule at any clock
  bool follows_clock =
      false;  // bound by arithmetic: takes longer at a lower clock; what memory bounds does not
  bool operator==(const OpEnergy&) const = default;
};

// Bytes of its own memory that a member of `ranks` reads and writes for a communication op: every byte that
// it sends is read, every one that it receives is written (an all-reduce is a reduce-scatter and an
// all-gather). Payload as Op has it; 0 for dispatch and combine, whose rows are the route's.
double bytes_of_transfer(OpKind kind, double payload, int ranks);

// Joule that such work took at `clock`, a share of the full one, on a board in the middle.
inline double joules_at(const OpEnergy& energy, double clock, const ClockPower& power) {
  return energy.clocked / power.draws * clock * clock + energy.steady;
}

// Beside the board's idle power.
OpEnergy energy_of(const ClockPower& power, const WorkOnChip& work);

// Share of the full clock at which an op runs that is repeated without end; 1 where it does not follow it.
double sustained_clock(const ClockPower& power, const WorkOnChip& work);

}  // namespace moebius
