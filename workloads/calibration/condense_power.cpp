// Power of the board while kernels run, from the power tables of the kernel database: mean watts (NVML) over
// 0.3 to 1 s of replays. The driver's readings are themselves means over about a second, so that those of a
// short run still show what ran before it: equal kernels of some microseconds stand there with 140 and with
// 680 W. Kernels of half a millisecond and more are told from; the least readings of all tell what the board
// draws beside the work.
//
// Energies are fitted to the least sum of absolute relative errors, one coefficient after the other: each is
// the weighted median of what the rows ask of it. A row at the limit asks for no less; it does not mind more.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "hw/catalog.h"
#include "workloads/calibration/fit_rules.h"
#include "workloads/calibration/held_out.h"
#include "workloads/calibration/kernel_database.h"
#include "workloads/calibration/power_rows.h"
#include "workloads/cost/architecture.h"

namespace moebius {
namespace {

constexpr double kLeastMicroseconds = 500;
constexpr double kAtLimit = 0.96;   // of the limit: means of kernels that are at it scatter by so much
constexpr double kIdleRank = 0.01;  // of the readings, from below
constexpr int kMostPowerSweeps = 500;
constexpr double kStartJoulePerByte = 1e-10, kStartJoulePerFlop = 5e-13;  // anything positive

double told(const ProfilePower& power, const PowerRow& row) {
  return power.idle + power.joule_per_byte * row.byte_rate +
         power.joule_per_flop[static_cast<std::size_t>(row.dtype)] * row.flop_rate;
}

struct Wish {
  double value = 0, weight = 0;
  bool at_least = false;
};

// Where the weighted absolute distances from the wishes are least; those that are no ceiling count from
// below.
double middle_of(std::vector<Wish> wishes, double otherwise) {
  std::sort(wishes.begin(), wishes.end(), [](const Wish& a, const Wish& b) { return a.value < b.value; });
  double slope = 0;
  for (const Wish& wish : wishes) slope -= wish.weight;
  for (const Wish& wish : wishes) {
    slope += wish.at_least ? wish.weight : 2 * wish.weight;
    if (slope >= 0) return std::max(0.0, wish.value);
  }
  return otherwise;
}

// One coefficient, the others as they stand: `rate` is what it is multiplied by in a row.
double better(const ProfilePower& power, double coefficient, const std::vector<PowerRow>& rows,
              const std::function<double(const PowerRow&)>& rate) {
  std::vector<Wish> wishes;
  for (const PowerRow& row : rows) {
    const double x = rate(row);
    if (x <= 0 || row.kept_out) continue;
    const double others = told(power, row) - coefficient * x;
    wishes.push_back({(row.watts - others) / x, x / row.watts, row.watts >= kAtLimit * row.limit});
  }
  return middle_of(std::move(wishes), coefficient);
}

void fit_energies(ProfilePower& power, const std::vector<PowerRow>& rows) {
  power.joule_per_byte = kStartJoulePerByte;
  for (const PowerRow& row : rows)
    power.joule_per_flop[static_cast<std::size_t>(row.dtype)] = kStartJoulePerFlop;
  for (int sweep = 0; sweep < kMostPowerSweeps; ++sweep) {
    const ProfilePower before = power;
    power.joule_per_byte =
        better(power, power.joule_per_byte, rows, [](const PowerRow& row) { return row.byte_rate; });
    for (std::size_t i = 0; i < power.joule_per_flop.size(); ++i)
      power.joule_per_flop[i] = better(power, power.joule_per_flop[i], rows, [&](const PowerRow& row) {
        return static_cast<std::size_t>(row.dtype) == i ? row.flop_rate : 0;
      });
    if (before.joule_per_byte == power.joule_per_byte && before.joule_per_flop == power.joule_per_flop) break;
  }
}

double as_held(double value) {
  return value > 0 ? std::stod(fmt::format("{:.3e}", rounded(value, 4))) : 0;
}

void round_energies(ProfilePower& power) {
  power.idle = as_held(power.idle);
  power.joule_per_byte = as_held(power.joule_per_byte);
  for (double& joules : power.joule_per_flop) joules = as_held(joules);
}

// Of rows that the fit did not see.
HeldOut errors_of(const ProfilePower& power, const std::vector<PowerRow>& rows) {
  std::vector<double> errors;
  for (const PowerRow& row : rows)
    if (row.kept_out) errors.push_back(std::min(power.limit, told(power, row)) / row.watts - 1);
  return held_out_of(std::move(errors));
}

double idle_of(const std::vector<PowerRow>& rows) {
  std::vector<double> watts;
  for (const PowerRow& row : rows) watts.push_back(row.watts);
  std::sort(watts.begin(), watts.end());
  return watts[static_cast<std::size_t>(kIdleRank * static_cast<double>(watts.size()))];
}

// What the power tables say of a chip; limit 0 when they do not hold it.
ProfilePower measured_power(const std::string& directory, const Accelerator& chip) {
  PowerRows all = read_power_rows(directory, chip);
  ProfilePower power;
  if (all.rows.empty()) return power;
  power.idle = idle_of(all.rows);
  power.limit = all.rows.front().limit;
  const auto is_short = [](const PowerRow& row) { return row.microseconds < kLeastMicroseconds; };
  const auto shorts = static_cast<int>(std::erase_if(all.rows, is_short));
  if (all.rows.empty()) return {};
  fit_energies(power, all.rows);
  round_energies(power);
  power.held_out = errors_of(power, all.rows);
  power.source = "AICONFIGURATOR";
  power.note = "mean board power; random data; idle is what the least loaded kernels draw";
  const std::pair<int, const char*> reasons[] = {
      {shorts, "kernels under 500 us: the reading still shows what ran before"},
      {all.uneven, "experts drawn by a power law: their loads are not stated"},
      {all.cached, "faster than the chip's memory or peak allows: served from L2"}};
  for (const auto& [rows, reason] : reasons)
    if (rows > 0) power.rejected.push_back({rows, reason});
  return power;
}

// The energies of another chip of the generation; what it draws idle goes with the board's limit.
ProfilePower carried_power(const std::string& directory, const Accelerator& chip) {
  const Catalog catalog;
  const std::string& generation = find_architecture(chip.architecture)->generation;
  for (const std::string& id : catalog.accelerator_ids()) {
    const Accelerator donor = catalog.accelerator(id);
    const Architecture* built = find_architecture(donor.architecture);
    if (donor.id == chip.id || built == nullptr || built->generation != generation) continue;
    ProfilePower power = measured_power(directory, donor);
    if (power.limit <= 0 || chip.power.value <= 0) continue;
    power.idle = as_held(power.idle * chip.power.value / power.limit);
    power.limit = chip.power.value;
    power.carried_from = donor.id;
    power.note =
        "no power of this chip was measured: energies of another of its architecture, idle in proportion "
        "to the board's limit";
    power.held_out = {};
    power.rejected.clear();
    return power;
  }
  return {};
}

}  // namespace

void read_power(Harvest& harvest) {
  if (harvest.profile.tables.empty() || find_architecture(harvest.chip.architecture) == nullptr) return;
  const std::string directory = harvest.directory.string();
  harvest.profile.power = measured_power(directory, harvest.chip);
  if (harvest.profile.power.limit <= 0) harvest.profile.power = carried_power(directory, harvest.chip);
  if (harvest.profile.power.limit > 0) add_database_source(harvest);
}

}  // namespace moebius
