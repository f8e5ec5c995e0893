// What ships with the project works as it stands: every scenario is valid and described by the schema, every
// command of the README runs.
#include <catch2/catch.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "hw/catalog.h"
#include "hw/document.h"
#include "models/model.h"
#include "tests/process.h"
#include "tests/rules/source_root.h"
#include "workloads/scenario/extended_document.h"
#include "workloads/scenario/known_figures.h"
#include "workloads/scenario/scenario.h"
#include "workloads/scenario/schema.h"

namespace {

using namespace moebius;
namespace fs = std::filesystem;

std::vector<std::string> scenario_files() {
  std::vector<std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(kRoot / "scenarios")) {
    const std::string path = entry.path().string();
    if (path.ends_with(".json") && !path.ends_with(".study.json") && !path.ends_with(".space.json") &&
        !path.ends_with("schema.json"))
      files.push_back(path);
  }
  std::sort(files.begin(), files.end());
  return files;
}

// The schema of a scenario's kind: the branch of "anyOf" whose "kind" is that constant.
const Value& branch_of(const Value& schema, const std::string& kind) {
  for (const Value& branch : schema.find("anyOf")->items) {
    if (branch.find("properties")->find("kind")->find("const")->text == kind) return branch;
  }
  throw std::runtime_error("no branch for kind " + kind);
}

// What a scenario must hold unless another one gives it: the required keys, object in object.
void require_demanded(const Value& value, const Value& demands) {
  if (const Value* required = demands.find("required")) {
    for (const Value& key : required->items) CHECK(value.find(key.text) != nullptr);
  }
  const Value* properties = demands.find("properties");
  for (std::size_t i = 0; properties != nullptr && i < properties->keys.size(); ++i) {
    INFO(properties->keys[i]);
    const Value* inner = value.find(properties->keys[i]);
    if (inner != nullptr && inner->kind == Value::Kind::kObject)
      require_demanded(*inner, properties->items[i]);
  }
}

// Every key of `value` stands in the schema, and every name in its enum, down to objects that the schema
// leaves open.
void require_described(const Value& value, const Value& schema, const std::string& pointer) {
  INFO(pointer);
  if (const Value* names = schema.find("enum")) {
    const auto same = [&](const Value& name) {
      return name.text == value.text && name.number == value.number;
    };
    CHECK(std::any_of(names->items.begin(), names->items.end(), same));
  }
  const Value* properties = schema.find("properties");
  if (value.kind == Value::Kind::kObject && properties != nullptr) {
    for (std::size_t i = 0; i < value.keys.size(); ++i) {
      INFO(pointer + "/" + value.keys[i]);
      const Value* property = properties->find(value.keys[i]);
      REQUIRE(property != nullptr);
      require_described(value.items[i], *property, pointer + "/" + value.keys[i]);
    }
    if (const Value* required = schema.find("required")) {
      for (const Value& key : required->items) CHECK(value.find(key.text) != nullptr);
    }
  }
  const Value* items = schema.find("items");
  if (value.kind == Value::Kind::kArray && items != nullptr) {
    for (const Value& item : value.items) require_described(item, *items, pointer + "/-");
  }
}

// Pointers of all keys that the schema of one kind describes.
void collect_pointers(const Value& schema, const std::string& pointer, std::vector<std::string>& pointers) {
  const Value* properties = schema.find("properties");
  if (properties == nullptr) return;
  for (std::size_t i = 0; i < properties->keys.size(); ++i) {
    const std::string at = pointer + "/" + properties->keys[i];
    if (properties->items[i].find("properties") == nullptr) pointers.push_back(at);
    collect_pointers(properties->items[i], at, pointers);
  }
}

// Lines of the README's shell blocks that start the binary.
std::vector<std::string> readme_commands() {
  std::ifstream readme(kRoot / "README.md");
  std::vector<std::string> commands;
  bool inside = false;
  const std::string binary = "./build/moebius ";
  for (std::string line; std::getline(readme, line);) {
    if (line.rfind("```", 0) == 0) inside = line == "```sh";
    if (line.rfind("$ ", 0) == 0) line = line.substr(2);
    if (!inside || line.rfind(binary, 0) != 0) continue;
    const std::string command = line.substr(binary.size(), line.find('#') - binary.size());
    // Figures and claims are carried out whole by tests of their own (shipped_validation.cpp,
    // shipped_claims.cpp).
    const std::string words = command.substr(0, command.find_last_not_of(' ') + 1);
    if (words != "validate" && words != "validate scenarios/baige") commands.push_back(words);
  }
  return commands;
}

struct Sample {
  std::string command;
  std::vector<std::string> lines;  // that the README shows below it
};

// Commands after "$ ", each with the block that follows.
std::vector<Sample> readme_samples() {
  std::ifstream readme(kRoot / "README.md");
  std::vector<Sample> samples;
  const std::string prompt = "$ ./build/moebius ";
  bool inside = false, shown = false;
  for (std::string line; std::getline(readme, line);) {
    if (line.rfind("```", 0) == 0) {
      inside = !inside;
      shown = inside && line == "```" && !samples.empty() && samples.back().lines.empty();
    } else if (inside && line.rfind(prompt, 0) == 0) {
      samples.push_back({line.substr(prompt.size()), {}});
    } else if (inside && shown) {
      samples.back().lines.push_back(line);
    }
  }
  return samples;
}

bool has_number(const Value& value) {
  if (value.kind == Value::Kind::kInteger || value.kind == Value::Kind::kNumber) return true;
  return value.kind == Value::Kind::kObject && std::ranges::any_of(value.items, has_number);
}

}  // namespace

TEST_CASE("every shipped scenario passes check") {
  const std::vector<std::string> files = scenario_files();
  REQUIRE(files.size() >= 6);
  for (const std::string& file : files) {
    INFO(file);
    const auto checked = test::run_moebius("check " + file);
    INFO(checked.err);
    CHECK(checked.exit_code == 0);
  }
}

TEST_CASE("every shipped study passes check and all its points are scenarios") {
  int studies = 0;
  for (const auto& entry : fs::recursive_directory_iterator(kRoot / "scenarios")) {
    if (!entry.path().string().ends_with(".study.json")) continue;
    ++studies;
    INFO(entry.path());
    const auto checked = test::run_moebius("check " + entry.path().string());
    INFO(checked.err);
    CHECK(checked.exit_code == 0);
  }
  CHECK(studies >= 7);
}

TEST_CASE("the shipped schema is what the binary prints") {
  const auto printed = test::run_moebius("schema");
  REQUIRE(printed.exit_code == 0);
  CHECK(printed.out == test::text_of(kRoot / "scenarios/schema.json"));
  CHECK(printed.out == scenario_schema());
}

TEST_CASE("every key of every shipped scenario stands in the schema") {
  const Value schema = parse_document(scenario_schema(), "schema").root;
  for (const std::string& file : scenario_files()) {
    INFO(file);
    const Document scenario = load_scenario(file);  // with what it extends
    CHECK(scenario.root.find("$schema") != nullptr);
    const Value& branch = branch_of(schema, scenario.root.find("kind")->text);
    require_described(scenario.root, branch, "");
    require_demanded(scenario.root, *branch.find("then"));
  }
}

// Its keys may all stand in the file below, so that an editor must not ask for them.
TEST_CASE("the schema demands nothing of a file that extends another") {
  const Value schema = parse_document(scenario_schema(), "schema").root;
  for (const Value& branch : schema.find("anyOf")->items) {
    INFO(branch.find("properties")->find("kind")->find("const")->text);
    CHECK(branch.find("if")->find("not")->find("required")->items.front().text == "extends");
    CHECK(branch.find("then")->find("required") != nullptr);
    std::vector<const Value*> open{&branch};
    while (!open.empty()) {
      const Value& object = *open.back();
      open.pop_back();
      CHECK(object.find("required") == nullptr);
      const Value* properties = object.find("properties");
      for (std::size_t i = 0; properties != nullptr && i < properties->items.size(); ++i)
        open.push_back(&properties->items[i]);
    }
  }
}

// Reading notes a setting for each key that it asks for, given or not: the two lists must be the same.
TEST_CASE("the schema knows exactly the keys that the reader asks for") {
  const Catalog catalog;
  const ModelCatalog models;
  const Value schema = parse_document(scenario_schema(), "schema").root;
  for (const char* file :
       {"scenarios/study/deepseek-v3-train-2048-h800.json", "scenarios/smoke/allreduce-1024.json",
        "scenarios/smoke/serve-small.json", "scenarios/smoke/kv-replay.json"}) {
    INFO(file);
    const Document document = load_document((kRoot / file).string());
    std::vector<std::string> described, asked;
    collect_pointers(branch_of(schema, document.root.find("kind")->text), "", described);
    for (const Setting& setting : read_scenario(document, catalog, models).settings) {
      // Keys inside arrays are those of the array in the other list.
      const bool in_array = setting.pointer.find_first_of("0123456789") != std::string::npos;
      if (!in_array) asked.push_back(setting.pointer);
    }
    const std::string& kind = document.root.find("kind")->text;
    if (kind == "kv-replay") {
      asked.emplace_back("/expect");
      std::sort(described.begin(), described.end());
      std::sort(asked.begin(), asked.end());
      CHECK(described == asked);
      continue;
    }
    for (const char* array : {"/cluster/pools", "/cluster/failed", "/cluster/forwarding_pairs",
                              "/cluster/variation/slow", "/expect", "/faults"})
      asked.emplace_back(array);
    if (kind == "serving") {
      for (const char* form :
           {"/sla", "/plan/pools", "/workload/experts/domains", "/plan/cache/ssd/device",
            "/plan/decode/speculative/acceptance_by_place"})
        asked.emplace_back(form);
    }
    if (kind == "training") {
      for (const char* form : {"/workload/lengths", "/workload/rl/rollout/serving",
                               "/workload/rl/reward_model", "/workload/rl/response_lengths"})
        asked.emplace_back(form);
    }
    if (kind == "collective") {
      for (const char* array : {"/workload/flows", "/workload/matrix", "/workload/tenants"})
        asked.emplace_back(array);
    }
    std::sort(described.begin(), described.end());
    std::sort(asked.begin(), asked.end());
    CHECK(described == asked);
  }
}

// "expect" names figures by the first word of their path (workloads/scenario/known_figures.h).
TEST_CASE("every figure of a report can be expected") {
  for (const char* name : {"allreduce-1024", "moe-layer", "train-small", "sft-64-h800", "rl-64-h800",
                           "serve-small", "serve-tiers", "serve-classes", "serve-encoder", "kv-replay"}) {
    INFO(name);
    const auto run = test::run(std::string(MOEBIUS_BINARY) + " run " +
                               (kRoot / "scenarios/smoke" / name).string() + ".json --json");
    REQUIRE(run.exit_code == 0);
    const Document report = parse_document(run.out, name);
    for (std::size_t i = 0; i < report.root.keys.size(); ++i) {
      if (report.root.keys[i] == "provenance" || !has_number(report.root.items[i])) continue;
      CHECK_NOTHROW(require_known_figure(report.root.keys[i], {name, "", 0}));
    }
  }
}

TEST_CASE("what the README shows below a command is what it prints") {
  const std::vector<Sample> samples = readme_samples();
  REQUIRE(!samples.empty());
  for (const Sample& sample : samples) {
    INFO(sample.command);
    REQUIRE(sample.lines.size() >= 3);
    const auto run = test::run("cd " + kRoot.string() + " && " + MOEBIUS_BINARY + " " + sample.command);
    CHECK(run.exit_code == 0);
    for (const std::string& line : sample.lines) {
      INFO(line);
      CHECK(run.out.find(line) != std::string::npos);
    }
  }
}

TEST_CASE("the README's commands run") {
  const std::vector<std::string> commands = readme_commands();
  REQUIRE(commands.size() >= 3);
  const test::Scratch scratch;
  for (const std::string& command : commands) {
    INFO(command);
    // From a directory of its own, with the project's scenarios beside it, so that nothing is left in the
    // sources.
    const auto run = test::run("cd " + scratch.path("") + " && ln -sfn " + (kRoot / "scenarios").string() +
                               " scenarios && " + MOEBIUS_BINARY + " " + command);
    INFO(run.err);
    CHECK(run.exit_code == 0);
  }
}
