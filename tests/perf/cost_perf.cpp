// Look-ups of kernel costs: how many, and the CPU time of each; and what a fragment's costs save of them.
// Recorded, never asserted.
#include <catch2/catch.hpp>

#include <array>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "hw/catalog.h"
#include "hw/profile.h"
#include "workloads/cost/op_costs.h"
#include "workloads/cost/cost_source.h"

namespace {

using namespace moebius;

struct Sample {
  const char* name;
  CostQuery query;
};

CostQuery query_of(OpKind kind, const Shape& shape, DType dtype, int cores) {
  CostQuery query;
  query.kind = kind;
  query.shape = shape;
  query.dtype = dtype;
  query.cores = cores;
  return query;
}

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

// As a run asks: an op of a fragment at a number of cores, for the first time and again.
void time_fragment(const CostSource& source, const Accelerator& chip, const Sample& sample) {
  constexpr int kOps = 2000, kRounds = 20;
  Fragment fragment;
  for (int i = 0; i < kOps; ++i) {
    Op op;
    op.kind = sample.query.kind;
    op.dtype = sample.query.dtype;
    op.shape = sample.query.shape;
    op.shape.m += i % 512;
    fragment.ops.push_back(op);
  }
  DistinctCosts distinct;
  OpCosts costs(fragment, chip, source, distinct, {});
  double sum = 0;
  std::array<double, 2> spent{};
  for (int round = 0; round < kRounds; ++round) {
    const auto start = std::chrono::steady_clock::now();
    for (int op = 0; op < kOps; ++op) sum += costs.at(op, sample.query.cores).seconds;
    const std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - start;
    spent[round == 0 ? 0 : 1] += time.count() / kOps / (round == 0 ? 1 : kRounds - 1);
  }
  std::printf("%-28s in a fragment %6.0f ns at first, %4.0f ns again\n", sample.name, spent[0], spent[1]);
  CHECK(sum > 0);
}

// First look-ups in the table of another chip, with other corrections to compute: no row is asked twice.
double first_nanoseconds(const CostSource& source, int cores) {
  constexpr int kShapes = 2000;
  double sum = 0;
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < kShapes; ++i)
    sum += source.cost(query_of(OpKind::kGemm, {.m = 1 + 7 * i, .n = 512 + 64 * (i % 97), .k = 1024 + 128 * (i % 31)},
                                DType::kBf16, cores))
               .seconds;
  const std::chrono::duration<double, std::nano> spent = std::chrono::steady_clock::now() - start;
  return sum > 0 ? spent.count() / kShapes : 0;
}

}  // namespace

TEST_CASE("loading of profiles and the first look-ups in them") {
  const Catalog catalog;
  for (const std::string& id : catalog.accelerator_ids()) {
    const Accelerator chip = catalog.accelerator(id);
    if (find_profiles(chip, "").empty()) continue;
    const auto start = std::chrono::steady_clock::now();
    const auto source = make_cost_source(chip);
    const std::chrono::duration<double, std::milli> loading = std::chrono::steady_clock::now() - start;
    std::printf("profile %-14s loaded in %5.2f ms, a GEMM off the grid at first %5.0f ns\n", id.c_str(),
                loading.count(), first_nanoseconds(*source, chip.cores));
    CHECK(source->cost(query_of(OpKind::kNorm, {.m = 64, .n = 1024}, DType::kBf16, 1)).seconds > 0);
  }
}

TEST_CASE("look-ups of kernel costs") {
  const Catalog catalog;
  const Accelerator chip = catalog.accelerator("h800-sxm");
  const auto h800 = make_cost_source(chip);
  const auto gb200 = make_cost_source(catalog.accelerator("gb200"));  // has no profile
  const std::vector<std::int32_t> rows(32, 1024);
  const Shape decode{
      .m = 64, .groups = 64, .heads = 128, .kv_heads = 1, .head_dim = 576, .v_dim = 512, .kv = 5000};
  std::vector<Sample> samples = {
      {"gemm on a site", query_of(OpKind::kGemm, {.m = 3000, .n = 7168, .k = 2048}, DType::kFp8, 112)},
      {"gemm between sites", query_of(OpKind::kGemm, {.m = 3000, .n = 5000, .k = 3000}, DType::kFp8, 112)},
      {"attention, decode", query_of(OpKind::kAttention, decode, DType::kBf16, 132)},
      {"norm", query_of(OpKind::kNorm, {.m = 4096, .n = 7168}, DType::kBf16, 112)},
      {"grouped gemm, rows given",
       query_of(OpKind::kGroupedGemm, {.m = 32768, .n = 4096, .k = 7168, .groups = 32}, DType::kFp8, 112)},
  };
  for (const Sample& sample : samples) time_fragment(*h800, chip, sample);
  samples.back().query.rows = rows;
  for (const Sample& sample : samples) {
    const int repeats = 200000;
    std::printf("%-28s %d look-ups, %7.0f ns each from tables, %7.0f ns each from the model\n", sample.name,
                repeats, nanoseconds_each(*h800, sample.query, repeats),
                nanoseconds_each(*gb200, sample.query, repeats));
    CHECK(h800->cost(sample.query).seconds > 0);
  }
}
