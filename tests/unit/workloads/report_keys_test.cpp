// Keys that every report of a kind has, null where they mean nothing: scripts rely on them.
#include <map>
#include <optional>
#include <string>

#include "hw/document.h"
#include "tests/process.h"
#include "workloads/report/report.h"

#include "tests/catch.h"

namespace moebius {
namespace {

Document reported(const std::string& arguments) {
  INFO(arguments);
  const test::Finished finished = test::run_moebius("run " + std::string(MOEBIUS_SOURCE_DIR) +
                                                    "/scenarios/smoke/" + arguments + " --json");
  REQUIRE(finished.exit_code == 0);
  return parse_document(finished.out, "report.json");
}

Value::Kind kind_at(const Document& report, const char* key) {
  INFO(key);
  const Value* found = report.root.find(key);
  REQUIRE(found != nullptr);
  return found->kind;
}

constexpr const char* kAlways[] = {"scenario",   "kind",        "executor", "detail", "seed",
                                   "provenance", "uncertainty", "wall_s",   "cpu_s",  "max_rss_bytes"};

}  // namespace

TEST_CASE(
    "a service that promises nothing has null for promises that are kept, and for experts placed by load") {
  const Document report = reported("serve-small.json --set '/sla=[]'");
  for (const char* key : {"goodput_rps", "slo_attainment", "eplb"})
    CHECK(kind_at(report, key) == Value::Kind::kNull);
  for (const char* key : {"requests", "ttft_s", "tpot_s", "itl_s", "e2e_s", "kv"})
    CHECK(kind_at(report, key) == Value::Kind::kObject);
  for (const char* key : {"output_tokens_per_s", "input_tokens_per_s"}) kind_at(report, key);
  for (const char* key : kAlways) kind_at(report, key);
}

TEST_CASE("a step that was executed has null for shares of devices that did not run") {
  const Document report = reported("moe-layer.json --executor host");
  for (const char* key : {"mfu", "mfu_causal", "tflops_per_device", "tflops_per_device_causal"})
    CHECK(kind_at(report, key) == Value::Kind::kNull);
  for (const char* key :
       {"step_time_s", "tokens_per_s", "tokens_per_s_per_device", "breakdown", "memory", "network"})
    CHECK(kind_at(report, key) != Value::Kind::kNull);
  for (const char* key : kAlways) kind_at(report, key);
}

// An hour of an H800 costs 2 USD, of an H20 nobody knows what.
TEST_CASE("a step of training has its price and its energy, null where they are not known") {
  const auto cost = [](const std::string& more) {
    const Document report = reported("moe-64-h800.json" + more);
    const Value* cost = report.root.find("cost");
    REQUIRE(cost != nullptr);
    std::map<std::string, std::optional<double>> figures;
    for (std::size_t i = 0; i < cost->keys.size(); ++i)
      figures[cost->keys[i]] =
          cost->items[i].kind == Value::Kind::kNull ? std::nullopt : std::optional(cost->items[i].number);
    figures["step"] = report.root.find("step_time_s")->number;
    figures["tokens"] = report.root.find("tokens_per_s")->number * *figures["step"];
    return figures;
  };
  const auto priced = cost("");
  const double step = *priced.at("step"), tokens = *priced.at("tokens");
  CHECK(*priced.at("usd_per_hour") == Approx(128));
  CHECK(*priced.at("usd_per_step") == Approx(128 * step / 3600));
  CHECK(*priced.at("usd_per_million_tokens") == Approx(1e6 * 128 * step / 3600 / tokens));
  CHECK(*priced.at("joules_per_token") == Approx(*priced.at("joules_per_step") / tokens));
  CHECK(*priced.at("joules_per_step") > 0.5 * 64 * 700 * step);
  const auto unpriced = cost(" --set /cluster/pools/0/accelerator=h20-sxm");
  CHECK(!unpriced.at("usd_per_hour"));
  CHECK(!unpriced.at("usd_per_step"));
  CHECK(!unpriced.at("usd_per_million_tokens"));
  CHECK(unpriced.at("joules_per_token"));
}

// Of an H20 nobody knows the price, but what it draws.
TEST_CASE("a service has its energy in both forms of a report where its price is not known") {
  const std::string unpriced = "serve-tiers.json --set /cluster/pools/0/accelerator=h20-sxm";
  const Document report = reported(unpriced);
  REQUIRE(report.root.find("cost") != nullptr);
  CHECK(report.root.find("cost")->find("usd") == nullptr);
  REQUIRE(report.root.find("cost")->find("joules_per_output_token") != nullptr);
  CHECK(report.root.find("cost")->find("joules_per_output_token")->number > 0);
  const test::Finished text =
      test::run_moebius("run " + std::string(MOEBIUS_SOURCE_DIR) + "/scenarios/smoke/" + unpriced);
  CHECK_THAT(text.out, Catch::Contains("cost               not known: no price of h20-sxm"));
  CHECK_THAT(text.out, Catch::Contains("J a token generated"));
}

TEST_CASE("a report is named after another trace that was set") {
  const test::Scratch scratch;
  const std::string trace = scratch.write(
      "rows.jsonl", R"({"timestamp": 0, "input_length": 10, "output_length": 2, "hash_ids": [1]})");
  const test::Finished finished =
      test::run_moebius("run " + std::string(MOEBIUS_SOURCE_DIR) +
                        "/scenarios/smoke/kv-replay.json --set /workload/trace/path=" + trace);
  CHECK(finished.exit_code == 0);
  CHECK_THAT(finished.out.substr(0, finished.out.find('\n')), Catch::EndsWith("; requests of rows.jsonl"));
}

// Names of classes, tenants and jobs are the user's.
TEST_CASE("a figure is found below a name with dots") {
  const std::string json = R"({"classes": {"qwen2.5": {"ttft_s": {"p50": 3}}, "qwen2": {"5": 4}}, "mfu": null})";
  CHECK(report_value(json, "classes.qwen2.5.ttft_s.p50") == 3);
  CHECK(report_value(json, "classes.qwen2.5") == 4);
  CHECK_FALSE(report_value(json, "classes.qwen2.5.ttft_s"));
  CHECK_FALSE(report_value(json, "classes.qwen2.6"));
  CHECK_FALSE(report_value(json, "mfu"));
}

}  // namespace moebius
