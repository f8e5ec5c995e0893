// What the queues of a cluster may not be; each refused with one exact sentence.
#include <fmt/format.h>

#include "tests/invalid/refusals.h"

using namespace moebius;

TEST_CASE("queues and shapes that do not fit together are refused at their key") {
  check(
      "study/cluster-10000-cards-30-days.json",
      {
          {"/queueing/shapes/0/queue", "pretrainng",
           R"(/queueing/shapes/0/queue: expected the name of a queue, found "pretrainng" (did you mean "pretraining"?))"},
          {"/queueing/shapes/0/pools", R"(["h80"])",
           R"(/queueing/shapes/0/pools: expected the name of a pool, found "h80" (did you mean "h20"?))"},
          {"/queueing/shapes/0/pools", R"("h800")", "/queueing/shapes/0/pools: expected an array of names"},
          {"/queueing/shapes/4/sizes", R"([{"cards": 3}])",
           "/queueing/shapes/4/sizes: 3 cards are no equal part of a node and no number of whole nodes of "
           "its pools"},
          {"/queueing/shapes/0/sizes/1/cards", "128",
           "/queueing/shapes/0/sizes/1/cards: expected more cards than the size before, found as many or "
           "fewer"},
          {"/queueing/shapes/6/sizes", R"([{"cards": 8}, {"cards": 16}])",
           "/queueing/shapes/6/sizes: expected one size, that of a replica, found several"},
          {"/queueing/load/jobs", "7",
           "/queueing/load/jobs: expected at least one job a shape, found 7 for 8 shapes"},
          {"/queueing/power_caps", R"([{"from": "2 d", "until": "1 d", "watts": 1e7}])",
           "/queueing/power_caps/0/until: expected a time after `from`, found one that is not"},
          {"/queueing/queues/1/name", "pretraining",
           R"(/queueing/queues/1/name: two queues named "pretraining")"},
          {"/queueing/shapes/1/name", "qwen3-235b",
           R"(/queueing/shapes/1/name: two shapes named "qwen3-235b")"},
          {"/operations/failures/trace", R"([{"time": "1 d", "node": 1250, "kind": "GPU"}])",
           "/operations/failures/trace/0/node: expected a node from 0 to 1249, found 1250"},
          {"/jobs", R"([{"name": "a", "nodes": 1, "model": "qwen3-8b", "step_time": "1 s"}])",
           "/jobs: expected `jobs` or `queueing`, found both"},
      });
  // Two quotas together are said at the line of both.
  CHECK_THAT(refusal("study/cluster-10000-cards-30-days.json", "/queueing/queues/0/quota", "0.6"),
             Catch::Contains("/queueing/queues: expected quotas of at most 1 together, found 1.15"));
}
