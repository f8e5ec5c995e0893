// Any bytes are a document or one sentence. What is a document is the one that nlohmann's own parser sees,
// survives writing and merging, knows its lines, and can be read and changed with nothing worse than a
// sentence. What is a profile survives writing, too.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <nlohmann/json.hpp>

#include "hw/document.h"
#include "hw/document_parse.h"
#include "hw/error.h"
#include "hw/profile.h"
#include "hw/reader.h"
#include "tests/fuzz/target.h"

namespace moebius::fuzz {

namespace {

const char* const kFile = "fuzz.json";

void check_same(const Value& a, const Value& b) {
  CHECK(a.kind == b.kind && a.boolean == b.boolean && a.integer == b.integer && a.line == b.line &&
            std::bit_cast<std::uint64_t>(a.number) == std::bit_cast<std::uint64_t>(b.number) &&
            a.text == b.text && a.keys == b.keys && a.items.size() == b.items.size(),
        to_json(a) + " / " + to_json(b));
  for (std::size_t i = 0; i < a.items.size(); ++i) check_same(a.items[i], b.items[i]);
}

// Both lexers read the same, or say the same.
void check_lexers(std::string_view text, const DocumentLimits& limits) {
  Value fast, exact;
  const auto failure = parse_value(text, limits, fast),
             exact_failure = parse_value_exactly(text, limits, exact);
  CHECK(failure.has_value() == exact_failure.has_value(), std::string(text));
  if (failure) {
    CHECK(failure->line == exact_failure->line && failure->sentence == exact_failure->sentence,
          failure->sentence + " / " + exact_failure->sentence);
  } else {
    check_same(fast, exact);
  }
}

// Runs `action`; what it throws must be the user's error, in one printable line about our file.
template <class Action>
bool succeeds(const Action& action) {
  try {
    action();
    return true;
  } catch (const Error& error) {
    const std::string_view sentence = error.what();
    CHECK(error.kind() == Error::Kind::kInput, std::string(sentence));
    CHECK(sentence.starts_with(kFile) && sentence.size() < 600, std::string(sentence));
    const auto control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
    CHECK(std::ranges::none_of(sentence, control), std::string(sentence));
    return false;
  }
}

// Values begin in the order of the text, at lines that it has.
void check_lines(const Value& value, int& line, int last) {
  CHECK(value.line >= line && value.line <= last, fmt::format("{} <= {} <= {}", line, value.line, last));
  line = value.line;
  CHECK(value.kind != Value::Kind::kObject || value.keys.size() == value.items.size(), "keys without values");
  for (const Value& item : value.items) check_lines(item, line, last);
}

void check_text(std::string_view text, const Value& root) {
  int line = 1;
  check_lines(root, line, 1 + static_cast<int>(std::ranges::count(text, '\n')));
  const std::string written = to_json(root);
  const Document again = parse_document(written, kFile);
  CHECK(to_json(again.root) == written, written);
  // Integers beyond 64 bits are doubles to us and unsigned to nlohmann: compare what both make of our text
  // and theirs.
  const auto theirs = nlohmann::json::parse(text, nullptr, true, true);
  CHECK(nlohmann::json::parse(written) == theirs, written);
}

// Each reader call on one key; a fresh reader, because finish() must name what was not asked for.
void read_key(const Value& object, const std::string& key) {
  Reader reader(object, {.file = kFile, .pointer = "", .line = object.line});
  succeeds([&] { reader.text(key); });
  succeeds([&] { reader.boolean(key); });
  succeeds([&] { reader.integer(key, {1, 8}); });
  succeeds([&] { reader.number(key, {kAboveZero, 1e6}); });
  succeeds([&] { reader.time(key); });
  succeeds([&] { reader.byte_rate(key, ByteRate{1}); });
  for (int i = 0; i <= static_cast<int>(Dimension::kPrice); ++i)
    succeeds([&] { reader.quantity(key, static_cast<Dimension>(i), {.low = 0}); });
  succeeds([&] { reader.texts(key); });
  succeeds([&] { reader.objects(key); });
  succeeds([&] { reader.choice<int>(key, {{"training", 0}, {"collective", 1}}); });
  const std::string near = key.size() < 100 ? key + "x" : "x";  // names asked for are a program's, and short
  succeeds([&] { reader.text(near); });
  const bool all_known = object.keys.size() == 1;
  CHECK(succeeds([&] { reader.finish(); }) == all_known || object.find(near), to_json(object));
}

void read_objects(const Value& value, int& budget) {
  for (const std::string& key : value.keys)
    if (budget-- > 0) read_key(value, key);
  for (const Value& item : value.items) read_objects(item, budget);
}

// The text itself as --set would give it: pointer up to the first line break, value behind it.
void change(const Document& document, std::string_view text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string_view behind = text.substr(std::min(end + 1, text.size()));
  Document changed = document;
  if (succeeds([&] { set_at_pointer(changed, text.substr(0, end), behind); }))
    CHECK(to_json(parse_document(to_json(changed.root), kFile).root) == to_json(changed.root),
          std::string(text));
  changed = document;
  if (succeeds([&] { set_at_pointer(changed, "/plan/0/~1", text); }))
    CHECK(changed.root.find("plan") != nullptr, to_json(changed.root));
}

void check_profile(const Document& document) {
  std::string written;
  if (!succeeds([&] { written = to_json(profile_from(document)); })) return;
  CHECK(to_json(profile_from(parse_document(written, kFile))) == written, written);
}

// A profile with every key that one can have.
const char* const kProfile =
    R"({"format": "moebius-profile-1", "accelerator": "x",
 "reference": {"architecture": "hopper", "cores": 132, "general_cores": 0, "independent_engines": false,
  "memory_rate": 3e12, "memory_efficiency": 0.9, "l2": 5e7, "clock": 1.8e9, "power": 7e2, "kernel_floor": 2e-6, "peak": {"fp8": 2e15}},
 "sources": [{"key": "LAB", "text": "a bench", "licence": "none", "date": "2026"}],
 "power": {"idle_watts": 130, "limit_watts": 700, "joule_per_byte": 1e-10, "joule_per_flop": {"bf16": 7e-13},
  "source": "LAB", "note": "", "carried_from": "y", "rejected": [{"rows": 3, "reason": "short"}],
  "held_out": {"rows": 9, "mean": 0.1, "median": 0.05, "p90": 0.2, "worst": 0.3}},
 "tables": [{"name": "dense", "kinds": ["gemm"], "dtype": "bf16", "stored": "int4", "includes": ["quantise"],
  "stack": "lab-1", "source": "LAB", "cores": 132, "clocks": "burst", "values": "measured", "in_sample": false,
  "power_limited_from_us": 500, "note": "", "where": [{"key": "k", "low": 1, "high": 9}], "site": ["n"],
  "axes": [{"key": "m", "points": [1, 2]}], "rejected": [], "sites": [[4]], "microseconds": ["20 -"],
  "held_out": {"rows": 0, "mean": 0, "median": 0, "p90": 0, "worst": 0}}]})";

}  // namespace

std::vector<std::string> seed_inputs() {
  return {
      "{\"name\": \"x\", \"seed\": 1, \"ratio\": 0.5, \"on\": true, \"none\": null}",
      "// head\n{\n  \"plan\": {\"tp\": 1, \"ep\": {\"degree\": 64}}, // degrees\n  \"cluster\": "
      "\"h800-2048\"\n}\n",
      "{\"link\": {\"rate\": \"400 Gb/s\", \"latency\": \"2.8 us\", \"power\": \"700 W\", \"price\": \"2.0 "
      "USD/h\"},\n"
      " \"memory\": [\"141 GB\", \"16 GiB\"], \"clock\": \"1.83 GHz\", \"reach\": \"30 km\", \"peak\": \"989 "
      "TFLOP/s\"}",
      "[[1, -2, 3.25e-7], [], {}, [{\"a\": [true, false]}, \"\\u00e9\\ud83d\\ude00\\n\"]]",
      "{\"a\": 9223372036854775807, \"b\": -9223372036854775808, \"c\": 18446744073709551615, \"d\": 1e308, "
      "\"e\": 5e-324}",
      "{\"k\": [{\"x\": 1}, {\"x\": 2}, /* block\n comment */ {\"x\": 3}], \"kx\": [\"p\", \"q\"], "
      "\"\xc3\xa9\": \"\xe2\x82\xac\"}",
      "\xef\xbb\xbf{\r\n\t\"crlf\": true\r\n}\r\n",
      "/plan/ep/degree\n{\"x\": [1, 2]}",
      "/list/-\n400 Gb/s",
      "{\"list\": [1, {\"x\": 2}], \"a/b\": 1, \"m~n\": 2, \"\": 3}",
      kProfile,
      "{\"twice\": 1, \"twice\": 2}",
      "[1, 2,]",
      "[\"open",
      std::string(70, '[') + std::string(70, ']'),
  };
}

}  // namespace moebius::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace moebius;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  static constexpr DocumentLimits kLimits{
      .bytes = std::size_t{1} << 20, .depth = 64, .values = std::size_t{1} << 16};
  fuzz::check_lexers(text, kLimits);
  Document document{.file = fuzz::kFile, .root = {}};
  if (fuzz::succeeds([&] { document = parse_document(text, fuzz::kFile, kLimits); })) {
    fuzz::check_text(text, document.root);
    int budget = 16;  // calls grow with keys times keys
    fuzz::read_objects(document.root, budget);
    fuzz::check_profile(document);
  }
  fuzz::change(document, text);
  CHECK(to_json(merged(document.root, document.root)) == to_json(document.root), "merged with itself");
  return 0;
}
