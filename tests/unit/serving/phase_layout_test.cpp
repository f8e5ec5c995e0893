// How pools are laid out where a plan says less than both phases need.
#include <catch2/catch.hpp>

#include "hw/catalog.h"
#include "models/model.h"
#include "tests/process.h"
#include "workloads/job.h"
#include "workloads/scenario/scenario.h"
#include "workloads/service_pools.h"

namespace moebius {
namespace {

using Changes = std::vector<std::pair<const char*, const char*>>;

Scenario read(const std::string& file, const Changes& changes) {
  static const Catalog catalog;
  static const ModelCatalog models;
  Document document =
      parse_document(test::text_of(std::string(MOEBIUS_SOURCE_DIR) + "/scenarios/" + file), "s.json");
  for (const auto& [pointer, json] : changes) set_at_pointer(document, pointer, json);
  return read_scenario(document, catalog, models);
}

const char* const kLarge = "study/deepseek-v3-serve-16-h200.json";

}  // namespace

TEST_CASE("a phase alone that does not say how it is laid out is laid out as the other") {
  const Scenario prefill = read(kLarge, {{"/plan/phase", "prefill"}});
  REQUIRE(prefill.service.phases.size() == 1);
  CHECK(prefill.service.phases[0].plan.ep == 16);
  CHECK(prefill.service.phases[0].plan.dp == 16);
  const Scenario given = read(kLarge, {{"/plan/phase", "prefill"}, {"/plan/prefill/ep", R"({"degree": 8})"}});
  CHECK(given.service.phases[0].plan.ep == 8);
  const Scenario decode = read(kLarge, {{"/plan/phase", "decode"},
                                        {"/plan/decode", R"({"max_batch": 64})"},
                                        {"/plan/prefill/ep", R"({"degree": 8})"}});
  CHECK(decode.service.phases[0].plan.ep == 8);
}

TEST_CASE("weights that leave no room are said with how they are laid out") {
  const Scenario whole = read(kLarge, {{"/plan/phase", "prefill"}, {"/plan/decode", R"({"max_batch": 64})"}});
  CHECK_THROWS_WITH(service_pools(whole),
                    Catch::Contains(" of weights (tp 1, ep 1: whole weights on each rank) leave no room"));
}

TEST_CASE("experts of one pool are placed though those of the other all stand on each rank") {
  const Scenario apart =
      read("smoke/serve-apart.json", {{"/plan/expert_balance", R"({"policy": "static", "redundant": 8})"}});
  CHECK(apart.service.phases[0].plan.slots_of(apart.model.experts) == 128);  // prefill: ep 1
  CHECK(apart.service.phases[1].plan.slots_of(apart.model.experts) == 136);  // decode: ep 8
}

}  // namespace moebius
