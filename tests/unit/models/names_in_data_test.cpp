// Every architecture that the data beside the project names resolves. What those tables call a model and is
// none (a shape list, a kernel, a cut of a model, a description) is named here.
#include <catch2/catch.hpp>
#include <filesystem>
#include <iostream>
#include <set>

#include "hw/document.h"
#include "models/model.h"

namespace moebius {
namespace {

const std::string kData = std::string(MOEBIUS_SOURCE_DIR) + "/../shared/data/";

const std::set<std::string>& not_architectures() {
  static const std::set<std::string> names = {"3FS",
                                              "64-byte CPU-side end-to-end",
                                              "DeepSeek-V3 shapes",
                                              "DeepSeek-V3, 4 MoE layers",
                                              "DeepSeek-V3, Qwen3 shapes",
                                              "LLM training",
                                              "MLA",
                                              "MLA, GQA, DSA",
                                              "Qwen3 shapes",
                                              "SGLang HiCache",
                                              "all_reduce float sum",
                                              "dense GEMM",
                                              "dummy LLaMA3-70B (320 KB KV/token)",
                                              "not named (TP1 FP16 example)"};
  return names;
}

// All strings under a key "model", at any depth.
void collect(const Value& value, std::set<std::string>& names) {
  for (std::size_t i = 0; i < value.items.size(); ++i) {
    const Value& item = value.items[i];
    const bool named = value.kind == Value::Kind::kObject && value.keys[i] == "model";
    if (named && item.kind == Value::Kind::kString) names.insert(item.text);
    collect(item, names);
  }
}

bool absent(const std::string& path) {
  if (std::filesystem::exists(path)) return false;
  std::cout << "skipped: " << path << " is not there\n";
  return true;
}

void check_resolves(const ModelCatalog& catalog, const std::string& name) {
  INFO(name);
  CHECK_NOTHROW(catalog.model(name));
}

}  // namespace

TEST_CASE("every model and alias of the data's model list is in the catalog") {
  const std::string path = kData + "models.json";
  if (absent(path)) return;
  const ModelCatalog catalog;
  const Document document = load_document(path);
  const Value& models = *document.root.find("models");
  CHECK(models.keys.size() >= 44);
  for (std::size_t i = 0; i < models.keys.size(); ++i) {
    check_resolves(catalog, models.keys[i]);
    if (const Value* aliases = models.items[i].find("aliases")) {
      for (const Value& alias : aliases->items) check_resolves(catalog, alias.text);
    }
  }
}

TEST_CASE("every architecture in the published measurements is in the catalog") {
  const std::string path = kData + "published.json";
  if (absent(path)) return;
  const ModelCatalog catalog;
  std::set<std::string> names;
  collect(load_document(path).root, names);
  CHECK(names.size() > 20);
  for (const std::string& name : names) {
    if (!not_architectures().contains(name)) check_resolves(catalog, name);
  }
}

TEST_CASE("models of the served systems and of the Megatron tables are in the catalog") {
  const ModelCatalog catalog;
  for (const char* name : {"MiniMaxAI/MiniMax-M2.5",
                           "Qwen/Qwen3-235B-A22B-FP8",
                           "Qwen/Qwen3-32B",
                           "Qwen/Qwen3.5-397B-A17B",
                           "deepseek-ai/DeepSeek-R1",
                           "deepseek-ai/DeepSeek-V3",
                           "meta-llama/Llama-3.1-70B",
                           "meta-llama/Llama-3.1-8B-Instruct",
                           "moonshotai/Kimi-K2.5",
                           "nvidia/Llama-3.1-8B-Instruct-FP8",
                           "nvidia/Qwen3-32B-NVFP4",
                           "openai/gpt-oss-120b",
                           "zhipuai/GLM-5",
                           "1.7B",
                           "3.6B",
                           "7.5B",
                           "18B",
                           "39B",
                           "76B",
                           "145B",
                           "310B",
                           "530B",
                           "1T",
                           "Megatron 22B",
                           "GPT-3 175B",
                           "MT-NLG 530B"}) {
    check_resolves(catalog, name);
  }
}

}  // namespace moebius
