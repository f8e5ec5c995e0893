// Measured costs: what is asked for again is not measured again, many sizes take few measurements, and an
// interrupted run goes on.
#include <catch2/catch.hpp>

#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>

#include "tests/unit/cost/fake_bench.h"
#include "workloads/cost/emulated.h"

namespace moebius {
namespace {

namespace fs = std::filesystem;

Accelerator some_chip() {
  Accelerator chip;
  chip.id = "some-chip";
  chip.cores = 132;
  chip.memory_rate = {3e12};
  return chip;
}

// A device that computes expert by expert: a microsecond for each product and a nanosecond for each row.
double by_expert(const CostQuery& query) {
  const std::int64_t rows = query.kind == OpKind::kGroupedGemmWgrad ? query.shape.k : query.shape.m;
  double seconds = 1e-9 * static_cast<double>(rows);
  if (query.rows.empty()) return seconds + 1e-6 * std::max(query.shape.groups, 1);
  for (const std::int32_t expert : query.rows) seconds += expert > 0 ? 1e-6 : 0;
  return seconds;
}

struct Emulated {
  FakeDevice device;
  std::shared_ptr<MeasuredOps> ops;
  EmulatedCosts costs;

  explicit Emulated(const std::string& journal = "", Formula formula = by_expert, int cores = 1)
      : device(std::move(formula), cores),
        ops(std::make_shared<MeasuredOps>(device.open(), journal)),
        costs(ops, std::make_shared<Recipes>(), some_chip()) {}
};

CostQuery product(std::int64_t m) {
  return {.kind = OpKind::kGemm, .shape = {.m = m, .n = 64, .k = 32}};
}

CostQuery grouped(const std::vector<std::int32_t>& rows) {
  std::int64_t all = 0;
  for (const std::int32_t expert : rows) all += expert;
  return {.kind = OpKind::kGroupedGemm,
          .shape = {.m = all, .n = 64, .k = 32, .groups = static_cast<std::int32_t>(rows.size())},
          .rows = rows};
}

// A file that goes away.
struct Journal {
  std::string path = (fs::temp_directory_path() / ("moebius-journal-" + std::to_string(getpid()))).string();
  Journal() { fs::remove(path); }
  ~Journal() { fs::remove(path); }
  void write(const std::string& text) const { std::ofstream(path) << text; }
  std::string text() const {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
};

const std::string kLine =
    R"({"device": "a fake", "kind": "gemm", "dtype": "bf16", "m": 8, "n": 64, "k": 32, )"
    R"("seconds": 0.5, "spread": 0.125, "repetitions": 3})";

}  // namespace

TEST_CASE("an op that is asked for again is not measured again") {
  Emulated emulated;
  const Cost first = emulated.costs.cost(product(8));
  CHECK(emulated.device.measured() == 1);
  CHECK(first.seconds == Approx(1.008e-6));
  CHECK(first.origin == Origin::kMeasured);
  CHECK(first.error == Approx(0.01));
  CHECK(emulated.costs.cost(product(8)).seconds == first.seconds);
  CHECK(emulated.device.measured() == 1);
  emulated.costs.cost(product(9));
  CHECK(emulated.device.measured() == 2);
  CHECK(emulated.ops->facts().ops == 2);
}

TEST_CASE("sums of gradients in two formats are two ops, and move the bytes of theirs") {
  const Journal journal;
  CostQuery sum{.kind = OpKind::kGemmWgrad, .shape = {.m = 8, .n = 4, .k = 2}};
  const auto adds = [](const CostQuery& query) { return query.summed == DType::kBf16 ? 1e-6 : 2e-6; };
  const double operands = 2 * (8 + 4) * 2;
  for (const int measured : {2, 0}) {  // then they are in the journal
    Emulated emulated(journal.path, adds);
    for (const DType format : {DType::kFp32, DType::kBf16}) {
      sum.summed = format;
      const Cost cost = emulated.costs.cost(sum);
      CHECK(cost.seconds == (format == DType::kBf16 ? 1e-6 : 2e-6));
      CHECK(cost.memory_bytes == Approx(operands + 2 * element_bytes(format) * 8 * 4));
    }
    CHECK(emulated.device.measured() == measured);
  }
}

TEST_CASE("memory traffic of experts is that of the rows that they have") {
  Emulated emulated;
  const std::vector<std::int32_t> rows{3, 0, 1};
  CostQuery query = grouped(rows);
  const double few = emulated.costs.cost(query).memory_bytes;
  CHECK(few == Approx(2.0 * (4 * 32 + 2 * 64 * 32 + 4 * 64)));
  query.shape.m = 64;  // of the busiest rank; the rows say what this one has
  CHECK(emulated.costs.cost(query).memory_bytes == few);
}

TEST_CASE("rows of experts in another order are the same op") {
  Emulated emulated;
  emulated.costs.cost(grouped({5, 0, 2}));
  emulated.costs.cost(grouped({0, 2, 5}));
  CHECK(emulated.device.measured() == 1);
}

TEST_CASE("equal rows are the same op whether they are told or not") {
  Emulated emulated;
  emulated.costs.cost(grouped({4, 4}));
  emulated.costs.cost({.kind = OpKind::kGroupedGemm, .shape = {.m = 8, .n = 64, .k = 32, .groups = 2}});
  CHECK(emulated.device.measured() == 1);
}

TEST_CASE("a grid cell holds its rows between neighbours that lie a quarter apart") {
  for (std::int64_t rows = 1; rows < 3000; ++rows) {
    const GridCell cell = grid_cell(rows);
    REQUIRE(cell.low <= rows);
    REQUIRE(rows <= cell.high);
    REQUIRE(cell.high <=
            std::max<std::int64_t>(cell.low + 1, std::llround(1.25 * static_cast<double>(cell.low))));
  }
}

TEST_CASE("after the first sizes of an op further ones are interpolated between few measured ones") {
  Emulated emulated;
  // A line in the rows: interpolation is exact. 4 sizes as they are, then points of the grid up to 1000, of
  // which there are 1 2 3 4 5 6 8 10 13 16 20 25 31 ... : fewer than 30.
  for (std::int64_t m = 1; m <= 1000; ++m)
    CHECK(emulated.costs.cost(product(m)).seconds == Approx(1e-6 + 1e-9 * static_cast<double>(m)));
  CHECK(emulated.device.measured() < kExactSizes + 30);
  const Cost between = emulated.costs.cost(product(999));
  CHECK(between.origin == Origin::kInterpolated);
  CHECK(between.error > 0.01);  // the spread, and the way to the farther neighbour
}

TEST_CASE("uneven experts are put together from equal ones") {
  Emulated emulated;
  std::uint64_t state = 1;
  for (int draw = 0; draw < 200; ++draw) {
    std::vector<std::int32_t> rows;
    for (int expert = 0; expert < 8; ++expert) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      rows.push_back(static_cast<std::int32_t>(state >> 56));  // 0 .. 255
    }
    const CostQuery query = grouped(rows);
    CHECK(emulated.costs.cost(query).seconds == Approx(by_expert(query)));
  }
  CHECK(emulated.device.measured() < kExactSizes + 25);  // points of the grid up to 255
}

// A recurrence over sequences: rows are tokens of each, m those of all.
TEST_CASE("a recurrence over unlike sequences takes as long as all of them") {
  Emulated emulated;
  for (std::int32_t longer = 5; longer < 120; ++longer) {
    const std::vector<std::int32_t> tokens = {longer, longer / 2, 3};
    CostQuery query = grouped(tokens);
    query.kind = OpKind::kDeltaRule;
    CHECK(emulated.costs.cost(query).seconds == Approx(by_expert(query)));
    query.rows = {};  // equal ones
    query.shape.m = 3 * longer;
    CHECK(emulated.costs.cost(query).seconds == Approx(by_expert(query)));
  }
  CHECK(emulated.device.measured() < 115);
}

TEST_CASE("what a step function hides between two points is within the stated error") {
  const Formula steps = [](const CostQuery& query) {
    return 1e-6 * static_cast<double>((query.shape.m + 127) / 128);
  };
  Emulated emulated("", steps);
  for (std::int64_t m = 1; m <= 1000; ++m) {
    const Cost cost = emulated.costs.cost(product(m));
    CHECK(std::abs(steps(product(m)) - cost.seconds) <= cost.error * cost.seconds * 1.0001);
  }
}

TEST_CASE("an update of very many elements is measured on a part of them") {
  Emulated emulated("", [](const CostQuery& query) { return 1e-9 * static_cast<double>(query.shape.m); });
  const CostQuery update{.kind = OpKind::kAdam, .shape = {.m = 20 * kMostElements, .n = 1}};
  const Cost cost = emulated.costs.cost(update);
  CHECK(cost.seconds == Approx(1e-9 * 20 * static_cast<double>(kMostElements)));
  CHECK(cost.origin == Origin::kExtrapolated);
  CHECK(emulated.ops->knows(key_of({.kind = OpKind::kAdam, .shape = {.m = kMostElements, .n = 1}}, 0)));
}

TEST_CASE("cores that an op holds are a share of the device at hand") {
  Emulated emulated("", by_expert, 66);  // half of the chip's 132
  CostQuery query = product(8);
  query.cores = 112;
  emulated.costs.cost(query);
  CHECK(emulated.device.asked->back().find("\"cores\": 56") != std::string::npos);
  query.cores = 132;
  emulated.costs.cost(query);
  CHECK(emulated.device.asked->back().find("cores") == std::string::npos);
}

TEST_CASE("memory traffic is never more than the chip could have in the time") {
  Emulated emulated;  // 1.008 us at 3 TB/s: 3.024 MB
  CostQuery large{.kind = OpKind::kAdd, .shape = {.m = 8, .n = 1000000}};
  CHECK(emulated.costs.cost(large).memory_bytes == Approx(1.008e-6 * 3e12));
  // a sum of 8 x 10 in BF16: three times 160 bytes
  large.shape.n = 10;
  CHECK(emulated.costs.cost(large).memory_bytes == Approx(480));
}

TEST_CASE("an interrupted run finds in the journal what it has measured") {
  const Journal journal;
  double first = 0;
  {
    Emulated emulated(journal.path);
    first = emulated.costs.cost(product(8)).seconds;
    emulated.costs.cost(grouped({5, 0, 2}));
  }
  Emulated again(journal.path);
  CHECK(again.costs.cost(product(8)).seconds == first);
  again.costs.cost(grouped({2, 5, 0}));
  CHECK(again.device.asked->empty());
  again.costs.cost(product(16));
  CHECK(again.device.measured() == 1);
  CHECK(again.ops->facts().ops == 3);
  CHECK(again.ops->facts().from_journal == 2);
  CHECK(load_journal(journal.path).size() == 3);
}

TEST_CASE("a journal keeps what other devices measured and does not use it") {
  const Journal journal;
  std::string other = kLine;
  other.replace(other.find("a fake"), 6, "another");
  journal.write(other + "\n");
  Emulated emulated(journal.path);
  emulated.costs.cost(product(8));
  CHECK(emulated.device.measured() == 1);
  CHECK(load_journal(journal.path).size() == 2);
}

TEST_CASE("a journal is read back as it was written") {
  const Journal journal;
  journal.write(kLine + "\n");
  const std::vector<JournalLine> lines = load_journal(journal.path);
  REQUIRE(lines.size() == 1);
  CHECK(lines[0].key == key_of(product(8), 0));
  CHECK(lines[0].measured.seconds == 0.5);
  CHECK(lines[0].measured.spread == 0.125);
  CHECK(lines[0].measured.repetitions == 3);
  save_journal(journal.path, lines);
  CHECK(journal.text() == kLine + "\n");
}

TEST_CASE("a corrupt journal is told by file and line and what was expected") {
  const Journal journal;
  const auto fails_with = [&](const std::string& text, const std::string& sentence) {
    journal.write(text);
    CHECK_THROWS_WITH(load_journal(journal.path), journal.path + ":" + sentence);
  };
  std::string wrong = kLine;
  wrong.replace(wrong.find("gemm"), 4, "germ");
  journal.write(kLine + "\n" + wrong + "\n");
  CHECK_THROWS_WITH(load_journal(journal.path),
                    Catch::StartsWith(journal.path + ":2: /kind: expected one of \"input\", ") &&
                        Catch::EndsWith(", found \"germ\" (did you mean \"gemm\"?)"));
  wrong = kLine;
  wrong.replace(wrong.find("0.5"), 3, "-1 ");
  fails_with(wrong + "\n", "1: /seconds: expected a number of more than 0 and at most 1000000, found -1");
  fails_with(kLine + "\n" + kLine.substr(0, 30),
             "2: expected '\"' at the end of a string, found the end of the file");
  fails_with("17\n", "1: expected an object, found 17");
  fails_with(
      kLine.substr(0, kLine.size() - 1) + ", \"colour\": 1}\n",
      R"(1: /colour: unknown key "colour"; known are "cores", "device", "dtype", "fused_quantise", "groups", )"
      R"("head_dim", "heads", "hot", "k", "kind", "kv", "kv_heads", "m", "n", "repetitions", "seconds", )"
      R"("spread", "stored", "summed", "v_dim", "window")");
  wrong = kLine;
  wrong.replace(wrong.find("\"m\": 8"), 6, "\"rows\": [1, -2]");
  fails_with(wrong + "\n", "1: /rows: expected rows of 0 .. 2e9, found -2");
}

TEST_CASE("what takes long is said beforehand, with how long and at which rates") {
  // Every op takes a second, the probes' too. 2 * 256 * 1024 * 1024 FLOPs in a second are 0.537 GFLOP/s.
  Emulated emulated("", [](const CostQuery&) { return 1.0; });
  // 2 * 65536 * 4096 * 4096 FLOPs at that rate take 4096 s, three times 3.4 hours.
  const OpKey key = key_of({.kind = OpKind::kGemm, .shape = {.m = 65536, .n = 4096, .k = 4096}}, 0);
  CHECK(emulated.ops->estimate({key}) == Approx(3 * 4096).epsilon(0.1));
  CHECK_THAT(emulated.ops->note({key}), Catch::StartsWith("measuring 1 ops on a fake takes about 2") &&
                                            Catch::Contains("at the 0.537 GFLOP/s and 0.00629 GB/s"));
  CHECK(emulated.ops->note({key_of(product(8), 0)}).empty());
}

}  // namespace moebius
