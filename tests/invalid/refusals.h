// Scenarios with one key changed, and the sentence with which they are refused.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "hw/catalog.h"
#include "hw/error.h"
#include "models/model.h"
#include "tests/process.h"
#include "workloads/scenario/scenario.h"

#include "tests/catch.h"

namespace moebius {

struct Case {
  const char* pointer;
  const char* json;      // as on the command line: JSON, or else a string
  const char* sentence;  // after "s.json: --set " or "s.json:LINE: "
};

// Scenarios that tests of several kinds of keys begin with.
inline constexpr const char* kTraining = "study/deepseek-v3-train-2048-h800.json";  // ep 64, pp 16, dp 128
inline constexpr const char* kCollective = "smoke/allreduce-1024.json";
inline constexpr const char* kSmall = "smoke/serve-small.json";
inline constexpr const char* kApart = "smoke/serve-apart.json";

inline Document base(const std::string& file) {
  return parse_document(test::text_of(std::string(MOEBIUS_SOURCE_DIR) + "/scenarios/" + file), "s.json");
}

// The sentence with which the scenario is refused; empty when it is accepted.
inline std::string refusal(const Document& document) {
  static const Catalog catalog;
  static const ModelCatalog models;
  try {
    read_scenario(document, catalog, models);
  } catch (const Error& error) {
    CHECK(error.kind() == Error::Kind::kInput);
    return error.what();
  }
  return "";
}

// With one key changed; none with an empty pointer.
inline std::string refusal(const std::string& file, const std::string& pointer, const std::string& json) {
  Document document = base(file);
  if (!pointer.empty()) set_at_pointer(document, pointer, json);
  return refusal(document);
}

// With several keys changed: pointers, each with its JSON.
inline std::string refusal(const std::string& file,
                           const std::vector<std::pair<const char*, const char*>>& changes) {
  Document document = base(file);
  for (const auto& [pointer, json] : changes) set_at_pointer(document, pointer, json);
  return refusal(document);
}

// `sentence`: how it ends.
inline void check(const std::string& file, const std::string& pointer, const char* json,
                  const std::string& sentence) {
  INFO(pointer << " = " << json);
  CHECK_THAT(refusal(file, pointer, json), Catch::EndsWith(sentence));
}

inline void check(const std::string& file, const std::vector<Case>& cases) {
  REQUIRE(refusal(base(file)) == "");
  for (const Case& c : cases) {
    INFO(c.pointer << " = " << c.json);
    CHECK(refusal(file, c.pointer, c.json) == std::string("s.json: --set ") + c.sentence);
  }
}

}  // namespace moebius
