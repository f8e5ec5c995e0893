#include "workloads/calibration/device/calibrate_device.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>

#include "hw/error.h"
#include "hw/interrupted.h"
#include "hw/stopwatch.h"
#include "workloads/calibration/condense.h"
#include "workloads/calibration/device/case_journal.h"
#include "workloads/calibration/device/case_tables.h"
#include "workloads/checkpoint/interruption.h"
#include "workloads/perform/perform.h"
#include "workloads/progress_bar.h"
#include "workloads/routing/random_stream.h"

namespace moebius {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kFiguresShare = 0.12;  // of the budget
constexpr double kLeastSeconds = 0.01;  // of a case; the least repetitions take longer where they must
constexpr double kMostSeconds = 1;
constexpr int kLeastRepetitions = 3;  // one where the time is spent

// Ranks in order, within each a random order.
std::vector<const DeviceCase*> measuring_order(const CasePlan& plan, std::uint64_t seed) {
  std::vector<std::pair<std::uint64_t, const DeviceCase*>> drawn;
  for (std::size_t i = 0; i < plan.cases.size(); ++i)
    drawn.emplace_back(random_bits(seed, i) >> 8 | std::uint64_t(plan.cases[i].rank) << 56, &plan.cases[i]);
  std::sort(drawn.begin(), drawn.end());
  std::vector<const DeviceCase*> order;
  for (const auto& [number, one] : drawn) order.push_back(one);
  return order;
}

CaseResult measure(OpBench& bench, const CostQuery& query, double seconds) {
  const int least = seconds > kLeastSeconds ? kLeastRepetitions : 1;
  const StoppingRule rule{.precision = 0.01, .least = least, .most = 100, .most_seconds = seconds};
  CaseResult result;
  const auto start = Clock::now();
  try {
    result.measured = bench.measure(query, rule);
  } catch (const Error& error) {
    result.refused = error.what();  // no implementation or too little memory: said in the profile
  }
  result.took = seconds_since(start);
  return result;
}

// The loop over what is not in the journal yet. Of rank 0 all is measured: a budget that somebody asked for
// and that does not hold it ends the loop with what it would take.
class Measuring {
 public:
  Measuring(const DeviceUnderTest& device, const CasePlan& plan, CaseJournal& journal, double budget,
            bool asked)
      : device_(device), plan_(plan), journal_(journal), budget_(budget), asked_(asked) {}

  // False when it was interrupted.
  bool run(std::uint64_t seed) {
    const auto order = measuring_order(plan_, seed);
    for (std::size_t i = 0; i < order.size(); ++i) {
      if (interruption_.came()) return false;
      const double left = budget_ - journal_.seconds_spent();
      if (journal_.find(order[i]->text) != nullptr) continue;
      if (left <= 0 && order[i]->rank > 0) continue;
      if (left <= 0 && asked_) too_short(order, i);
      const double share = 0.8 * left / static_cast<double>(order.size() - i);  // operands take time, too
      journal_.add(order[i]->text, measure(*device_.bench, plan_.query(*order[i], device_.bench->cores()),
                                           std::clamp(share, kLeastSeconds, kMostSeconds)));
      bar_.show(static_cast<double>(i) / static_cast<double>(order.size()));
    }
    return !interruption_.came();
  }

 private:
  // Cases of one rank are drawn in any order: those before number `done` stand for the others.
  [[noreturn]] void too_short(const std::vector<const DeviceCase*>& order, std::size_t done) const {
    const auto needed = std::count_if(order.begin(), order.end(), [](auto* one) { return one->rank == 0; });
    double took = 0;
    for (std::size_t i = 0; i < done; ++i) took += journal_.find(order[i]->text)->took;
    const double each = done > 0 ? took / static_cast<double>(done) : kLeastSeconds;
    const double all = journal_.seconds_spent() - took + each * static_cast<double>(needed);
    throw input_error(
        fmt::format("--budget: expected about {:.0f} seconds or more for the {} ops that no profile goes "
                    "without, found {:g}, which held {}: the same command with more goes on from there",
                    std::ceil(std::max(all, budget_ + 1)), needed, budget_, done));
  }

  const DeviceUnderTest& device_;
  const CasePlan& plan_;
  CaseJournal& journal_;
  double budget_ = 0;
  bool asked_ = false;
  Interruption interruption_;
  ProgressBar bar_;
};

std::string today() {
  const std::time_t now = std::time(nullptr);
  return fmt::format("{:%Y-%m-%d}", fmt::gmtime(now));
}

ProfileTable table_like(const DeviceUnderTest& device) {
  ProfileTable like;
  like.stack = fmt::format("moebius-{}", kVersion);
  like.source = "DEVICE";
  like.cores = device.bench->cores();
  like.sustained = device.sustained;
  return like;
}

ProfileSource source_of(const DeviceFigures& figures) {
  return {"DEVICE", fmt::format("moebius {} on {}, {}", kVersion, figures.name, figures.driver),
          "measured here", figures.date};
}

std::string clocks_of(const DeviceUnderTest& device) {
  const std::string now = device.clocks ? device.clocks() : "";
  return now.empty() ? "unknown" : now;
}

void make_profile(const DeviceUnderTest& device, const CasePlan& plan, const CaseJournal& journal,
                  CalibrationReport& report) {
  Profile& profile = report.profile;
  const auto& peaks = device.reference.peak;
  const bool known = std::any_of(peaks.begin(), peaks.end(), [](FlopRate peak) { return peak.value > 0; });
  profile.reference = known ? device.reference : measured_reference(device.reference, plan, journal);
  profile.accelerator = device.reference.id;
  profile.device = *journal.figures();
  profile.sources = {source_of(*profile.device)};
  CalibratedTables tables = tables_of(plan, journal, profile.reference, table_like(device));
  profile.tables = std::move(tables.tables);
  report.measured = tables.measured;
  report.refused = tables.refused;
  report.left_out = tables.left_out;
  report.missing = std::move(tables.missing);
}

}  // namespace

CalibrationReport calibrate_device(const DeviceUnderTest& device, const DeviceCalibration& request) {
  const CasePlan plan = make_case_plan(device.sizes);
  const double budget = request.budget > 0 ? request.budget : device.budget;
  CalibrationReport report{.journal = request.out + ".journal.jsonl"};
  CaseJournal journal(report.journal, {device.bench->device(), kVersion, plan.hash()});
  report.resumed = static_cast<int>(journal.resumed());
  const std::string before = clocks_of(device);
  if (!journal.figures()) {
    const LastWords words("interrupted; the same command begins anew");  // nothing is in the journal yet
    const auto start = Clock::now();
    FiguresTime time{.seconds = kFiguresShare * budget};
    if (request.budget > 0) time.budget = budget;
    DeviceFigures figures = device.measure_figures(time);
    figures.date = today();
    journal.add(figures, seconds_since(start));
  }
  report.interrupted = !Measuring(device, plan, journal, budget, request.budget > 0).run(request.seed);
  report.seconds = journal.seconds_spent();
  if (report.interrupted) return report;
  // From here everything is measured.
  make_profile(device, plan, journal, report);
  report.profile.device->clocks = fmt::format("{} .. {}", before, clocks_of(device));
  save_profile(report.profile, request.out);
  journal.remove();
  return report;
}

}  // namespace moebius
