#include <catch2/catch.hpp>

#include <vector>

#include "workloads/cost/remembered_costs.h"

using namespace moebius;

namespace {

// Seconds: how often it was asked.
class Counting : public CostSource {
 public:
  Cost cost(const CostQuery&) const override { return {.seconds = static_cast<double>(++asked)}; }
  std::string description() const override { return "counting"; }
  mutable int asked = 0;
};

CostQuery gemm(std::int64_t m, int cores) {
  CostQuery query;
  query.shape.m = m;
  query.cores = cores;
  return query;
}

}  // namespace

TEST_CASE("a cost is asked for once, and again for each thing that differs") {
  const Counting source;
  const RememberedCosts costs(source);
  CHECK(costs.cost(gemm(128, 132)).seconds == 1);
  CHECK(costs.cost(gemm(128, 112)).seconds == 2);
  CHECK(costs.cost(gemm(256, 132)).seconds == 3);
  const std::vector<std::int32_t> rows = {1, 2}, same = rows, other = {2, 1};
  CostQuery uneven = gemm(128, 132);
  uneven.rows = rows;
  CHECK(costs.cost(uneven).seconds == 4);
  uneven.rows = other;
  CHECK(costs.cost(uneven).seconds == 5);
  CostQuery stored = gemm(128, 132), fused = stored, hot = stored, summed = stored;
  stored.stored = DType::kFp8;
  fused.fused_quantise = true;
  hot.hot = true;
  CHECK(costs.cost(stored).seconds == 6);
  CHECK(costs.cost(fused).seconds == 7);
  CHECK(costs.cost(hot).seconds == 8);
  summed.summed = DType::kBf16;
  CHECK(costs.cost(summed).seconds == 9);
  uneven.rows = same;
  CHECK(costs.cost(uneven).seconds == 4);
  CHECK(costs.cost(gemm(128, 132)).seconds == 1);
  CHECK(source.asked == 9);
}

TEST_CASE("costs are forgotten before they fill the memory") {
  const Counting source;
  const RememberedCosts costs(source);
  const auto most = static_cast<std::int64_t>(RememberedCosts::kMostKept);
  for (std::int64_t m = 1; m <= most + 1; ++m) costs.cost(gemm(m, 132));
  CHECK(costs.cost(gemm(most + 1, 132)).seconds == static_cast<double>(most + 1));
  CHECK(costs.cost(gemm(1, 132)).seconds == static_cast<double>(most + 2));
}
