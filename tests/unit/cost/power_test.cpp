// What a board draws while a kernel runs.
#include "workloads/cost/power.h"

#include <cmath>
#include <memory>

#include <fmt/format.h>

#include "hw/catalog.h"
#include "models/layer_math.h"
#include "workloads/cost/clock_power.h"
#include "workloads/cost/cost_source.h"
#include "workloads/cost/op_costs.h"
#include "workloads/cost/roofline.h"

#include "hw/error.h"
#include "tests/catch.h"

namespace moebius {
namespace {

Profile profile() {
  Profile profile;
  profile.power.idle = 130;
  profile.power.limit = 700;
  profile.power.joule_per_byte = 1e-10;
  profile.power.joule_per_flop[static_cast<std::size_t>(DType::kBf16)] = 8e-13;
  profile.power.joule_per_flop[static_cast<std::size_t>(DType::kFp8)] = 5e-13;
  return profile;
}

Accelerator h200() {
  return Catalog().accelerator("h200-sxm");
}

CostQuery gemm(DType dtype) {
  return {.kind = OpKind::kGemm, .shape = {.m = 64, .n = 4096, .k = 4096}, .dtype = dtype, .cores = 132};
}

// 2 * 64 * 4096 * 4096 = 2.147 GFLOP in 20 us are 107.4 TFLOP/s: 85.9 W; 40 MB are 2 TB/s: 200 W.
TEST_CASE("a kernel draws for its bytes and its products beside what the board draws idle") {
  const BoardPower power(h200(), {profile()});
  const Cost cost{.seconds = 20e-6, .memory_bytes = 40e6};
  CHECK(power.watts(gemm(DType::kBf16), cost) == Approx(130 + 85.9 + 200).epsilon(1e-3));
  CHECK(power.watts(gemm(DType::kFp8), cost) == Approx(130 + 53.7 + 200).epsilon(1e-3));
  // Half the time, twice the rates: over the limit nothing is drawn.
  CHECK(power.watts(gemm(DType::kBf16), {.seconds = 5e-6, .memory_bytes = 40e6}) == 700);
}

TEST_CASE("a board with a lower limit stays under it") {
  Accelerator capped = h200();
  capped.power = {400};
  const BoardPower power(capped, {profile()});
  CHECK(power.watts(gemm(DType::kBf16), {.seconds = 5e-6, .memory_bytes = 40e6}) == 400);
}

TEST_CASE("a board whose power is known but not what products draw at full clock keeps its clock and draws") {
  const Accelerator chip = Catalog().accelerator("a100-sxm");
  CHECK(clock_power(chip, {}).most() == 0);
  const ClockPower power = clock_power(chip, {profile()});
  CHECK(power.limit == 0);
  CHECK(power.most() == 400);
  const WorkOnChip work{OpKind::kGemm, DType::kBf16, 1e12, 1e9, 5e-3};
  const OpEnergy energy = energy_of(power, work);
  CHECK(!energy.follows_clock);
  CHECK(sustained_clock(power, work) == 1);
  CHECK(joules_at(energy, 1, power) > 0.1);
  CHECK(joules_at(energy, 1, power) < (power.most() - power.idle) * work.seconds * 1.0001);
}

TEST_CASE("a board of other power than the measured one has its own limit, lower or higher") {
  Profile measured = profile();
  measured.accelerator = "h200-sxm";
  measured.reference = h200();
  measured.power.limit = 650;
  CHECK(board_limit(h200(), measured) == 650);
  Accelerator changed = h200();
  for (const double watts : {400.0, 690.0, 1500.0}) {
    changed.power = {watts};
    CHECK(board_limit(changed, measured) == watts);
  }
}

double sustained_tflops(const char* id, DType dtype,
                        const Shape& shape = {.m = 65536, .n = 6144, .k = 6144}) {
  const Accelerator chip = Catalog().accelerator(id);
  const std::vector<Profile> profiles = find_profiles(chip, "");
  const CostQuery query{
      .kind = OpKind::kGemm, .shape = shape, .dtype = dtype, .cores = chip.cores, .rows = {}};
  const Cost cost = make_cost_source(chip, profiles)->cost(query);
  const double flops = op_flops(query.kind, query.shape).value;
  const WorkOnChip work{query.kind, dtype, flops, cost.memory_bytes, cost.seconds};
  return 1e-12 * flops / cost.seconds * sustained_clock(clock_power(chip, profiles), work);
}

// GB200 has B200's tables, a clock of 2.062 GHz against 1.965, 152 SMs against 148 and 1200 W against 1000.
TEST_CASE(
    "a chip that stands on another's tables pays for its higher clock by its square, and idles by its "
    "limit") {
  const Accelerator b200 = Catalog().accelerator("b200-sxm"), gb200 = Catalog().accelerator("gb200-nvl72");
  const std::vector<Profile> profiles = find_profiles(gb200, "");
  const ClockPower measured = clock_power(b200, profiles), carried = clock_power(gb200, profiles);
  const double clock = 2.062 / 1.965;
  CHECK(full_clock_ratio(b200, profiles.front()) == 1);
  CHECK(full_clock_ratio(gb200, profiles.front()) == Approx(clock));
  CHECK(carried.idle == Approx(1.2 * measured.idle));
  const auto fp8 = static_cast<std::size_t>(DType::kFp8), bf16 = static_cast<std::size_t>(DType::kBf16);
  const double tray = 1 / std::pow(0.94, 3);  // four at once
  CHECK(carried.joule_per_product[fp8] == Approx(clock * clock * tray * measured.joule_per_product[fp8]));
  CHECK(carried.joule_per_flop[bf16] == Approx(clock * clock * measured.joule_per_flop[bf16]));
}

// GB200, four of a tray for seconds: 1,320 to 1,450 TFLOP/s in BF16, one alone 1,440 to 1,520
// (marin-community/marin, 2026-09-30).
TEST_CASE("products of GB200 without end are as fast as they were measured there") {
  const double bf16 = sustained_tflops("gb200-nvl72", DType::kBf16);
  CHECK(bf16 > 1320);
  CHECK(bf16 < 1450);
  CHECK(bf16 < 1.08 * sustained_tflops("b200-sxm", DType::kBf16));
}

// Two runs of a hundred calls each, 1.018 and 1.071, 1.364 and 1.393, 1.378 and 1.426 ms
// (NVIDIA/TransformerEngine, docs/examples/gemm_profiling, 2026-04); nothing here was fitted to them.
TEST_CASE("products of B300 for a tenth of a second are as fast as they were measured there") {
  const auto milliseconds = [](std::int64_t n, std::int64_t k) {
    return 2e-9 * 15872 * n * k / sustained_tflops("b300-sxm", DType::kBf16, {.m = 15872, .n = n, .k = k});
  };
  CHECK(milliseconds(12288, 4096) == Approx(1.045).epsilon(0.04));
  CHECK(milliseconds(16384, 4096) == Approx(1.379).epsilon(0.04));
  CHECK(milliseconds(4096, 16384) == Approx(1.402).epsilon(0.04));
}

TEST_CASE("a type that the chip multiplies in a wider one draws as that one") {
  Accelerator chip = h200();
  chip.peak[static_cast<int>(DType::kFp8)] = {0};
  const BoardPower power(chip, {profile()});
  const Cost cost{.seconds = 20e-6, .memory_bytes = 40e6};
  CHECK(power.watts(gemm(DType::kFp8), cost) == power.watts(gemm(DType::kBf16), cost));
}

TEST_CASE("attention over a cache draws as attention, not as a product of matrices") {
  for (const char* id : {"h200-sxm", "b200-sxm"}) {
    INFO(id);
    const Accelerator chip = Catalog().accelerator(id);
    const ClockPower power = clock_power(chip, find_profiles(chip, ""));
    const WorkOnChip whole{OpKind::kAttention, DType::kBf16, 1e12, 1e9, 1.5e-3};
    REQUIRE(energy_of(power, whole).clocked > 0);
    for (const OpKind kind : {OpKind::kPagedAttention, OpKind::kIndexScores}) {
      WorkOnChip cached = whole;
      cached.kind = kind;
      CHECK(energy_of(power, cached) == energy_of(power, whole));
    }
  }
}

// 1,024 sequences of 8,192 keys: 2,570 TFLOP/s, of which the chip has 2,250 in BF16.
TEST_CASE("latent attention over an FP8 cache draws and slows down as what it multiplies in") {
  const Accelerator b200 = Catalog().accelerator("b200-sxm");
  CostQuery latent{
      .kind = OpKind::kAttention,
      .shape =
          {.m = 1024, .groups = 1024, .heads = 128, .kv_heads = 1, .head_dim = 576, .v_dim = 512, .kv = 8192},
      .dtype = DType::kBf16,
      .cores = b200.cores,
      .rows = {},
      .stored = DType::kFp8};
  CHECK(product_dtype(b200, latent) == DType::kFp8);
  CHECK(product_dtype(h200(), latent) == DType::kBf16);
  const std::vector<Profile> profiles = find_profiles(b200, "");
  const double full = make_cost_source(b200, profiles)->cost(latent).seconds;
  Accelerator slower = b200;
  slower.clock = {0.99 * b200.clock.value};
  CHECK(make_cost_source(slower, profiles)->cost(latent).seconds < 1.02 * full);
  latent.stored.reset();
  CHECK(product_dtype(b200, latent) == DType::kBf16);
  const CostQuery grouped{
      .kind = OpKind::kAttention,
      .shape = {.m = 64, .groups = 64, .heads = 64, .kv_heads = 8, .head_dim = 128, .v_dim = 128, .kv = 8192},
      .dtype = DType::kBf16,
      .cores = b200.cores,
      .rows = {},
      .stored = DType::kFp8};
  CHECK(product_dtype(b200, grouped) == DType::kBf16);
}

TEST_CASE("what no one measured is not known, which is zero") {
  const Cost cost{.seconds = 20e-6, .memory_bytes = 40e6};
  CHECK(BoardPower(h200(), {}).watts(gemm(DType::kBf16), cost) == 0);
  CHECK(BoardPower(h200(), {Profile()}).watts(gemm(DType::kBf16), cost) == 0);
  CHECK(BoardPower(h200(), {profile()}).watts(gemm(DType::kInt8), cost) == 0);  // has a peak, and no energy
}

TEST_CASE("kernels that run at memory speed draw for their bytes alone") {
  const CostQuery norm{
      .kind = OpKind::kNorm, .shape = {.m = 4096, .n = 7168}, .dtype = DType::kInt8, .cores = 132};
  CHECK(BoardPower(h200(), {profile()}).watts(norm, {.seconds = 20e-6, .memory_bytes = 40e6}) == Approx(330));
}

// Products reach their peak at the clock of the catalog's chip, whatever more another has.
TEST_CASE(
    "a higher clock, a higher peak and more watts never make a product slower, nor its power more than the "
    "limit") {
  const auto described = [](const std::string& changes) {
    const Document document = parse_document(R"({"base": "h100-sxm")" + changes + "}", "test");
    return Catalog().accelerator(document.root, Place{"test", "", 1});
  };
  const auto sustained = [](const Accelerator& chip, DType dtype) {
    CostQuery query{.kind = OpKind::kGemm, .shape = {.m = 8192, .n = 7168, .k = 4096}, .dtype = dtype};
    query.cores = chip.cores;
    const Cost cost = make_cost_source(chip)->cost(query);
    const ClockPower power = clock_power(chip, find_profiles(chip, ""));
    CHECK(cost.watts <= chip.power.value);
    const double flops = 2.0 * 8192 * 7168 * 4096;
    return cost.seconds / sustained_clock(power, {query.kind, dtype, flops, cost.memory_bytes, cost.seconds});
  };
  for (const DType dtype : {DType::kBf16, DType::kFp8})
    for (const char* power : {"200 W", "350 W", "700 W", "10 kW"}) {
      double before = 1;
      for (const char* clock : {"0.9 GHz", "1.2 GHz", "1.5 GHz", "1.83 GHz", "2.4 GHz", "3.66 GHz"}) {
        INFO(to_string(dtype) << " " << power << " " << clock);
        const double now =
            sustained(described(fmt::format(R"(, "power": "{}", "clock": "{}")", power, clock)), dtype);
        CHECK(now <= before * (1 + 1e-9));
        before = now;
      }
      const double twice = sustained(
          described(fmt::format(
              R"(, "power": "{}", "clock": "3.66 GHz", "bf16": "1978 TFLOP/s", "fp8": "3958 TFLOP/s")",
              power)),
          dtype);
      CHECK(twice <= before);
      if (power == std::string("10 kW")) CHECK(twice < 0.6 * before);
    }
  // Kernels that draw the limit of 700 W at most draw what they draw: at half of it they are slower.
  CHECK(sustained(described(R"(, "power": "350 W")"), DType::kFp8) >
        1.2 * sustained(described(""), DType::kFp8));
}

// What memory bounds and what products bound meet where both take as long: no row more makes a step of it.
TEST_CASE("a lower clock, or a lower limit, tells on kernels without a jump") {
  const Catalog catalog;
  const Place place{.file = "chip", .pointer = "", .line = 1};
  for (const auto& [chip, change] :
       {std::pair{"h100-sxm", R"("clock": "1000 MHz")"}, std::pair{"mi300x", R"("power": "200 W")"},
        std::pair{"a100-sxm", R"("power": "140 W")"}}) {
    const Document described = parse_document(fmt::format(R"({{"base": "{}", {}}})", chip, change), "chip");
    const Accelerator slower = catalog.accelerator(described.root, place);
    const auto full = make_cost_source(catalog.accelerator(chip), "", ""),
               less = make_cost_source(slower, "", "");
    double before = 0;
    for (std::int64_t m = 64; m < 512; m += 4) {
      INFO(chip << ", m " << m);
      const CostQuery query{
          .kind = OpKind::kGemm, .shape = {.m = m, .n = 8192, .k = 8192}, .cores = slower.cores};
      const double longer = less->cost(query).seconds / full->cost(query).seconds;
      CHECK(longer >= 1);
      if (before > 0) CHECK(longer < 1.08 * before);
      before = longer;
    }
    CHECK(before > 1.2);
  }
}

TEST_CASE("a board of which large products draw all it may is slower as soon as it may draw less") {
  const Catalog catalog;
  double before = 0;
  for (const char* watts : {"750", "700", "600", "500", "400"}) {
    const Document described =
        parse_document(fmt::format(R"({{"base": "mi300x", "power": "{} W"}})", watts), "chip");
    const Accelerator chip =
        catalog.accelerator(described.root, Place{.file = "chip", .pointer = "", .line = 1});
    const double seconds =
        make_cost_source(chip, "", "")
            ->cost({.kind = OpKind::kGemm, .shape = {.m = 8192, .n = 16384, .k = 8192}, .cores = chip.cores})
            .seconds;
    CHECK(seconds > 1.01 * before);
    before = seconds;
  }
}

// By Zipf's law the four members have unlike rows, and each has a class of its own.
TEST_CASE("a member that is simulated alone draws for its own rows") {
  const RouteSpec spec{.popularity = {PopularityKind::kZipf, 1.0, false},
                       .ranks = 4,
                       .ranks_per_node = 4,
                       .experts = 16,
                       .active = 2,
                       .tokens = 4096};
  Fragment fragment;
  fragment.name = "experts";
  fragment.routes = {std::make_shared<const Route>(spec)};
  Op op{.kind = OpKind::kGroupedGemm, .shape = {.m = 8192, .n = 4096, .k = 4096, .groups = 4}};
  op.route = 0;
  fragment.ops = {op};
  const Accelerator chip = h200();
  const ClockPower power = clock_power(chip, {profile()});
  const double joule = power.joule_per_product[static_cast<std::size_t>(DType::kBf16)];
  const auto source = make_cost_source(chip);
  const Route& route = *fragment.routes.front();
  REQUIRE(route.rows_of_rank(0) != route.rows_of_rank(3));
  double clocked = 0, steady = 0;
  for (const std::int32_t member : {0, 1, 2, 3}) {
    DistinctCosts distinct;
    OpCosts costs(fragment, chip, *source, distinct, {member}, {}, &power);
    const double flops = 2.0 * route.rows_of_rank(member) * 4096 * 4096;
    CHECK(costs.at(0, chip.cores).energy.clocked == Approx(flops * joule));
    clocked += flops * joule / 4;
    steady += costs.at(0, chip.cores).energy.steady / 4;
  }
  // One class for all four draws what they draw on average, not the slowest's work for the time of the mean.
  DistinctCosts distinct;
  OpCosts together(fragment, chip, *source, distinct, {0, 1, 2, 3}, {}, &power);
  CHECK(together.at(0, chip.cores).first < 1);
  CHECK(together.at(0, chip.cores).energy.clocked == Approx(clocked));
  CHECK(together.at(0, chip.cores).energy.steady == Approx(steady));
}

}  // namespace
}  // namespace moebius
