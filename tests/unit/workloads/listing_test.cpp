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

TEST_CASE("a configuration of Hugging Face's is shown as the model that is read of it") {
  const Catalog catalog;
  const ModelCatalog models;
  const Shelves shelves{catalog, models};
  const std::string config = kSource + "/tests/handbook/config.json";
  CHECK_THAT(show_text(config, shelves), Contains("32 query, 4 key-value, width 128"));
  CHECK_THAT(show_text(config, shelves, {}, {"/layers=4"}), Contains("4 (0 dense first), 0 MTP"));
  NetworkView view;
  view.nodes = "4";
  CHECK_THROWS_WITH(show_text(config, shelves, view),
                    Contains("--nodes: expected the name of a fabric or a scenario file"));
}

TEST_CASE("of a model stands what is left out of it, and its parameters in a unit that shows them") {
  const test::Scratch scratch;
  const std::string gemma = R"({"model_type": "gemma2", "num_hidden_layers": 2, "hidden_size": 64,
"num_attention_heads": 4, "num_key_value_heads": 4, "head_dim": 16, "intermediate_size": 128,
"vocab_size": 100})";
  const Catalog catalog;
  const ModelCatalog models;
  const std::string text = show_text(scratch.write("config.json", gemma), {catalog, models});
  // 100 x 64 of a tied table, 2 x 4 x 64 x 64 of attention, 2 x 3 x 64 x 128 of MLPs, norms of 5 x 64.
  CHECK_THAT(text, Contains("88.64 K") && Contains("6.40 K") && !Contains("0.00"));
  CHECK_THAT(text, Contains("the last 4096 tokens; in one layer of 2 to all"));
  CHECK_THAT(text, Contains("two further norms a layer and caps of scores are left out"));
  CHECK_THAT(show_text("smollm3-3b", {catalog, models}),
             Contains("turn queries and keys, but not in one layer of 4"));
  CHECK_THAT(text, !Contains("turn queries"));
}

TEST_CASE("a framework of serving has one line in the table of all") {
  const Catalog catalog;
  const ModelCatalog models;
  const std::string text = list_text("frameworks", {catalog, models});
  const std::string row = text.substr(text.find("\nvllm ") + 1);
  CHECK_THAT(row.substr(0, row.find('\n')), Contains("1.072 ms") && Contains("5 ms"));
}
