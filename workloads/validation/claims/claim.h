// One published claim: what is said, which scenarios stand for it, and which figure of theirs is set beside
// it. The form of the file is described in scenarios/validate/README.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hw/reader.h"
#include "workloads/validation/claims/claim_formula.h"

namespace moebius {

// What is published of a figure.
struct ClaimBound {
  enum class Kind : std::uint8_t { kAtLeast, kAtMost, kValue };
  Kind kind = Kind::kAtLeast;
  double value = 0;
  double tolerance = 0;  // kValue: relative

  bool met_by(double ours) const;
  bool better(double a, double b) const;  // whether `a` meets the claim rather than `b`
  std::string text() const;               // "at least 1.3"
};

struct ClaimConfiguration {
  std::string name;
  std::string scenario;                // file, relative to the caller's directory
  std::vector<std::string> baselines;  // likewise; figures of several are added up: the parts of a whole
};

// An assumption of the scenario, or of its baselines, that is moved until the published figure comes out.
struct ClaimAssumption {
  enum class Of : std::uint8_t { kScenario, kBaseline, kBoth };
  std::string says;  // "bytes a second of a NIC"
  Of of = Of::kScenario;
  std::string pointer;
  std::string value;  // JSON; "#" in it stands for the number
  double from = 0, to = 0;
  double step = 0;  // numbers are its multiples; 0: any
};

// A figure that is printed beside the claim's.
struct ClaimNote {
  std::string name;
  ClaimFormula figure;
};

struct Claim {
  std::string file, group;  // the directory that holds the file
  std::string id, says, mechanism, source;
  ClaimFormula figure;
  ClaimBound published;
  std::optional<double> neutral;  // of the figure, were the optimisation without effect
  bool each = false;              // every configuration must meet the bound; false: the best of them
  std::vector<ClaimConfiguration> configurations;
  std::vector<ClaimNote> notes;
  std::vector<ClaimAssumption> needs;
  std::string known_miss;              // reason; empty: a miss fails
  std::optional<double> known_figure;  // of the configuration that decides, when the miss was recorded
};

bool is_claim(const std::string& path);  // by its name: *.claim

// The claims in these paths: a directory and those below it, or one file; in the order of their names.
// input_error for what is not in the form.
std::vector<Claim> claims_of(const std::vector<std::string>& paths);
Claim read_claim(const std::string& file);

}  // namespace moebius
