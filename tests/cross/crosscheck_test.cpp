// Crosscheck from end to end on the host: what executes is what is simulated, and the difference is
// explained.
#include <catch2/catch.hpp>

#include <filesystem>
#include <regex>

#include "hw/document.h"
#include "real/host/host_run.h"
#include "sim/sim_run.h"
#include "tests/process.h"
#include "workloads/crosscheck/crosscheck.h"

namespace moebius {
namespace {

// A host of round numbers: 10 GFLOP/s, 10 GB/s, no op below 1 us, an exchange of 5 us and 2 GB/s.
Profile synthetic_profile() {
  Profile profile;
  profile.accelerator = profile.reference.id = "host";
  profile.reference.architecture = "a core that no model knows";
  profile.reference.cores = 1;
  profile.reference.peak.fill({1e10});
  profile.reference.memory_rate = {1e10};
  profile.reference.memory_efficiency = 1;
  profile.reference.kernel_floor = Time{1'000};
  profile.device.emplace();
  profile.device->name = "a synthetic host";
  TransferCurve exchange;
  exchange.name = kExchange;
  exchange.latency = 5e-6;
  exchange.rate = 2e9;
  profile.device->transfers = {exchange};
  return profile;
}

CrosscheckRequest request_for(const std::string& scenario, const Profile& profile,
                              const std::vector<std::string>& sets = {}) {
  const std::string file = std::string(MOEBIUS_SOURCE_DIR) + "/scenarios/smoke/" + scenario;
  CrosscheckRequest request;
  request.read = [file, sets] {
    Changes every_rank;
    every_rank.sets = sets;
    every_rank.unfold = true;
    return read_job(file, every_rank, Library(""));
  };
  request.simulate = [profile](const Job& job, const Layout& layout, Recorder& recorder) {
    SimRun run;
    if (!job.is_phase)  // which is on its own machine
      run.costs = [profile](const Accelerator& chip) { return make_cost_source(chip, {profile}); };
    return start_simulator(job, layout, recorder, run);
  };
  request.execute = [](const Job& job, const Layout& layout, Recorder& recorder) {
    RealRun run;
    run.measured = true;
    return start_host(job, layout, recorder, run);
  };
  request.machine = [profile](const Job& job) {
    return virtual_machine(profile, "p.json", "host", job.scenario.ranks());
  };
  request.executions = 3;
  return request;
}

}  // namespace

TEST_CASE("the machine of virtual ranks executes what is simulated, and the difference adds up") {
  const test::Scratch scratch;
  CrosscheckRequest request = request_for("moe-layer.json", synthetic_profile());
  request.out = scratch.path("run");
  const Crosscheck result = crosscheck(request);
  INFO(to_text(result));
  CHECK(result.same());
  CHECK(result.repeatable);
  CHECK(result.numbers == "losses");
  CHECK_THAT(to_text(result), Catch::Matchers::Contains("; losses equal\n"));
  CHECK(result.executions == 3);
  CHECK(result.executor == "host");
  CHECK(result.comparable());
  CHECK(result.machine == "4 virtual ranks on a synthetic host, each a core of its own, run one at a time");
  REQUIRE(result.paths);
  const PathDifference& paths = *result.paths;
  double explained = paths.rest + paths.gaps_b - paths.gaps_a;
  for (const PathOp& op : paths.ops) explained += op.b - op.a;
  CHECK(explained == Approx(paths.makespan_b - paths.makespan_a));
  CHECK(paths.gaps_a == Approx(0).margin(1e-12));
  CHECK(paths.gaps_b == Approx(0).margin(1e-12));
  for (const char* file : {"run/simulated/timeline.mtl", "run/executed/timeline.mtl", "run/crosscheck.json"})
    CHECK(std::filesystem::exists(scratch.path(file)));
  CHECK(test::text_of(scratch.path("run/crosscheck.json")) == to_json(result));
  CHECK_THAT(to_json(result), Catch::Matchers::Contains(R"("errors_against": "b")"));
  for (const KindError& of : result.comparison.kinds)
    CHECK(of.bias == Approx(of.seconds_a / of.seconds_b - 1).margin(1e-12));
}

TEST_CASE("a collective whose bytes its ranks do not divide moves what its tensors have") {
  for (const std::string operation :
       {"all-reduce", "reduce-scatter", "all-gather", "all-to-all", "broadcast"}) {
    for (const std::string bytes : {"100 kB", "7 B"}) {
      CrosscheckRequest request = request_for("allreduce-1024.json", synthetic_profile(),
                                              {"/workload/operation=" + operation, "/workload/algorithm=auto",
                                               "/workload/ranks=3", "/workload/bytes=" + bytes});
      request.executions = 1;
      const Crosscheck result = crosscheck(request);
      INFO(to_text(result));
      CHECK(result.same());
    }
  }
}

TEST_CASE("phases before training run with every rank, and are no part of what a crosscheck judges") {
  const std::string rollout = R"({"serving": {"decode": {"attention": {"dp": 1, "tp": 1}, "max_batch": 4}}})";
  CrosscheckRequest request = request_for(
      "rl-64-h800.json", synthetic_profile(),
      {R"(/model={"base": "qwen3-235b-a22b", "layers": 1, "hidden": 32, "heads": 2, "kv_heads": 2,)"
       R"( "head_dim": 16, "vocabulary": 64, "experts": {"routed": 4, "active": 2, "width": 16}})",
       "/plan/ep/degree=2", "/plan/dp/degree=2", "/workload/sequence_length=16", "/workload/global_batch=4",
       R"(/workload/rl={"prompts": 2, "samples": 2, "response_tokens": 4, "rollout": )" + rollout + "}"});
  request.executions = 1;
  const Crosscheck result = crosscheck(request);
  INFO(to_text(result));
  CHECK(result.same());
}

TEST_CASE("a crosscheck's text judges times where they are comparable and says how else") {
  CrosscheckRequest request = request_for("moe-layer.json", synthetic_profile());
  request.executions = 1;
  const std::string judged = to_text(crosscheck(request));
  CHECK_THAT(judged, Catch::Matchers::Contains("simulated: 4 virtual ranks on a synthetic host"));
  CHECK(
      std::regex_search(judged, std::regex("error of the makespan: [0-9.]+%, goal 20%: goal (met|missed)")));
  CHECK(
      std::regex_search(judged, std::regex("error of an op, median: [0-9.]+%, goal 15%: goal (met|missed)")));
  request.machine = {};
  request.simulate = [](const Job& job, const Layout& layout, Recorder& recorder) {
    return start_simulator(job, layout, recorder, {});
  };
  const Crosscheck elsewhere = crosscheck(request);
  CHECK_FALSE(elsewhere.comparable());
  CHECK_THAT(to_text(elsewhere), Catch::Matchers::Contains("`moebius calibrate --device host --out FILE`"));
}

TEST_CASE("a step that warms up is carried out and not judged") {
  CrosscheckRequest request = request_for("moe-layer.json", synthetic_profile());
  request.executions = 1;
  const Crosscheck one = crosscheck(request);
  request = request_for("moe-layer.json", synthetic_profile(), {"/workload/steps=2"});
  request.executions = 1;
  const Crosscheck both = crosscheck(request);
  request.warm = true;
  const Crosscheck second = crosscheck(request);
  INFO(to_text(second));
  CHECK(second.same());
  CHECK(second.warm_up == "a step");
  CHECK_THAT(to_text(second), Catch::Matchers::Contains("executed 1 times, each after a step that warms up"));
  CHECK(both.comparison.joined == 2 * one.comparison.joined);
  CHECK(second.comparison.joined == one.comparison.joined);
  CHECK(second.comparison.makespan_a < both.comparison.makespan_a);
  REQUIRE(second.paths);
}

TEST_CASE("a crosscheck's JSON has structure, times, kinds, the critical path and the groups") {
  CrosscheckRequest request = request_for("moe-layer.json", synthetic_profile());
  request.executions = 1;
  const Crosscheck result = crosscheck(request);
  const Document document = parse_document(to_json(result), "crosscheck.json");
  for (const char* key : {"scenario", "executor", "machine", "executions", "repeatable", "structure", "times",
                          "by_kind", "critical_path", "groups"})
    CHECK(document.root.find(key) != nullptr);
  const Value* times = document.root.find("times");
  REQUIRE(times != nullptr);
  for (const char* key : {"comparable", "makespan_a_s", "makespan_b_s", "makespan", "op_median"})
    CHECK(times->find(key) != nullptr);
  const Value* path = document.root.find("critical_path");
  REQUIRE(path != nullptr);
  for (const char* key : {"by_kind", "gaps", "ops", "other_ops_s"}) CHECK(path->find(key) != nullptr);
}

TEST_CASE("a crosscheck of a run that is saved executes it as often as any other and leaves no checkpoint") {
  const test::Scratch scratch;
  const std::string saved = scratch.path("saved");
  const Crosscheck result =
      crosscheck(request_for("moe-layer.json", synthetic_profile(), {"/plan/save=" + saved}));
  CHECK(result.same());
  CHECK(result.executions == 3);
  CHECK_FALSE(std::filesystem::exists(saved));
}

TEST_CASE("ranks that the host does not hold are refused before anything is measured") {
  const test::Finished refused = test::run_moebius("crosscheck " + std::string(MOEBIUS_SOURCE_DIR) +
                                                   "/scenarios/smoke/moe-64-h800.json");
  CHECK(refused.exit_code == 1);
  CHECK_THAT(refused.err, Catch::Matchers::Contains("the 64 ranks hold"));
  CHECK(refused.out.empty());
}

TEST_CASE("executions of a service are compared by its answers") {
  const auto run = test::run_moebius("crosscheck " + std::string(MOEBIUS_SOURCE_DIR) +
                                     "/scenarios/smoke/serve-small.json");
  INFO(run.err);
  CHECK(run.exit_code == 0);
  CHECK_THAT(run.out, Catch::Matchers::Contains("; answers equal\n"));
}

TEST_CASE("a profile of another device is refused by crosscheck through the binary") {
  const test::Scratch scratch;
  Profile other = synthetic_profile();
  other.accelerator = "h200-sxm";
  TransferCurve& exchange = other.device->transfers.front();
  exchange.bytes = {2000};
  exchange.seconds = {6e-6};
  exchange.spread = {0};
  const std::string file = scratch.write("h200.json", to_json(other));
  const auto run = test::run_moebius("crosscheck " + std::string(MOEBIUS_SOURCE_DIR) +
                                     "/scenarios/smoke/moe-layer.json --profile " + file);
  CHECK(run.exit_code == 2);
  CHECK_THAT(run.err,
             Catch::Matchers::Contains(
                 "h200.json: /accelerator: expected \"host\" for --executor host, found \"h200-sxm\""));
}

// The host has one core for each rank: whoever computes has it whole, and so it is simulated.
TEST_CASE("plans that split cores are crosschecked with cores left whole") {
  for (const std::string key :
       {"/plan/tp/overlap=true", "/plan/overlap/tensor_sms=4", "/plan/overlap/communication_sms=4"}) {
    const bool tensor = key.find("communication") == std::string::npos;
    CrosscheckRequest request = request_for("moe-layer.json", synthetic_profile(), {key});
    if (tensor)
      request = request_for("moe-layer.json", synthetic_profile(),
                            {"/plan/tp/attention=2", "/plan/tp/sequence_parallel=true", key});
    const Crosscheck result = crosscheck(request);
    INFO(key << to_text(result));
    CHECK(result.same());
    CHECK(result.machine.ends_with("; cores that the plan splits are left whole"));
  }
}

// Its pieces of attention, and what joins them, are ops of their own, each measured by itself first.
TEST_CASE("keys that go round a ring are crosschecked as any other plan") {
  for (const std::string context : {"ring", "ulysses"}) {
    const auto run =
        test::run_moebius("crosscheck " + std::string(MOEBIUS_SOURCE_DIR) +
                          "/scenarios/smoke/moe-layer.json --set /plan/cp=2 --set /plan/context=" + context +
                          " --set /plan/fold=false");
    INFO(run.err);
    CHECK(run.exit_code == 0);
    CHECK(run.out.find("ops, order and bytes agree") != std::string::npos);
  }
}

}  // namespace moebius
