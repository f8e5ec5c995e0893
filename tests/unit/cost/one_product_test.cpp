// Two products of the same rows, carried out as one of both matrices.
#include "hw/catalog.h"
#include "workloads/cost/cost_source.h"
#include "workloads/cost/op_costs.h"
#include "workloads/schedule/fragment.h"

#include "tests/catch.h"

namespace moebius {
namespace {

// A microsecond, and a nanosecond for each column.
class ByColumns : public CostSource {
 public:
  Cost cost(const CostQuery& query) const override {
    const auto columns = static_cast<double>(query.shape.n);
    return {.seconds = 1e-6 + 1e-9 * columns, .memory_bytes = 100 * columns};
  }
  std::string description() const override { return "by columns"; }
};

Fragment products(std::int64_t first, std::int64_t second) {
  Fragment fragment;
  fragment.name = "products";
  fragment.tensors = {{.rows = 8, .columns = 1000},
                      {.rows = 1000, .columns = first},
                      {.rows = 1000, .columns = second},
                      {.rows = 8, .columns = first},
                      {.rows = 8, .columns = second}};
  for (const std::int32_t which : {0, 1}) {
    Op op{.kind = OpKind::kGemm, .shape = {.m = 8, .n = which == 0 ? first : second, .k = 1000}};
    op.first_tensor = static_cast<std::int32_t>(fragment.operands.size());
    op.num_inputs = 2;
    op.num_outputs = 1;
    op.fused = which == 1;
    fragment.operands.insert(fragment.operands.end(), {0, 1 + which, 3 + which});
    fragment.ops.push_back(op);
  }
  return fragment;
}

TEST_CASE("the second of two products that are one adds its columns, not a start") {
  const Accelerator chip = Catalog().accelerator("h100-sxm");
  const ByColumns source;
  const Fragment fragment = products(300, 200);
  DistinctCosts distinct;
  OpCosts costs(fragment, chip, source, distinct, {});
  CHECK(costs.at(0, chip.cores).seconds == Approx(1.3e-6));
  CHECK(costs.at(1, chip.cores).seconds == Approx(0.2e-6));
  CHECK(costs.at(1, chip.cores).memory_bytes == Approx(20'000));
}

// Takes down what it is asked for.
class Noted : public CostSource {
 public:
  Cost cost(const CostQuery& query) const override {
    asked.push_back(query.shape);
    return {.seconds = 1e-6};
  }
  std::string description() const override { return "noted"; }
  mutable std::vector<Shape> asked;
};

// Rows 5 and 6 of a batch of seven: what measures the op makes operands of two rows.
TEST_CASE("absorbed maps of some rows of a batch cost what those of so many rows do") {
  const Accelerator chip = Catalog().accelerator("h100-sxm");
  for (const bool queries : {true, false}) {
    Fragment fragment;
    fragment.name = "absorbed";
    fragment.tensors = {{.rows = queries ? 7 : 2, .columns = queries ? 36 : 96},
                        {.rows = 42, .columns = 32},
                        {.rows = queries ? 2 : 7, .columns = queries ? 108 : 18}};
    Op op{.kind = queries ? OpKind::kAbsorbQueries : OpKind::kAbsorbedValues,
          .shape = {.m = 2, .n = 32, .k = 4, .groups = 1, .heads = 3, .head_dim = 12, .v_dim = 6, .kv = 5}};
    op.num_inputs = 2;
    op.num_outputs = 1;
    fragment.operands = {0, 1, 2};
    fragment.ops = {op};
    const Noted source;
    DistinctCosts distinct;
    OpCosts costs(fragment, chip, source, distinct, {});
    CHECK(costs.at(0, chip.cores).seconds == Approx(1e-6));
    REQUIRE(source.asked.size() == 1);
    CHECK(source.asked.front().m == 2);
    CHECK(source.asked.front().groups == 0);
    CHECK(source.asked.front().kv == 0);
  }
}

}  // namespace
}  // namespace moebius
