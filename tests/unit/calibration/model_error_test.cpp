// Constants fitted to kernels and the errors on chips they were not fitted to: on kernels made up from a
// model whose constants are known.
#include <fmt/format.h>

#include "hw/catalog.h"
#include "workloads/calibration/model/fit_architecture.h"
#include "workloads/calibration/model/model_error.h"

#include "hw/error.h"
#include "tests/catch.h"

namespace moebius {
namespace {

Architecture hopper_with(double latency, double step_cycles, double energy) {
  Architecture row = *find_architecture("hopper");
  row.memory_latency = latency;
  row.step_cycles = step_cycles;
  row.energy = energy;
  return row;
}

// Dense BF16 GEMMs of many sizes, each as long as a model with these constants says, times `slower`.
MeasuredChip measured(const std::string& id, const Architecture& truth, double slower = 1) {
  MeasuredChip chip{Catalog().accelerator(id), {}};
  chip.kinds.resize(model_row_kinds().size());
  const AnalyticModel model(chip.chip, truth);
  for (const std::int64_t n : {256, 2048, 8192})
    for (const std::int64_t k : {512, 4096, 16384})
      for (const std::int64_t m : {1, 16, 64, 128, 300, 700, 2048, 8192}) {
        const CostQuery query{.kind = OpKind::kGemm, .shape = {.m = m, .n = n, .k = k}, .cores = 132};
        const double us = model.estimate(query, Clocks::kSustained).seconds * 1e6;
        chip.kinds[0].push_back({"bfloat16", "lab-1", {query}, {}, us * slower});
      }
  return chip;
}

TEST_CASE("a fit finds the constants that kernels were made with") {
  const Architecture truth = hopper_with(0.6e-6, 350, 0.3e-12);
  const MeasuredChip chip = measured("h100-sxm", truth);
  const Architecture found = fit_constants(hopper_with(1.2e-6, 150, 0.2e-12), {&chip});
  CHECK(found.memory_latency == Approx(truth.memory_latency).epsilon(0.1));
  CHECK(found.energy == Approx(truth.energy).epsilon(0.1));
  const AnalyticModel model(chip.chip, found);
  for (const ModelRow& row : chip.kinds[0])
    CHECK(model_microseconds(model, row) == Approx(row.microseconds).epsilon(0.05));
}

TEST_CASE("a fit does not follow single kernels that are out of line") {
  const Architecture truth = hopper_with(0.6e-6, 350, 0.3e-12);
  MeasuredChip chip = measured("h100-sxm", truth);
  for (std::size_t i = 0; i < chip.kinds[0].size(); i += 9) chip.kinds[0][i].microseconds *= 3;
  const Architecture found = fit_constants(truth, {&chip});
  CHECK(found.memory_latency == Approx(truth.memory_latency).epsilon(0.1));
  CHECK(found.energy == Approx(truth.energy).epsilon(0.1));
}

TEST_CASE("a chip is told with constants of others of its architecture, and its own rows change nothing") {
  const Architecture truth = hopper_with(0.6e-6, 350, 0.3e-12);
  const std::vector<MeasuredChip> honest = {measured("h100-sxm", truth), measured("h200-sxm", truth),
                                            measured("a100-sxm", truth)};
  std::vector<MeasuredChip> slow = honest;
  slow[0] = measured("h100-sxm", truth, 2);
  const auto before = fit_on_others(honest[0], honest), after = fit_on_others(slow[0], slow);
  REQUIRE(before.has_value());
  REQUIRE(after.has_value());
  CHECK(before->chips == "h200-sxm");
  CHECK(after->row.memory_latency == before->row.memory_latency);
  CHECK(after->row.energy == before->row.energy);
}

TEST_CASE("errors are those of the rows: twice as slow is half predicted") {
  const Architecture truth = hopper_with(0.6e-6, 350, 0.3e-12);
  const auto errors = model_errors({measured("h100-sxm", truth, 2), measured("h200-sxm", truth)});
  REQUIRE(errors.size() == 2);
  CHECK(errors[0].chip == "h100-sxm");
  CHECK(errors[0].fitted_on == "h200-sxm");
  CHECK(errors[0].rows == 72);
  CHECK(median(errors[0].errors) == Approx(-0.5).margin(0.03));
}

TEST_CASE("a chip alone in its architecture is told with its vendor's, one alone in its vendor not at all") {
  const Architecture truth = *find_architecture("hopper");
  const std::vector<MeasuredChip> chips = {measured("h100-sxm", truth), measured("a100-sxm", truth),
                                           measured("arc-b60", truth)};
  CHECK(fit_on_others(chips[1], chips)->chips == "NVIDIA");
  CHECK_FALSE(fit_on_others(chips[2], chips).has_value());
  const auto errors = model_errors(chips);
  CHECK(errors.back().chip == "arc-b60");
  CHECK(errors.back().errors.empty());
}

TEST_CASE("the file of architectures reads back as it was written") {
  const std::string text = architectures_text(shipped_architectures());
  const std::vector<Architecture> rows = read_architectures(parse_document(text, "again.json"));
  REQUIRE(rows.size() == shipped_architectures().size());
  CHECK(architectures_text(rows) == text);
  CHECK(rows.front().tiles[0].cuts_k == shipped_architectures().front().tiles[0].cuts_k);
}

TEST_CASE("an architecture with a wrong constant is refused where it stands") {
  std::string text = architectures_text({*find_architecture("hopper")});
  const std::string key = "\"step_cycles\": ";
  text.insert(text.find(key) + key.size(), 1, '-');
  CHECK_THROWS_WITH(read_architectures(parse_document(text, "bad.json")),
                    Catch::Contains("/architectures/hopper/constants/step_cycles"));
}

TEST_CASE("the widest tile of scaled products is one of the tiles") {
  const std::string good = architectures_text({*find_architecture("cdna3")});
  const std::string key = "\"most_scaled_n\": ";
  REQUIRE(good.find(key + "128") != std::string::npos);
  for (const char* wrong : {"512", "32", "\"128\""}) {
    std::string text = good;
    text.replace(text.find(key) + key.size(), 3, wrong);
    CHECK_THROWS_WITH(read_architectures(parse_document(text, "bad.json")),
                      Catch::Contains("/architectures/cdna3/structure/8bit/most_scaled_n"));
  }
}

TEST_CASE("the same rows are sampled every time, about as many as asked for") {
  int kept = 0;
  for (int i = 0; i < 7000; ++i) kept += in_sample(fmt::format("row {}", i), 7) ? 1 : 0;
  CHECK(kept == Approx(1000).epsilon(0.1));
  CHECK(in_sample("a row", 1));
}

}  // namespace
}  // namespace moebius
