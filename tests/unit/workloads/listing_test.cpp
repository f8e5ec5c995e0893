// What show and check say of entries and of models that were read from files.
#include "workloads/listing/listing.h"

#include "hw/document.h"
#include "tests/catch.h"
#include "tests/process.h"
#include "workloads/report/summary.h"

using namespace moebius;
using Catch::Matchers::Contains;

namespace {

const std::string kSource = MOEBIUS_SOURCE_DIR;

}  // namespace

TEST_CASE("show finds the entry that a scenario of the same words finds") {
  const test::Scratch scratch;
  scratch.write("accelerators.json",
                R"({"sources": {}, "accelerators": {"z": {"base": "a100-sxm", "aliases": ["h100-sxm"]}}})");
  const Catalog catalog(scratch.path("."));
  const ModelCatalog models;
  REQUIRE(catalog.accelerator("h100-sxm").id == "z");
  CHECK(show_text("h100-sxm", {catalog, models}).starts_with("z: accelerator"));
  CHECK(show_text("H100_SXM", {catalog, models}).starts_with("z: accelerator"));
  CHECK(show_text("DeepSeek_V3", {catalog, models}).starts_with("deepseek-v3: model"));
}

TEST_CASE("show changes an entry, or a scenario, as a scenario changes it") {
  const Catalog catalog;
  const ModelCatalog models;
  const Shelves shelves{catalog, models};
  CHECK(shown_accelerator("h100-sxm", shelves, {"/power=500 W"}).power.value == 500);
  CHECK_THAT(show_text("h100-sxm", shelves, {}, {"/power=500 W"}), Contains("500"));
  CHECK_THAT(show_text("deepseek-v3", shelves, {}, {"/layers=4"}), Contains("4"));
  const std::string scenario = kSource + "/scenarios/smoke/moe-64-h800.json";
  CHECK(shown_accelerator(scenario, shelves, {}).id == "h800-sxm");
  CHECK(shown_accelerator(scenario, shelves, {"/cluster/pools/0/accelerator=h100-sxm"}).id == "h100-sxm");
  CHECK_THROWS_WITH(show_text("h100-sxm", shelves, {}, {"/powr=500 W"}), Contains(R"(unknown key "powr")"));
  CHECK_THROWS_WITH(show_text("h100-sxm", shelves, {}, {"power=500 W"}),
                    "--set: expected /json/pointer=value, found \"power=500 W\"");
}

TEST_CASE("what was read of a model's file is told") {
  const std::string config = kSource + "/tests/handbook/config.json";
  Document document = load_document(kSource + "/scenarios/smoke/moe-layer.json");
  set_at_pointer(document, "/model", R"({"hf_config": ")" + config + R"("})");
  const Scenario scenario = read_scenario(document, Catalog(), ModelCatalog());
  CHECK_THAT(settings_text(scenario), Contains("Hugging Face configuration " + config));
  CHECK_THAT(settings_text(scenario), Contains("32 query, 4 key-value, width 128"));
  CHECK_THAT(settings_text(read_scenario(load_document(kSource + "/scenarios/smoke/moe-layer.json"),
                                         Catalog(), ModelCatalog())),
             !Contains("key-value"));
}
