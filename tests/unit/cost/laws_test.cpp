
#include <cmath>

#include "hw/catalog.h"
#include "models/layer_math.h"
#include "tests/unit/cost/op_samples.h"
#include "workloads/cost/analytic.h"
#include "workloads/cost/roofline.h"

#include "hw/error.h"
#include "tests/catch.h"

namespace moebius {
namespace {

Cost cost_of(const CostSource& source, OpKind kind, const Shape& shape, DType dtype, int cores) {
  return source.cost({.kind = kind, .shape = shape, .dtype = dtype, .cores = cores, .rows = {}});
}

double gemm_seconds(const CostSource& source, std::int64_t m, std::int64_t n, std::int64_t k, int cores) {
  return cost_of(source, OpKind::kGemm, {.m = m, .n = n, .k = k}, DType::kBf16, cores).seconds;
}

// In a burst: at the power limit the clock falls where more cores would be faster, and waves cannot be seen.
double burst_seconds(const AnalyticModel& model, const CostQuery& query) {
  return model.estimate(query, Clocks::kBurst).seconds;
}

double burst_gemm(const AnalyticModel& model, std::int64_t m, std::int64_t n, std::int64_t k, int cores) {
  return burst_seconds(model, {.kind = OpKind::kGemm, .shape = {.m = m, .n = n, .k = k}, .cores = cores});
}

TEST_CASE("every compute kind has a finite cost, not below its roofline, on every chip of the catalog") {
  const Catalog catalog;
  for (const std::string& id : catalog.accelerator_ids()) {
    const Accelerator accelerator = catalog.accelerator(id);
    const auto source = make_cost_source(accelerator);
    for (const OpKind kind : compute_kinds())
      for (const DType dtype : {DType::kFp32, DType::kBf16, DType::kFp8, DType::kFp4})
        for (const std::int64_t rows : {1, 77, 4096, 1 << 20})
          for (const int share : {1, 2}) {
            const int cores = std::max(1, cores_of_chip(accelerator, kind) / share);
            const CostQuery query{
                .kind = kind, .shape = sample_shape(kind, rows), .dtype = dtype, .cores = cores, .rows = {}};
            const Cost cost = source->cost(query);
            INFO(id << " " << to_string(kind) << " " << to_string(dtype) << " rows " << rows << " cores "
                    << cores);
            REQUIRE(std::isfinite(cost.seconds));
            REQUIRE(cost.seconds > 0);
            REQUIRE(cost.seconds >= roofline(accelerator, query).seconds());
            REQUIRE(cost.memory_bytes > 0);
            REQUIRE(cost.error > 0);
          }
  }
}

// Kernels of few rows wait for memory and keep the boost clock; large ones draw the limit of 750 W, and reach
// half of the peak in BF16 and less in FP8.
TEST_CASE("on MI300X the board's power sets the clock of large GEMMs") {
  const Accelerator chip = Catalog().accelerator("mi300x");
  const AnalyticModel model(chip);
  const auto seconds = [&](std::int64_t m, DType dtype, Clocks clocks) {
    const CostQuery query{.kind = OpKind::kGemm,
                          .shape = {.m = m, .n = 57344, .k = 8192},
                          .dtype = dtype,
                          .cores = cores_of_chip(chip, OpKind::kGemm),
                          .rows = {}};
    return model.estimate(query, clocks).seconds;
  };
  const auto share = [&](DType dtype) {
    return 2.0 * 8192 * 57344 * 8192 / seconds(8192, dtype, Clocks::kSustained) / chip.peak_of(dtype).value;
  };
  CHECK(share(DType::kBf16) == Approx(0.514).epsilon(0.1));
  CHECK(share(DType::kFp8) < 0.95 * share(DType::kBf16));
  CHECK(seconds(16, DType::kBf16, Clocks::kSustained) < 1.08 * seconds(16, DType::kBf16, Clocks::kBurst));
}

TEST_CASE("more rows never cost less by the model") {
  for (const char* name : {"h800-sxm", "h100-sxm", "b200-sxm", "kunlun-p800", "ascend-910b1", "mi300x"}) {
    const Accelerator accelerator = Catalog().accelerator(name);
    const AnalyticModel model(accelerator);
    for (const OpKind kind : compute_kinds()) {
      double before = 0;
      for (std::int64_t rows = 1; rows <= 1 << 16; rows += 1 + rows / 7) {
        const CostQuery query{.kind = kind,
                              .shape = sample_shape(kind, rows),
                              .dtype = DType::kBf16,
                              .cores = cores_of_chip(accelerator, kind),
                              .rows = {}};
        const double seconds = model.estimate(query, Clocks::kSustained).seconds;
        INFO(name << " " << to_string(kind) << " rows " << rows);
        // Attention's tiles are counted whole, its pairs exactly: a tile that fills up may save a twentieth.
        REQUIRE(seconds >= before * (is_attention_kind(kind) ? 0.95 : 1 - 1e-12));
        before = seconds;
      }
    }
  }
}

TEST_CASE("more rows of a measured weight matrix never cost less than the scatter of the measurements") {
  // Rows of the table may fall by 2% (noise that condensing lets pass); the model between them is monotone.
  const auto source = make_cost_source(Catalog().accelerator("h800-sxm"));
  for (const int cores : {132, 112}) {
    double before = 0;
    for (std::int64_t m = 16; m <= 16384; m += 1 + m / 16) {
      const double now =
          cost_of(*source, OpKind::kGemm, {.m = m, .n = 7168, .k = 2048}, DType::kFp8, cores).seconds;
      INFO("m " << m << " cores " << cores);
      REQUIRE(now >= before * 0.98);
      before = now;
    }
  }
}

TEST_CASE("one tile more than a wave costs a whole wave more") {
  // H100, 132 SMs, tiles of 128 x 128: 12 x 11 tiles fill one wave; a twelfth column of tiles, one element
  // wide, opens a second one.
  const AnalyticModel model(Catalog().accelerator("h100-sxm"));
  const std::int64_t k = 65536;
  const double one = burst_gemm(model, 12 * 128, 11 * 128, k, 132);
  const double same = burst_gemm(model, 12 * 128, 10 * 128 + 1, k, 132);
  const double two = burst_gemm(model, 12 * 128, 11 * 128 + 1, k, 132);
  CHECK(same == Approx(one).epsilon(0.01));
  CHECK(two / one == Approx(2.0).epsilon(0.02));
}

TEST_CASE("cores held by communication cost a GEMM whole waves") {
  // 32 x 32 = 1024 tiles: ceil(1024/132) = 8 waves on all SMs, ceil(1024/112) = 10 beside 20 SMs of
  // communication.
  const AnalyticModel model(Catalog().accelerator("h100-sxm"));
  const double all = burst_gemm(model, 4096, 4096, 65536, 132),
               fewer = burst_gemm(model, 4096, 4096, 65536, 112);
  CHECK(fewer / all == Approx(10.0 / 8.0).epsilon(0.02));
}

// Measured on an H200 (hw/profiles/devices/h200-sxm-2026-11-26.json): 172 us alone, 218 us beside copies on 8
// multiprocessors, 253 and 251 us beside 16 and 32: 4, 5 and 6 waves of the tiles that the library chose for
// 132.
TEST_CASE(
    "a library that is not told what communication holds keeps the tiles that it chose for the whole chip") {
  const AnalyticModel model(Catalog().accelerator("h200-sxm"));
  CostQuery query{.kind = OpKind::kGemm, .shape = {.m = 4096, .n = 4096, .k = 4096}, .cores = 132};
  const double alone = burst_seconds(model, query);
  query.for_whole_chip = true;
  CHECK(burst_seconds(model, query) == alone);
  for (const auto& [cores, measured] : {std::pair{124, 218 / 172.0}, {100, 251 / 172.0}}) {
    query.cores = cores;
    query.for_whole_chip = true;
    const double untold = burst_seconds(model, query);
    INFO(cores << " cores: " << untold / alone);
    CHECK(untold / alone == Approx(measured).epsilon(0.06));
    query.for_whole_chip = false;
    CHECK(burst_seconds(model, query) <= untold);
  }
}

TEST_CASE("an op on fewer cores is never faster") {
  const Accelerator accelerator = Catalog().accelerator("h800-sxm");
  const auto source = make_cost_source(accelerator);
  for (const OpKind kind : compute_kinds()) {
    double before = 1e9;
    for (const int cores : {1, 8, 40, 112, 132}) {
      const double now = cost_of(*source, kind, sample_shape(kind, 4096), DType::kBf16, cores).seconds;
      INFO(to_string(kind) << " on " << cores);
      REQUIRE(now <= before * (1 + 1e-9));
      before = now;
    }
  }
}

TEST_CASE("experts' rows are rounded up to tiles one expert at a time") {
  const AnalyticModel model(Catalog().accelerator("h800-sxm"));
  const auto seconds = [&](const std::vector<std::int32_t>& rows) {
    const Shape shape{.m = 4096, .n = 4096, .k = 7168, .groups = 4};
    return burst_seconds(
        model,
        {.kind = OpKind::kGroupedGemm, .shape = shape, .dtype = DType::kFp8, .cores = 132, .rows = rows});
  };
  const double even = seconds({});
  CHECK(seconds({1024, 1024, 1024, 1024}) == Approx(even));
  // 1023 + 1025 rows are 8 + 9 tiles of 128 instead of 8 + 8: 34 row tiles x 32 = 1088 tiles make 9 waves,
  // not 8.
  CHECK(seconds({1023, 1025, 1023, 1025}) > even * 1.08);
  // Three experts without a row: the tiles are those of 4096 rows together, and no weights of theirs are
  // read.
  CHECK(seconds({4096, 0, 0, 0}) <= even * (1 + 1e-9));
}

TEST_CASE("a dense BF16 GEMM climbs to its share of the peak as measured on H100") {
  // AIConfigurator, n = 4096, k = 7168: 0.29 of 989 TFLOP/s at m = 128, 0.72 at 512, 0.80 at 16384.
  const Accelerator h100 = Catalog().accelerator("h100-sxm");
  const auto source = make_cost_source(h100);
  const auto share = [&](std::int64_t m) {
    return 2.0 * static_cast<double>(m) * 4096 * 7168 / gemm_seconds(*source, m, 4096, 7168, 132) / 989e12;
  };
  CHECK(share(128) == Approx(0.29).epsilon(0.35));
  CHECK(share(512) == Approx(0.72).epsilon(0.2));
  CHECK(share(16384) == Approx(0.80).epsilon(0.05));
}

TEST_CASE("absorbed latent attention reads its latent once, for keys and values") {
  // 64 sequences of 4096 keys of 576 BF16 numbers; queries and outputs are small beside it.
  const Shape shape{
      .m = 64, .groups = 64, .heads = 128, .kv_heads = 1, .head_dim = 576, .v_dim = 512, .kv = 4096};
  const CostQuery query{
      .kind = OpKind::kAttention, .shape = shape, .dtype = DType::kBf16, .cores = 132, .rows = {}};
  CHECK(least_bytes(query) == Approx(64.0 * 4096 * 576 * 2).epsilon(0.1));
}

TEST_CASE("vector work of a chip with cores apart is spread over those") {
  const Accelerator kunlun = Catalog().accelerator("kunlun-p800");
  REQUIRE(kunlun.independent_engines);
  CHECK(cores_of_chip(kunlun, OpKind::kNorm) == kunlun.general_cores);
  CHECK(cores_of_chip(kunlun, OpKind::kGemm) == kunlun.cores);
  const Accelerator h800 = Catalog().accelerator("h800-sxm");
  CHECK(cores_of_chip(h800, OpKind::kNorm) == h800.cores);
}

TEST_CASE("FP8 operands on a chip without FP8 units are multiplied in BF16") {
  const Accelerator a100 = Catalog().accelerator("a100-sxm");
  CHECK(executed_dtype(a100, DType::kFp8) == DType::kBf16);
  CHECK(executed_dtype(Catalog().accelerator("h800-sxm"), DType::kFp8) == DType::kFp8);
}

TEST_CASE("a chip of an unknown architecture is answered by the roofline, with no trust in it") {
  Accelerator other = Catalog().accelerator("h800-sxm");
  other.id = "other";
  other.aliases.clear();
  other.architecture = "unheard-of";
  const auto source = make_cost_source(other);
  const Cost cost = cost_of(*source, OpKind::kGemm, {.m = 8192, .n = 8192, .k = 8192}, DType::kBf16, 132);
  CHECK(cost.origin == Origin::kRoofline);
  CHECK(cost.seconds == Approx(2.0 * 8192 * 8192 * 8192 / 989e12));
  CHECK(source->description() == "roofline of other");
}

}  // namespace
}  // namespace moebius
