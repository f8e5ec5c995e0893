// What scales along k cost FP8 products, where general lanes apply them and where the tensor unit does.
#include <vector>

#include "hw/catalog.h"
#include "tests/catch.h"
#include "workloads/cost/analytic.h"
#include "workloads/cost/remembered_costs.h"
#include "workloads/cost/roofline.h"

namespace moebius {
namespace {

CostQuery product(const Accelerator& chip, OpKind kind, std::int64_t size, DType dtype = DType::kFp8) {
  Shape shape{.m = size, .n = size, .k = size};
  if (kind == OpKind::kGroupedGemm) shape.m *= 8, shape.groups = 8;
  return {.kind = kind, .shape = shape, .dtype = dtype, .cores = chip.cores};
}

double modelled(const Accelerator& chip, CostQuery query, ProductScales scales,
                Clocks clocks = Clocks::kBurst) {
  query.scales = scales;
  return AnalyticModel(chip).estimate(query, clocks).seconds;
}

constexpr ProductScales kAll[] = {ProductScales::kWhole, ProductScales::kBlock, ProductScales::kMicro};

TEST_CASE("lanes that scale partial sums take time with each scale along k, of all products in FP8") {
  for (const char* id : {"mi300x", "h100-sxm", "l40s"}) {
    const Accelerator chip = Catalog().accelerator(id);
    for (const OpKind kind : {OpKind::kGemm, OpKind::kGemmDgrad, OpKind::kGemmWgrad, OpKind::kGroupedGemm}) {
      const CostQuery query = product(chip, kind, 4096);
      INFO(id << " " << to_string(kind));
      const double whole = modelled(chip, query, ProductScales::kWhole);
      const double block = modelled(chip, query, ProductScales::kBlock);
      CHECK(whole >= roofline(chip, query).seconds());
      CHECK(block > 1.03 * whole);
      CHECK(modelled(chip, query, ProductScales::kMicro) > block);
    }
    for (const ProductScales scales : kAll) {
      const CostQuery query = product(chip, OpKind::kGemm, 4096, DType::kBf16);
      CHECK(modelled(chip, query, scales) == modelled(chip, query, ProductScales::kBlock));
    }
  }
}

TEST_CASE("tensor units that scale blocks themselves multiply whatever the scales as fast") {
  for (const char* id : {"b200-sxm", "rtx-pro-6000"}) {
    const Accelerator chip = Catalog().accelerator(id);
    const CostQuery query = product(chip, OpKind::kGemm, 4096);
    for (const ProductScales scales : kAll)
      CHECK(modelled(chip, query, scales) == modelled(chip, query, ProductScales::kBlock));
  }
}

// A step of 256 x 256 x 128 takes a compute unit of MI300X 4,096 cycles of products (4,096 operations a
// cycle) and 512 of multiply-adds (128 a cycle). Its registers hold the results and partial sums of 256 x
// 128, so that a step prepares operands for half of the products.
TEST_CASE("on MI300X blocks of 128 cost an eighth of the products, and narrower tiles") {
  const Accelerator chip = Catalog().accelerator("mi300x");
  Architecture row = *find_architecture("cdna3");
  REQUIRE(row.tiles[1].most_scaled_n == 128);
  row.step_cycles = 0;
  const AnalyticModel free(chip, row);
  CostQuery query = product(chip, OpKind::kGemm, 32768);
  const auto seconds = [&](const AnalyticModel& model, ProductScales scales) {
    query.scales = scales;
    return model.estimate(query, Clocks::kBurst).seconds;
  };
  CHECK(seconds(free, ProductScales::kBlock) / seconds(free, ProductScales::kWhole) ==
        Approx(1.125).epsilon(0.02));
  CHECK(seconds(free, ProductScales::kMicro) / seconds(free, ProductScales::kWhole) ==
        Approx(1.5).epsilon(0.02));
  const AnalyticModel narrow(chip, *find_architecture("cdna3"));
  Architecture of_any_width = *find_architecture("cdna3");
  of_any_width.tiles[1].most_scaled_n = 0;
  const AnalyticModel wide(chip, of_any_width);
  CHECK(seconds(narrow, ProductScales::kBlock) > 1.05 * seconds(wide, ProductScales::kBlock));
  CHECK(seconds(narrow, ProductScales::kWhole) == seconds(wide, ProductScales::kWhole));
}

// hipBLASLt with one scale a tensor (samuel-bohman/AI-benchmarking-guide, ND MI300X v5) and the best kernel
// for blocks (HazyResearch/HipKittens pull request 76, sizes not said): nothing is fitted to them.
TEST_CASE("the model alone is within a quarter of FP8 kernels that were published of MI300X") {
  const Accelerator chip = Catalog().accelerator("mi300x");
  const auto teraflops = [&](std::int64_t size, ProductScales scales) {
    const double edge = static_cast<double>(size);
    const CostQuery query = product(chip, OpKind::kGemm, size);
    return 2e-12 * edge * edge * edge / modelled(chip, query, scales, Clocks::kSustained);
  };
  CHECK(teraflops(4096, ProductScales::kWhole) == Approx(955).epsilon(0.25));
  CHECK(teraflops(8192, ProductScales::kWhole) == Approx(1159).epsilon(0.25));
  CHECK(teraflops(16384, ProductScales::kWhole) == Approx(1015).epsilon(0.25));
  CHECK(teraflops(8192, ProductScales::kBlock) == Approx(963).epsilon(0.25));
}

// Where no table answers, the source prices the scales that it was made with; sums that leave the unit, and
// passes that a product contains, count beside them.
TEST_CASE("a source prices the scales of its products where no table knows them") {
  const Accelerator chip = Catalog().accelerator("mi300x");
  const std::vector<Profile> none;
  const auto block = make_cost_source(chip, none),
             whole = make_cost_source(chip, none, "", ProductScales::kWhole);
  CostQuery query = product(chip, OpKind::kGroupedGemm, 4096);
  const double saved = block->cost(query).seconds - whole->cost(query).seconds;
  CHECK(saved > 0);
  query.fused_quantise = true;
  CHECK(block->cost(query).seconds - whole->cost(query).seconds == Approx(saved));
  query = product(chip, OpKind::kGemmDgrad, 4096);
  query.promoted_sums = true;  // CDNA3 sums in FP32
  CHECK(whole->cost(query).seconds < block->cost(query).seconds);
  query.dtype = DType::kBf16;
  CHECK(whole->cost(query).seconds == block->cost(query).seconds);
  // Of a chip whose kernels are measured the tables answer.
  const Accelerator h100 = Catalog().accelerator("h100-sxm");
  const std::vector<Profile> measured = find_profiles(h100, "");
  query = product(h100, OpKind::kGemm, 4096);
  CHECK(make_cost_source(h100, measured, "", ProductScales::kWhole)->cost(query).seconds ==
        make_cost_source(h100, measured)->cost(query).seconds);
}

TEST_CASE("a cost is remembered by the scales of its products") {
  const Accelerator chip = Catalog().accelerator("mi300x");

  class Modelled : public CostSource {
   public:
    explicit Modelled(const Accelerator& chip) : model_(chip) {}
    Cost cost(const CostQuery& query) const override {
      return {.seconds = model_.estimate(query, Clocks::kBurst).seconds};
    }
    std::string description() const override { return "model"; }

   private:
    AnalyticModel model_;
  };

  const Modelled source(chip);
  const RememberedCosts costs(source);
  CostQuery query = product(chip, OpKind::kGemm, 4096);
  const double block = costs.cost(query).seconds;
  query.scales = ProductScales::kWhole;
  CHECK(costs.cost(query).seconds < block);
}

}  // namespace
}  // namespace moebius
