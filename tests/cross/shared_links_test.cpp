// A service beside a training job on one fabric, as a user asks for it.
#include <catch2/catch.hpp>

#include "hw/document.h"
#include "tests/process.h"

namespace {

using namespace moebius;

double figure(const Value& of, const std::string& part, const std::string& key) {
  const Value* found = of.find(part);
  REQUIRE(found != nullptr);
  found = found->find(key);
  REQUIRE(found != nullptr);
  return found->number;
}

}  // namespace

// In one queue the neighbour leaves less of the NICs while its exchange goes on, and exchanges of decode
// iterations are longer; in a queue of a better priority nothing is taken from them.
TEST_CASE("a training neighbour costs a service time per token in one queue and none in a queue of its own") {
  const test::Finished finished = test::run_moebius("run " + std::string(MOEBIUS_SOURCE_DIR) +
                                                    "/scenarios/study/cluster-shared-fabric.json --json");
  INFO(finished.err);
  REQUIRE(finished.exit_code == 0);
  const Document report = parse_document(finished.out, "out");
  const Value* cluster = report.root.find("cluster");
  REQUIRE(cluster != nullptr);
  const Value* rows = cluster->find("beside_training");
  REQUIRE(rows != nullptr);
  REQUIRE(rows->items.size() == 1);
  const Value& row = rows->items[0];
  CHECK(figure(row, "one_queue", "network") < 1);
  CHECK(figure(row, "one_queue", "tpot_p99_s") > 1.001 * figure(row, "alone", "tpot_p99_s"));
  CHECK(figure(row, "one_queue", "tokens_per_s") < figure(row, "alone", "tokens_per_s"));
  CHECK(figure(row, "own_queue", "tpot_p99_s") == Approx(figure(row, "alone", "tpot_p99_s")));
}
