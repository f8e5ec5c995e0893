// Whatever the schema allows either runs or is refused in one sentence: settings drawn from it, laid over the
// small scenarios, with those taken away again that a sentence names. MOEBIUS_DRAWS=N tries N instead of 60.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <map>
#include <random>
#include <regex>

#include <nlohmann/json.hpp>

#include "tests/catch.h"
#include "tests/process.h"

namespace moebius {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

struct Setting {
  std::string pointer;
  json schema;
};

// What says how a scenario is named or kept says nothing of how it runs.
bool is_drawn(const std::string& key) {
  static const std::vector<std::string> kLeft{"$schema", "extends", "moebius", "kind", "name",
                                              "expect",  "weights", "resume",  "save", "save_every"};
  return std::find(kLeft.begin(), kLeft.end(), key) == kLeft.end();
}

void gather(const json& object, const std::string& pointer, std::vector<Setting>& settings) {
  const json& properties = object.at("properties");
  for (const auto& [key, schema] : properties.items()) {
    if (!is_drawn(key)) continue;
    if (schema.contains("properties")) {
      gather(schema, pointer + "/" + key, settings);
    } else {
      settings.push_back({pointer + "/" + key, schema});
    }
  }
}

class Draw {
 public:
  explicit Draw(int seed) : random_(static_cast<unsigned>(seed)) {}

  template <class Values>
  auto one_of(const Values& values) {
    return values[random_() % values.size()];
  }

  // As JSON; empty where the schema alone does not say what would be one.
  std::string value(const json& schema) {
    const json types = schema.value("type", json());  // one, or several
    const std::string type = types.is_array() ? one_of(types) : types.is_string() ? types : json("");
    if (schema.contains("enum")) return one_of(schema["enum"]).dump();
    if (type == "boolean") return random_() % 2 == 0 ? "true" : "false";
    if (type == "integer" || type == "number") return number(schema, type == "integer");
    const json items = schema.value("items", json());
    if (type == "array" && items.contains("enum")) return json{one_of(items["enum"])}.dump();
    return schema.contains("examples") ? one_of(schema["examples"]).dump() : "";
  }

 private:
  std::string number(const json& schema, bool is_whole) {
    std::vector<json> values;
    for (const double value : {0.0, 0.1, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 8.0, 16.0, 64.0}) {
      const bool whole = value == std::floor(value);
      if (value < schema.value("minimum", 0.0) || value > schema.value("maximum", 1e30) ||
          (is_whole && !whole))
        continue;
      values.push_back(whole ? json(static_cast<int>(value)) : json(value));
    }
    return values.empty() ? "" : one_of(values).dump();
  }

  std::mt19937 random_;
};

struct Drawn {
  std::string file;
  std::map<std::string, std::string> settings;  // by pointer

  std::string command() const {
    std::string text = "timeout 300 " MOEBIUS_BINARY " run " + file + " --json";
    for (const auto& [pointer, value] : settings) text += " --set '" + pointer + "=" + value + "'";
    return text;
  }

  // Models of published sizes, op by op: ten minutes.
  void leave_out_what_takes_long() {
    const auto steps = settings.find("/plan/steps");
    const bool small = json::parse(test::text_of(file))["model"].contains("hidden");
    if (steps != settings.end() && steps->second == "\"full\"" && !small) settings.erase(steps);
  }

  // Takes away what the sentence of a refusal names, else the last one; false when nothing is left to take
  // away.
  bool without_refused(const std::string& sentence) {
    if (settings.empty()) return false;
    std::smatch named;
    const std::regex pointer(": (/[A-Za-z_/0-9]+): ");
    const std::size_t before = settings.size();
    if (std::regex_search(sentence, named, pointer)) {
      const std::string place = named[1];
      std::erase_if(settings, [&](const auto& entry) {
        return entry.first.starts_with(place) || place.starts_with(entry.first);
      });
    }
    if (settings.size() == before) settings.erase(std::prev(settings.end()));
    return true;
  }
};

std::vector<std::pair<std::string, std::string>> small_scenarios() {  // file, kind
  std::vector<std::pair<std::string, std::string>> scenarios;
  for (const auto& entry : fs::directory_iterator(fs::path(MOEBIUS_SOURCE_DIR) / "scenarios/smoke")) {
    const json scenario = json::parse(test::text_of(entry.path()));
    if (scenario.contains("kind")) scenarios.emplace_back(entry.path().string(), scenario["kind"]);
  }
  std::sort(scenarios.begin(), scenarios.end());
  return scenarios;
}

// One sentence, however much is shown below it of a run that failed.
bool is_one_sentence(const std::string& err, int exit_code) {
  const bool told = err.starts_with("moebius: ");
  return told && (exit_code == 1 || std::count(err.begin(), err.end(), '\n') == 1);
}

bool has_no_number(const std::string& report) {
  return std::regex_search(report, std::regex("[ :]-?(nan|inf)[,\n]"));
}

TEST_CASE("whatever the schema allows runs or is refused in one sentence") {
  const auto scenarios = small_scenarios();
  REQUIRE(scenarios.size() > 20);
  std::map<std::string, std::vector<Setting>> settings;
  const auto schema = json::parse(test::run_moebius("schema").out);
  for (const json& kind : schema["anyOf"]) gather(kind, "", settings[kind["properties"]["kind"]["const"]]);
  const char* draws = std::getenv("MOEBIUS_DRAWS");
  int ran = 0;
  for (int seed = 0; seed < (draws == nullptr ? 60 : std::atoi(draws)); ++seed) {
    Draw draw(seed);
    const auto [file, kind] = draw.one_of(scenarios);
    Drawn drawn{file, {}};
    for (int i = draw.one_of(std::array{1, 2, 3, 4, 6, 8, 12}); i > 0; --i) {
      const Setting setting = draw.one_of(settings.at(kind));
      const std::string value = draw.value(setting.schema);
      if (!value.empty()) drawn.settings[setting.pointer] = value;
    }
    drawn.leave_out_what_takes_long();
    test::Finished finished = test::run(drawn.command());
    while (finished.exit_code == 2 && drawn.without_refused(finished.err)) {
      INFO(drawn.command() << "\n" << finished.err);
      CHECK(is_one_sentence(finished.err, 2));
      finished = test::run(drawn.command());
    }
    INFO(drawn.command() << "\n" << finished.err);
    CHECK((finished.exit_code == 0 || finished.exit_code == 1));
    if (finished.exit_code == 1) CHECK(is_one_sentence(finished.err, 1));
    CHECK_FALSE(has_no_number(finished.out));
    ran += finished.exit_code == 0;
  }
  CHECK(ran > 0);
}

}  // namespace
}  // namespace moebius
