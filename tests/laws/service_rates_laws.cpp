// What limits transfers of a service beside its iterations, and what its devices cost: of scenarios that
// ship, changed.
#include <utility>
#include <vector>

#include "tests/laws/simulator.h"
#include "tests/scenario_file.h"
#include "workloads/job.h"
#include "workloads/service/encoder.h"

#include "tests/catch.h"

namespace moebius {
namespace {

using Sets = std::vector<std::string>;

Job changed(const std::string& scenario, const Sets& sets) {
  static const Library library("");
  Changes changes;
  changes.sets = sets;
  return read_job(test::scenario_file("smoke/" + scenario), changes, library);
}

ServiceFigures served(const std::string& scenario, const Sets& sets) {
  Job job = changed(scenario, sets);
  return *perform(job, simulator(NetworkDetail::kAlphaBeta), {.wants_spans = false, .quiet = true})
              .report.service;
}

}  // namespace

// Each of the eight encoders has a NIC of its own, of whose rate messages have a good part.
TEST_CASE("what encoders make leaves by the NIC that the fabric has, whatever their chips could send") {
  const auto rate_by = [](const char* nic) {
    const Job job = changed("serve-encoder.json", {std::string("/cluster/fabric/nic=") + nic});
    ServedEncoder encoder(job.scenario, 1, simulator(NetworkDetail::kAlphaBeta));
    return encoder.rules().rate.value;
  };
  const double slow = rate_by("25 Gb/s");
  CHECK(slow <= 25e9 / 8);
  CHECK(slow > 0.8 * 25e9 / 8);
  CHECK(rate_by("400 Gb/s") == Approx(16 * slow));
}

// All in one node: the NIC decides nothing but what moving is said to take.
TEST_CASE("a placement that weighs its moves makes fewer by a slower NIC") {
  const auto moves_by = [](const char* rate) {
    const ServiceFigures figures = served(
        "serve-apart.json",
        {std::string("/cluster/fabric/nic=") + rate, "/plan/separation={}",
         "/plan/prefill={\"token_budget\": 8192}", "/plan/decode/pool=\"decode\"", "/plan/transfer={}",
         R"(/model={"base": "qwen3-30b-a3b", "layers": 4})",
         R"(/plan/expert_balance={"policy": "greedy", "every": "500 ms", "redundant": 8, "known_start": false})",
         R"(/workload/experts/popularity={"zipf": 0.8})", "/plan/decode/max_batch=64",
         R"(/workload/trace={"generator": "independent", "requests": 40, "rate": 20, "context_tokens": 2000})"});
    std::int64_t moves = 0;
    for (const Rebalance& of : figures.pools[0].experts->rebalances) moves += of.moves;
    return moves;
  };
  const std::int64_t slow = moves_by("1 Gb/s"), fast = moves_by("400 Gb/s");
  CHECK(slow < fast);
  CHECK(fast > 0);
}

// 1 TB at 10 USD an hour on the node of attention; the node of experts has none.
TEST_CASE("caches below device memory are paid for where attention stands, not where experts do") {
  const Sets without{
      R"(/cluster/pools/0/accelerator={"base": "h20-sxm", "price": "1 USD/h"})",
      R"(/cluster/pools/1/accelerator={"base": "h100-sxm", "price": "2 USD/h"})",
      R"(/workload/trace={"generator": "conversation", "requests": 5, "rate": 4, "context_tokens": 2000})"};
  Sets with = without;
  with.emplace_back(R"(/plan/cache/dram={"capacity": "1 TB", "price": 10})");
  const auto usd_per_hour = [](const ServiceFigures& of) { return of.cost.usd * 3600 / of.span.seconds(); };
  CHECK(usd_per_hour(served("serve-afd.json", without)) == Approx(8 * 1 + 8 * 2));
  CHECK(usd_per_hour(served("serve-afd.json", with)) == Approx(8 * 1 + 8 * 2 + 10));
}

}  // namespace moebius
