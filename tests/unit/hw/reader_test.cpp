// The strict reader: what each call accepts, and the one sentence for each thing it refuses.
#include "hw/reader.h"

#include "hw/error.h"

#include "tests/catch.h"
#include "tests/unit/hw/sentence_of.h"

using namespace moebius;
using namespace moebius::literals;

namespace {

enum class Colour { kRed, kGreen };
const std::vector<std::pair<std::string_view, Colour>> kColours{{"red", Colour::kRed},
                                                                {"green", Colour::kGreen}};

// What `read` does with the value of key "k" in the second line of x.json.
template <class Read>
std::string refusal(const std::string& json, const Read& read) {
  const Document document = parse_document("{\n\"k\": " + json + "}", "x.json");
  Reader reader(document);
  return sentence_of([&] { read(reader); });
}

const auto kText = [](Reader& reader) { reader.text("k"); };
const auto kBoolean = [](Reader& reader) { reader.boolean("k"); };
const auto kInteger = [](Reader& reader) { reader.integer("k", {1, 8}); };
const auto kNumber = [](Reader& reader) { reader.number("k", {0, 1}); };
const auto kTime = [](Reader& reader) { reader.time("k"); };
const auto kBytes = [](Reader& reader) { reader.bytes("k"); };
const auto kByteRate = [](Reader& reader) { reader.byte_rate("k"); };
const auto kObject = [](Reader& reader) { reader.object("k"); };
const auto kObjects = [](Reader& reader) { reader.objects("k"); };
const auto kTexts = [](Reader& reader) { reader.texts("k"); };
const auto kChoice = [](Reader& reader) { reader.choice("k", kColours); };

}  // namespace

TEST_CASE("Every kind of parameter is read in one line") {
  const Document document = parse_document(R"({
    "text": "x", "boolean": true, "integer": 8, "number": 0.5, "power": "700 W", "time": "2.8 us", "bytes": "16 GiB",
    "rate": "400 Gb/s", "object": {"a": 1}, "objects": [{"a": 1}, {"a": 2}], "texts": ["p", "q"], "colour": "green"
  })",
                                           "x.json");
  Reader reader(document);
  CHECK(reader.text("text") == "x");
  CHECK(reader.boolean("boolean"));
  CHECK(reader.integer("integer", {1, 8}) == 8);
  CHECK(reader.number("number", {}) == 0.5);
  CHECK(reader.quantity("power", Dimension::kPower, {}) == 700);
  CHECK(reader.time("time") == 2800_ns);
  CHECK(reader.bytes("bytes").value == 16 * 0x1p30);
  CHECK(reader.byte_rate("rate").value == 5e10);
  CHECK(reader.object("object").integer("a", {}) == 1);
  CHECK(reader.objects("objects")[1].integer("a", {}) == 2);
  CHECK(reader.texts("texts") == std::vector<std::string>{"p", "q"});
  CHECK(reader.choice("colour", kColours) == Colour::kGreen);
  CHECK_NOTHROW(reader.finish());
}

TEST_CASE("An absent key takes its default, and is known from then on") {
  const Document document = parse_document("{}", "x.json");
  Reader reader(document);
  CHECK(reader.text("a", "x") == "x");
  CHECK_FALSE(reader.boolean("b", false));
  CHECK(reader.integer("c", {1, 8}, 3) == 3);
  CHECK(reader.number("d", {0, 1}, 0.5) == 0.5);
  CHECK(reader.quantity("e", Dimension::kPower, {}, 700) == 700);
  CHECK(reader.time("f", 4_us) == 4_us);
  CHECK(reader.bytes("g", Bytes{7}).value == 7);
  CHECK(reader.byte_rate("h", ByteRate{7}).value == 7);
  CHECK_FALSE(reader.optional_object("i"));
  CHECK(reader.texts("j").empty());
  CHECK(reader.choice<Colour>("l", kColours, Colour::kRed) == Colour::kRed);
}

TEST_CASE("A present key wins over its default, also when it is wrong") {
  const Document document = parse_document(R"({"a": "y", "c": 9, "o": {"x": 1}})", "x.json");
  Reader reader(document);
  CHECK(reader.text("a", "x") == "y");
  CHECK(reader.optional_object("o")->integer("x", {}) == 1);
  CHECK_THROWS_WITH(reader.integer("c", {1, 8}, 3), "x.json:1: /c: expected an integer from 1 to 8, found 9");
}

TEST_CASE("null is a value of the wrong type, not an absent one") {
  const Document document = parse_document(R"({"c": null})", "x.json");
  Reader reader(document);
  CHECK_THROWS_WITH(reader.integer("c", {1, 8}, 3),
                    "x.json:1: /c: expected an integer from 1 to 8, found null");
  CHECK_THROWS_WITH(reader.optional_object("c"), "x.json:1: /c: expected an object, found null");
}

TEST_CASE("A missing key is reported where its object stands") {
  const Document document = parse_document("{\n\"plan\":\n {\"pp\": 1}}", "x.json");
  Reader reader(document);
  CHECK_THROWS_WITH(reader.text("name"), "x.json:1: expected key \"name\", found none");
  Reader plan = reader.object("plan");
  CHECK_THROWS_WITH(plan.object("experts"), "x.json:3: /plan: expected key \"experts\", found none");
}

TEST_CASE("A misspelt required key is pointed out") {
  const Document document = parse_document(R"({"degre": 8})", "x.json");
  Reader reader(document);
  CHECK_THROWS_WITH(reader.integer("degree", {}),
                    "x.json:1: expected key \"degree\", found none (is \"degre\" meant?)");
}

TEST_CASE("A key that was asked for is not taken for a misspelt one") {
  const Document document = parse_document(R"({"degree_a": 8})", "x.json");
  Reader reader(document);
  reader.integer("degree_a", {});
  CHECK_THROWS_WITH(reader.integer("degree_b", {}), "x.json:1: expected key \"degree_b\", found none");
}

TEST_CASE("A key that nobody asked for is an error with the nearest known one") {
  const Document document =
      parse_document("{\"seed\": 1,\n\"plan\": {\"ep\": 8,\n \"microbatchs\": 4}, \"zzz\": 0}", "x.json");
  Reader reader(document);
  reader.integer("seed", {});
  Reader plan = reader.object("plan");
  plan.integer("ep", {});
  plan.integer("microbatch", {}, 1);
  CHECK_THROWS_WITH(
      plan.finish(),
      "x.json:3: /plan/microbatchs: unknown key \"microbatchs\" (did you mean \"microbatch\"?)");
  CHECK_THROWS_WITH(reader.finish(), R"(x.json:3: /zzz: unknown key "zzz"; known are "plan", "seed")");
}

TEST_CASE("Asking whether a key is there does not make it known") {
  const Document document = parse_document(R"({"a": 1})", "x.json");
  Reader reader(document);
  CHECK(reader.has("a"));
  CHECK_THROWS_WITH(reader.finish(), "x.json:1: /a: unknown key \"a\"");
}

TEST_CASE("The root must be an object") {
  CHECK(sentence_of([] { Reader(parse_document("\n[1]", "x.json")); }) ==
        "x.json:2: expected an object, found an array");
}

TEST_CASE("A value of the wrong type says what was expected and found") {
  CHECK(refusal("5", kText) == "x.json:2: /k: expected a string, found 5");
  CHECK(refusal("{}", kText) == "x.json:2: /k: expected a string, found an object");
  CHECK(refusal("\"true\"", kBoolean) == "x.json:2: /k: expected true or false, found \"true\"");
  CHECK(refusal("0", kBoolean) == "x.json:2: /k: expected true or false, found 0");
  CHECK(refusal("\"5\"", kInteger) == "x.json:2: /k: expected an integer from 1 to 8, found \"5\"");
  CHECK(refusal("true", kNumber) == "x.json:2: /k: expected a number from 0 to 1, found true");
  CHECK(refusal("\"NaN\"", kNumber) == "x.json:2: /k: expected a number from 0 to 1, found \"NaN\"");
  CHECK(refusal("[]", kObject) == "x.json:2: /k: expected an object, found an array");
  CHECK(refusal("{}", kObjects) == "x.json:2: /k: expected an array of objects, found an object");
  CHECK(refusal("[{},\n 3]", kObjects) == "x.json:3: /k/1: expected an object, found 3");
  CHECK(refusal("\"x\"", kTexts) == "x.json:2: /k: expected an array of strings, found \"x\"");
  CHECK(refusal("[\"x\",\n 3]", kTexts) == "x.json:3: /k/1: expected a string, found 3");
  CHECK(refusal("3", kChoice) == "x.json:2: /k: expected one of \"red\", \"green\", found 3");
}

TEST_CASE("A number out of range says the range") {
  CHECK(refusal("0", kInteger) == "x.json:2: /k: expected an integer from 1 to 8, found 0");
  CHECK(refusal("9", kInteger) == "x.json:2: /k: expected an integer from 1 to 8, found 9");
  CHECK(refusal("1.5", kNumber) == "x.json:2: /k: expected a number from 0 to 1, found 1.5");
  const auto low = [](Reader& reader) { reader.integer("k", {.low = 2}); };
  CHECK(refusal("1", low) == "x.json:2: /k: expected an integer of at least 2, found 1");
  const auto high = [](Reader& reader) { reader.number("k", {.high = 2}); };
  CHECK(refusal("3", high) == "x.json:2: /k: expected a number of at most 2, found 3");
  const auto positive = [](Reader& reader) { reader.number("k", {.low = kAboveZero}); };
  CHECK(refusal("0", positive) == "x.json:2: /k: expected a number of more than 0, found 0");
  const auto share = [](Reader& reader) { reader.number("k", {kAboveZero, 1}); };
  CHECK(refusal("0", share) == "x.json:2: /k: expected a number of more than 0 and at most 1, found 0");
}

TEST_CASE("An integer may be written with an exponent or a zero fraction, not with a fraction") {
  const Document document =
      parse_document(R"({"a": 1e6, "b": 8.0, "c": 8.5, "d": 1e300, "e": 9007199254740993})", "x.json");
  Reader reader(document);
  CHECK(reader.integer("a", {}) == 1'000'000);
  CHECK(reader.integer("b", {}) == 8);
  CHECK_THROWS_WITH(reader.integer("c", {}), "x.json:1: /c: expected an integer, found 8.5");
  CHECK_THROWS_WITH(reader.integer("d", {}), "x.json:1: /d: expected an integer, found 1e+300");
  CHECK(reader.integer("e", {}) == 9007199254740993);  // 2^53 + 1: no double holds it
}

TEST_CASE("A quantity needs its unit") {
  CHECK(refusal("400", kByteRate) == "x.json:2: /k: expected a byte rate such as \"400 Gb/s\", found 400");
  CHECK(refusal("\"400\"", kByteRate) ==
        "x.json:2: /k: expected a byte rate such as \"400 Gb/s\", found \"400\"");
  CHECK(refusal("\"400 GB\"", kByteRate) ==
        "x.json:2: /k: expected a byte rate such as \"400 Gb/s\", found \"400 GB\"");
  CHECK(refusal("16", kBytes) == "x.json:2: /k: expected a size such as \"16 GiB\", found 16");
  CHECK(refusal("0.1", kTime) == "x.json:2: /k: expected a time such as \"2.8 us\", found 0.1");
}

TEST_CASE("A quantity out of range says the bound that it breaks") {
  CHECK(refusal("\"-5 GB/s\"", kByteRate) ==
        "x.json:2: /k: expected a byte rate such as \"400 Gb/s\", more than 0 B/s, found \"-5 GB/s\"");
  CHECK(refusal("\"1e300 Gb/s\"", kByteRate) ==
        "x.json:2: /k: expected a byte rate such as \"400 Gb/s\", at most 1.8e308 B/s, found \"1e300 Gb/s\"");
  CHECK(refusal("\"0 B\"", kBytes) ==
        "x.json:2: /k: expected a size such as \"16 GiB\", more than 0 B, found \"0 B\"");
  CHECK(refusal("\"-1 us\"", kTime) ==
        "x.json:2: /k: expected a time such as \"2.8 us\", at least 0 s, found \"-1 us\"");
  CHECK(refusal("\"200000 d\"", kTime) ==  // 548 years; a Time holds 292
        "x.json:2: /k: expected a time such as \"2.8 us\", at most 9200000000 s, found \"200000 d\"");
  const auto power = [](Reader& reader) { reader.quantity("k", Dimension::kPower, {1, 2000}); };
  CHECK(refusal("\"3 kW\"", power) ==
        "x.json:2: /k: expected a power such as \"700 W\", at most 2000 W, found \"3 kW\"");
  CHECK(refusal("\"0 us\"", kTime) == "no error");
}

TEST_CASE("A name out of a table is suggested") {
  CHECK(refusal("\"gren\"", kChoice) ==
        "x.json:2: /k: expected one of \"red\", \"green\", found \"gren\" (did you mean \"green\"?)");
  CHECK(refusal("\"blue\"", kChoice) == "x.json:2: /k: expected one of \"red\", \"green\", found \"blue\"");
}

TEST_CASE("Pointers escape slashes and tildes, and count elements") {
  const Document document = parse_document(R"({"a/b": [{"m~n": {"x": 1}}]})", "x.json");
  Reader reader(document);
  Reader inner = reader.objects("a/b")[0].object("m~n");
  CHECK(inner.place().pointer == "/a~1b/0/m~0n");
  CHECK(inner.place_of("x").pointer == "/a~1b/0/m~0n/x");
  CHECK(inner.place_of("absent").line == 1);
}

TEST_CASE("What came from the command line is reported as --set") {
  Document document = parse_document("{\n\"plan\": {\"ep\": 8}}", "x.json");
  set_at_pointer(document, "/plan/ep", "eight");
  set_at_pointer(document, "/plan/tpp", "1");
  set_at_pointer(document, "/pln/tp", "1");
  Reader reader(document);
  Reader plan = reader.object("plan");
  CHECK_THROWS_WITH(plan.integer("ep", {1, 8}),
                    "x.json: --set /plan/ep: expected an integer from 1 to 8, found \"eight\"");
  plan.integer("tp", {}, 1);
  CHECK_THROWS_WITH(plan.finish(), "x.json: --set /plan/tpp: unknown key \"tpp\" (did you mean \"tp\"?)");
  CHECK_THROWS_WITH(reader.finish(), "x.json: --set /pln: unknown key \"pln\" (did you mean \"plan\"?)");
}

TEST_CASE("A key of any length or content stays one printable line") {
  const std::string longest(100'000, 'x');
  const Document document = parse_document("{\"" + longest + "\": 1, \"a\\nb\": 1}", "x.json");
  Reader reader(document);
  const std::string cut = std::string("\"") + longest.substr(0, 35);
  CHECK(sentence_of([&] { reader.finish(); }) ==
        "x.json:1: \"/" + longest.substr(0, 35) + "...: unknown key " + cut + "x...");
  CHECK_THROWS_WITH(reader.place_of("a\nb").fail("wrong"), "x.json:1: \"/a\\nb\": wrong");
}
