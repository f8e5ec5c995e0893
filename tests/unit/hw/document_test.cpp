// JSON documents: what they hold, where it stood, and what is said about each fault.
#include "hw/document.h"

#include "hw/error.h"

#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>
#include "tests/catch.h"

#include "tests/process.h"

using namespace moebius;
using moebius::test::Scratch;

namespace {

std::string fault(const std::string& text, DocumentLimits limits = {}) {
  try {
    parse_document(text, "x.json", limits);
  } catch (const Error& error) {
    CHECK(error.kind() == Error::Kind::kInput);
    return error.what();
  }
  return "no fault";
}

std::string load_fault(const std::string& path, DocumentLimits limits = {}) {
  try {
    load_document(path, limits);
  } catch (const Error& error) {
    return error.what();
  }
  return "no fault";
}

Document parsed(const std::string& text) {
  return parse_document(text, "x.json");
}

}  // namespace

TEST_CASE("a zero byte does not end a text") {
  using namespace std::string_literals;
  CHECK_THROWS_WITH(parse_document("{\"a\": 1}\0{}"s, "x.json"),
                    "x.json:1: expected the end of the file, found byte 0x00");
  CHECK_THROWS_WITH(parse_document("[1, 2]\n\0"s, "x.json"),
                    "x.json:2: expected the end of the file, found byte 0x00");
}

TEST_CASE("A document holds every kind of value") {
  const Document document =
      parsed(R"({"n": null, "b": true, "i": -7, "x": 2.5, "s": "a\u00e9\n", "a": [1, []], "o": {}})");
  const Value& root = document.root;
  CHECK(document.file == "x.json");
  CHECK(root.keys == std::vector<std::string>{"n", "b", "i", "x", "s", "a", "o"});
  CHECK(root.find("n")->kind == Value::Kind::kNull);
  CHECK(root.find("b")->boolean);
  CHECK(root.find("i")->integer == -7);
  CHECK(root.find("i")->number == -7);
  CHECK(root.find("x")->kind == Value::Kind::kNumber);
  CHECK(root.find("x")->number == 2.5);
  CHECK(root.find("s")->text == "a\xc3\xa9\n");
  CHECK(root.find("a")->items.size() == 2);
  CHECK(root.find("o")->kind == Value::Kind::kObject);
  CHECK(root.find("absent") == nullptr);
}

TEST_CASE("Integers are exact to 64 bits, beyond that they are numbers") {
  CHECK(parsed("9223372036854775807").root.integer == INT64_MAX);
  CHECK(parsed("-9223372036854775808").root.integer == INT64_MIN);
  CHECK(parsed("9223372036854775808").root.kind == Value::Kind::kNumber);
  CHECK(parsed("1e2").root.kind == Value::Kind::kNumber);
}

TEST_CASE("Every value knows its line") {
  const Document document =
      parsed("{\n  \"a\": 1,\n  \"b\": [\n    2\n    ,\n    \"x\"\n  ],\n\n  \"c\":\n    true\n}\n");
  const Value& root = document.root;
  CHECK(root.line == 1);
  CHECK(root.find("a")->line == 2);
  CHECK(root.find("b")->line == 3);
  CHECK(root.find("b")->items[0].line == 4);  // the line break behind a number was looked at, not passed
  CHECK(root.find("b")->items[1].line == 6);
  CHECK(root.find("c")->line == 10);
  CHECK(parsed("\n\n5\n").root.line == 3);
  CHECK(parsed("5").root.line == 1);
}

TEST_CASE("Comments are skipped, and their lines count") {
  const Document document =
      parsed("// head\n{ // open\n  \"a\": 1, // one\n  /* two\n     lines */ \"b\": 2 // end\n}\n// tail");
  CHECK(document.root.find("a")->line == 3);
  CHECK(document.root.find("b")->line == 5);
  CHECK(parsed("[\"// no comment\"]").root.items[0].text == "// no comment");
}

TEST_CASE("A byte order mark is skipped, blank lines and \\r\\n are blanks") {
  CHECK(parsed("\xEF\xBB\xBF[1]").root.items.size() == 1);
  CHECK(parsed("[\r\n1\r\n]").root.items[0].line == 2);
}

TEST_CASE("A fault is told in one sentence: file, line, expected, found") {
  const auto [text, sentence] = GENERATE(table<std::string, std::string>({
      {"", "x.json:1: expected a value, found the end of the file"},
      {"  \n\n", "x.json:1: expected a value, found the end of the file"},
      {"// only\n", "x.json:1: expected a value, found the end of the file"},
      {"{\"a\": 1,\n \"b\": [1, 2\n\n", "x.json:2: expected ',' or ']', found the end of the file"},
      {"{", "x.json:1: expected a key in double quotes or '}', found the end of the file"},
      {"{\"a\"", "x.json:1: expected ':' behind the key, found the end of the file"},
      {"{\"a\": 1,\n}", "x.json:2: expected a key in double quotes behind the comma, found '}'"},
      {"[1,\n2,\n]", "x.json:3: expected a value behind the comma, found ']'"},
      {"[1,,2]", "x.json:1: expected a value behind the comma, found ','"},
      {"{\"a\" 1}", "x.json:1: expected ':' behind the key, found 1"},
      {"{\"a\":\n}", "x.json:2: expected a value, found '}'"},
      {"{a: 1}", "x.json:1: expected a key in double quotes or '}', found a"},
      {"{1: 2}", "x.json:1: expected a key in double quotes or '}', found 1"},
      {"{'a': 1}", "x.json:1: expected a key in double quotes or '}', found '''"},
      {"[1 2]", "x.json:1: expected ',' or ']', found 2"},
      {"[1}", "x.json:1: expected ',' or ']', found '}'"},
      {"{\"a\": 1]", "x.json:1: expected ',' or '}', found ']'"},
      {"{\"a\": 1\n \"b\": 2}", "x.json:2: expected ',' or '}', found \"b\""},
      {"{}\n{}", "x.json:2: expected the end of the file, found '{'"},
      {"1 2", "x.json:1: expected the end of the file, found 2"},
      {"[1], 2", "x.json:1: expected the end of the file, found ','"},
      {"[] /", "x.json:1: expected the end of the file, found '/'"},
      {"[1, /* open", "x.json:1: expected '*/' at the end of a comment, found the end of the file"},
      {"\x7f"
       "ELF",
       "x.json:1: expected a value, found byte 0x7F"},
  }));
  CHECK(fault(text) == sentence);
}

TEST_CASE("What is not a number of JSON is refused as it was written") {
  const auto [text, sentence] = GENERATE(table<std::string, std::string>({
      {"{\"a\": NaN}", "x.json:1: expected a value, found NaN"},
      {"[Infinity]", "x.json:1: expected a value or ']', found Infinity"},
      {"[-Infinity]", "x.json:1: expected a number, found -Infinity"},
      {"[1,\n -]", "x.json:2: expected a number, found -"},
      {"[1.]", "x.json:1: expected a number, found 1."},
      {"[1e+]", "x.json:1: expected a number, found 1e+"},
      {"[.5]", "x.json:1: expected a value or ']', found .5"},
      {"[+1]", "x.json:1: expected a value or ']', found +1"},
      {"[01]", "x.json:1: a number must not begin with 0, found 01"},
      {"[1, -032]", "x.json:1: a number must not begin with 0, found -032"},
      {"[0x10]", "x.json:1: expected ',' or ']', found x10"},
      {"[True]", "x.json:1: expected a value or ']', found True"},
      {"[1e999]", "x.json:1: expected a number of at most 1.8e308, found 1e999"},
      {"[1e-999]", "x.json:1: expected 0 or a number of at least 5e-324, found 1e-999"},
  }));
  CHECK(fault(text) == sentence);
  CHECK(parsed("[0e-999, 0.0]").root.items[0].number == 0);
}

TEST_CASE("A broken string says what is broken in it") {
  const auto [text, sentence] = GENERATE(table<std::string, std::string>({
      {"[\n\"abc", "x.json:2: expected '\"' at the end of a string, found the end of the file"},
      {"[\"abc\\", "x.json:1: expected '\"' at the end of a string, found the end of the file"},
      {"[\"a\nb\"]",
       "x.json:1: expected '\"' at the end of a string or an escaped character, found the end of the line"},
      {"[\"a\tb\"]",
       "x.json:1: expected '\"' at the end of a string or an escaped character, found byte 0x09"},
      {"[\"\\q\"]", "x.json:1: expected an escape such as \\n, found a backslash and 'q'"},
      {"[\"\\u12g4\"]", "x.json:1: expected four hexadecimal digits behind \\u, found 'g'"},
      {"[\"\\ud800\"]",
       "x.json:1: expected two \\u escapes, high surrogate first, found one half of the pair"},
      {"[\"\\udc00\"]",
       "x.json:1: expected two \\u escapes, high surrogate first, found one half of the pair"},
      {"[\"\xff\"]", "x.json:1: expected valid UTF-8, found byte 0xFF"},
      {"[\"\xc3(\"]", "x.json:1: expected valid UTF-8, found bytes 0xC3 0x28"},
      {"[\"\xe2\x82\"]", "x.json:1: expected valid UTF-8, found bytes 0xE2 0x82 0x22"},
      {"{\"\xff\": 1}", "x.json:1: expected valid UTF-8, found byte 0xFF"},
  }));
  CHECK(fault(text) == sentence);
}

TEST_CASE("A comment ends where the parser thinks it ends, also at a lone carriage return or a zero byte") {
  CHECK(fault("// a\rx, \"b\"\n1") == "x.json:1: expected a value, found x");
  CHECK(fault(std::string("// a\0x, \"b\"\n1", 12)) == "x.json:1: expected a value, found x");
  CHECK(fault(std::string("/* a \0 */ 1", 12)) ==
        "x.json:1: expected '*/' at the end of a comment, found byte 0x00");
}

TEST_CASE("A sentence holds no control character, not even the one that strings may hold") {
  CHECK(fault("[1 \"a\x7f"
              "b\"]") == "x.json:1: expected ',' or ']', found \"ab\"");
}

TEST_CASE("A long token is cut in the sentence, between characters") {
  CHECK(fault(std::string("[1 \"") + std::string(1000, 'x') + "\"]") ==
        "x.json:1: expected ',' or ']', found \"" + std::string(36, 'x') + "...");
  CHECK(fault(std::string("[") + std::string(1000, 'x')) ==
        "x.json:1: expected a value or ']', found " + std::string(37, 'x') + "...");
  std::string umlauts;
  for (int i = 0; i < 100; ++i) umlauts += "\xc3\xa9";  // two bytes each; 36 of 40 bytes are left for them
  CHECK(fault("[1 \"" + umlauts + "\"]") ==
        "x.json:1: expected ',' or ']', found \"" + umlauts.substr(0, 36) + "...");
}

TEST_CASE("A key may stand once in an object, at the line of the second") {
  CHECK(fault("{\"a\": 1,\n \"b\": 2,\n \"a\":\n 3}") ==
        "x.json:3: /a: expected each key once, found \"a\" again");
  CHECK(fault("{\"o\": {\"k\": 1, \"\\u006b\": 2}}") ==
        "x.json:1: /o/k: expected each key once, found \"k\" again");
  CHECK(fault("[1, {\"a/b\": [{\"k\": 1, \"k\": 2}]}]") ==
        "x.json:1: /1/a~1b/0/k: expected each key once, found \"k\" again");
  CHECK(fault("[{\"a\": 1}, {\"a\": 1}]") == "no fault");
}

TEST_CASE("A repeated key is found in a large object too, and quickly") {
  std::string text = "{\n";
  for (int i = 0; i < 200'000; ++i) text += "\"k" + std::to_string(i) + "\": 0,\n";
  const auto start = std::chrono::steady_clock::now();
  CHECK(fault(text + "\"k5\": 1,\n\"k7\": 1}") ==
        "x.json:200002: /k5: expected each key once, found \"k5\" again");
  // Comparing every pair of 200,000 keys would take minutes.
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(20));
}

TEST_CASE("Nesting is bounded") {
  const std::string open(64, '['), close(64, ']');
  CHECK(fault(open + close) == "no fault");
  CHECK(fault("\n[" + open + close + "]") == "x.json:2: expected at most 64 levels of nesting, found more");
  CHECK(fault(std::string(10'000'000, '[')) == "x.json:1: expected at most 64 levels of nesting, found more");
  CHECK(fault("[[[1]]]", {.depth = 2}) == "x.json:1: expected at most 2 levels of nesting, found more");
}

TEST_CASE("The deepest nesting that can be asked for is read, written and freed") {
  const std::string text = std::string(1000, '[') + std::string(1000, ']');
  const Document document = parse_document(text, "x.json", {.depth = 1000});
  CHECK(parse_document(to_json(document.root), "x.json", {.depth = 1000}).root.items.size() == 1);
}

TEST_CASE("The number of values is bounded") {
  CHECK(fault("[1, 2, 3]", {.values = 4}) == "no fault");  // the array is one of them
  CHECK(fault("[1,\n2,\n3]", {.values = 3}) == "x.json:3: expected at most 3 values, found more");
}

TEST_CASE("The size is bounded before anything is read") {
  CHECK(fault("[1, 2]", {.bytes = 6}) == "no fault");
  CHECK(fault("[1, 2] ", {.bytes = 6}) == "x.json:1: expected at most 6 bytes, found 7");
}

TEST_CASE("A file is read with the path that the user wrote") {
  const Scratch scratch;
  const std::string path = scratch.write("a.json", "{\"a\": [1]}");
  CHECK(load_document(path).file == path);
  CHECK(load_document(path).root.find("a")->items[0].integer == 1);
}

TEST_CASE("A path that is no readable file is one sentence") {
  const Scratch scratch;
  const std::string folder = scratch.path("");
  CHECK(load_fault("/no/such/file.json") == "/no/such/file.json: expected a file, found none");
  CHECK(load_fault(folder) == folder + ": expected a file, found a directory");
  CHECK(load_fault("") == ": expected a file, found none");
  const std::string empty = scratch.write("empty.json", "");
  CHECK(load_fault(empty) == empty + ":1: expected a value, found the end of the file");
  const std::string below = empty + "/x";
  CHECK(load_fault(below) == below + ": expected a file, found none");
}

TEST_CASE("A file of 100 MB is refused unread, and a device after the limit") {
  const Scratch scratch;
  const std::string path = scratch.write("garbage.json", "");
  std::filesystem::resize_file(path, 100'000'000);
  CHECK(load_fault(path) == path + ": expected at most 67108864 bytes, found 100000000");
  CHECK(load_fault("/dev/zero", {.bytes = 100'000}) ==
        "/dev/zero: expected at most 100000 bytes, found more");
}

TEST_CASE("60 MB of garbage end at the first byte with one short sentence") {
  const Scratch scratch;
  std::string garbage(60'000'000, '\0');
  for (std::size_t i = 0; i < garbage.size(); ++i) garbage[i] = static_cast<char>(i * 2654435761u >> 13);
  garbage[0] = '\x9c';
  const std::string path = scratch.write("garbage.json", garbage);
  CHECK(load_fault(path) == path + ":1: expected a value, found byte 0x9C");
}

TEST_CASE("A string of 60 MB without an end is one short sentence") {
  CHECK(fault(std::string("\"") + std::string(60'000'000, 'x')) ==
        "x.json:1: expected '\"' at the end of a string, found the end of the file");
}

TEST_CASE("A pipe can be read") {
  const Scratch scratch;
  const std::string path = scratch.path("pipe");
  REQUIRE(mkfifo(path.c_str(), 0600) == 0);
  std::thread writer([&] { std::ofstream(path) << "[1, 2]"; });
  CHECK(load_document(path).root.items.size() == 2);
  writer.join();
}

TEST_CASE("A value names its kind and shows an excerpt") {
  const Document document = parsed(R"([null, true, 3, 2.5, "a\"b", [1], {}])");
  std::vector<std::string> names, excerpts;
  for (const Value& item : document.root.items) {
    names.emplace_back(item.kind_name());
    excerpts.push_back(item.excerpt());
  }
  CHECK(names == std::vector<std::string>{"null", "a boolean", "an integer", "a number", "a string",
                                          "an array", "an object"});
  CHECK(excerpts ==
        std::vector<std::string>{"null", "true", "3", "2.5", "\"a\\\"b\"", "an array", "an object"});
  const std::string x = parsed(std::string("\"") + std::string(500, 'x') + "\"").root.excerpt();
  CHECK(x == std::string("\"") + std::string(36, 'x') + "...");
}

TEST_CASE("What to_json writes reads back the same, numbers to the last bit") {
  const std::string text =
      "{\n  \"a\": [\n    1,\n    1.0,\n    0.1,\n    -1e-300,\n    5e-324,\n    1.7976931348623157e+308\n  "
      "],\n"
      "  \"e\": {},\n  \"f\": [],\n  \"s\": \"q\\\"\\\\\\n\\u0001\xc3\xa9\",\n  \"n\": null,\n  \"t\": "
      "false\n}";
  CHECK(to_json(parsed(text).root) == text);
  CHECK(parsed(to_json(parsed("9007199254740993.0").root)).root.number == 9007199254740992.0);
}

TEST_CASE("Objects merge key by key, everything else is replaced") {
  const Value base = parsed(R"({"a": 1, "o": {"x": 1, "y": [1, 2]}, "z": null})").root;
  const Value changes = parsed(
                            "\n\n"
                            R"({"o": {"y": [3], "n": true}, "b": 2, "z": {"k": 1}})")
                            .root;
  const Value expected =
      parsed(R"({"a": 1, "o": {"x": 1, "y": [3], "n": true}, "z": {"k": 1}, "b": 2})").root;
  const Value result = merged(base, changes);
  CHECK(to_json(result) == to_json(expected));
  CHECK(result.find("a")->line == 1);
  CHECK(result.find("b")->line == 3);
  CHECK(to_json(merged(base, parsed("[1]").root)) == to_json(parsed("[1]").root));
}
