// What a report says about given metrics.
#include <catch2/catch.hpp>

#include <cmath>

#include "hw/catalog.h"
#include "models/model.h"
#include "workloads/report/report.h"
#include "workloads/report/report_figures.h"
#include "workloads/scenario/scenario.h"

namespace {

using namespace moebius;
using Catch::Matchers::Contains;

Scenario scenario_at(const std::string& file,
                     const std::vector<std::pair<std::string, std::string>>& changes = {}) {
  Document document = load_document(std::string(MOEBIUS_SOURCE_DIR) + "/scenarios/" + file);
  for (const auto& [pointer, value] : changes) set_at_pointer(document, pointer, value);
  return read_scenario(document, Catalog(), ModelCatalog());
}

// A run of `seconds` in which every rank computes GEMMs for half of the time, waits for a dispatch for a
// quarter, hides another quarter of dispatch behind the GEMMs, and idles for the rest.
Report report_of(const Scenario& scenario, double seconds) {
  Report report;
  report.scenario = &scenario;
  report.facts.executor = "sim";
  report.facts.detail = "fluid";
  report.metrics.makespan = time_from_seconds(seconds);
  Breakdown& sums = report.metrics.breakdown;
  sums.compute[static_cast<int>(OpKind::kGemm)] = seconds / 2;
  sums.communication[static_cast<int>(OpKind::kDispatch)] = seconds / 2;
  sums.exposed[static_cast<int>(OpKind::kDispatch)] = seconds / 4;
  sums.idle = seconds / 4;
  sums.waiting[static_cast<int>(OpKind::kDispatch)] = seconds / 16;
  sums.waiting[static_cast<int>(OpKind::kRecv)] = seconds / 16;
  report.metrics.seconds_by_origin[static_cast<int>(Origin::kMeasured)] = 3;
  report.metrics.seconds_by_origin[static_cast<int>(Origin::kNetwork)] = 1;
  report.metrics.mean_error = 0.05;
  report.metrics.sent_bytes = 2048e9;
  return report;
}

double value(const Report& report, const std::string& path) {
  INFO(path);
  const std::optional<double> found = report_value(report_json(report), path);
  REQUIRE(found.has_value());
  return *found;
}

}  // namespace

TEST_CASE("bus bandwidth scales algorithm bandwidth as nccl-tests does") {
  // 1 MiB in 1 ms: algorithm bandwidth 1048576000 B/s. Bus bandwidth of an all-reduce over n ranks: times
  // 2(n-1)/n, of an all-to-all, all-gather or reduce-scatter (n-1)/n, of a broadcast 1.
  const double algorithm = 1048576000.0, ranks = 1024;
  const std::vector<std::pair<std::string, double>> factors{{"all-reduce", 2 * (ranks - 1) / ranks},
                                                            {"reduce-scatter", (ranks - 1) / ranks},
                                                            {"all-gather", (ranks - 1) / ranks},
                                                            {"all-to-all", (ranks - 1) / ranks},
                                                            {"broadcast", 1}};
  for (const auto& [operation, factor] : factors) {
    INFO(operation);
    const Scenario scenario = scenario_at(
        "smoke/allreduce-1024.json", {{"/workload/operation", operation}, {"/workload/algorithm", "auto"}});
    const Report report = report_of(scenario, 1e-3);
    CHECK(value(report, "collective.time_s") == 1e-3);
    CHECK(value(report, "collective.algbw_bytes_per_s") == Approx(algorithm));
    CHECK(value(report, "collective.busbw_bytes_per_s") == Approx(algorithm * factor));
  }
}

// Sums of the same nanoseconds in another order differ in the last bits: 0.1 + 0.2 exceeds 0.3 by 6e-17.
TEST_CASE("differences of equal sums are no time, on whichever side rounding leaves them") {
  const Scenario scenario = scenario_at("study/deepseek-v3-train-2048-h800.json");
  for (const double rounded : {0.1 + 0.2, 0.3 - 1e-16}) {
    Report report = report_of(scenario, 1);
    Breakdown& sums = report.metrics.breakdown;
    const auto dispatch = static_cast<int>(OpKind::kDispatch);
    sums.communication[dispatch] = sums.idle = 0.3;
    sums.exposed[dispatch] = sums.waiting[dispatch] = rounded;
    CHECK(value(report, "breakdown.hidden_communication_s") == 0);
    CHECK(value(report, "breakdown.bubble_s") == 0);
    CHECK_FALSE(report_text(report).empty());
  }
}

TEST_CASE("compute, exposed communication, waiting and bubble add up to the step") {
  const Scenario scenario = scenario_at("study/deepseek-v3-train-2048-h800.json");
  const Report report = report_of(scenario, 20);
  CHECK(value(report, "step_time_s") == 20);
  CHECK(value(report, "breakdown.compute_s") == 10);
  CHECK(value(report, "breakdown.exposed_communication_s") == 5);
  CHECK(value(report, "breakdown.hidden_communication_s") == 5);
  CHECK(value(report, "breakdown.waiting_s") == 1.25);  // in the dispatch; waiting for the pipeline is bubble
  CHECK(value(report, "breakdown.bubble_s") == 3.75);
  CHECK(value(report, "breakdown.by_kind.gemm.compute_s") == 10);
  CHECK(value(report, "breakdown.by_kind.dispatch.busy_s") == 10);
  CHECK(value(report, "breakdown.by_kind.dispatch.exposed_s") == 5);
}

TEST_CASE("a run of several steps reports one of them") {
  const Scenario scenario = scenario_at("study/deepseek-v3-train-2048-h800.json", {{"/workload/steps", "4"}});
  const Report report = report_of(scenario, 80);
  CHECK(value(report, "step_time_s") == 20);
  CHECK(value(report, "network.sent_bytes") == report.metrics.sent_bytes / 4);
  CHECK(value(report, "breakdown.compute_s") == 10);
  CHECK(value(report, "tokens_per_s") == Approx(15360.0 * 4096 / 20));
}

TEST_CASE("MFU is three forward passes over the BF16 peak of all devices") {
  const Scenario scenario = scenario_at("study/deepseek-v3-train-2048-h800.json");
  const Report report = report_of(scenario, 20);
  const double tokens_per_s = 15360.0 * 4096 / 20;
  const double peak = scenario.cluster->pools[0].accelerator.peak_of(DType::kBf16).value;
  const auto flops = [&](bool causal) {
    Model counted = scenario.model;
    counted.mtp_layers = 0;  // as publishers count
    return 3 * forward_flops_per_token(counted, 4096, causal).value;
  };
  CHECK(value(report, "mfu") == Approx(flops(false) * tokens_per_s / (2048 * peak)));
  CHECK(value(report, "mfu_causal") == Approx(flops(true) * tokens_per_s / (2048 * peak)));
  CHECK(value(report, "tflops_per_device") == Approx(flops(false) * tokens_per_s / 2048 * 1e-12));
  CHECK(value(report, "mfu_causal") < value(report, "mfu"));
}

// Llama 3 8B by hand: maps of 4,096 columns to 6,144 and back, MLPs of 14,336, 128,256 words; a query of 32
// heads of 128 columns and 4,096 keys.
TEST_CASE("MFU with adapters is two products with frozen weights, three of all else") {
  const Scenario scenario = scenario_at("validate/dgx-cloud-sft/lora-llama3-8b-8.json");
  const Report report = report_of(scenario, 1);
  const double layer = 4096.0 * (6144 + 4096 + 3 * 14336), adapters = 32 * 8 * (4096.0 + 6144);
  const double products = 2 * (32 * layer + 4096.0 * 128256), attention = 32 * 2.0 * 32 * 4096 * (128 + 128);
  const double flops = 2 * products + 3 * attention + 3 * 2 * adapters;
  const double peak = scenario.cluster->pools[0].accelerator.peak_of(DType::kBf16).value;
  CHECK(value(report, "mfu") == Approx(flops * 32 * 4096 / (8 * peak)));
  CHECK(value(report, "lora.rank") == 8);
  CHECK(value(report, "lora.parameters") == adapters);
  CHECK(value(report, "lora.bytes") == 2 * adapters);
  CHECK(value(report, "lora.checkpoint_bytes") == 14 * adapters);  // with FP32 masters and two moments
  CHECK(value(report, "lora.share") == Approx(adapters / 8.03e9).epsilon(1e-3));
  CHECK_THAT(report_text(report), Contains("adapters of rank 8: 2.62 M parameters"));
}

TEST_CASE("what other machines executed is not held against the scenario's peak") {
  const Scenario scenario = scenario_at("smoke/moe-layer.json");
  Report report = report_of(scenario, 1);
  report.facts.executor = "host";
  report.facts.on_cluster = false;
  CHECK_FALSE(report_value(report_json(report), "mfu").has_value());
  CHECK(report_value(report_json(report), "step_time_s").has_value());
  CHECK_THAT(report_text(report), Contains("executed by        host"));
}

TEST_CASE("intervals of an emulated run are told where its chip is the one that was measured") {
  const Scenario scenario = scenario_at("study/deepseek-v3-train-2048-h800.json");
  Report report = report_of(scenario, 20);
  const std::string told = "four in five measured ones";
  CHECK_THAT(report_text(report), Contains(told));
  report.facts.executor = "emulate";
  report.facts.measured = MeasuringFacts{.device = "host, one core of some CPU"};
  CHECK_THAT(report_text(report), !Contains(told));
  report.facts.measured->chip = "h100-80gb-hbm3";
  CHECK_THAT(report_text(report), !Contains(told));
  report.facts.measured->chip = "h800";
  CHECK_THAT(report_text(report), Contains(told));
}

TEST_CASE(
    "an expectation is judged by its tolerance, shown without one, and named when the report lacks it") {
  Scenario scenario = scenario_at("study/deepseek-v3-train-2048-h800.json");
  scenario.expect = {{"step_time_s", 19, 0.06, "inside: 20 is 5.3% above 19", ""},
                     {"step_time_s", 18, 0.06, "outside: 20 is 11% above 18", ""},
                     {"step_time_s", 18, 0.06, "outside, and known", "no overlap"},
                     {"step_time_s", 10, 0, "shown", ""},
                     {"no.such.figure", 1, 0.1, "absent", ""}};
  const Report report = report_of(scenario, 20);
  std::vector<std::string_view> verdicts;
  for (const JudgedExpectation& row : judge_expectations(report)) verdicts.push_back(to_string(row.verdict));
  CHECK(verdicts == std::vector<std::string_view>{"ok", "miss", "known miss", "shown", "absent"});
}

TEST_CASE("an expectation of a misspelt figure names the one that is meant") {
  Scenario scenario = scenario_at("study/deepseek-v3-train-2048-h800.json");
  scenario.expect = {{"step_tme_s", 19, 0.06, "misspelt", ""}};
  const Report report = report_of(scenario, 20);
  CHECK(judge_expectations(report).at(0).nearest == "step_time_s");
  CHECK_THAT(report_text(report), Contains("did you mean \"step_time_s\"?"));
}

TEST_CASE("the text names the published figure, the difference and its source") {
  const Scenario scenario = scenario_at("study/deepseek-v3-train-2048-h800.json");
  const std::string text = report_text(report_of(scenario, 20));
  // 20 / 19.926 - 1 = 0.37%
  CHECK_THAT(text, Contains("ours        20  published     19.93  +0.4%  shown"));
  CHECK_THAT(text, Contains("ISCA 2025, Table 4"));
}

TEST_CASE("trust is the share of busy time by origin") {
  const Scenario scenario = scenario_at("study/deepseek-v3-train-2048-h800.json");
  const Report report = report_of(scenario, 20);
  CHECK(value(report, "uncertainty.share_of_busy_time.measured") == 0.75);
  CHECK(value(report, "uncertainty.share_of_busy_time.network") == 0.25);
  // 5% over all busy time, of which the network's quarter brings none: 0.05 / 0.75.
  CHECK(value(report, "uncertainty.kernel_relative_error") == Approx(0.05 / 0.75));
}

TEST_CASE("where no op was recorded nothing is said of kernels") {
  const Scenario scenario = scenario_at("smoke/serve-apart.json");
  Report report = report_of(scenario, 20);
  report.metrics = {};
  report.serving = ServingFigures{};
  report.service = ServiceFigures{};
  CHECK_FALSE(report_value(report_json(report), "uncertainty.kernel_relative_error").has_value());
}

TEST_CASE("few tokens a second have their digits, and a service that served nobody has no figures") {
  const Scenario scenario = scenario_at("smoke/serve-apart.json");
  Report report = report_of(scenario, 20);
  report.serving = ServingFigures{};
  report.service = ServiceFigures{};
  report.serving->submitted = report.serving->completed = 3;
  report.serving->output_tokens_per_s = 0.1517;
  report.serving->input_tokens_per_s = 1234.5;
  CHECK_THAT(report_text(report), Contains("output tokens/s    0.152 (") && Contains("), input 1,235"));
  report.serving = ServingFigures{};
  report.serving->submitted = report.service->rejected = 3;
  CHECK_THAT(report_text(report), Contains("no request was served, of 3\n") &&
                                      Contains("rejected           3:") && !Contains("USD an hour") &&
                                      !Contains("TTFT") && !Contains("op by op"));
}

namespace {

// One class: `kernels` of compute with these origins, kinds and expected errors, and the network's exposed
// time.
struct Part {
  Origin origin;
  OpKind kind;
  double seconds, error;
};

Metrics metrics_of(const std::vector<Part>& kernels, double exposed, double idle) {
  Metrics metrics;
  Breakdown sums;
  ErrorSeconds errors{};
  double whole = exposed + idle;
  for (const Part& part : kernels) {
    sums.compute[static_cast<int>(part.kind)] += part.seconds;
    errors[static_cast<int>(part.origin)][static_cast<int>(part.kind)] += part.seconds * part.error;
    whole += part.seconds;
  }
  sums.exposed[static_cast<int>(OpKind::kDispatch)] =
      sums.communication[static_cast<int>(OpKind::kDispatch)] = exposed;
  sums.idle = idle;
  metrics.makespan = time_from_seconds(whole);
  metrics.breakdown = sums;
  metrics.by_class = {sums};
  metrics.errors_by_class = {errors};
  return metrics;
}

const double kDeviation =
    std::sqrt(std::acos(-1.0) / 2);  // over the mean absolute error, of a normal distribution

}  // namespace

TEST_CASE(
    "errors of one table add up, of different ones in quadrature, and idle time errs as the work does") {
  const Scenario scenario = scenario_at("study/deepseek-v3-train-2048-h800.json");
  Report report = report_of(scenario, 1);
  // 3 s of GEMM at 10% and 1 s of its input's gradient at 30% are 0.6 s together; 4 s of attention at 20% are
  // 0.8 s: sqrt(0.36 + 0.64) = 1 s of 8 s of compute. 2 s idle err with them, 2 s of the network do not: 12
  // s, of which 9.6 s are covered.
  report.metrics = metrics_of({{Origin::kMeasured, OpKind::kGemm, 3, 0.1},
                               {Origin::kMeasured, OpKind::kGemmDgrad, 1, 0.3},
                               {Origin::kAnalytic, OpKind::kAttention, 4, 0.2}},
                              2, 2);
  const double relative = 0.8 * kDeviation / 8;
  CHECK(value(report, "uncertainty.interval.covered_share") == Approx(0.8));
  CHECK(value(report, "uncertainty.interval.relative") == Approx(relative));
  CHECK(value(report, "uncertainty.interval.high") == Approx(12 * (1 + relative)));
  CHECK(value(report, "uncertainty.interval.low") == Approx(12 * (1 - relative)));
  CHECK_THAT(report_text(report), Contains("so the step takes") && Contains("one in three falls outside") &&
                                      Contains("20.0% of it is the network's"));
}

TEST_CASE("passes that one formula tells err together, those of tables apart") {
  const Scenario scenario = scenario_at("study/deepseek-v3-train-2048-h800.json");
  Report report = report_of(scenario, 1);
  report.metrics = metrics_of(
      {{Origin::kAnalytic, OpKind::kNorm, 3, 0.1}, {Origin::kAnalytic, OpKind::kAdd, 4, 0.1}}, 0, 0);
  CHECK(value(report, "uncertainty.interval.relative") == Approx(0.1 * kDeviation));
  report.metrics = metrics_of(
      {{Origin::kMeasured, OpKind::kNorm, 3, 0.1}, {Origin::kMeasured, OpKind::kAdd, 4, 0.1}}, 0, 0);
  CHECK(value(report, "uncertainty.interval.relative") == Approx(0.5 / 7 * kDeviation));  // sqrt(0.09 + 0.16)
}

TEST_CASE("of two classes the one that idles least decides") {
  const Scenario scenario = scenario_at("study/deepseek-v3-train-2048-h800.json");
  Report report = report_of(scenario, 1);
  report.metrics = metrics_of({{Origin::kMeasured, OpKind::kGemm, 9, 0.1}}, 0, 1);
  const Metrics other = metrics_of({{Origin::kMeasured, OpKind::kGemm, 5, 0.4}}, 0, 5);
  report.metrics.by_class.insert(report.metrics.by_class.begin(), other.by_class.front());
  report.metrics.errors_by_class.insert(report.metrics.errors_by_class.begin(),
                                        other.errors_by_class.front());
  CHECK(value(report, "uncertainty.interval.relative") == Approx(0.1 * kDeviation));
}

TEST_CASE(
    "a roofline is a bound: it raises the upper end alone; a run without expected errors has no interval") {
  const Scenario scenario = scenario_at("study/deepseek-v3-train-2048-h800.json");
  Report report = report_of(scenario, 1);
  report.metrics = metrics_of({{Origin::kRoofline, OpKind::kGemm, 10, 1.0}}, 0, 0);
  CHECK(value(report, "uncertainty.interval.low") == 10);
  CHECK(value(report, "uncertainty.interval.high") == Approx(10 * (1 + kDeviation)));
  report.metrics = metrics_of({{Origin::kExecuted, OpKind::kGemm, 10, 0}}, 0, 0);
  CHECK_FALSE(report_value(report_json(report), "uncertainty.interval.low").has_value());
}

TEST_CASE("memory is that of the fullest rank") {
  const Scenario scenario = scenario_at("smoke/moe-layer.json");
  Report report = report_of(scenario, 1);
  MemoryReport memory;
  memory.capacity = {80e9};
  memory.classes.resize(2);
  memory.classes[1].peak = {90e9};
  memory.classes[1].at_peak[static_cast<int>(MemoryKind::kActivations)] = {90e9};
  memory.worst_class = 1;
  report.memory = memory;
  CHECK(value(report, "memory.peak_bytes") == 90e9);
  CHECK(value(report, "memory.capacity_bytes") == 80e9);
  CHECK(value(report, "memory.by_kind.activations") == 90e9);
  CHECK_THAT(memory_text(memory), Contains("112.5% of") && Contains("does not fit"));
}
