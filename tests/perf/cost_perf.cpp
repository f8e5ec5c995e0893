// Look-ups of kernel costs: how many, and the CPU time of each. Recorded, never asserted.
#include <catch2/catch.hpp>

#include <chrono>
#include <cstdio>
#include <vector>

#include "hw/catalog.h"
#include "workloads/cost/cost_source.h"

namespace {

using namespace moebius;

struct Sample {
  const char* name;
  CostQuery query;
};

double nanoseconds_each(const CostSource& source, const CostQuery& query, int repeats) {
  double sum = 0;
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < repeats; ++i) {
    CostQuery next = query;
    next.shape.m += i % 512;  // never the same question twice in a row
    sum += source.cost(next).seconds;
  }
  const std::chrono::duration<double, std::nano> spent = std::chrono::steady_clock::now() - start;
  return sum > 0 ? spent.count() / repeats : 0;
}

}  // namespace

TEST_CASE("look-ups of kernel costs") {
  const Catalog catalog;
  const auto start = std::chrono::steady_clock::now();
  const auto h800 = make_cost_source(catalog.accelerator("h800-sxm"));
  const std::chrono::duration<double, std::milli> loading = std::chrono::steady_clock::now() - start;
  const auto gb200 = make_cost_source(catalog.accelerator("gb200"));  // has no profile
  const std::vector<std::int32_t> rows(32, 1024);
  const Shape grouped{.m = 32768, .n = 4096, .k = 7168, .groups = 32};
  const Shape decode{
      .m = 64, .groups = 64, .heads = 128, .kv_heads = 1, .head_dim = 576, .v_dim = 512, .kv = 5000};
  const std::vector<Sample> samples = {
      {"gemm on a site", {OpKind::kGemm, {.m = 3000, .n = 7168, .k = 2048}, DType::kFp8, 112, {}}},
      {"gemm between sites", {OpKind::kGemm, {.m = 3000, .n = 5000, .k = 3000}, DType::kFp8, 112, {}}},
      {"grouped gemm, rows given", {OpKind::kGroupedGemm, grouped, DType::kFp8, 112, rows}},
      {"attention, decode", {OpKind::kAttention, decode, DType::kBf16, 132, {}}},
      {"norm", {OpKind::kNorm, {.m = 4096, .n = 7168}, DType::kBf16, 112, {}}},
  };
  std::printf("profile h800-sxm loaded in %.2f ms\n", loading.count());
  for (const Sample& sample : samples) {
    const int repeats = 200000;
    std::printf("%-28s %d look-ups, %7.0f ns each from tables, %7.0f ns each from the model\n", sample.name,
                repeats, nanoseconds_each(*h800, sample.query, repeats),
                nanoseconds_each(*gb200, sample.query, repeats));
    CHECK(h800->cost(sample.query).seconds > 0);
  }
}
