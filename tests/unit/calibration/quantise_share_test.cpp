// What is left of measured FP8 GEMMs when the quantisation that they contain is taken out, beside DeepGEMM's
// own times of the bare kernel on a chip of the same arithmetic (H800).
#include <cstdio>
#include <filesystem>
#include <map>

#include "hw/catalog.h"
#include "workloads/calibration/csv.h"
#include "workloads/cost/table.h"

#include "hw/error.h"
#include "tests/catch.h"

namespace moebius {
namespace {

const std::string kMeasured = MOEBIUS_SOURCE_DIR "/../shared/data/";
const std::vector<double> kRows = {64, 4096};
const std::vector<std::vector<double>> kWeights = {{4096, 7168}, {7168, 2048}, {7168, 16384}};  // n, k

using Times = std::map<std::vector<double>, double>;  // m, n, k -> microseconds

Times gemm_times(const std::string& backend) {
  const Csv csv(kMeasured + "kernels/gemm.csv.gz", "h100_sxm");
  Times times;
  for (const CsvRow& row : csv.rows())
    if (csv.text(row, "backend") == backend && csv.text(row, "dtype") == "fp8_block")
      times[{csv.number(row, "m"), csv.number(row, "n"), csv.number(row, "k")}] =
          csv.number(row, "latency_us");
  return times;
}

// The least of the published versions.
Times deepgemm_times() {
  const Csv csv(kMeasured + "deepgemm.csv");
  Times times;
  for (const CsvRow& row : csv.rows()) {
    if (csv.text(row, "layout") != "dense") continue;
    const std::vector<double> shape = {csv.number(row, "m_per_group"), csv.number(row, "n"),
                                       csv.number(row, "k")};
    const double us = csv.number(row, "derived_time_us");
    double& least = times.try_emplace(shape, us).first->second;
    least = std::min(least, us);
  }
  return times;
}

Times quantise_times() {
  const Csv csv(kMeasured + "kernels/quantize.csv.gz", "h100_sxm");
  Times times;
  for (const CsvRow& row : csv.rows())
    if (csv.text(row, "backend") == "trtllm" && csv.text(row, "op") == "scale_matrix")
      times[{csv.number(row, "m"), csv.number(row, "k")}] = csv.number(row, "latency_us");
  return times;
}

ProfileTable table(const char* kind, const std::string& stack) {
  ProfileTable table;
  table.name = kind;
  table.kinds = {kind};
  table.dtype = DType::kFp8;
  table.stack = stack;
  table.cores = 132;
  table.axes = {{ProfileKey::kM, kRows}};
  return table;
}

MeasuredTables tables_of(const std::string& backend, const Accelerator& chip) {
  ProfileTable gemm = table("gemm", backend), quantise = table("quantise", "trtllm");
  gemm.includes = {"quantise"};
  gemm.site_keys = {ProfileKey::kN, ProfileKey::kK};
  quantise.site_keys = {ProfileKey::kN};
  const Times wholes = gemm_times(backend), passes = quantise_times();
  for (const auto& weight : kWeights) {
    gemm.sites.push_back(weight);
    quantise.sites.push_back({weight[1]});
    for (const double m : kRows) {
      gemm.microseconds.push_back(static_cast<float>(wholes.at({m, weight[0], weight[1]})));
      quantise.microseconds.push_back(static_cast<float>(passes.at({m, weight[1]})));
    }
  }
  Profile profile;
  profile.accelerator = chip.id;
  profile.reference = chip;
  profile.tables = {quantise, gemm};
  return MeasuredTables({profile});
}

TEST_CASE("without their quantisation, measured GEMMs come nearer to the bare kernel's published times") {
  if (!std::filesystem::exists(kMeasured + "kernels/gemm.csv.gz")) {
    WARN("skipped: the measured tables are not beside the project (../shared/data)");
    return;
  }
  const Accelerator chip = Catalog().accelerator("h100-sxm");
  const AnalyticModel model(chip);
  const Times published = deepgemm_times();
  std::printf("FP8 GEMM, microseconds        whole   quantisation    bare   DeepGEMM\n");
  for (const std::string backend : {"trtllm", "sglang"}) {
    const MeasuredTables tables = tables_of(backend, chip);
    double whole_error = 0, bare_error = 0;
    for (const auto& weight : kWeights)
      for (const double m : kRows) {
        CostQuery query{.kind = OpKind::kGemm,
                        .shape = {.m = static_cast<std::int64_t>(m),
                                  .n = static_cast<std::int64_t>(weight[0]),
                                  .k = static_cast<std::int64_t>(weight[1])},
                        .dtype = DType::kFp8,
                        .cores = 132};
        const double bare = tables.cost(model, query, Clocks::kBurst)->seconds * 1e6;
        query.fused_quantise = true;
        const double whole = tables.cost(model, query, Clocks::kBurst)->seconds * 1e6;
        const double kernel = published.at({m, weight[0], weight[1]});
        std::printf("%s %5.0f x %5.0f x %5.0f   %8.1f   %12.1f %8.1f   %8.1f\n", backend.c_str(), m,
                    weight[0], weight[1], whole, whole - bare, bare, kernel);
        whole_error += std::abs(whole / kernel - 1) / 6;
        bare_error += std::abs(bare / kernel - 1) / 6;
      }
    std::printf("%s mean distance from DeepGEMM's: whole %.0f%%, bare %.0f%%\n", backend.c_str(),
                100 * whole_error, 100 * bare_error);
    CHECK(bare_error < whole_error);
  }
}

}  // namespace
}  // namespace moebius
