#include "hw/error.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iostream>
#include "tests/catch.h"
#include "tests/process.h"

#include "models/hf_config.h"
#include "models/model.h"

namespace moebius {
namespace {

// The model that a scenario text names under "model".
Model from_text(const std::string& text, const std::string& file = "scenario.json") {
  static const ModelCatalog catalog;
  const Document document = parse_document("{\"model\": " + text + "}", file);
  const Value& value = *document.root.find("model");
  return catalog.model(value, {.file = file, .pointer = "/model", .line = value.line});
}

std::string catalog_error(const std::string& text) {
  try {
    from_text(text);
  } catch (const Error& error) {
    CHECK(error.kind() == Error::Kind::kInput);
    return error.what();
  }
  return "";
}

// A directory of its own under the system's temporary one, gone with the object.
struct Folder {
  test::Scratch scratch;
  std::filesystem::path path = scratch.path("models");
  Folder() { std::filesystem::create_directories(path); }
  void write(const std::string& name, const std::string& text) const { std::ofstream(path / name) << text; }
};

}  // namespace

TEST_CASE("names lead to models by id and alias, in any case") {
  CHECK(from_text(R"("deepseek-v3")").id == "deepseek-v3");
  CHECK(from_text(R"("DeepSeek-R1")").id == "deepseek-v3");
  CHECK(from_text(R"("MIXTRAL-8X22B")").id == "mixtral-8x22b");
  CHECK(ModelCatalog().model("GPT-3 175B").id == "gpt-3-175b");
}

TEST_CASE("an unknown name suggests the nearest") {
  CHECK(catalog_error(R"("deepseek-v5")")
            .find("scenario.json:1: /model: unknown model \"deepseek-v5\" (did you mean ") == 0);
  CHECK_THROWS_WITH(
      ModelCatalog().model("qqq"),
      R"(unknown model "qqq"; `moebius list models` names all, and {"base": NAME, ...changes} describes another)");
}

TEST_CASE("every entry is consistent, has a source, and says when it cannot run") {
  const ModelCatalog catalog;
  CHECK(catalog.ids().size() >= 56);
  for (const std::string& id : catalog.ids()) {
    const Model model = catalog.model(id);
    INFO(id);
    CHECK_FALSE(inconsistency(model).has_value());
    CHECK(model.source.size() > 10);
    CHECK_FALSE(model.status.empty());
  }
  for (const char* id : {"deepseek-v4-pro", "hunyuan-large"}) {
    CHECK_FALSE(catalog.model(id).unsupported.empty());
  }
  for (const char* id : {"deepseek-v3", "deepseek-v3.2", "glm-5"})
    CHECK(catalog.model(id).unsupported.empty());
}

TEST_CASE("a scenario changes parts of a model and leaves the rest") {
  const Model model = from_text(R"({"base": "deepseek-v3", "layers": 4, "experts": {"routed": 64}})");
  CHECK(model.id == "deepseek-v3 (changed)");
  CHECK(model.layers == 4);
  CHECK(model.experts.routed == 64);
  CHECK(model.experts.active == 8);
  CHECK(model.mla.kv_rank == 512);
  CHECK(model.published.parameters == 0);  // what was published is about another model
}

TEST_CASE("changes that change nothing leave the model its name") {
  CHECK(from_text(R"({"base": "deepseek-v3", "layers": 61})").id == "deepseek-v3");
}

TEST_CASE("a base may itself be a change") {
  const Model model = from_text(R"({"base": {"base": "mixtral-8x7b", "layers": 8}, "hidden": 1024})");
  CHECK(model.layers == 8);
  CHECK(model.hidden == 1024);
}

TEST_CASE("as many key heads as heads stay as many") {
  CHECK(from_text(R"({"base": "gpt-3-175b", "heads": 48})").kv_heads == 48);
  CHECK(from_text(R"({"base": "deepseek-v3", "heads": 16})").kv_heads == 16);
}

TEST_CASE("attention and MLP stand side by side where the model or a change says so") {
  CHECK_FALSE(from_text(R"("llama-2-7b")").is_parallel());
  CHECK(from_text(R"("gpt-j-6b")").parallel_block == ParallelBlock::kOneNorm);
  CHECK(from_text(R"("gpt-neox-20b")").parallel_block == ParallelBlock::kTwoNorms);
  CHECK(from_text(R"({"base": "gpt-neox-20b", "layers": 4})").parallel_block == ParallelBlock::kTwoNorms);
  const auto changed = [](const std::string& value) {
    return from_text(R"({"base": "gpt-neox-20b", "parallel_block": )" + value + "}").parallel_block;
  };
  CHECK(changed("true") == ParallelBlock::kOneNorm);
  CHECK(changed("\"one_norm\"") == ParallelBlock::kOneNorm);
  CHECK(changed("false") == ParallelBlock::kNone);
}

TEST_CASE("GPT-NeoX-20B has every parameter of its card, its positions a quarter of each head") {
  const Model model = ModelCatalog().model("gpt-neox-20b");
  CHECK(count_parameters(model).total() == 20'554'567'680.0);
  CHECK(model.rotary_dim * 4 == model.head_dim);
}

TEST_CASE("layers that turn neither queries nor keys are said by a number, of grouped heads alone") {
  const Model model = from_text(R"("smollm3-3b")");
  CHECK(model.rotates(2));
  CHECK_FALSE(model.rotates(3));
  CHECK(from_text(R"({"base": "llama-3.1-8b", "no_rotary_every": 1})").rotates(0) == false);
  CHECK(from_text(R"({"base": "smollm3-3b", "no_rotary_every": 0})").rotates(3));
  CHECK(catalog_error(R"({"base": "smollm3-3b", "learned_positions": 64})") ==
        "scenario.json:1: /model/no_rotary_every: no_rotary_every 4 takes rotary positions off, where they "
        "are learned (learned_positions 64)");
  CHECK(catalog_error(R"({"base": "smollm3-3b", "no_rotary_every": -1})")
            .find("/model/no_rotary_every: expected an integer") != std::string::npos);
  CHECK(catalog_error(R"({"base": "smollm3-3b", "attention": "mla", "tied_embeddings": true,
    "mla": {"q_rank": 256, "kv_rank": 128, "nope_dim": 64, "rope_dim": 32, "v_dim": 64}})")
            .find("/model/no_rotary_every: mla attention turns its rotary columns in all layers") !=
        std::string::npos);
  CHECK(catalog_error(R"({"base": "deepseek-v3", "no_rotary_every": 4})")
            .find("unknown key \"no_rotary_every\"") != std::string::npos);
}

TEST_CASE("experts can be taken away") {
  const Model model = from_text(R"({"base": "deepseek-v3", "experts": {"routed": 0}})");
  CHECK(model.num_moe_layers() == 0);
  CHECK(count_parameters(model).routed_experts == 0);
}

TEST_CASE("attention can be changed from one kind to another") {
  const Model grouped = from_text(
      R"({"base": "deepseek-v3", "attention": "gqa", "heads": 64, "kv_heads": 8, "head_dim": 128})");
  CHECK(grouped.query_dim() == 64 * 128);
  const Model latent = from_text(R"({"base": "mixtral-8x7b", "attention": "mla",
    "mla": {"q_rank": 1536, "kv_rank": 512, "nope_dim": 128, "rope_dim": 64, "v_dim": 128}})");
  CHECK(latent.kv_heads == 32);
  CHECK(latent.value_dim() == 32 * 128);
}

TEST_CASE("wrong changes are exact errors") {
  CHECK(catalog_error(R"({"base": "deepseek-v3", "layer": 4})")
            .find("unknown key \"layer\" (did you mean \"layers\"?)") != std::string::npos);
  CHECK(catalog_error(R"({"base": "deepseek-v3", "experts": {"routed": 60}})") ==
        "scenario.json:1: /model/experts/groups: routed experts 60 are not divisible by groups 8");
  CHECK(catalog_error(R"({"base": "mixtral-8x7b", "kv_heads": 3})") ==
        "scenario.json:1: /model/kv_heads: heads 32 are not divisible by kv_heads 3");
  CHECK(catalog_error(R"({"base": "mixtral-8x7b", "experts": {"active": 9}})") ==
        "scenario.json:1: /model/experts/active: active experts 9 are more than routed experts 8");
  CHECK(catalog_error(R"({"base": "deepseek-v3", "layers": 3})") ==
        "scenario.json:1: /model/first_dense: first_dense 3 leaves none of the 3 layers for experts");
  CHECK(catalog_error(R"({"base": "deepseek-v3", "kv_heads": 8})") ==
        "scenario.json:1: /model/kv_heads: mla means as many kv_heads as heads, found 8 and 128");
  CHECK(catalog_error(R"({"base": "deepseek-v3", "layers": 0})").find("/model/layers") != std::string::npos);
  CHECK(catalog_error(R"({"base": "mixtral-8x7b", "attention": "mla"})").find("mla") != std::string::npos);
  CHECK(catalog_error(R"({"base": "deepseek-v3", "attention": "linear"})").find("/model/attention") !=
        std::string::npos);
  CHECK(
      catalog_error(R"({"base": "deepseek-v3", "unsupported": "no"})").find("unknown key \"unsupported\"") !=
      std::string::npos);
}

TEST_CASE("a model is a name or an object that says where it comes from") {
  CHECK(
      catalog_error("7").find(
          R"(expected a model name, {"hf_config": PATH, ...changes} or {"base": NAME, ...changes}, found 7)") !=
      std::string::npos);
  CHECK(catalog_error(R"({"layers": 4})").find("found an object with neither") != std::string::npos);
  CHECK(catalog_error(R"({"hf_config": "x.json", "base": "mixtral-8x7b"})").find("an object with both") !=
        std::string::npos);
  CHECK(catalog_error(R"({"hf_config": ""})").ends_with("/hf_config: expected a file, found \"\""));
  CHECK(catalog_error(R"({"hf_config": "nowhere.json"})").find("/hf_config: expected a file, found none: ") !=
        std::string::npos);
  CHECK(catalog_error(R"({"hf_config": "no/such/config.json"})").find("no/such/config.json") !=
        std::string::npos);
}

TEST_CASE("a configuration stands beside the file that names it") {
  const std::string file = std::string(MOEBIUS_SOURCE_DIR) + "/tests/unit/models/scenario.json";
  CHECK(from_text(R"({"hf_config": "configs/mixtral-8x7b.json"})", file).experts.routed == 8);
  const Model changed = from_text(R"({"hf_config": "configs/mixtral-8x7b.json", "layers": 4})", file);
  CHECK(changed.layers == 4);
  CHECK(changed.experts.routed == 8);
  CHECK(changed.id.ends_with("mixtral-8x7b.json (changed)"));
  CHECK(is_imported(changed));
}

TEST_CASE("a data directory adds models and changes those that are there") {
  const Folder folder;
  folder.write("models.json", R"({"sources": {"us": "our own notes"}, "models": {
    "tiny": {"aliases": ["Tiny"], "layers": 1, "hidden": 8, "heads": 1, "attention": "mha", "head_dim": 8,
             "dense_width": 16, "vocabulary": 32, "source": "us", "status": "estimate"},
    "half-mixtral": {"base": "mixtral-8x7b", "layers": 16},
    "mixtral-8x7b": {"vocabulary": 32768}}})");
  const ModelCatalog catalog(folder.path.string());
  CHECK(catalog.model("tiny").source == "our own notes");
  CHECK(catalog.model("half-mixtral").layers == 16);
  CHECK(catalog.model("half-mixtral").published.parameters == 0);
  CHECK(catalog.model("mixtral-8x7b").vocabulary == 32768);
  CHECK(catalog.model("mixtral-8x7b").layers == 32);
}

TEST_CASE("a name that already stands for another model is refused") {
  const Folder folder;
  folder.write("models.json",
               R"({"models": {"mine": {"base": "mixtral-8x7b", "layers": 2, "aliases": ["DBRX"]}}})");
  CHECK_THROWS_WITH(ModelCatalog(folder.path.string()),
                    Catch::Contains("the name \"DBRX\" already stands for \"dbrx\""));
}

TEST_CASE("the catalog loads in milliseconds") {
  // Printed, not judged: a shared machine decides. About 1 ms on one core of 2024.
  const auto begin = std::chrono::steady_clock::now();
  const ModelCatalog catalog;
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
  std::cout << catalog.ids().size() << " models in " << took.count() << " ms\n";
  CHECK(catalog.ids().size() > 50);
}

}  // namespace moebius
