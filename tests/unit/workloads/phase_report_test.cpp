// Reports of one phase alone, and the formats that headers tell.
#include <string>

#include "hw/document.h"
#include "tests/process.h"

#include "tests/catch.h"

namespace moebius {
namespace {

using Catch::Matchers::Contains;

std::string reported(const std::string& arguments) {
  INFO(arguments);
  const test::Finished finished =
      test::run_moebius("run " + std::string(MOEBIUS_SOURCE_DIR) + "/scenarios/" + arguments);
  REQUIRE(finished.exit_code == 0);
  return finished.out;
}

bool is_null(const Document& report, const char* key) {
  INFO(key);
  const Value* found = report.root.find(key);
  REQUIRE(found != nullptr);
  if (found->kind == Value::Kind::kObject) found = found->find("mean");  // keys of a spread stay
  REQUIRE(found != nullptr);
  return found->kind == Value::Kind::kNull;
}

constexpr const char* kDecode = "validate/serving-infersim/qwen3-30b-decode.json";  // 4 devices of nodes of 8
constexpr const char* kPrefill = "validate/serving-infersim/qwen3-8b-prefill.json";
const std::string kPriced =
    R"( --set '/cluster/pools/0/accelerator={"base": "h20-sxm", "price": "2 USD/h"}')";

}  // namespace

TEST_CASE("decoding alone has no first token and no prompts that were computed") {
  const std::string text = reported(kDecode + kPriced);
  CHECK_THAT(text, Contains("TPOT") && !Contains("TTFT ") && !Contains(", input "));
  CHECK_THAT(text, Contains("USD a million tokens (out)") && !Contains("million tokens in"));
  const Document report = parse_document(reported(kDecode + kPriced + " --json"), "report.json");
  for (const char* key : {"ttft_s", "input_tokens_per_s"}) CHECK(is_null(report, key));
  for (const char* key : {"tpot_s", "itl_s", "output_tokens_per_s"}) CHECK_FALSE(is_null(report, key));
  const Value& cost = *report.root.find("cost");
  CHECK(cost.find("usd_per_million_input_tokens")->kind == Value::Kind::kNull);
  CHECK(cost.find("usd_per_million_tokens")->number ==
        Approx(cost.find("usd_per_million_output_tokens")->number));
}

TEST_CASE("prompts alone have no time a token") {
  CHECK_THAT(reported(kPrefill), Contains("TTFT") && !Contains("TPOT ") && !Contains("ITL"));
  const Document report = parse_document(reported(std::string(kPrefill) + " --json"), "report.json");
  for (const char* key : {"tpot_s", "itl_s"}) CHECK(is_null(report, key));
  for (const char* key : {"ttft_s", "input_tokens_per_s"}) CHECK_FALSE(is_null(report, key));
}

TEST_CASE("a node of which a few devices serve is told as those") {
  CHECK_THAT(reported(kDecode), Contains("output tokens/s a node of 4 devices that serve: "));
  const Document report = parse_document(reported(std::string(kDecode) + " --json"), "report.json");
  CHECK(report.root.find("output_tokens_per_s_per_node")->number ==
        Approx(report.root.find("output_tokens_per_s")->number));
}

TEST_CASE("a header tells the format of experts where it is another") {
  CHECK_THAT(reported("smoke/serve-framework.json"),
             Contains("gpt-oss-20b, bf16, experts bf16 with fp4 weights, cache bf16\n"));
  CHECK_THAT(reported(kDecode), Contains("qwen3-30b-a3b, bf16, cache bf16\n"));
}

// Too long for any cache, and answers that end with their first token.
TEST_CASE("what no request has is null and no zero") {
  const std::string apart = "smoke/serve-apart.json --set ";
  const std::string nobody =
      apart + R"('/workload/trace={"generator": "batch", "requests": 2, "input": 4000000, "output": 2}')";
  const Document none = parse_document(reported(nobody + " --json"), "report.json");
  CHECK(none.root.find("requests")->find("rejected")->integer == 2);
  for (const char* key : {"ttft_s", "tpot_s", "itl_s", "e2e_s"}) CHECK(is_null(none, key));
  for (const char* key : {"usd_per_million_tokens", "usd_per_million_output_tokens",
                          "usd_per_thousand_good_requests", "joules_per_output_token"}) {
    INFO(key);
    const Value* figure = none.root.find("cost")->find(key);
    CHECK((figure == nullptr || figure->kind == Value::Kind::kNull));
  }
  const std::string one_token =
      apart + R"('/workload/trace={"generator": "batch", "requests": 2, "input": 512, "output": 1}')";
  CHECK_THAT(reported(one_token), Contains("TTFT") && !Contains("TPOT ") && !Contains("ITL"));
  const Document one = parse_document(reported(one_token + " --json"), "report.json");
  for (const char* key : {"tpot_s", "itl_s"}) CHECK(is_null(one, key));
  for (const char* key : {"ttft_s", "e2e_s"}) CHECK_FALSE(is_null(one, key));
}

TEST_CASE("a service that is simulated op by op has the price and the power of its devices") {
  const std::string carried = "smoke/serve-carried.json --json --set /plan/steps=";
  const Document full = parse_document(reported(carried + "full"), "report.json"),
                 surface = parse_document(reported(carried + "surface"), "report.json");
  const auto cost = [](const Document& report, const char* key) {
    const Value* figure = report.root.find("cost")->find(key);
    REQUIRE(figure != nullptr);
    return figure->number;
  };
  CHECK(cost(full, "usd_per_hour") > 0);
  CHECK(cost(full, "usd_per_hour") == Approx(cost(surface, "usd_per_hour")));
  CHECK(cost(full, "joules_per_output_token") ==
        Approx(cost(surface, "joules_per_output_token")).epsilon(0.1));
}

TEST_CASE("tokens in and out of a batch cost together what the batch does") {
  const Document report = parse_document(reported("smoke/serve-small.json --json"), "report.json");
  const auto number = [](const Value& of, const char* key) { return of.find(key)->number; };
  const Value& cost = *report.root.find("cost");
  const double seconds = number(report.root, "run_time_s");
  CHECK(1e6 * number(cost, "usd") ==
        Approx(seconds *
               (number(report.root, "input_tokens_per_s") * number(cost, "usd_per_million_input_tokens") +
                number(report.root, "output_tokens_per_s") * number(cost, "usd_per_million_output_tokens"))));
  CHECK(number(cost, "joules_per_output_token") > 0);
}

}  // namespace moebius
