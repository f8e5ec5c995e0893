// --set on a document: where the value goes, what it is, and what is said when it does not fit.
#include "hw/document.h"
#include "hw/error.h"

#include "tests/catch.h"

using namespace moebius;

namespace {

Document plan() {
  return parse_document(
      R"({"plan": {"ep": 8, "a/b": 1, "m~n": 2, "": 3}, "list": [1, {"x": 2}], "none": []})", "x.json");
}

// The document after one change, as one line.
std::string after(const std::string& pointer, const std::string& text, Document document = plan()) {
  set_at_pointer(document, pointer, text);
  std::string line;
  for (const char c : to_json(document.root))
    if (c != '\n' && c != ' ') line += c;
  return line;
}

std::string edit_fault(const std::string& pointer, const std::string& text = "1") {
  try {
    after(pointer, text);
  } catch (const Error& error) {
    CHECK(error.kind() == Error::Kind::kInput);
    return error.what();
  }
  return "no edit_fault";
}

TEST_CASE("A first item whose array is not there yet makes it") {
  CHECK(after("/faults/0/at", "1 s", parse_document("{}", "x.json")) == R"({"faults":[{"at":"1s"}]})");
  CHECK(after("/faults/-/at", "1 s", parse_document("{}", "x.json")) == R"({"faults":[{"at":"1s"}]})");
  CHECK(after("/faults/1", "2", parse_document("{}", "x.json")) == R"({"faults":{"1":2}})");
}

Value set_value(const std::string& text) {
  Document document = parse_document("{}", "x.json");
  set_at_pointer(document, "/v", text);
  return *document.root.find("v");
}

}  // namespace

TEST_CASE("A pointer replaces the value it leads to") {
  CHECK(after("/plan/ep", "64") == R"({"plan":{"ep":64,"a/b":1,"m~n":2,"":3},"list":[1,{"x":2}],"none":[]})");
  CHECK(after("/list/1/x", "64") ==
        R"({"plan":{"ep":8,"a/b":1,"m~n":2,"":3},"list":[1,{"x":64}],"none":[]})");
  CHECK(after("/list", "null") == R"({"plan":{"ep":8,"a/b":1,"m~n":2,"":3},"list":null,"none":[]})");
}

TEST_CASE("~1 stands for a slash, ~0 for a tilde, and nothing for the empty key") {
  CHECK(after("/plan/a~1b", "9") == R"({"plan":{"ep":8,"a/b":9,"m~n":2,"":3},"list":[1,{"x":2}],"none":[]})");
  CHECK(after("/plan/m~0n", "9") == R"({"plan":{"ep":8,"a/b":1,"m~n":9,"":3},"list":[1,{"x":2}],"none":[]})");
  CHECK(after("/plan/", "9") == R"({"plan":{"ep":8,"a/b":1,"m~n":2,"":9},"list":[1,{"x":2}],"none":[]})");
  CHECK(after("/~01", "9", parse_document("{}", "x.json")) == R"({"~1":9})");  // decoded once, not twice
}

TEST_CASE("What is missing is added, with the objects on the way") {
  CHECK(after("/a/b/c", "1", parse_document("{}", "x.json")) == R"({"a":{"b":{"c":1}}})");
  CHECK(after("/none/-", "1", parse_document(R"({"none": []})", "x.json")) == R"({"none":[1]})");
  CHECK(after("/none/-/k", "1", parse_document(R"({"none": [0]})", "x.json")) == R"({"none":[0,{"k":1}]})");
}

TEST_CASE("What parses as JSON is JSON, the rest is a string") {
  CHECK(set_value("64").integer == 64);
  CHECK(set_value("2.5").number == 2.5);
  CHECK(set_value("true").boolean);
  CHECK(set_value("null").kind == Value::Kind::kNull);
  CHECK(set_value("[1, 2]").items.size() == 2);
  CHECK(set_value("\"64\"").text == "64");
  CHECK(set_value("400 Gb/s").text == "400 Gb/s");
  CHECK(set_value("h800-sxm").text == "h800-sxm");
  CHECK(set_value("NaN").text == "NaN");
  CHECK(set_value("").text.empty());
  CHECK(set_value("").kind == Value::Kind::kString);
  CHECK(set_value("C:\\new \"x\"").text == "C:\\new \"x\"");
}

TEST_CASE("A value from the command line has no line, nor has anything in it") {
  const Value value = set_value("{\"a\": [1]}");
  CHECK(value.line == 0);
  CHECK(value.items[0].line == 0);
  CHECK(value.items[0].items[0].line == 0);
  CHECK(set_value("text").line == 0);
}

TEST_CASE("A wrong pointer or value is told in one sentence") {
  const auto [pointer, text, sentence] = GENERATE(table<std::string, std::string, std::string>({
      {"plan/ep", "1",
       "--set plan/ep: expected a JSON pointer such as \"/plan/ep/degree\", found \"plan/ep\""},
      {"", "1", "--set : expected a JSON pointer such as \"/plan/ep/degree\", found \"\""},
      {"/a~2", "1", "--set /a~2: expected \"~0\" or \"~1\" where the pointer has a tilde, found \"a~2\""},
      {"/a~", "1", "--set /a~: expected \"~0\" or \"~1\" where the pointer has a tilde, found \"a~\""},
      {"/plan/ep/degree", "1", "--set /plan/ep/degree: expected an object or an array at /plan/ep, found 8"},
      {"/list/0/x/y", "1", "--set /list/0/x/y: expected an object or an array at /list/0, found 1"},
      {"/list/2", "1",
       "--set /list/2: expected an index from 0 to 1 or \"-\", which appends to the array, found \"2\""},
      {"/list/01", "1",
       "--set /list/01: expected an index from 0 to 1 or \"-\", which appends to the array, found \"01\""},
      {"/list/-1", "1",
       "--set /list/-1: expected an index from 0 to 1 or \"-\", which appends to the array, found \"-1\""},
      {"/list/99999999999999999999", "1",
       "--set /list/99999999999999999999: expected an index from 0 to 1 or \"-\", which appends to the "
       "array, "
       "found \"99999999999999999999\""},
      {"/none/0", "1", "--set /none/0: expected \"-\", which appends to the array, found \"0\""},
      {"/plan", "{\"ep\": 8,}", "--set /plan: expected a key in double quotes behind the comma, found '}'"},
      {"/list", "[1, 2", "--set /list: expected ',' or ']', found the end of the file"},
      {"/plan/ep", "\xff", "--set /plan/ep: expected a value, found byte 0xFF"},
      {"/\xff", "1",  // told by the sign for what is no text
       "--set \"/\uFFFD\": expected a JSON pointer such as \"/plan/ep/degree\", found \"/\uFFFD\""},
  }));
  CHECK(edit_fault(pointer, text) == "x.json: " + sentence);
}

TEST_CASE("The nesting bound holds for what is set") {
  std::string deep;
  for (int i = 0; i < 65; ++i) deep += "/a";
  CHECK(edit_fault(deep).ends_with(": expected at most 64 levels of nesting, found more"));
  CHECK(edit_fault("/plan", std::string(64, '[') + std::string(64, ']')) ==
        "x.json: --set /plan: expected at most 64 levels of nesting, found more");
  CHECK(edit_fault("/plan", std::string(63, '[') + std::string(63, ']')) == "no edit_fault");
}

TEST_CASE("A failed change leaves a root that is no container as it was") {
  Document document = parse_document("5", "x.json");
  CHECK_THROWS_WITH(set_at_pointer(document, "/a", "1"),
                    "x.json: --set /a: expected an object or an array at the root, found 5");
  CHECK(document.root.integer == 5);
}
