// A scenario that says only what differs from another one.
#include "workloads/scenario/extended_document.h"

#include <string>

#include "hw/error.h"
#include "hw/reader.h"
#include "tests/process.h"

#include "tests/catch.h"

namespace {

using namespace moebius;

std::string text_at(const Document& document, const std::string& object, const std::string& key) {
  Reader top(document);
  return top.object(object).text(key);
}

std::string failure_of(const std::string& file) {
  try {
    load_scenario(file);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("an extending scenario is laid over the other one object by object") {
  const test::Scratch scratch;
  scratch.write("base.json", R"({"name": "base", "plan": {"a": "old", "b": "kept"}, "list": [1, 2]})");
  const Document document = load_scenario(scratch.write(
      "top.json", R"({"extends": "base.json", "name": "top", "plan": {"a": "new"}, "list": [3]})"));
  CHECK(text_at(document, "plan", "a") == "new");
  CHECK(text_at(document, "plan", "b") == "kept");
  CHECK(document.root.find("name")->text == "top");
  CHECK(document.root.find("list")->items.size() == 1);
  CHECK(document.root.find("extends") == nullptr);
  CHECK(document.file == scratch.path("top.json"));
}

TEST_CASE("what the other scenario expects is not expected of the one that extends it") {
  const test::Scratch scratch;
  scratch.write("base.json", R"({"expect": [{"metric": "mfu"}]})");
  CHECK(load_scenario(scratch.write("bare.json", R"({"extends": "base.json"})")).root.find("expect") ==
        nullptr);
  const Document own = load_scenario(scratch.write("own.json", R"({"extends": "base.json", "expect": []})"));
  CHECK(own.root.find("expect")->items.empty());
}

TEST_CASE("an error names the file and the line that the value comes from") {
  const test::Scratch scratch;
  scratch.write("base.json", "{\n \"plan\": {\n  \"wrong\": 1}}");
  const Document document =
      load_scenario(scratch.write("top.json", "{\"extends\": \"base.json\",\n \"plan\": {\"also\": 2}}"));
  const auto where = [&](const std::string& key) {
    Reader top(document);
    const Place place = top.object("plan").place_of(key);
    return place.file + ":" + std::to_string(place.line);
  };
  CHECK(where("wrong") == scratch.path("base.json") + ":3");
  CHECK(where("also") == scratch.path("top.json") + ":2");
  // Absent keys are missed where the object was last written.
  CHECK(where("absent") == scratch.path("top.json") + ":2");
}

TEST_CASE("a value from the command line is nobody's file") {
  const test::Scratch scratch;
  scratch.write("base.json", R"({"plan": {"a": "old"}})");
  Document document = load_scenario(scratch.write("top.json", R"({"extends": "base.json"})"));
  set_at_pointer(document, "/plan/a", "new");
  Reader top(document);
  CHECK(top.object("plan").place_of("a").line == 0);
  CHECK(text_at(document, "plan", "a") == "new");
}

TEST_CASE("files that extend each other are refused") {
  const test::Scratch scratch;
  const std::string a = scratch.write("a.json", R"({"extends": "b.json"})");
  const std::string b = scratch.write("b.json", R"({"extends": "a.json"})");
  CHECK(failure_of(a) ==
        b + ":1: /extends: expected files that do not extend each other in a circle, found " + a + ", " + b +
            ", " + a);
}

TEST_CASE("a chain of nine files is refused and one of eight is not") {
  const test::Scratch scratch;
  scratch.write("0.json", R"({"seed": 7})");
  for (int i = 1; i < 9; ++i)
    scratch.write(std::to_string(i) + ".json", R"({"extends": ")" + std::to_string(i - 1) + ".json\"}");
  CHECK(load_scenario(scratch.path("7.json")).root.find("seed")->integer == 7);
  CHECK(failure_of(scratch.path("8.json")).find("expected at most 8 files") != std::string::npos);
}

TEST_CASE("a file to extend that is not there is named") {
  const test::Scratch scratch;
  CHECK(failure_of(scratch.write("a.json", R"({"extends": "none.json"})")) ==
        scratch.path("a.json") + ":1: /extends: expected a file, found none at " + scratch.path("none.json"));
  CHECK(failure_of(scratch.write("b.json", "{\"extends\":\n 4}")) ==
        scratch.path("b.json") + ":2: /extends: expected a string, found 4");
}
