// Who carries a job out changes none of its numbers: ranks in turns, rows of a ring.
#include <catch2/catch.hpp>

#include "real/alignment.h"
#include "tests/cross/resumed_runs.h"

namespace moebius::test {
namespace {

StartExecutor in_turns() {
  return [](const Job& job, const Layout& layout, Recorder& recorder) {
    RealRun run;
    run.measured = true;
    return start_host(job, layout, recorder, run);
  };
}

}  // namespace

TEST_CASE("ranks in turns learn what ranks side by side learn, wherever their optimizer's states stand") {
  for (const std::vector<std::string>& plan :
       std::vector<std::vector<std::string>>{{},
                                             {"/plan/dp/zero=1"},
                                             {R"(/plan/offload={"optimizer": true})"},
                                             {"/plan/precision/master_weights=none"},
                                             {"/plan/precision/master_weights=bf16"}}) {
    const std::vector<std::string> sets = std::vector<std::string>{"/workload/steps=4"} + plan;
    const std::vector<double> expected = train_small(on_host(), sets).losses,
                              found = train_small(in_turns(), sets).losses;
    INFO((plan.empty() ? "as it is" : plan[0]));
    REQUIRE(found.size() == 4);
    CHECK(expected[3] < expected[0] - 1);
    for (std::size_t step = 0; step < 4; ++step) CHECK(found[step] == Approx(expected[step]).epsilon(1e-6));
  }
}

TEST_CASE("a ring's rows are dumped where they stand in their sequence") {
  const Scratch scratch;
  const std::string plain = scratch.path("plain"), ring = scratch.path("ring");
  // All experts, so that no choice hangs on who holds a token.
  const std::vector<std::string> sets{"/workload/steps=1", "/model/experts/active=8",
                                      "/model/experts/groups=1", "/model/experts/active_groups=1"};
  train_small(on_host(plain), sets);
  train_small(on_host(ring), sets + std::vector<std::string>{"/plan/cp=2", "/plan/context=ring"});
  const auto only = [](const std::string& directory) {
    return std::filesystem::is_directory(directory)
               ? std::filesystem::directory_iterator(directory)->path().string()
               : directory;
  };
  const Alignment alignment = align(only(ring), only(plain));
  CHECK(alignment.layers.size() > 3);
  CHECK(alignment.first_drift() == nullptr);
}

}  // namespace moebius::test
