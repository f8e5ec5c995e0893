// Files that a scenario names, where it is written elsewhere.
#include "workloads/scenario/named_files.h"

#include <filesystem>

#include "tests/catch.h"
#include "tests/process.h"

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

TEST_CASE("what named files say is told by their contents, wherever they lie") {
  const test::Scratch scratch;
  for (const char* folder : {"a", "b", "c"}) std::filesystem::create_directories(scratch.path(folder));
  const auto mark = [&](const std::string& folder, const std::string& trace) {
    scratch.write(folder + "/t.jsonl", trace);
    return named_files_mark(parse_document(
        R"({"plan": {"weights": "random", "save": "t.jsonl"}, "workload": {"trace": {"path": "t.jsonl"}}})",
        scratch.path(folder + "/s.json")));
  };
  const std::string first = mark("a", "one");
  CHECK(mark("b", "one") == first);
  CHECK(mark("c", "two") != first);
  CHECK(named_files_mark(parse_document(R"({"model": "mixtral-8x7b"})", "/s.json")).empty());
}

TEST_CASE("what the scenarios of a cluster's jobs say is told by their contents") {
  const test::Scratch scratch;
  const auto mark = [&](const std::string& folder, const std::string& list, const std::string& layers) {
    std::filesystem::create_directories(scratch.path(folder));
    scratch.write(folder + "/j.json", R"({"model": {"layers": )" + layers + "}}");
    return named_files_mark(parse_document(list, scratch.path(folder + "/c.json")));
  };
  for (const char* list :
       {R"({"jobs": [{"scenario": "j.json"}]})", R"({"queueing": {"shapes": [{"scenario": "j.json"}]}})"}) {
    const std::string first = mark("a", list, "4");
    CHECK(mark("b", list, "4") == first);
    CHECK(mark("c", list, "16") != first);
  }
}

TEST_CASE("the architecture of a reward model is told by its contents") {
  const test::Scratch scratch;
  const auto mark = [&](const std::string& folder, const std::string& config) {
    std::filesystem::create_directories(scratch.path(folder));
    scratch.write(folder + "/config.json", config);
    return named_files_mark(
        parse_document(R"({"workload": {"rl": {"reward_model": {"hf_config": "config.json"}}}})",
                       scratch.path(folder + "/s.json")));
  };
  const std::string first = mark("a", "{}");
  CHECK(!first.empty());
  CHECK(mark("b", "{}") == first);
  CHECK(mark("c", R"({"num_hidden_layers": 2})") != first);
}

}  // namespace moebius
