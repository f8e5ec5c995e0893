#include "hw/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "hw/catalog.h"
#include "workloads/cost/cost_source.h"
#include "workloads/cost/table.h"

#include "hw/error.h"
#include "tests/catch.h"
#include "tests/process.h"

namespace moebius {
namespace {

const std::string kGood = R"({
  "format": "moebius-profile-1",
  "accelerator": "h800-sxm",
  "reference": {"architecture": "hopper", "cores": 132, "general_cores": 0, "independent_engines": false,
    "memory_rate": 3.35e12, "memory_efficiency": 0.9, "l2": 52428800, "clock": 1.83e9, "power": 700, "kernel_floor": 2.55e-6,
    "peak": {"fp8": 1.979e15}},
  "sources": [{"key": "LAB", "text": "a bench", "licence": "none", "date": "2026-01-01"}],
  "tables": [{
    "name": "dense", "kinds": ["gemm"], "dtype": "fp8", "stack": "lab-1", "source": "LAB", "cores": 132,
    "clocks": "burst", "values": "measured", "in_sample": false, "note": "",
    "site": ["n", "k"], "axes": [{"key": "m", "points": [128, 1024]}],
    "held_out": {"rows": 0, "mean": 0, "median": 0, "p90": 0, "worst": 0}, "rejected": [{"rows": 2, "reason": "noise"}],
    "sites": [[4096, 7168], [7168, 2048]],
    "microseconds": ["20 -", "11 35.5"]}]
})";

std::string changed(const std::string& from, const std::string& to) {
  std::string text = kGood;
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

Profile read(const std::string& text) {
  return profile_from(parse_document(text, "p.json"));
}

TEST_CASE("a profile reads as it was written, and writes as it reads") {
  const Profile profile = read(kGood);
  REQUIRE(profile.tables.size() == 1);
  const ProfileTable& table = profile.tables[0];
  CHECK(table.stack == "lab-1");
  CHECK(table.grid_size() == 2);
  CHECK(table.microseconds[0] == 20);
  CHECK(std::isnan(table.microseconds[1]));
  CHECK(table.microseconds[3] == 35.5F);
  CHECK(table.rejected[0].rows == 2);
  CHECK(profile.reference.memory_rate.value == 3.35e12);
  const std::string text = to_json(profile);
  CHECK(to_json(read(text)) == text);
  CHECK(to_json(read(changed("[[4096, 7168], [7168, 2048]]", "[\"4096 7168\", \" 7168  2048\"]"))) == text);
}

TEST_CASE("a number of a text is the nearest double, however long it is") {
  for (const std::string number : {"20", "0.1", "35.5", "123456.78901234", "0.30000000000000004", "1e-2",
                                   "4.9", "12345678.9012345", "999999999.25", "2.", "00012.50"}) {
    INFO(number);
    const Profile profile = read(changed("[\"20 -\"", "[\"" + number + " -\""));
    CHECK(profile.tables[0].microseconds[0] == static_cast<float>(std::stod(number)));
  }
}

TEST_CASE("a stored format and what a table includes survive reading and writing, and are absent elsewhere") {
  const std::string both =
      "\"dtype\": \"bf16\", \"stored\": \"int4\", \"includes\": [\"quantise\", \"quantise\"]";
  const Profile profile = read(changed("\"dtype\": \"fp8\"", both));
  CHECK(profile.tables[0].stored == DType::kInt4);
  CHECK(profile.tables[0].includes == std::vector<std::string>{"quantise", "quantise"});
  CHECK(to_json(read(to_json(profile))) == to_json(profile));
  CHECK_THAT(to_json(profile), Catch::Contains(both));
  CHECK_THAT(to_json(read(kGood)), !Catch::Contains("stored") && !Catch::Contains("includes"));
}

const std::string kPower =
    R"("power": {"idle_watts": 130, "limit_watts": 700, "joule_per_byte": 1e-10,
    "joule_per_flop": {"bf16": 7e-13, "fp8": 4e-13}, "source": "LAB", "note": "bench", "carried_from": "h200-sxm",
    "held_out": {"rows": 9, "mean": 0.1, "median": 0.05, "p90": 0.2, "worst": 0.3, "bias": -0.02, "quantiles": "-0.3 -0.02 0.1"},
    "rejected": [{"rows": 3, "reason": "short"}]},
  "tables")";

TEST_CASE("what a board draws survives reading and writing, and is absent where nothing is known") {
  const Profile profile = read(changed("\"tables\"", kPower));
  CHECK(profile.power.idle == 130);
  CHECK(profile.power.limit == 700);
  CHECK(profile.power.joule_per_flop[static_cast<std::size_t>(DType::kFp8)] == 4e-13);
  CHECK(profile.power.joule_per_flop[static_cast<std::size_t>(DType::kFp4)] == 0);
  CHECK(profile.power.carried_from == "h200-sxm");
  CHECK(profile.power.held_out.rows == 9);
  CHECK(profile.power.held_out.bias == -0.02);
  CHECK(profile.power.held_out.quantiles == std::vector<double>{-0.3, -0.02, 0.1});
  CHECK(to_json(read(to_json(profile))) == to_json(profile));
  CHECK(read(kGood).power.limit == 0);
  CHECK_THAT(to_json(read(kGood)), !Catch::Contains("idle_watts"));
}

// A device's block, as it stands in a profile.
std::string device_with(const std::string& transfers) {
  std::string block =
      "\"device\": {\"name\": \"a \\\"device\\\"\", \"driver\": \"1.0\", \"date\": \"2026-01-02\", "
      "\"clocks\": \"1 .. 2 MHz\",\n    \"launch\": 2e-06, \"launch_latency\": 0,\n    \"transfers\": [";
  block += transfers;
  block +=
      "],\n    \"interference\": [\n      {\"kernel\": \"gemm\", \"beside\": \"copies\", \"cores\": 16, "
      "\"alone\": 0.001, \"together\": 0.0015, \"neighbour_alone\": 0, \"neighbour_together\": 0}]},\n  ";
  return block;
}

const std::string kTransfer =
    "\n      {\"name\": \"exchange\", \"latency\": 1e-06, \"rate\": 5000000000, \"fit_error\": 0.01, "
    "\"bytes\": [1024, 4096], \"seconds\": [2e-06, 3e-06], \"spread\": [0, 0.5]}";

TEST_CASE("what a device does beside its kernels survives reading and writing, and is absent elsewhere") {
  const std::string block = device_with(kTransfer);
  const Profile profile = read(changed("\"tables\"", block + "\"tables\""));
  REQUIRE(profile.device);
  CHECK(profile.device->name == "a \"device\"");
  CHECK(profile.device->launch == 2e-6);
  REQUIRE(profile.device->transfer(kExchange) != nullptr);
  CHECK(profile.device->transfer(kExchange)->seconds == std::vector<double>{2e-6, 3e-6});
  REQUIRE(profile.device->interference.size() == 1);
  CHECK(profile.device->interference[0].cores == 16);
  CHECK_THAT(to_json(profile), Catch::Contains(block));
  CHECK(to_json(read(to_json(profile))) == to_json(profile));
  CHECK_FALSE(read(kGood).device);
  CHECK_THAT(to_json(read(kGood)), !Catch::Contains("\"device\""));
}

TEST_CASE("what is no device's block is an error that says where and what") {
  const auto said = [](const std::string& transfers) -> std::string {
    try {
      read(changed("\"tables\"", device_with(transfers) + "\"tables\""));
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  const auto with = [](const std::string& from, const std::string& to) {
    std::string text = kTransfer;
    return text.replace(text.find(from), from.size(), to);
  };
  const std::string here = "/device/transfers/0/";
  CHECK_THAT(said(with("[1024, 4096]", "[4096, 1024]")),
             Catch::Contains(here + "bytes: expected ascending sizes, found 1024 after 4096"));
  CHECK_THAT(said(with("[2e-06, 3e-06]", "[2e-06]")),
             Catch::Contains(here + "seconds: expected 2 numbers, found 1"));
  CHECK_THAT(said(with("[0, 0.5]", "[0, \"x\"]")),
             Catch::Contains(here + "spread/1: expected a number from 0 to"));
  CHECK_THAT(said(with("5000000000", "0")), Catch::Contains(here + "rate: expected"));
  CHECK_THAT(
      said(fmt::format("{},{}", kTransfer, kTransfer)),
      Catch::Contains("/device/transfers/1/name: expected every transfer once, found \"exchange\" again"));
  std::string many = kTransfer;
  for (int i = 0; i < 64; ++i) many.append(",").append(with("exchange", std::to_string(i)));
  CHECK_THAT(said(many), Catch::Contains("/device/transfers: expected at most 64 elements, found 65"));
}

TEST_CASE("the spread of a table and the error at its rows survive reading and writing") {
  const std::string both = "\"note\": \"\",\n      \"spread\": 0.0125,\n      \"fit_error\": 0.0300";
  const Profile profile = read(changed("\"note\": \"\"", both));
  CHECK(profile.tables[0].spread == 0.0125);
  CHECK(profile.tables[0].fit_error == 0.03);
  CHECK_THAT(to_json(profile), Catch::Contains(both));
  CHECK(to_json(read(to_json(profile))) == to_json(profile));
}

TEST_CASE("what is not the power of a board is an error that says where and what") {
  struct Case {
    std::string from, to, message;
  };
  const std::vector<Case> cases = {
      {"130", "-1",
       "p.json:8: /power/idle_watts: expected a number of more than 0 and at most 100000, found -1"},
      {"700", "100", "p.json:8: /power/limit_watts: expected a number from 130 to 100000, found 100"},
      {"1e-10", "-1e-10", "p.json:8: /power/joule_per_byte: expected a number from 0 to 1, found -1e-10"},
      {"7e-13", "7", "p.json:9: /power/joule_per_flop/bf16: expected a number from 0 to 1, found 7"},
      {"\"bf16\"", "\"bf17\"", "p.json:9: /power/joule_per_flop/bf17: unknown key \"bf17\""},
      {"\"LAB\"", "\"LAP\"", "p.json:9: /power/source: expected a key of \"sources\", found \"LAP\""},
      {"\"note\"", "\"notes\"", "p.json:9: /power/notes: unknown key \"notes\""},
  };
  for (const Case& c : cases) {
    std::string power = kPower;
    power.replace(power.find(c.from), c.from.size(), c.to);
    INFO(c.to);
    CHECK_THROWS_WITH(read(changed("\"tables\"", power)), Catch::Contains(c.message));
  }
}

TEST_CASE("what is not a profile is an error that says where and what") {
  struct Case {
    std::string from, to, message;
  };
  const std::vector<Case> cases = {
      {"moebius-profile-1", "moebius-profile-9",
       "p.json:2: /format: expected \"moebius-profile-1\", found \"moebius-profile-9\""},
      {"[128, 1024]", "[1024, 128]",
       "p.json:11: /tables/0/axes/0/points/1: expected more than 1024, found 128"},
      {"[128, 1024]", "[0, 1024]",
       "p.json:11: /tables/0/axes/0/points/0: expected a number from 1e-06 to 1000000000000000, found 0"},
      {"\"key\": \"m\"", "\"key\": \"mm\"", "/tables/0/axes/0/key: expected one of m, n, k, rows"},
      {"11 35.5", "11", "p.json:14: /tables/0/microseconds/1: expected 2 values, found 1"},
      {"11 35.5", "11 35.5 40", "p.json:14: /tables/0/microseconds/1: expected 2 values, found more"},
      {"11 35.5", "11 -1",
       "p.json:14: /tables/0/microseconds/1: value 1: expected a number from 0.001 to 1000000000, found -1"},
      {"11 35.5", "11 nan",
       "p.json:14: /tables/0/microseconds/1: value 1: expected a number from 0.001 to 1000000000, found nan"},
      {"11 35.5", "11 3x",
       "p.json:14: /tables/0/microseconds/1: value 1: expected a number or -, found \"3x\""},
      {"\"11 35.5\"", "[11, 35.5]", "p.json:14: /tables/0/microseconds/1: expected a string, found an array"},
      {"11 35.5", "- -",
       "p.json:14: /tables/0/microseconds/1: expected at least one measured value, found none"},
      {"[7168, 2048]]", "[4096, 7168]]",
       "p.json:13: /tables/0/sites/1: expected every site once, found one again"},
      {"[7168, 2048]]", "\"4096 7168\"]",
       "p.json:13: /tables/0/sites/1: expected every site once, found one again"},
      {"[7168, 2048]]", "\"7168\"]", "p.json:13: /tables/0/sites/1: expected 2 numbers, found 1"},
      {"[7168, 2048]]", "\"7168 2048 1\"]", "p.json:13: /tables/0/sites/1: expected 2 numbers, found 3"},
      {"[7168, 2048]]", "\"7168 2k\"]",
       "p.json:13: /tables/0/sites/1: value 1: expected a number, found \"2k\""},
      {"[7168, 2048]]", "\"7168 -2\"]",
       "p.json:13: /tables/0/sites/1: value 1: expected a number from 0 to 1000000000000000, found -2"},
      {"[7168, 2048]]", "7168]", "p.json:13: /tables/0/sites/1: expected an array"},
      {"\"source\": \"LAB\"", "\"source\": \"LAP\"",
       "p.json:9: /tables/0/source: expected a key of \"sources\", found \"LAP\""},
      {"\"dtype\": \"fp8\"", "\"dtype\": \"fp9\"",
       "p.json:9: /tables/0/dtype: expected a number format such as \"fp8\", found \"fp9\""},
      {"\"dtype\": \"fp8\"", "\"dtype\": \"bf16\", \"stored\": \"int3\"",
       "p.json:9: /tables/0/stored: expected a number format such as \"fp8\", found \"int3\""},
      {"\"dtype\": \"fp8\"", "\"dtype\": \"bf16\", \"stored\": 4",
       "p.json:9: /tables/0/stored: expected a string, found 4"},
      {"\"dtype\": \"fp8\"", "\"dtype\": \"fp8\", \"includes\": []",
       "p.json:9: /tables/0/includes: expected 1 to 64 names, found 0"},
      {"{\"fp8\": 1.979e15}", "{}",
       "/reference/peak: expected the peak of one number format at least, found none"},
      {"\"note\": \"\"", "\"notes\": \"\"", "unknown key \"notes\""},
  };
  for (const Case& c : cases) {
    INFO(c.to);
    CHECK_THROWS_WITH(read(changed(c.from, c.to)), Catch::Contains(c.message));
  }
}

TEST_CASE("a truncated profile is an error, wherever it ends") {
  for (std::size_t length = 0; length < kGood.size() - 2; length += 13)
    CHECK_THROWS_AS(read(kGood.substr(0, length)), Error);
}

TEST_CASE("a profile of a chip whose architecture is unknown is an error") {
  const Profile profile = read(changed("\"hopper\"", "\"hoper\""));
  CHECK_THROWS_WITH(MeasuredTables({profile}), "profile of h800-sxm: unknown architecture \"hoper\"");
}

TEST_CASE("a chip finds its own embedded profile, then those of the chips that it is based on") {
  const Catalog catalog;
  const auto found = [&](const char* chip) {
    std::vector<std::string> chips;
    for (const Profile& profile : find_profiles(catalog.accelerator(chip), ""))
      chips.push_back(profile.accelerator);
    return chips;
  };
  CHECK(found("h100-sxm") == std::vector<std::string>{"h100-sxm"});
  CHECK(found("h800-sxm") == std::vector<std::string>{"h800-sxm", "h100-sxm"});
  CHECK(found("a800-sxm") == std::vector<std::string>{"a100-sxm"});
  CHECK(found("h20-sxm-141gb") == std::vector<std::string>{"h20-sxm"});
  CHECK(found("gb200-nvl72") == std::vector<std::string>{"b200-sxm"});
  CHECK(found("mi300x") == std::vector<std::string>{"mi300x"});
  CHECK(found("mi325x") == std::vector<std::string>{"mi300x"});
  CHECK(found("kunlun-p800").empty());
  CHECK(found("h100-nvl") == std::vector<std::string>{"h100-sxm"});
  CHECK(found("rtx-4090") == std::vector<std::string>{"l40s"});
  CHECK(found("gb200-nvl4") == std::vector<std::string>{"b200-sxm"});
  CHECK(found("mi355x").empty());
  CHECK(found("a40").empty());
  CHECK(found("gb300-nvl72") ==
        std::vector<std::string>{"gb300-nvl72"});  // another architecture than its base
}

TEST_CASE("kernels of a chip that is based on another one are that one's, as the model carries them over") {
  const Catalog catalog;
  const auto costs = [&](const char* chip) { return make_cost_source(catalog.accelerator(chip), "", ""); };
  const CostQuery gemm{.kind = OpKind::kGemm,
                       .shape = {.m = 4096, .n = 4096, .k = 4096},
                       .dtype = DType::kBf16,
                       .cores = 132,
                       .rows = {}};
  const Cost h100 = costs("h100-sxm")->cost(gemm), h800 = costs("h800-sxm")->cost(gemm);
  CHECK(h800.origin == h100.origin);
  CHECK(h800.seconds == Approx(h100.seconds));
  Shape shape{.m = 64, .kv = 65536};
  shape.groups = 64;
  shape.heads = 8;
  shape.kv_heads = 1;
  shape.head_dim = shape.v_dim = 128;
  const CostQuery decode{
      .kind = OpKind::kAttention, .shape = shape, .dtype = DType::kBf16, .cores = 78, .rows = {}};
  const Cost h20 = costs("h20-sxm")->cost(decode), h20e = costs("h20-sxm-141gb")->cost(decode);
  CHECK(h20e.origin == h20.origin);
  CHECK(h20e.seconds <= h20.seconds);  // its memory is 1.2 times as fast
}

TEST_CASE("a profile of the data directory comes before the embedded one, and adds chips that have none") {
  const test::Scratch scratch;
  const std::filesystem::path folder = scratch.path("data");
  std::filesystem::create_directories(folder / "profiles");
  std::ofstream(folder / "profiles" / "mine.json") << kGood;
  const auto profiles = find_profiles(Catalog().accelerator("h800-sxm"), folder.string());
  REQUIRE(profiles.size() == 3);
  CHECK(profiles[0].tables[0].stack == "lab-1");
  CHECK(profiles[2].accelerator == "h100-sxm");
  CHECK(find_profiles(Catalog().accelerator("kunlun-p800"), folder.string()).empty());
  std::ofstream(folder / "profiles" / "mine.json") << "{";
  CHECK_THROWS_AS(find_profiles(Catalog().accelerator("h800-sxm"), folder.string()), Error);
}

TEST_CASE("tables of the shipped profile state their source, cores and error on rows kept out") {
  const auto profiles = find_profiles(Catalog().accelerator("h800-sxm"), "");
  for (const ProfileTable& table : profiles.at(0).tables) {
    INFO(table.stack << " " << table.name);
    std::size_t values = 0;
    for (const float value : table.microseconds) values += std::isnan(value) ? 0 : 1;
    // Ten rows and more keep every fifth out; the hash decides, so that the number varies.
    if (values >= 10) CHECK(table.held_out.rows > 0);
    if (table.held_out.rows > 0) CHECK(table.held_out.mean > 0);
    CHECK(table.held_out.mean < 0.25);
    CHECK(table.cores > 0);
    // What was measured elsewhere is not learnt from a system run that the project is tested on.
    if (!table.in_sample) continue;
    for (const ProfileTable& other : profiles.at(0).tables)
      for (const std::string& kind : table.kinds)
        CHECK((other.in_sample || other.dtype != table.dtype ||
               std::find(other.kinds.begin(), other.kinds.end(), kind) == other.kinds.end()));
  }
}

// 92 cores instead of 142, the same memory: 17.5 us of one row were as if all came at the data sheet's rate.
TEST_CASE("a chip that has more of nothing is no faster than the neighbour whose kernels tell of it") {
  const Catalog catalog;
  const auto small = make_cost_source(catalog.accelerator("l20"), "", ""),
             large = make_cost_source(catalog.accelerator("l40s"), "", "");
  for (const DType dtype : {DType::kFp8, DType::kBf16})
    for (const std::int64_t m : {1, 2, 16, 64, 128, 129, 512, 4096}) {
      INFO(m);
      const CostQuery query{
          .kind = OpKind::kGemm, .shape = {.m = m, .n = 7168, .k = 2048}, .dtype = dtype, .cores = 92};
      CHECK(small->cost(query).seconds >= large->cost(query).seconds);
      CHECK(small->cost(query).error > large->cost(query).error);
    }
}

// Of neither chip energies are known; at the catalog's power they are what they were.
TEST_CASE("a board that may draw less is slower at products, and not at what memory bounds") {
  const Catalog catalog;
  for (const char* name : {"a100-sxm", "kunlun-p800", "ascend-910b3"}) {
    INFO(name);
    const Document as_it_is = parse_document(
        fmt::format(R"({{"base": "{}", "power": "{:.0f} W"}})", name, catalog.accelerator(name).power.value),
        "chip");
    const Document capped =
        parse_document(fmt::format(R"({{"base": "{}", "power": "150 W"}})", name), "chip");
    const Place place{.file = "chip", .pointer = "", .line = 1};
    const auto full = make_cost_source(catalog.accelerator(name), "", ""),
               same = make_cost_source(catalog.accelerator(as_it_is.root, place), "", ""),
               less = make_cost_source(catalog.accelerator(capped.root, place), "", "");
    const int cores = catalog.accelerator(name).cores;
    const CostQuery large{.kind = OpKind::kGemm, .shape = {.m = 8192, .n = 8192, .k = 8192}, .cores = cores},
        thin{.kind = OpKind::kGemm, .shape = {.m = 1, .n = 8192, .k = 8192}, .cores = cores};
    CHECK(same->cost(large).seconds == full->cost(large).seconds);
    CHECK(less->cost(large).seconds > 1.2 * full->cost(large).seconds);
    CHECK(less->cost(large).seconds < 2.6 * full->cost(large).seconds);
    CHECK(less->cost(thin).seconds == full->cost(thin).seconds);
  }
}

}  // namespace
}  // namespace moebius
