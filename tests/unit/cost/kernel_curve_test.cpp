#include "workloads/cost/kernel_curve.h"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <vector>

#include "hw/catalog.h"
#include "hw/error.h"
#include "tests/catch.h"

namespace moebius {
namespace {

KernelRequest sized(const std::string& kind) {
  KernelRequest request;
  request.kind = kind;
  if (kind == "adam") return request;
  if (kind.find("attention") == 0) {
    request.heads = request.kv_heads = 16;
    request.head_dim = request.v_dim = 128;
    return request;
  }
  request.n = 4096;
  if (kind.find("gemm") != std::string::npos) request.k = 2048;
  if (kind.find("grouped") == 0) request.groups = 8;
  return request;
}

std::vector<KernelRequest> every_kind() {
  std::vector<KernelRequest> requests;
  for (const std::string& name : kernel_kind_names()) requests.push_back(sized(name));
  requests.push_back(sized("attention"));
  requests.back().kv = 4096;  // decode
  return requests;
}

KernelCurve curve_of(const Accelerator& chip, const KernelRequest& request) {
  return kernel_curve(request, chip, *make_cost_source(chip));
}

KernelCurve curve_on(const std::string& chip, const KernelRequest& request) {
  return curve_of(Catalog().accelerator(chip), request);
}

// The H100 under a name that no profile has: the analytic model alone answers. Without a power limit, at
// which the clock would fall and hide waves and cores.
Accelerator unmeasured() {
  Accelerator chip = Catalog().accelerator("h100-sxm");
  chip.id = "unmeasured";
  chip.power = {};
  return chip;
}

KernelCurve analytic_curve(const KernelRequest& request) {
  return curve_of(unmeasured(), request);
}

const KernelPoint& at(const KernelCurve& curve, std::int64_t x) {
  const auto found = std::find_if(curve.points.begin(), curve.points.end(),
                                  [&](const KernelPoint& point) { return point.x == x; });
  REQUIRE(found != curve.points.end());
  return *found;
}

std::string refusal(const KernelRequest& request) {
  try {
    analytic_curve(request);
  } catch (const Error& error) {
    return error.kind() == Error::Kind::kInput ? error.what() : "a run error";
  }
  return "nothing";
}

// Characters of UTF-8: bytes that do not continue one.
std::size_t columns_of(const std::string& line) {
  return static_cast<std::size_t>(
      std::count_if(line.begin(), line.end(), [](unsigned char byte) { return (byte & 0xC0) != 0x80; }));
}

}  // namespace

TEST_CASE("no point of a curve beats the roofline, the peak or the memory") {
  for (const char* chip : {"h100-sxm", "h800-sxm", "kunlun-p800"})
    for (const KernelRequest& request : every_kind()) {
      const KernelCurve curve = curve_on(chip, request);
      INFO(chip << " " << request.kind);
      REQUIRE(curve.points.size() >= 12);
      for (const KernelPoint& point : curve.points) {
        CHECK(point.cost.seconds >= point.bound);
        CHECK(point.bound > 0);
        CHECK(point.byte_rate() <= curve.chip.memory_rate.value * (1 + 1e-9));
        if (request.kind.find("gemm") != std::string::npos)
          CHECK(point.flop_rate() <= curve.chip.peak_of(DType::kBf16).value * (1 + 1e-9));
      }
    }
}

TEST_CASE("on a chip without a profile more never takes less time, at ascending points") {
  for (const KernelRequest& request : every_kind()) {
    const KernelCurve curve = analytic_curve(request);
    INFO(request.kind);
    CHECK(curve.points.front().x == curve.sweep.first);
    CHECK(curve.points.back().x == curve.sweep.last);
    for (std::size_t i = 1; i < curve.points.size(); ++i) {
      INFO(curve.points[i].x);
      CHECK(curve.points[i].x > curve.points[i - 1].x);
      CHECK(curve.points[i].cost.seconds >= curve.points[i - 1].cost.seconds);
      CHECK(curve.points[i].cost.origin == Origin::kAnalytic);
    }
  }
}

// Hopper's tile is 128 x 128, so that n 7168 takes 56 tiles a row of tiles. 132 cores hold, in w waves,
// floor(132 w / 56) rows: 2, 4, 7, 9, 11. The next row begins a wave more, and the time grows by nearly 1/w
// of what it was; before the first wave is full (m 128) smaller tiles are taken.
TEST_CASE("a GEMM's first waves are seen from both sides") {
  KernelRequest request = sized("gemm");
  request.n = 7168;
  const KernelCurve curve = analytic_curve(request);
  std::vector<std::int64_t> full;
  for (std::size_t i = 1; i < curve.points.size(); ++i) {
    const KernelPoint &before = curve.points[i - 1], &after = curve.points[i];
    if (after.step <= 0) continue;
    full.push_back(before.x);
    CHECK(after.x == before.x + 1);
    CHECK(after.step == Approx(after.cost.seconds / before.cost.seconds - 1));
    CHECK(after.flop_rate() < before.flop_rate());
  }
  CHECK(full == std::vector<std::int64_t>{2 * 128, 4 * 128, 7 * 128, 9 * 128, 11 * 128, 14 * 128});
  CHECK(at(curve, 257).step > 0.4);
  CHECK(at(curve, 513).step == Approx(1.0 / 2).epsilon(0.1));
  CHECK(at(curve, 897).step == Approx(1.0 / 3).epsilon(0.1));
  CHECK(at(curve, 896).cost.seconds == Approx(at(curve, 513).cost.seconds));
}

// The same for 8 experts, 256 rows of weights: 2 tiles a row of tiles, 16 over the experts. 132 cores hold 8
// rows of tiles of each, 1024 rows; one more for each expert begins the second wave.
TEST_CASE("a grouped GEMM's waves are looked for one row an expert apart") {
  KernelRequest request = sized("grouped-gemm");
  request.n = 256;
  request.k = 8192;
  const KernelCurve curve = analytic_curve(request);
  const KernelPoint& after = at(curve, 8 * 1025);
  CHECK(after.step > 0.25);  // not 1: the first wave waits for the memory
  CHECK(at(curve, 8 * 1024).cost.seconds == Approx(after.cost.seconds / (1 + after.step)));
}

// Decode of attention reads the keys and values: 16 heads x (128 + 128) columns x 2 bytes x 4096 keys a
// sequence, and per sequence the query, the result (16 x 128 x 2 bytes each) and 16 log-sum-exps of 4 bytes.
TEST_CASE("decode sweeps the sequences, each with all its keys") {
  KernelRequest request = sized("attention");
  request.kv = 4096;
  const KernelCurve curve = analytic_curve(request);
  CHECK(curve.sweep.axis == "sequences");
  const double keys = 16.0 * 256 * 2 * 4096, rows = 2 * 16.0 * 128 * 2 + 16 * 4;
  CHECK(at(curve, 1).bytes == Approx(keys + rows));
  CHECK(at(curve, 64).bytes == Approx(64 * (keys + rows)));
}

// 8 experts, 4 rows: four experts have a row and four have none, whose weights stay where they are.
TEST_CASE("a grouped GEMM reads the weights of experts that have rows") {
  const KernelCurve curve = analytic_curve(sized("grouped-gemm"));
  const double weights = 4096.0 * 2048 * 2;
  CHECK(at(curve, 4).bytes == Approx(4 * weights).epsilon(0.01));
  CHECK(at(curve, 8).bytes == Approx(8 * weights).epsilon(0.01));
  CHECK(at(curve, 512).bytes == Approx(8 * weights).epsilon(0.1));
}

// INT4 weights under BF16 rows: n k (0.5 + 2/128) bytes of weights, m k and m n of two bytes; the products
// are BF16's. Memory-bound rows get faster, the arithmetic does not.
TEST_CASE("weights in four bits are read as such and multiplied in BF16") {
  KernelRequest request = sized("gemm");
  const KernelCurve wide = analytic_curve(request);
  request.stored = "int4";
  const KernelCurve curve = analytic_curve(request);
  CHECK(at(curve, 1).bytes == Approx(4096.0 * 2048 * 0.515625 + 2 * 2048 + 2 * 4096));
  CHECK(at(curve, 1).bound == Approx(at(wide, 1).bound * 0.515625 / 2).epsilon(0.01));
  CHECK(at(curve, 16384).bound == at(wide, 16384).bound);
  CHECK_THAT(to_text(curve), Catch::Contains("bf16 (default), weights int4, all 132 cores (default)\n"));
}

// 8-bit keys and values, with their share of scales, under BF16 queries.
TEST_CASE("an FP8 cache halves the bytes of decode") {
  KernelRequest request = sized("attention");
  request.kv = 4096;
  request.stored = "fp8";
  const double keys = 16.0 * 256 * (1 + 4.0 / 128) * 4096, rows = 2 * 16.0 * 128 * 2 + 16 * 4;
  CHECK(at(analytic_curve(request), 64).bytes == Approx(64 * (keys + rows)));
}

TEST_CASE("fewer cores have a lower roofline and take longer") {
  KernelRequest request = sized("gemm");
  const KernelCurve all = analytic_curve(request);
  request.cores = 66;
  const KernelCurve half = analytic_curve(request);
  CHECK(at(half, 16384).bound == Approx(2 * at(all, 16384).bound));
  CHECK(at(half, 16384).cost.seconds > 1.8 * at(all, 16384).cost.seconds);
  CHECK_THAT(to_text(half), Catch::Contains("bf16 (default), 66 cores\n"));
}

TEST_CASE("a weight gradient sweeps its tokens when the sizes of the weight are given") {
  KernelRequest request = sized("gemm-wgrad");
  request.k.reset();
  request.m = 7168;
  const KernelCurve curve = analytic_curve(request);
  CHECK(curve.sweep.axis == "k");
  CHECK(at(curve, 1024).flops == 2.0 * 7168 * 4096 * 1024);
}

TEST_CASE("the text holds every point and no line is wider than the page") {
  for (const char* chip : {"h800-sxm", "kunlun-k200"})
    for (const KernelRequest& request : every_kind()) {
      const KernelCurve curve = curve_on(chip, request);
      std::istringstream text(to_text(curve));
      INFO(request.kind);
      std::size_t rows = 0, marks = 0;
      for (std::string line; std::getline(text, line);) {
        INFO(line);
        CHECK(columns_of(line) <= static_cast<std::size_t>(kKernelCurveColumns));
        CHECK((line.empty() || line.back() != ' '));
        if (line.find("±") != std::string::npos) ++rows;
        if (line.find("│") != std::string::npos && line.find("█") != std::string::npos) ++marks;
      }
      CHECK(rows == curve.points.size());
      CHECK(marks >= 3);
    }
}

TEST_CASE("a product of which all sizes are given is one point of the curve over its rows, and no plot") {
  KernelRequest request;
  request.kind = "gemm";
  request.n = 7168, request.k = 2048;
  const KernelCurve over_rows = analytic_curve(request);
  request.m = 4096;
  const KernelCurve one = analytic_curve(request);
  REQUIRE(one.points.size() == 1);
  for (const KernelPoint& point : over_rows.points) {
    if (point.x == 4096) CHECK(one.points.front().cost.seconds == point.cost.seconds);
  }
  CHECK(one.points.front().x == 4096);
  CHECK_THAT(to_text(one), !Catch::Contains("against"));
  CHECK_THAT(to_text(over_rows), Catch::Contains("against"));
}

TEST_CASE("sizes beyond any time on Earth are printed, not refused") {
  KernelRequest request = sized("gemm");
  request.n = request.k = 1 << 30;
  request.cores = 1;
  CHECK_THAT(to_text(analytic_curve(request)), Catch::Contains("e+"));
}

TEST_CASE("options that a kind needs, does not take or cannot have are refused with one sentence") {
  KernelRequest gemm;
  gemm.kind = "gemm";
  gemm.n = 7168;
  CHECK(refusal(gemm) ==
        "--kernel gemm: expected two of --m, --n, --k, the third is swept, or all three; found --n");
  KernelRequest grouped = sized("grouped-gemm");
  grouped.groups.reset();
  CHECK(refusal(grouped) == "--kernel grouped-gemm: expected --groups, found none");
  KernelRequest norm = sized("norm");
  norm.k = 5;
  CHECK(refusal(norm) == "--kernel norm does not take --k; it takes --n");
  KernelRequest decode = sized("attention");
  decode.kv = 4096;
  decode.groups = 8;
  CHECK(refusal(decode) ==
        "--kernel attention: expected either --groups or --kv, which sweeps the number of sequences; found "
        "both");
  KernelRequest heads = sized("attention");
  heads.kv_heads = 3;
  CHECK(refusal(heads) == "--kernel attention: expected --kv-heads to divide --heads 16, found 3");
  Accelerator memory_only = unmeasured();
  memory_only.peak = {};
  try {
    kernel_sweep(sized("gemm"), memory_only);
    FAIL("a chip without a peak was taken");
  } catch (const Error& error) {
    CHECK(error.what() ==
          std::string("--kernel gemm: expected a peak of some type of unmeasured, found none"));
  }
  CHECK(kernel_sweep(sized("norm"), memory_only).cores == 132);
  KernelRequest stored = sized("norm");
  stored.stored = "int4";
  CHECK(refusal(stored) ==
        "--kernel norm does not take --stored: it has no weights and no cache of another type");
  stored = sized("gemm");
  stored.stored = "int3";
  CHECK(refusal(stored) == "--kernel gemm: expected --stored fp8, int8, fp4, int4, bf16, found \"int3\"");
  KernelRequest quantise = sized("quantise");
  quantise.dtype = "bf16";
  CHECK(refusal(quantise) == "--kernel quantise: expected --dtype fp8, int8, fp4, found \"bf16\"");
}

// 8192 x 7168 x 4096 at 1.83 GHz draws more than 700 W: 0.925 pJ a FLOP beside 135 W.
TEST_CASE("beside the time of one product stands what the board sustains") {
  KernelRequest request;
  request.kind = "gemm";
  request.m = 8192;
  request.n = 7168;
  request.k = 4096;
  double before = 1e9;
  for (const double watts : {150.0, 350.0, 500.0, 700.0, 800.0, 1400.0}) {
    Accelerator chip = Catalog().accelerator("h100-sxm");
    chip.power = {watts};
    const ClockPower power = clock_power(chip, find_profiles(chip, ""));
    const KernelCurve curve = kernel_curve(request, chip, *make_cost_source(chip), power);
    const KernelPoint& point = curve.points.front();
    INFO(watts << " W");
    CHECK(point.sustained_seconds() <= before);
    CHECK((point.sustained_seconds() > point.cost.seconds) == (watts < 1000));
    const bool says =
        to_text(curve).find(fmt::format("at the board's limit of {:.0f} W", watts)) != std::string::npos;
    CHECK(says == (watts < 1000));
    before = point.sustained_seconds();
    if (watts != 500) continue;
    const double c = point.clock,
                 joules = 9.25e-13 * point.flops * c * c + 1.43e-10 * point.cost.memory_bytes;
    CHECK(135.4 + joules / point.sustained_seconds() == Approx(500).epsilon(1e-3));
  }
}

}  // namespace moebius
