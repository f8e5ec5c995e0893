#include "workloads/validation/servers/server_rules.h"

#include <algorithm>
#include <bit>
#include <cstdio>

namespace moebius {
namespace {

bool begins_with_one(const std::string& text, const std::vector<std::string>& beginnings) {
  return std::any_of(beginnings.begin(), beginnings.end(),
                     [&](const std::string& beginning) { return text.starts_with(beginning); });
}

bool one_of(const std::string& text, const std::vector<std::string>& texts) {
  return std::find(texts.begin(), texts.end(), text) != texts.end();
}

}  // namespace

// A table may lack its dumps: InferenceMAX measures three pairs of lengths.
bool is_inferencemax(const ServerRow& row) {
  if (row.dump.empty())
    return (row.input == 1024 && (row.output == 1024 || row.output == 8192)) ||
           (row.input == 8192 && row.output == 1024);
  return row.dump.starts_with("20") || row.dump.find("gap-analysis") != std::string::npos;
}

std::optional<Version> version_of(const std::string& text) {
  Version version{};
  const int read = std::sscanf(text.c_str(), "%4d.%4d.%4d", &version[0], &version[1], &version[2]);
  return read >= 2 ? std::optional(version) : std::nullopt;
}

bool VersionSpan::has(const std::string& version) const {
  if (!is.empty()) return version == is;
  const std::optional<Version> known = version_of(version);
  if (from && (!known || *known < *from)) return false;
  if (before && (!known || *known >= *before)) return false;
  return !not_before || !known || *known >= *not_before;
}

bool ServerCondition::met(const ServerRow& row, const std::string& model, int replicas_of_row) const {
  if (inferencemax && *inferencemax != is_inferencemax(row)) return false;
  if (!mode.empty() && mode != row.mode) return false;
  if (!backends.empty() && !one_of(row.backend, backends)) return false;
  if (!systems.empty() && !begins_with_one(row.system, systems)) return false;
  if (!models.empty() && !begins_with_one(model, models)) return false;
  if (!formats.empty() && !one_of(row.gemm, formats)) return false;
  if (one_of(row.gemm, other_formats) || one_of(row.precision, other_precisions)) return false;
  if (!tp.empty() && std::find(tp.begin(), tp.end(), row.both.tp) == tp.end()) return false;
  if (!measured_from.empty() && row.measured < measured_from) return false;
  if (!measured_to.empty() && (row.measured.empty() || row.measured > measured_to)) return false;
  return version.has(row.version) && users.has(row.users) && input.has(row.input) && output.has(row.output) &&
         replicas.has(replicas_of_row);
}

int slots_of(double users_a_slot, int users, int ranks) {
  constexpr int kStep = 64;
  const int most = std::max(1, static_cast<int>(users / (users_a_slot * ranks)));
  return most < kStep ? static_cast<int>(std::bit_floor(static_cast<unsigned>(most))) : most / kStep * kStep;
}

int TokenBudget::of(int input, int batch, int replicas) const {
  const int sum = tokens + inputs * input + batches * batch;
  const int all = std::max(least, (sum + multiple - 1) / multiple * multiple);
  return shared ? std::max(1, all / replicas) : all;
}

}  // namespace moebius
