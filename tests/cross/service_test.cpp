// `moebius run` of a whole service.
#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <regex>

#include "tests/process.h"
#include "tests/scenario_file.h"
#include "workloads/report/report.h"

namespace moebius {
namespace {

const std::string kApart = test::scenario_file("smoke/serve-apart.json");

double figure(const std::string& json, const std::string& path) {
  INFO(path);
  const std::optional<double> value = report_value(json, path);
  REQUIRE(value.has_value());
  return *value;
}

std::string report_of(const std::string& arguments) {
  const auto run = test::run_moebius("run " + arguments + " --json");
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  return run.out;
}

}  // namespace

TEST_CASE("prefill and decode apart answer every request, and the report adds up") {
  const std::string json = report_of(kApart);
  CHECK(figure(json, "requests.completed") == 1000);
  CHECK(figure(json, "requests.rejected") == 0);
  const double e2e = 1000 * figure(json, "e2e_s.mean");
  CHECK(figure(json, "request_time_s.queue") + figure(json, "request_time_s.prefill") +
            figure(json, "request_time_s.handover") + figure(json, "request_time_s.decode") ==
        Approx(e2e));
  CHECK(figure(json, "transferred_bytes") > 0);
  CHECK(figure(json, "pools.prefill.prefix.reused_tokens") > 0);
  const std::string again = report_of(kApart);
  CHECK(json.substr(0, json.find("\"wall_s\"")) == again.substr(0, again.find("\"wall_s\"")));
}

TEST_CASE("a service tells where its numbers come from, by the iterations that were timed") {
  const Document report = parse_document(report_of(kApart), "report.json");
  const Value& uncertainty = *report.root.find("uncertainty");
  double sum = 0;
  for (const Value& share : uncertainty.find("share_of_busy_time")->items) {
    CHECK(share.number > 0);
    sum += share.number;
  }
  CHECK(sum == Approx(1));
  CHECK(uncertainty.find("kernel_relative_error")->number > 0);
  CHECK(uncertainty.find("kernel_relative_error")->number < 1);
  const test::Finished text = test::run_moebius("run " + kApart);
  CHECK(text.out.find("\nwhere the numbers come from\n") != std::string::npos);
  CHECK(text.out.find("% of busy time\n") != std::string::npos);
}

TEST_CASE("blocks of a service's cache and of its prompts say how many tokens each has") {
  const std::string json = report_of(kApart);
  CHECK(figure(json, "pools.prefill.block_tokens") == figure(json, "kv.block_tokens"));
  CHECK(figure(json, "pools.prefill.prefix.block_tokens") == 512);
  CHECK(figure(json, "kv.prompt_block_tokens") == 512);
  const test::Finished text = test::run_moebius("run " + kApart);
  CHECK(text.out.find(fmt::format("a cache block holds {} tokens\n", figure(json, "kv.block_tokens"))) !=
        std::string::npos);
}

// The batch as it ships carries out every op; between iterations that were timed it must take as long.
TEST_CASE(
    "what classes and pools cost adds up to what the run costs, with whoever served nobody and encoders") {
  const std::string calm =
      test::scenario_file("smoke/serve-classes.json") + " --set /workload/rate_scale=0.5";
  const std::string classes = report_of(calm);
  CHECK(figure(classes, "classes.urgent.usd") + figure(classes, "classes.document.usd") +
            figure(classes, "classes.batch.usd") + figure(classes, "cost.usd_unused") ==
        Approx(figure(classes, "cost.usd")));
  const auto text = test::run_moebius("run " + calm);
  CHECK(text.out.find("pools unused") != std::string::npos);
  CHECK(text.out.find("served nobody, and is in no class's") != std::string::npos);
  CHECK_FALSE(report_value(classes, "classes.batch.slo_attainment").has_value());
  const std::string images = report_of(test::scenario_file("smoke/serve-encoder.json"));
  CHECK(figure(images, "cost.pools.serve.usd") + figure(images, "cost.pools.encoder.usd") ==
        Approx(figure(images, "cost.usd")));
}

TEST_CASE("images are encoded beside the model whatever experts tokens choose, and stalls are told") {
  const auto run = [](const std::string& popularity) {
    return report_of(test::scenario_file("smoke/serve-encoder.json") +
                     " --set /plan/encoder='{\"model\": \"qwen2.5-vl-vit\", \"max_batch\": 8}'"
                     " --set /plan/separation='{}' --set /cluster/pools/1/nodes=1 --set "
                     "/plan/decode/ep='{\"degree\": 8}' --set /workload/experts/popularity='" +
                     popularity + "'");
  };
  const std::string even = run("balanced"), uneven = run(R"({"zipf": 0.8})");
  CHECK(figure(even, "encoder.images") > 300);
  CHECK(figure(uneven, "encoder.images") == figure(even, "encoder.images"));
  CHECK(figure(uneven, "encoder.busy_s") > 0);
  CHECK(figure(even, "pools.serve.stalls.iteration_s.barrier") > 0);
}

TEST_CASE("a service between timed iterations takes as long as one whose every op is carried out") {
  const std::string file = test::scenario_file("study/deepseek-v3-serve-16-h200.json");
  const std::string plan = " --set /plan/scheduler/chunked=false";
  const std::string full = report_of(file + plan),
                    surface = report_of(file + plan + " --set /plan/steps=surface");
  for (const std::string metric : {"ttft_s.mean", "tpot_s.mean", "e2e_s.mean", "run_time_s", "cost.usd",
                                   "cost.usd_per_million_tokens"}) {
    INFO(metric);
    CHECK(figure(surface, metric) == Approx(figure(full, metric)).epsilon(0.03));
  }
}

// Few tokens read the experts that they choose: those of each replica choose for themselves, rows that ranks
// repeat as padding does, all alike.
TEST_CASE("ranks that gather tokens or repeat rows take as long timed as with every op carried out") {
  const std::string file =
      test::scenario_file("study/deepseek-v3-serve-16-h200.json") +
      R"( --set '/model={"base": "deepseek-v3", "layers": 12}' --set /cluster/pools/0/nodes=1)"
      R"( --set '/workload/experts/popularity={"zipf": 0.8}' --set /plan/prefill/token_budget=1024)"
      R"( --set /workload/trace/input=16 --set /workload/trace/output=6 --set /workload/trace/requests=)";
  for (const std::string plan :
       {R"(16 --set '/plan/decode={"attention": {"dp": 8}, "ep": {"degree": 1, "tp": 8}, "max_batch": 8}')",
        R"(1 --set '/plan/decode={"attention": {"tp": 8}, "max_batch": 8,)"
        R"( "ep": {"degree": 8, "dispatch": "deepep-low-latency"}}')"}) {
    INFO(plan);
    const std::string full = report_of(file + plan + " --set /plan/steps=full"),
                      timed = report_of(file + plan + " --set /plan/steps=surface");
    CHECK(figure(timed, "tpot_s.mean") == Approx(figure(full, "tpot_s.mean")).epsilon(0.08));
  }
}

TEST_CASE(
    "a service explains the ops of an iteration with prompts and of one in the middle, whatever it keeps") {
  const auto run = test::run_moebius("run " + test::scenario_file("smoke/serve-small.json") +
                                     " --explain --set /timeline/detail=steps");
  REQUIRE(run.exit_code == 0);
  CHECK(run.out.find("the first of 15 iterations") != std::string::npos);
  CHECK(run.out.find("iteration 8 of 15") != std::string::npos);
  CHECK(run.out.find("paged_attention") != std::string::npos);
}

TEST_CASE("a service under a framework is explained where its every op is carried out") {
  const auto run =
      test::run_moebius("run " + test::scenario_file("smoke/serve-framework.json") +
                        " --explain --set /plan/steps=full --set /workload/trace/requests=4 --set "
                        "/workload/trace/input=64 --set /workload/trace/output=3 --set /workload/users=2");
  REQUIRE(run.exit_code == 0);
  CHECK(run.out.find("the first of 6 iterations, by layer") != std::string::npos);
  CHECK(std::regex_search(run.out, std::regex("attention +attention +compute")));
}

TEST_CASE("the busiest class of an explained iteration takes part in it") {
  const auto run = test::run_moebius("run " + kApart +
                                     " --explain --set /plan/steps=full --set /workload/trace/requests=3");
  REQUIRE(run.exit_code == 0);
  const std::string columns = "compute  communication\n";
  std::size_t tables = 0;
  for (std::size_t at = run.out.find(columns); at != std::string::npos; at = run.out.find(columns, at + 1)) {
    CHECK(run.out.substr(at + columns.size()).starts_with("       -  "));
    ++tables;
  }
  CHECK(tables >= 2);
}

TEST_CASE("a whole service has no schedule to dump") {
  const auto run = test::run_moebius("run " + kApart + " --dump /dev/null");
  CHECK(run.exit_code == 2);
  CHECK(run.err.find("a service whose iterations are timed has no schedule to execute") != std::string::npos);
  const auto decode = test::run_moebius(
      "run " + test::scenario_file("validate/serving-infersim/qwen3-8b-decode.json") + " --explain");
  CHECK(decode.exit_code == 2);  // and all steps carried out would be refused
  CHECK(decode.err.find("/plan/phase: decoding behind caches that nobody filled is timed iteration by "
                        "iteration and has no schedule to execute, to explain or to dump: expected \"both\" "
                        "with /plan/steps \"full\", found \"decode\"") != std::string::npos);
}

// The same keys, and what does not depend on the clock the same.
TEST_CASE("a service that is carried out reports what a simulated one does") {
  const std::string file = test::scenario_file("smoke/serve-carried.json");
  const std::string simulated = report_of(file), executed = report_of(file + " --executor host");
  for (const std::string key : {"requests.submitted", "requests.completed", "transferred_bytes",
                                "pools.prefill.prefix.prompt_tokens"}) {
    INFO(key);
    CHECK(figure(executed, key) == figure(simulated, key));
  }
  for (const std::string key : {"ttft_s.p99", "tpot_s.p50", "itl_s.mean", "e2e_s.p90", "goodput_rps",
                                "pools.decode.iterations", "request_time_s.handover"}) {
    INFO(key);
    CHECK(figure(executed, key) > 0);
  }
}

TEST_CASE("a service that ships answers the same whatever its scheduler does") {
  const std::string file = test::scenario_file("smoke/serve-carried.json") + " --executor host";
  const auto hash = [](const std::string& json) { return json.substr(json.find("\"hash\""), 28); };
  const std::string expected = hash(report_of(file));
  CHECK(hash(report_of(file + " --set /plan/cache/prefix=false --set /plan/scheduler/chunked=false")) ==
        expected);
  CHECK(hash(report_of(file + " --set /plan/scheduler/batching=prefill-first --set /plan/decode/max_batch=2 "
                              "--set /plan/router=round-robin")) == expected);
}

// Caches that move meet the iterations' own traffic there, and no grid rounds what they take.
TEST_CASE("a service whose every op is carried out by the simulator takes what a timed one takes") {
  const std::string file = test::scenario_file("smoke/serve-carried.json");
  const std::string full = report_of(file + " --set /plan/steps=full"), timed = report_of(file);
  CHECK(figure(full, "ttft_s.mean") == Approx(figure(timed, "ttft_s.mean")).epsilon(0.05));
  CHECK(figure(full, "tpot_s.mean") == Approx(figure(timed, "tpot_s.mean")).epsilon(0.10));
  CHECK(figure(full, "run_time_s") == Approx(figure(timed, "run_time_s")).epsilon(0.02));
  CHECK(figure(full, "transferred_bytes") == figure(timed, "transferred_bytes"));
}

// What the host issued by its own clock is simulated again and joined op by op; what requests saw of either
// side's own decisions stands beside each other.
TEST_CASE("a crosscheck of a service replays what was issued") {
  const auto run = test::run_moebius("crosscheck " + test::scenario_file("smoke/serve-carried.json") +
                                     " --set /workload/trace/requests=12");
  INFO(run.err);
  CHECK(run.exit_code == 0);
  CHECK(run.out.find("ops, order and bytes agree") != std::string::npos);
  CHECK(run.out.find("closed loop: 12 requests") != std::string::npos);
}

TEST_CASE("what is simulated only is refused by the executor with the key that asks for it") {
  const std::string file = test::scenario_file("smoke/serve-carried.json") + " --executor host --set ";
  const std::vector<std::pair<std::string, std::string>> cases{
      {"/plan/router=sla-aware", "/plan/router: a router that forecasts needs iterations that are timed"},
      {"/plan/separation/first_token=decode",
       "/plan/separation/first_token: a first token that waits for its cache needs iterations that are "
       "timed"},
      {"/plan/admission/policy=queue-limit", "/plan/admission: admission needs iterations that are timed"}};
  for (const auto& [set, sentence] : cases) {
    INFO(set);
    const auto run = test::run_moebius("run " + file + set);
    CHECK(run.exit_code == 2);
    CHECK(run.err.find(sentence) != std::string::npos);
  }
}

TEST_CASE("stages of a served model are simulated only, in every phase and by every command that executes") {
  const std::string small = test::scenario_file("smoke/serve-small.json"),
                    carried = test::scenario_file("smoke/serve-carried.json");
  const std::string sentence = ": a pipeline of stages needs iterations that are timed";
  for (const std::string& file : {small, carried})
    for (const char* command : {"run --executor host ", "crosscheck "}) {
      const auto run = test::run_moebius(command + file + " --set /plan/decode/pp=2");
      CHECK(run.exit_code == 2);
      CHECK(run.err.find("/plan/decode/pp" + sentence) != std::string::npos);
    }
  const auto run = test::run_moebius("run --executor host " + carried + " --set /plan/prefill/pp=3");
  CHECK(run.exit_code == 2);
  CHECK(run.err.find("/plan/prefill/pp" + sentence) != std::string::npos);
}

TEST_CASE("whole experts on ranks of one replica are refused at the phase that has them") {
  const std::string file = "run --executor host " + test::scenario_file("smoke/serve-carried.json") +
                           " --set /plan/decode/attention/tp=2 --set /plan/prefill/attention/tp=2";
  const auto refused = [&](const std::string& sets, const std::string& sentence) {
    const auto run = test::run_moebius(file + sets);
    CHECK(run.exit_code == 1);
    CHECK(run.err.find(sentence) != std::string::npos);
  };
  const std::string what = "/ep/degree: whole experts on ranks of one replica are simulated only";
  refused("", "/plan/decode" + what);
  refused(" --set /plan/decode/ep/degree=1 --set /plan/prefill/ep/degree=2", "/plan/prefill" + what);
}

TEST_CASE("experts that replicas share by columns are executed where no rank has whole ones") {
  const std::string file = "run --executor host " + test::scenario_file("smoke/serve-small.json") +
                           " --set /plan/decode/attention/dp=4 --set /plan/decode/attention/tp=1";
  const auto run = test::run_moebius(file + " --set /plan/decode/ep/degree=2 --set /plan/decode/ep/tp=2");
  CHECK(run.exit_code == 1);
  CHECK(run.err.find("/plan/decode/ep/degree: experts that ranks of several replicas share both whole and by "
                     "columns are simulated only (expected 1 with ep/tp 2, found 2)") != std::string::npos);
  CHECK(test::run_moebius(file + " --set /plan/decode/ep/degree=1 --set /plan/decode/ep/tp=4").exit_code ==
        0);
}

TEST_CASE("a batch on a pool of experts says how it is carried out") {
  const auto run = test::run_moebius("run --executor host " + test::scenario_file("smoke/serve-afd.json"));
  CHECK(run.exit_code == 2);
  CHECK(run.err.find("/plan/steps: a pool of experts") != std::string::npos);
  CHECK(run.err.find("expected \"full\", found \"surface\"") != std::string::npos);
}

TEST_CASE("of an executed service all requests together see what those of its only class see") {
  const std::string json = report_of(test::scenario_file("smoke/serve-carried.json") + " --executor host");
  for (const char* latency : {"ttft_s", "tpot_s", "e2e_s"})
    for (const char* of : {"mean", "p50", "p99"})
      CHECK(figure(json, fmt::format("{}.{}", latency, of)) ==
            figure(json, fmt::format("classes.chat.{}.{}", latency, of)));
  CHECK(figure(json, "kv.peak_blocks") <= figure(json, "kv.total_blocks"));
}

}  // namespace moebius
