// Jobs on chips of several kinds: matrices between their rows, splits that are legal, what one is estimated
// at.
#include "workloads/study/mixed/split_estimate.h"

#include <set>

#include "workloads/job.h"
#include "tests/catch.h"

namespace moebius {
namespace {

Scenario mixed(const std::string& plan = "{}", int batch = 64) {
  static const Library library("");
  const std::string text = R"({"moebius": 1, "kind": "training", "name": "s", "model": "llama-3.1-8b",
    "cluster": {"pools": [{"name": "gpu", "accelerator": "h800-sxm", "node": "hgx-8", "nodes": 2},
                          {"name": "npu", "accelerator": "ascend-910b", "node": "ascend-910b-8", "nodes": 2}],
                "fabric": {"type": "rail-optimised-clos-roce"}},
    "plan": )" + plan + R"(, "workload": {"sequence_length": 4096, "global_batch": )" +
                           std::to_string(batch) + "}}";
  return read_scenario(parse_document(text, "s.json"), library.hardware, library.models);
}

TEST_CASE("between two widths of a product its efficiency lies between theirs by the logarithm") {
  EfficiencyRow narrow, wide;
  narrow.op = wide.op = "gemm bf16";
  narrow.width = 1024, narrow.rate = 0.4, narrow.peak = 1;
  wide.width = 4096, wide.rate = 0.8, wide.peak = 1;
  const EfficiencyMatrix matrix{"chip", "node", {wide, narrow}};
  CHECK(matrix.efficiency("gemm bf16", 2048) == Approx(0.6));  // half the way from 2^10 to 2^12
  CHECK(matrix.efficiency("gemm bf16", 1024) == Approx(0.4));
  CHECK(matrix.efficiency("gemm bf16", 256) == Approx(0.4));  // beyond the rows: the last one
  CHECK(matrix.efficiency("gemm bf16", 65536) == Approx(0.8));
}

TEST_CASE("a matrix has no share of a peak above one and every class of a chip") {
  static const Library library("");
  for (const char* name : {"h800-sxm", "ascend-910b", "kunlun-p800"}) {
    const Accelerator chip = library.hardware.accelerator(name);
    const EfficiencyMatrix matrix = chip_matrix(chip, *make_cost_source(chip));
    for (const EfficiencyRow& row : matrix.rows) {
      INFO(name << " " << row.op << " " << row.shape);
      CHECK(row.efficiency() > 0);
      CHECK(row.efficiency() <= 1.0001);
    }
    CHECK(matrix.efficiency("gemm bf16", 4096) > 0.3);
    CHECK(matrix.efficiency("adam bf16") > 0.5);
    CHECK(node_for(chip, library.hardware).accelerators == 8);
  }
}

TEST_CASE("whole stages stand on whole pools") {
  const Scenario scenario = mixed();
  std::set<int> stages;
  for (const SplitPlan& plan : legal_splits(scenario, {0, 1})) {
    if (plan.by_replicas) continue;
    stages.insert(plan.pp);
    const int ranks = 32 / plan.pp;  // of a stage
    CHECK(16 % ranks == 0);
    CHECK(ranks % plan.tp == 0);
    CHECK(64 % (ranks / plan.tp) == 0);
  }
  CHECK(stages == std::set<int>{2, 4, 8, 16, 32});
}

TEST_CASE("a pipeline takes its slowest stage for each microbatch and for filling") {
  // 32 layers on one stage of either pool, of 1 and 2 s a layer: 21 and 11 layers take 21 and 22 s, 22 and 10
  // take 22 and 20: 22 s. 16 ranks with tp 8 are 2 replicas, of 32 microbatches each; one more fills.
  const Scenario scenario = mixed();
  const SplitPlan plan{.order = {0, 1}, .tp = 8, .pp = 2};
  CHECK(step_estimate(plan, scenario, {1, 2}) == Approx(22.0 * 33));
  SplitPlan zero_bubble = plan;
  zero_bubble.schedule = PipelineKind::kZbH1;
  CHECK(step_estimate(zero_bubble, scenario, {1, 2}) == Approx(22.0 * (32 + 1.0 / 3)));
}

TEST_CASE("replicas of unlike chips end together to a whole microbatch") {
  // Two replicas of 32 s a microbatch, two of 64 s: 64 microbatches at 2/32 + 2/64 a second are 682.67 s; the
  // fast ones take 22 at most (21.33), 704 s, the slow ones 11 (10.67), 704 s.
  const Scenario scenario = mixed();
  const SplitPlan plan{.order = {0, 1}, .tp = 8, .by_replicas = true};
  CHECK(step_estimate(plan, scenario, {1, 2}) == Approx(704));
}

TEST_CASE("a layer takes longer on a slower chip and less on more ranks") {
  const Scenario scenario = mixed(R"({"tp": {"attention": 8, "sequence_parallel": true}})");
  static const Library library("");
  std::vector<double> seconds;
  for (const Pool& pool : scenario.cluster->pools) {
    EfficiencyMatrix matrix = chip_matrix(pool.accelerator, *make_cost_source(pool.accelerator));
    EfficiencyRow link;
    link.op = "all-gather in a node";
    link.rate = link.peak = 1;
    matrix.rows.push_back(link);
    CHECK(layer_seconds(matrix, pool, scenario, 8) < layer_seconds(matrix, pool, scenario, 1));
    // Never faster than three times the layer's FLOPs at the chip's peak.
    const double flops = 3 * 4096 * layer_flops_per_token(scenario.model, 31, 4096, true).value;
    seconds.push_back(layer_seconds(matrix, pool, scenario, 1));
    CHECK(seconds.back() > flops / pool.accelerator.peak_of(DType::kBf16).value);
  }
  CHECK(seconds[1] > seconds[0]);
}

TEST_CASE("a matrix has the products of a plan's own format") {
  const Scenario scenario = mixed(R"({"precision": {"gemm": "fp32"}})");
  for (const Pool& pool : scenario.cluster->pools) {
    const auto costs = make_cost_source(pool.accelerator);
    const EfficiencyMatrix matrix = chip_matrix(pool.accelerator, *costs, scenario.plan.gemm);
    CHECK(matrix.efficiency("gemm fp32", 4096) > 0);
    // Chips multiply FP32 several times slower than BF16.
    CHECK(layer_seconds(matrix, pool, scenario, 1) > 2 * layer_seconds(matrix, pool, mixed(), 1));
  }
}

}  // namespace
}  // namespace moebius
