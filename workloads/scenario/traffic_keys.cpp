#include "workloads/scenario/traffic_keys.h"

#include <array>
#include <filesystem>

#include <fmt/format.h>

namespace moebius {
namespace {

constexpr std::array kFormats{
    Named<TraceFormat>{"auto", TraceFormat::kAuto, "by its first line"},
    Named<TraceFormat>{"mooncake", TraceFormat::kMooncake, "JSONL with hash_ids"},
    Named<TraceFormat>{"mooncake-delta", TraceFormat::kMooncakeDelta,
                       "JSONL, a row holds what is new in its session"},
    Named<TraceFormat>{"dynamo", TraceFormat::kDynamo, "JSONL, dynamo.request.trace.v1"},
    Named<TraceFormat>{"azure", TraceFormat::kAzure, "CSV, TIMESTAMP, ContextTokens, GeneratedTokens"},
    Named<TraceFormat>{"burstgpt", TraceFormat::kBurstGpt, "CSV, Timestamp, Request tokens, Response tokens"},
};

constexpr std::array kLaws{
    Named<ArrivalLaw>{"poisson", ArrivalLaw::kPoisson, "independent of each other"},
    Named<ArrivalLaw>{"gamma", ArrivalLaw::kGamma, "gaps of a gamma distribution: in bursts"},
    Named<ArrivalLaw>{"diurnal", ArrivalLaw::kDiurnal, "the rate rises and falls as a sine"},
};

// Rows of the table of generators by name; the value is the row.
std::vector<Named<int>> generators() {
  std::vector<Named<int>> rows;
  for (const TrafficKind& kind : traffic_kinds())
    rows.push_back({kind.name, static_cast<int>(rows.size()), kind.help});
  return rows;
}

// Of requests that come by and by, and of nothing else.
constexpr std::array kDrawnKeys{
    "block_tokens",  "turns",          "spread",    "first_tokens", "further_tokens", "output_tokens",
    "shared_tokens", "shared_prompts", "pause",     "images",       "image_tokens",   "context_tokens",
    "arrivals",      "rate",           "variation", "period",       "amplitude",
    "spread_arrivals"};

// Those of them that say nothing of a file's requests: blocks and images count beside one, too.
constexpr std::array kGeneratorKeys{"generator",      "requests",       "turns",          "spread",
                                    "first_tokens",   "further_tokens", "output_tokens",  "shared_tokens",
                                    "shared_prompts", "pause",          "context_tokens", "arrivals",
                                    "rate",           "variation",      "period",         "amplitude",
                                    "input",          "output"};

constexpr int kDefaultKind = 1;  // conversation

// A path on the command line, or in a scenario that extends another, stands in for the generator of the file
// below it, whose keys may stay there.
bool stands_in(const std::string& path_file, int path_line, const std::string& key_file, int key_line) {
  return key_line != 0 && (path_line == 0 || path_file != key_file);
}

void refuse_generator_keys(const Section& section) {
  const Place path = section.place_of("path");
  for (const char* key : kGeneratorKeys) {
    const Place at = section.place_of(key);
    section.allow_only(key, stands_in(path.file, path.line, at.file, at.line),
                       "a generator in place of \"path\"");
  }
}

std::optional<TraceFile> read_file(Section& section, std::int64_t block_tokens, std::uint64_t seed) {
  const std::string path = section.text(
      "path", "",
      "a file of requests, or a mix of clients (.json), in place of the generator, whose keys then count for "
      "nothing where it stands in for them: on the command line, or in a scenario that extends theirs");
  const auto format = section.choice<TraceFormat>("format", kFormats, TraceFormat::kAuto, "of the file");
  section.allow_only("format", !path.empty(), "path");
  if (path.empty() && section.given("path")) section.place_of("path").fail("expected a file, found \"\"");
  if (path.empty()) return std::nullopt;
  refuse_generator_keys(section);
  std::filesystem::path at = path;
  const Place place = section.place_of("path");
  if (place.line != 0 && at.is_relative()) at = std::filesystem::path(place.file).parent_path() / at;
  if (std::error_code error; !std::filesystem::exists(at, error))
    place.fail(fmt::format("expected a trace file, found none: {}", at.string()));
  return TraceFile{at.string(), format, block_tokens, seed};
}

Arrivals read_arrivals(Section& section, double rate, double turns) {
  Arrivals arrivals;
  arrivals.law = section.choice<ArrivalLaw>("arrivals", kLaws, ArrivalLaw::kPoisson, "how sessions begin");
  arrivals.rate = section.number("rate", {kAboveZero, 1e6}, rate, "requests a second, mean") / turns;
  arrivals.variation = section.number("variation", {0.05, 20}, 3,
                                      "arrivals gamma: standard deviation of the gaps over their mean");
  arrivals.period =
      section.time("period", Time{std::int64_t{86400} * 1'000'000'000}, "arrivals diurnal: of the rate");
  arrivals.amplitude =
      section.number("amplitude", {0, 1}, 0.5, "arrivals diurnal: of the rate, over its mean");
  section.allow_only("variation", arrivals.law == ArrivalLaw::kGamma, "arrivals \"gamma\"");
  section.allow_only("period", arrivals.law == ArrivalLaw::kDiurnal, "arrivals \"diurnal\"");
  section.allow_only("amplitude", arrivals.law == ArrivalLaw::kDiurnal, "arrivals \"diurnal\"");
  if (arrivals.law == ArrivalLaw::kDiurnal && arrivals.period.ns == 0)
    section.place_of("period").fail("expected more than 0 s, found 0 s");
  return arrivals;
}

void read_law(Section& section, std::string_view key, TokenLaw& law, std::string_view help) {
  law.mean = section.number(key, {1, kMostTokens}, law.mean, help);
}

SessionShape read_session(Section& section, SessionShape shape) {
  shape.turns = section.number("turns", {1, 1e4}, shape.turns, "of a session, mean");
  read_law(section, "first_tokens", shape.first,
           "of the first turn, beside the shared ones; mean, lognormal");
  read_law(section, "further_tokens", shape.further, "that another turn adds; mean, lognormal");
  read_law(section, "output_tokens", shape.output, "of an answer; mean, lognormal");
  const double spread = section.number(
      "spread", {0, 4}, 1, "of these lengths: the deviation of their logarithm, times this; 0: all alike");
  for (TokenLaw* law : {&shape.first, &shape.further, &shape.output}) law->sigma *= spread;
  shape.shared_tokens = static_cast<double>(section.integer("shared_tokens", {0, kMostTokens},
                                                            static_cast<std::int64_t>(shape.shared_tokens),
                                                            "of the system's prompt, which sessions share"));
  shape.shared_prompts = static_cast<int>(section.integer(
      "shared_prompts", {1, 1 << 30}, shape.shared_prompts, "different prompts of the system"));
  shape.pause =
      section.time("pause", shape.pause, "between two turns of a session: of a person or a tool; mean");
  shape.images = section.number("images", {0, 1e4}, shape.images, "in the first turn of a session, mean");
  shape.image_tokens = static_cast<double>(section.integer(
      "image_tokens", {0, 1 << 20}, static_cast<std::int64_t>(shape.image_tokens), "of an image"));
  section.allow_only("image_tokens", shape.images > 0, "\"images\"");
  shape.most_tokens = section.integer("context_tokens", {2, kMostTokens}, shape.most_tokens,
                                      "a session ends before its input and output are longer");
  return shape;
}

LengthRange read_length(Section& section, std::string_view key, bool required, std::string_view help) {
  const DescriptionPtr form = description_of("", help);
  set_keyword(form->keywords, "type", array_value({text_value("integer"), text_value("object")}));
  const Value* value = section.value(key, required, form);
  return value == nullptr ? LengthRange{1, 1} : length_range(*value, section.place_of(key));
}

// Everything but the kind itself and the number of requests, which a batch has too.
TrafficSource read_source(Section& section, const TrafficKind& kind, std::uint64_t seed) {
  TrafficSource source;
  source.generator_name = kind.name;
  source.generator.seed = seed;
  source.generator.block_tokens =
      section.integer("block_tokens", {1, 1 << 20}, 512, "of a hashed block, where a file does not say");
  source.file = read_file(section, source.generator.block_tokens, seed);
  source.generator.session = read_session(section, kind.session);
  source.generator.arrivals = read_arrivals(section, kind.rate, mean_turns(source.generator.session));
  source.spread_arrivals =
      section.boolean("spread_arrivals", false, "requests of one stamp arrive evenly up to the next one");
  return source;
}

constexpr double kMostRequests = 1e9, kMostOfBatch = 1 << 22;

}  // namespace

void keep_path_alone(Document& document) {
  Value* trace = &document.root;
  for (const char* key : {"workload", "trace"}) {
    if (trace->kind != Value::Kind::kObject || trace->find(key) == nullptr) return;
    trace = &trace->items[trace->find(key) - trace->items.data()];
  }
  if (trace->kind != Value::Kind::kObject || trace->find("path") == nullptr) return;
  const auto file_of = [&](const Value& value) { return value.origin ? *value.origin : document.file; };
  const Value path = *trace->find("path");
  for (const char* key : kGeneratorKeys) {
    const Value* item = trace->find(key);
    if (item == nullptr || !stands_in(file_of(path), path.line, file_of(*item), item->line)) continue;
    const auto at = item - trace->items.data();
    trace->keys.erase(trace->keys.begin() + at);
    trace->items.erase(trace->items.begin() + at);
  }
}

TrafficSource read_traffic(Section section, std::uint64_t seed) {
  const std::vector<Named<int>> rows = generators();
  const TrafficKind& kind = traffic_kinds()[section.choice<int>(
      "generator", std::span<const Named<int>>(rows), kDefaultKind, "how requests are made")];
  const std::int64_t requests =
      section.integer("requests", {1, kMostRequests}, 1000, "how many a generator makes");
  TrafficSource source = read_source(section, kind, seed);
  source.generator.requests = requests;
  section.finish();
  return source;
}

ServedTraffic read_served_traffic(Section section, std::uint64_t seed) {
  std::vector<Named<int>> rows = generators();
  const int batch = static_cast<int>(rows.size());
  rows.push_back({"batch", batch, "all requests are there at the beginning"});
  const int chosen = section.choice<int>("generator", std::span<const Named<int>>(rows), kDefaultKind,
                                         "how requests are made");
  const bool is_batch = chosen == batch && !section.given("path");
  const std::int64_t requests = section.integer("requests", {1, is_batch ? kMostOfBatch : kMostRequests},
                                                1000, "how many a generator makes");
  ServedTraffic traffic;
  traffic.requests = static_cast<int>(requests);
  traffic.input =
      read_length(section, "input", is_batch,
                  "tokens of a prompt of a batch: a number, {\"uniform\": [LEAST, MOST]} or {\"lognormal\": "
                  "{\"median\": TOKENS, \"sigma\": SIGMA, \"most\": TOKENS}}");
  traffic.output = read_length(section, "output", is_batch, "tokens to generate: as input");
  for (const char* key : {"input", "output"})  // beside a path: refuse_generator_keys()
    section.allow_only(key, is_batch || section.given("path"), "generator \"batch\"");
  for (const char* key : kDrawnKeys) section.allow_only(key, !is_batch, "another generator than \"batch\"");
  TrafficSource source =
      read_source(section, traffic_kinds()[is_batch ? kDefaultKind : chosen % batch], seed);
  source.generator.requests = requests;
  if (source.file) traffic.requests = 0;  // all that it has
  if (!is_batch) traffic.source = std::move(source);
  section.finish();
  return traffic;
}

std::optional<LengthEnds> length_ends(const Value& pair) {
  const auto is_length = [](const Value& value) {
    return value.kind == Value::Kind::kInteger && value.integer >= 1;
  };
  if (pair.kind != Value::Kind::kArray || pair.items.size() != 2) return {};
  const Value &least = pair.items[0], &most = pair.items[1];
  if (!is_length(least) || !is_length(most) || least.integer > most.integer) return {};
  return LengthEnds{least.integer, most.integer};
}

LengthRange length_range(const Value& value, const Place& place) {
  const auto fail = [&] {
    place.fail(fmt::format(
        "expected a number of tokens from 1 to {0:.0f}, {{\"uniform\": [LEAST, MOST]}} or {{\"lognormal\": "
        "{{\"median\": TOKENS, \"sigma\": SIGMA, \"most\": TOKENS}}}}, found {1}",
        kMostTokens, value.excerpt()));
  };
  const auto tokens = [&](const Value& number) {
    if (number.kind != Value::Kind::kInteger || number.integer < 1 || number.integer > kMostTokens) fail();
    return static_cast<int>(number.integer);
  };
  if (value.kind != Value::Kind::kObject) {
    const int length = tokens(value);
    return {length, length};
  }
  if (value.keys.size() != 1) fail();
  if (value.find("lognormal") != nullptr) {
    Reader law = Reader(value, place).object("lognormal");
    LengthRange range{.low = 1};
    range.median = law.number("median", {1, kMostTokens});
    range.sigma = law.number("sigma", {0, 4});
    range.high = static_cast<int>(law.integer("most", {1, kMostTokens}));
    law.finish();
    return range;
  }
  const Value* pair = value.find("uniform");
  const std::optional<LengthEnds> ends = pair == nullptr ? std::nullopt : length_ends(*pair);
  if (!ends || static_cast<double>(ends->most) > kMostTokens) fail();
  return {static_cast<int>(ends->least), static_cast<int>(ends->most)};
}

}  // namespace moebius
