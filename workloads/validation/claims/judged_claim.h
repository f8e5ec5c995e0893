// Claims beside what is simulated: their scenarios are run, the figures judged, and of a miss it is found
// which assumption would have to be another.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hw/document.h"
#include "workloads/validation/claims/claim.h"

namespace moebius {

struct ClaimRun {
  std::optional<double> ours;  // nothing: a run failed, or its report has no such figure
  std::vector<std::optional<double>> notes = {};
  std::string failure = {};
};

// What an assumption of the configuration that decides would have to be.
struct ClaimNeed {
  const ClaimAssumption* assumption = nullptr;
  std::optional<double> number = {};      // the first on the way that gives the published figure
  std::optional<double> at_the_end = {};  // without one: the figure at `to`
};

struct JudgedClaim {
  enum class Verdict : std::uint8_t { kPass, kMiss, kKnownMiss, kWorse };
  const Claim* claim = nullptr;
  std::vector<ClaimRun> runs = {};  // as the claim's configurations
  std::optional<std::size_t> deciding =
      {};  // the best run, with `each` the worst; nothing: no run has the figure
  Verdict verdict = Verdict::kMiss;
  std::vector<ClaimNeed> needs = {};  // of a miss

  bool fails() const { return verdict == Verdict::kMiss || verdict == Verdict::kWorse; }
};
std::string_view to_string(JudgedClaim::Verdict verdict);

// The report of a scenario as JSON; run_error where the run comes to no end. Called from several threads.
using ReportOf = std::function<std::string(const Document&)>;

// Each scenario is run once, whoever asks for it.
std::vector<JudgedClaim> judge_claims(const std::vector<Claim>& claims, const ReportOf& report_of);

bool passed(const std::vector<JudgedClaim>& claims);

}  // namespace moebius
