// Boards at their power limit: how far the clock falls, and from which measurements that is known.
#include "sim/power_governor.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "hw/catalog.h"
#include "workloads/calibration/csv.h"

#include "hw/error.h"
#include "tests/catch.h"

namespace moebius {
namespace {

// 100 W idle of 500: a product at full clock draws 800 beside it.
ClockPower round_power() {
  ClockPower power{.idle = 100, .limit = 500, .joule_per_byte = 1e-10};
  power.joule_per_product.fill(1e-12);
  power.joule_per_flop.fill(1e-12);
  power.exceeds[static_cast<std::size_t>(DType::kBf16)] = true;
  power.peak.fill(1e15);
  power.memory_rate = 1e12;
  return power;
}

WorkOnChip product(double seconds, DType dtype = DType::kBf16) {
  return {.kind = OpKind::kGemm, .dtype = dtype, .flops = 800e12 * seconds, .seconds = seconds};
}

struct Board {
  PowerGovernor governor{round_power()};
  Time now;

  // Seconds that the op takes at the clock of its start.
  double run(const WorkOnChip& work) {
    const OpEnergy energy = energy_of(governor.power(), work);
    const double clock = energy.follows_clock ? governor.clock() : 1;
    const Time start = now;
    now = now + time_from_seconds(work.seconds / clock);
    governor.ended(energy, clock, start, now);
    return work.seconds / clock;
  }
  void wait(double seconds) { now = now + time_from_seconds(seconds); }
};

// The same energy of products comes at c^2 in 1/c of the time: 100 + 800 c^3 = 500 where c^3 = 1/2.
TEST_CASE("products without a break run at the clock at which they draw the limit") {
  Board board;
  double last = 0;
  for (int i = 0; i < 2000; ++i) last = board.run(product(1e-3));
  CHECK(board.governor.clock() == Approx(std::cbrt(0.5)).epsilon(1e-3));
  CHECK(last == Approx(1e-3 / std::cbrt(0.5)).epsilon(1e-3));
}

TEST_CASE("some milliseconds of products run at full clock") {
  Board board;
  for (int i = 0; i < 9; ++i) CHECK(board.run(product(1e-3)) == 1e-3);
}

// 1 ms of products and 1 ms of waiting draw 100 + 800/2 = 500 W on average: just the limit.
TEST_CASE("waiting between products leaves them the full clock") {
  Board board;
  for (int i = 0; i < 1000; ++i) {
    CHECK(board.run(product(1e-3)) == 1e-3);
    board.wait(1.04e-3);
  }
  CHECK(board.governor.mean_clock() == 1);
}

// 1 ms of products, 0.25 ms of waiting: at clock c a round takes 1/c + 0.25 ms and 0.8 c^2 J, and 100 W draw
// 0.8 c^2 / (1/c + 0.25) beside 100: 2 c^3 = 1 + c/4, c = 0.848.
TEST_CASE("shorter waits leave a part of it") {
  Board board;
  for (int i = 0; i < 2000; ++i) {
    board.run(product(1e-3));
    board.wait(0.25e-3);
  }
  const double c = board.governor.clock();
  CHECK(2 * c * c * c == Approx(1 + c / 4).epsilon(0.02));
}

// 20 ms of products and 5 ms of waiting, over and over: the mix of the case above, twenty times as long.
TEST_CASE("work that is repeated has the clocks of many repetitions after a few runs") {
  const auto round = [](Board& board) {
    std::vector<double> seconds;
    for (int i = 0; i < 20; ++i) seconds.push_back(board.run(product(1e-3)));
    board.wait(5e-3);
    return seconds;
  };
  Board many, told;
  std::vector<double> last;
  for (int i = 0; i < 50; ++i) last = round(many);
  for (int i = 0; i < 3; ++i) round(told);  // forgotten
  told.governor.forget(told.now);
  std::vector<double> steady = round(told);
  CHECK(steady.front() == 1e-3);
  int runs = 1;
  for (; told.governor.repeat(told.now); ++runs) steady = round(told);
  CHECK(runs <= 4);
  for (int i = 0; i < 20; ++i) CHECK(steady[i] == Approx(last[i]).epsilon(1e-3));
  CHECK(last.front() > 1.05e-3);
}

TEST_CASE("work below the limit runs once") {
  Board board;
  board.governor.forget(board.now);
  for (int i = 0; i < 100; ++i) {
    board.run(product(1e-3));
    board.wait(1.1e-3);
  }
  CHECK(!board.governor.repeat(board.now));
  CHECK(board.governor.mean_clock() == 1);
}

TEST_CASE("what memory bounds takes as long at any clock") {
  Board board;
  for (int i = 0; i < 1000; ++i) board.run(product(1e-3));
  REQUIRE(board.governor.clock() < 0.9);
  const WorkOnChip decode{.kind = OpKind::kGemm, .flops = 1e12, .bytes = 2e9, .seconds = 2e-3};
  CHECK(board.run(decode) == 2e-3);
  CHECK(board.run({.kind = OpKind::kAdd, .bytes = 1e9, .seconds = 1e-3}) == 1e-3);
}

// 10 TB/s x 1e-10 J would be 1 kW: the table's time holds what the board really gave.
TEST_CASE("memory alone never lowers the clock") {
  Board board;
  for (int i = 0; i < 1000; ++i) board.run({.kind = OpKind::kAdd, .bytes = 1e10, .seconds = 1e-3});
  CHECK(board.governor.clock() == 1);
}

// Each rank of four sends and receives three quarters of the buffer, in an all-reduce twice.
TEST_CASE("a transfer reads what it sends and writes what it receives") {
  CHECK(bytes_of_transfer(OpKind::kAllGather, 400, 4) == 600);
  CHECK(bytes_of_transfer(OpKind::kReduceScatter, 400, 4) == 600);
  CHECK(bytes_of_transfer(OpKind::kAllToAll, 400, 4) == 600);
  CHECK(bytes_of_transfer(OpKind::kAllReduce, 400, 4) == 1200);
  CHECK(bytes_of_transfer(OpKind::kSend, 400, 2) == 400);
  CHECK(bytes_of_transfer(OpKind::kCopyToHost, 400, 1) == 400);
  CHECK(bytes_of_transfer(OpKind::kAllReduce, 400, 1) == 0);
}

// As much memory traffic beside products as takes 100 W: 200 + 800 c^3 = 500.
TEST_CASE("what transfers draw beside products leaves these a lower clock") {
  Board board;
  for (int i = 0; i < 2000; ++i) {
    const Time start = board.now;
    board.run(product(1e-3));
    const double bytes = 100 / 1e-10 * (board.now - start).seconds();
    board.governor.ended({.steady = 1e-10 * bytes}, 1, board.now, board.now + time_from_seconds(1e-9));
    board.now = board.now + time_from_seconds(1e-9);
  }
  const double c = board.governor.clock();
  CHECK(c * c * c == Approx(3.0 / 8).epsilon(0.02));
}

TEST_CASE("products that were measured at the limit do not lower the clock of the usual board") {
  Board board;
  for (int i = 0; i < 1000; ++i) CHECK(board.run(product(1e-3, DType::kFp8)) == 1e-3);
}

// Sixty-four boards whose energy has a standard deviation of 4%: the hungriest draws 1 + 0.04 x 2.3437 times
// as much (Harter 1961), and the clock's cube falls by that.
TEST_CASE(
    "the hungriest of many boards has the lowest clock, also where one in the middle just keeps the limit") {
  for (const auto& [dtype, cube] : {std::pair{DType::kBf16, 0.5}, std::pair{DType::kFp8, 1.0}}) {
    Board board;
    board.governor = PowerGovernor(limited_by_hungriest(round_power(), 0.04, 64));
    for (int i = 0; i < 2000; ++i) board.run(product(1e-3, dtype));
    CHECK(board.governor.clock() == Approx(std::cbrt(cube / (1 + 0.04 * 2.3437))).epsilon(1e-3));
  }
}

TEST_CASE("one board alone, or boards that draw alike, are as the one in the middle") {
  CHECK(limited_by_hungriest(round_power(), 0.04, 1).draws == 1);
  CHECK(limited_by_hungriest(round_power(), 0, 4096).draws == 1);
}

TEST_CASE("what memory bounds is as fast on the hungriest board") {
  Board board;
  board.governor = PowerGovernor(limited_by_hungriest(round_power(), 0.04, 1 << 20));
  for (int i = 0; i < 1000; ++i)
    CHECK(board.run({.kind = OpKind::kAdd, .bytes = 1e10, .seconds = 1e-3}) == 1e-3);
}

TEST_CASE("a chip of which no pair of measurements tells the energy keeps its clock") {
  const Catalog catalog;
  const auto power_of = [&](const char* id) {
    const Accelerator chip = catalog.accelerator(id);
    return clock_power(chip, find_profiles(chip, ""));
  };
  CHECK(power_of("a100-sxm").limit == 0);
  CHECK(power_of("l40s").limit == 0);
  CHECK(power_of("h100-sxm").limit == 700);
  // 148 TFLOP/s of its peak at full clock are 137 W beside 77 idle, of 400.
  const ClockPower h20 = power_of("h20-sxm");
  CHECK(h20.idle + h20.joule_per_product[static_cast<std::size_t>(DType::kBf16)] * 148e12 < 0.6 * h20.limit);
}

using Shape3 = std::array<double, 3>;
Shape3 shape_of(const Csv& csv, const CsvRow& row) {
  return {csv.number(row, "n"), csv.number(row, "k"), csv.number(row, "m")};
}

std::map<Shape3, double> moments(const std::string& directory, const std::string& system) {
  std::map<Shape3, double> times;
  const Csv csv(directory + "/gemm.csv.gz", system);
  for (const CsvRow& row : csv.rows())
    if (csv.text(row, "backend") == "trtllm" && csv.text(row, "dtype") == "bfloat16")
      times[shape_of(csv, row)] = csv.number(row, "latency_us") * 1e-6;
  return times;
}

struct Pair {
  double flops = 0, bytes = 0, moment = 0, limited = 0, watts = 0;
};

// One GEMM replayed nine times, and for 0.3 to 1 s at the limit.
std::vector<Pair> pairs_of(const std::string& directory, const std::string& system, double peak) {
  const std::map<Shape3, double> times = moments(directory, system);
  std::vector<Pair> pairs;
  const Csv csv(directory + "/gemm_power.csv.gz", system);
  for (const CsvRow& row : csv.rows()) {
    if (csv.text(row, "backend") != "vllm" || csv.text(row, "dtype") != "bfloat16") continue;
    const auto [n, k, m] = shape_of(csv, row);
    const auto known = times.find({n, k, m});
    if (known == times.end()) continue;
    const Pair pair{2 * n * k * m, 2 * (n * k + m * k + m * n), known->second,
                    csv.number(row, "latency_us") * 1e-6, csv.number(row, "power_w")};
    const bool at_limit = pair.watts >= 0.96 * csv.number(row, "power_limit_w");
    if (at_limit && pair.limited >= 100e-6 && pair.moment <= 2e-3 && pair.flops / pair.moment >= 0.6 * peak)
      pairs.push_back(pair);
  }
  return pairs;
}

// What the governor makes of the GEMM after half a second.
double seconds_at_last(const ClockPower& power, const Pair& pair) {
  Board board{PowerGovernor(power), {}};
  const WorkOnChip work{.flops = pair.flops, .bytes = pair.bytes, .seconds = pair.moment};
  double seconds = 0;
  while (board.now.seconds() < 0.5) seconds = board.run(work);
  return seconds;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

TEST_CASE("energies at full clock are those of GEMMs timed for a moment and for a second") {
  const std::string directory = std::string(MOEBIUS_SOURCE_DIR) + "/../shared/data/kernels";
  if (!std::filesystem::exists(directory + "/gemm_power.csv.gz")) {
    WARN("skipped: ../shared/data/kernels is not there");
    return;
  }
  for (const auto& [id, system, slower] :
       {std::tuple{"h200-sxm", "h200_sxm", 1.15}, std::tuple{"b200-sxm", "b200_sxm", 1.12}}) {
    const Accelerator chip = Catalog().accelerator(id);
    const ClockPower power = clock_power(chip, find_profiles(chip, ""));
    std::vector<double> joules, ratios, errors;
    for (const Pair& pair : pairs_of(directory, system, chip.peak_of(DType::kBf16).value)) {
      const double clock = std::min(1.0, pair.moment / pair.limited);
      const double dynamic = pair.watts - power.idle - power.joule_per_byte * pair.bytes / pair.limited;
      joules.push_back(dynamic * pair.limited / pair.flops / (clock * clock));
      ratios.push_back(pair.limited / pair.moment);
      errors.push_back(std::abs(seconds_at_last(power, pair) / pair.limited - 1));
    }
    INFO(id << ": " << joules.size() << " pairs, " << median(ratios));
    REQUIRE(joules.size() > 200);
    CHECK(1e12 * median(joules) == Approx(1e12 * full_clock_energy(chip, DType::kBf16)).epsilon(0.02));
    CHECK(median(ratios) == Approx(slower).epsilon(0.03));
    CHECK(median(errors) < 0.05);
  }
}

// Bytes that a quantising pass of TensorRT-LLM moves for each element of the operand (two reads of BF16 and a
// write of FP8; FP4 knows its outer scale before), and bytes of an element of the operands themselves.
struct Quantised {
  const char* text;
  DType dtype;
  double pass, stored;
};

// Of the table's GEMMs whose replays for 0.3 to 1 s took over 4% longer than nine: joule a FLOP at full
// clock.
std::vector<double> joules_of_quantised(const std::string& directory, const Quantised& format,
                                        const ClockPower& power) {
  const auto is_one_of = [&](const Csv& csv, const CsvRow& row) {
    return csv.text(row, "backend") == "trtllm" && csv.text(row, "dtype") == format.text;
  };
  std::map<Shape3, double> moments;
  const Csv table(directory + "/gemm.csv.gz", "b200_sxm");
  for (const CsvRow& row : table.rows())
    if (is_one_of(table, row)) moments[shape_of(table, row)] = table.number(row, "latency_us") * 1e-6;
  std::vector<double> joules;
  const Csv replays(directory + "/gemm_power.csv.gz", "b200_sxm");
  for (const CsvRow& row : replays.rows()) {
    if (!is_one_of(replays, row)) continue;
    const auto [n, k, m] = shape_of(replays, row);
    const auto known = moments.find({n, k, m});
    const double limited = replays.number(row, "latency_us") * 1e-6;
    if (known == moments.end() || known->second > 2e-3 || limited < 100e-6) continue;
    const double flops = 2 * n * k * m, pass = format.pass * m * k;
    const double quantising = pass / (0.85 * power.memory_rate);
    const double ratio = (limited - quantising) / (known->second - quantising);
    const double rate = flops / (known->second - quantising);
    if (limited / known->second < 1.04 || rate < 0.3 * power.peak[static_cast<std::size_t>(format.dtype)])
      continue;
    const double bytes = pass + format.stored * (m * k + n * k) + 2 * m * n;
    joules.push_back(((power.limit - power.idle) * limited - power.joule_per_byte * bytes) / flops * ratio *
                     ratio);
  }
  return joules;
}

TEST_CASE("FP8 and FP4 products of Blackwell draw more than the board may, as one stack's GEMMs tell") {
  const std::string directory = std::string(MOEBIUS_SOURCE_DIR) + "/../shared/data/kernels";
  if (!std::filesystem::exists(directory + "/gemm_power.csv.gz")) {
    WARN("skipped: ../shared/data/kernels is not there");
    return;
  }
  const Accelerator chip = Catalog().accelerator("b200-sxm");
  const ClockPower power = clock_power(chip, find_profiles(chip, ""));
  for (const Quantised& format :
       {Quantised{"fp8", DType::kFp8, 5, 1}, Quantised{"nvfp4", DType::kFp4, 2.5, 0.5}}) {
    const std::vector<double> joules = joules_of_quantised(directory, format, power);
    INFO(format.text << ": " << joules.size() << " pairs");
    REQUIRE(joules.size() > 40);
    CHECK(1e12 * median(joules) == Approx(1e12 * full_clock_energy(chip, format.dtype)).epsilon(0.05));
    CHECK(power.exceeds[static_cast<std::size_t>(format.dtype)]);
  }
  CHECK(full_clock_energy(Catalog().accelerator("h100-sxm"), DType::kFp8) == 0);
}

// Kernels of TensorRT-LLM's at 800 TFLOP/s and more, timed in nine replays and for a second.
TEST_CASE("attention of Blackwell draws more than the board may, at the profile's energy") {
  const std::string directory = std::string(MOEBIUS_SOURCE_DIR) + "/../shared/data/kernels";
  if (!std::filesystem::exists(directory + "/context_attention_power.csv.gz")) {
    WARN("skipped: ../shared/data/kernels is not there");
    return;
  }
  const auto of_bf16 = [](const Csv& csv, const CsvRow& row) {
    return csv.text(row, "backend") == "trtllm" && csv.text(row, "attn_dtype") == "bfloat16" &&
           csv.text(row, "kv_dtype") == "bfloat16" && csv.number(row, "window") == 0;
  };
  const auto shape = [](const Csv& csv, const CsvRow& row) {
    std::vector<double> sizes;
    for (const char* column : {"head_dim", "num_heads", "num_kv_heads", "batch", "seq_len"})
      sizes.push_back(csv.number(row, column));
    return sizes;
  };
  std::map<std::vector<double>, double> moments;
  const Csv table(directory + "/context_attention.csv.gz", "b200_sxm");
  for (const CsvRow& row : table.rows())
    if (of_bf16(table, row)) moments[shape(table, row)] = table.number(row, "latency_us") * 1e-6;
  const Accelerator chip = Catalog().accelerator("b200-sxm");
  const ClockPower power = clock_power(chip, find_profiles(chip, ""));
  std::vector<double> joules, ratios;
  const Csv replays(directory + "/context_attention_power.csv.gz", "b200_sxm");
  for (const CsvRow& row : replays.rows()) {
    if (!of_bf16(replays, row)) continue;
    const std::vector<double> sizes = shape(replays, row);
    const auto known = moments.find(sizes);
    if (known == moments.end() || known->second < 500e-6) continue;
    const double tokens = sizes[3] * sizes[4], flops = 2 * sizes[0] * sizes[1] * tokens * sizes[4];
    const double limited = replays.number(row, "latency_us") * 1e-6, ratio = limited / known->second;
    const double watts = replays.number(row, "power_w");
    if (flops / known->second < 800e12 || watts < 950) continue;
    const double bytes = 2 * tokens * sizes[0] * (2 * sizes[1] + 2 * sizes[2]);
    joules.push_back(((watts - power.idle) * limited - power.joule_per_byte * bytes) / flops * ratio * ratio);
    ratios.push_back(ratio);
  }
  REQUIRE(joules.size() > 100);
  CHECK(median(ratios) > 1.05);
  CHECK(power.attention_exceeds);
  CHECK(1e12 * median(joules) ==
        Approx(1e12 * power.joule_per_flop[static_cast<std::size_t>(DType::kBf16)]).epsilon(0.03));
  const Accelerator hopper = Catalog().accelerator("h200-sxm");
  CHECK_FALSE(clock_power(hopper, find_profiles(hopper, "")).attention_exceeds);
}

}  // namespace
}  // namespace moebius
