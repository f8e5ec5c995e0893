#include "workloads/calibration/model/fit_architecture.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "workloads/calibration/fit_rules.h"

namespace moebius {
namespace {

constexpr double kMostLoss = 1;                       // of a row: what is wrong by more is another kernel
constexpr double kFirstStep = 0.3, kLastStep = 0.02;  // relative, of a constant
constexpr double kLeastGain = 1e-5;
constexpr std::size_t kFitEvery = 3;  // of the rows: the others change no digit that is written

struct Constant {
  double Architecture::*field;
  double least, most;  // what is physically possible
};

constexpr std::array<Constant, 5> kConstants = {{
    {&Architecture::memory_latency, 0.3e-6, 3e-6},  // an idle chip answers after 0.4 to 0.7 us
    {&Architecture::step_cycles, 1, 1000},
    {&Architecture::energy, 0.02e-12, 2e-12},
    {&Architecture::attention, 0.1, 1},
    {&Architecture::attention_latency, 100, 100000},
}};

Architecture with_constants(Architecture structure, const Architecture& constants) {
  for (const Constant& constant : kConstants) structure.*constant.field = constants.*constant.field;
  return structure;
}

double row_loss(const AnalyticModel& model, const ModelRow& row) {
  return std::min(kMostLoss, std::abs(model_microseconds(model, row) / row.microseconds - 1));
}

const std::string& generation_of(const Accelerator& chip) {
  return find_architecture(chip.architecture)->generation;
}

struct Sum {
  double loss = 0, rows = 0;
};

// Every kind of every generation weighs the same, however many rows it has.
double loss(const Architecture& constants, const std::vector<const MeasuredChip*>& chips) {
  std::map<std::pair<std::string, std::size_t>, Sum> sums;
  for (const MeasuredChip* chip : chips) {
    const Architecture trial = with_constants(*find_architecture(chip->chip.architecture), constants);
    const AnalyticModel model(chip->chip, trial);
    for (std::size_t kind = 0; kind < chip->kinds.size(); ++kind)
      for (std::size_t i = 0; i < chip->kinds[kind].size(); i += kFitEvery) {
        Sum& sum = sums[{generation_of(chip->chip), kind}];
        sum.loss += row_loss(model, chip->kinds[kind][i]);
        ++sum.rows;
      }
  }
  double all = 0;
  for (const auto& [key, sum] : sums) all += sum.loss / sum.rows;
  return all / std::max<double>(1, static_cast<double>(sums.size()));
}

}  // namespace

double model_microseconds(const AnalyticModel& model, const ModelRow& row) {
  double seconds = 0;
  for (const CostQuery& kernel : row.kernels) seconds += model.estimate(kernel, Clocks::kSustained).seconds;
  return seconds * 1e6;
}

Architecture fit_constants(const Architecture& start, const std::vector<const MeasuredChip*>& chips) {
  Architecture best = start;
  for (const Constant& constant : kConstants)
    best.*constant.field = std::clamp(best.*constant.field, constant.least, constant.most);
  double least = loss(best, chips);
  for (double step = kFirstStep; step > kLastStep;) {
    bool better = false;
    for (const Constant& constant : kConstants)
      for (const double factor : {1 + step, 1 / (1 + step)}) {
        Architecture trial = best;
        trial.*constant.field = std::clamp(trial.*constant.field * factor, constant.least, constant.most);
        const double now = loss(trial, chips);
        if (now >= least - kLeastGain) continue;
        least = now;
        best = trial;
        better = true;
      }
    if (!better) step /= 2;
  }
  for (const Constant& constant : kConstants) best.*constant.field = rounded(best.*constant.field, 3);
  return best;
}

std::optional<OthersFit> fit_on_others(const MeasuredChip& chip, const std::vector<MeasuredChip>& all) {
  std::vector<const MeasuredChip*> relatives, vendor;
  std::string names;
  for (const MeasuredChip& other : all) {
    if (other.chip.id == chip.chip.id || other.chip.vendor != chip.chip.vendor) continue;
    vendor.push_back(&other);
    if (generation_of(other.chip) != generation_of(chip.chip)) continue;
    relatives.push_back(&other);
    names += (names.empty() ? "" : ", ") + other.chip.id;
  }
  if (vendor.empty()) return {};
  const Architecture& own = *find_architecture(chip.chip.architecture);
  if (!relatives.empty()) return OthersFit{fit_constants(own, relatives), names};
  // From the constants of another architecture: a chip's own must not lead the search.
  const Architecture start = with_constants(own, *find_architecture(vendor.front()->chip.architecture));
  return OthersFit{fit_constants(start, vendor), chip.chip.vendor};
}

}  // namespace moebius
