// Files that a scenario names, where it is written elsewhere.
#include "workloads/scenario/named_files.h"

#include <filesystem>

#include "tests/catch.h"

namespace moebius {

TEST_CASE("a scenario that is written elsewhere names its files from there") {
  Document document = parse_document(R"({"$schema": "../schema.json",
    "model": {"hf_config": "config.json"}, "plan": {"weights": "random"},
    "workload": {"trace": {"path": "/traces/all.jsonl"}}})",
                                     "/scenarios/in/s.json");
  const Document there = written_into(document, "/scenarios/out/best");
  const auto text = [&](std::initializer_list<const char*> keys) {
    const Value* value = &there.root;
    for (const char* key : keys) value = value->find(key);
    return value->text;
  };
  CHECK(text({"model", "hf_config"}) == "../../in/config.json");
  CHECK(text({"$schema"}) == "../../schema.json");
  CHECK(text({"plan", "weights"}) == "random");
  CHECK(text({"workload", "trace", "path"}) == "/traces/all.jsonl");
}

// A path of a command line is relative to where that was given.
TEST_CASE("a file that a command line names is named from where the scenario is written") {
  Document document = parse_document(R"({"model": "mixtral-8x7b"})", "/scenarios/in/s.json");
  set_at_pointer(document, "/model", R"({"hf_config": "mine/config.json"})");
  const std::filesystem::path here = std::filesystem::current_path();
  const Document there = written_into(document, (here / "out").string());
  CHECK(there.root.find("model")->find("hf_config")->text == "../mine/config.json");
}

}  // namespace moebius
