// server_starts.json.
#include <cstdint>
#include <string_view>
#include <utility>

#include "hw/catalog.h"
#include "hw/reader.h"
#include "workloads/validation/servers/server_rules.h"

namespace moebius {
namespace {

constexpr Range kCount{0, 1 << 30};

int count(Reader& reader, std::string_view key, int otherwise) {
  return static_cast<int>(reader.integer(key, kCount, otherwise));
}

CountSpan read_counts(Reader& reader, std::string_view key) {
  CountSpan span;
  std::optional<Reader> of = reader.optional_object(key);
  if (!of) return span;
  span.least = count(*of, "least", span.least);
  span.most = count(*of, "most", span.most);
  of->finish();
  return span;
}

std::optional<Version> read_version(Reader& reader, std::string_view key) {
  const std::string text = reader.text(key, "");
  if (text.empty()) return std::nullopt;
  const std::optional<Version> version = version_of(text);
  if (!version)
    reader.place_of(key).fail("expected a version, \"0.19\" or \"1.2.0\", found \"" + text + "\"");
  return version;
}

VersionSpan read_versions(Reader& reader) {
  VersionSpan span;
  std::optional<Reader> of = reader.optional_object("version");
  if (!of) return span;
  span.is = of->text("is", "");
  span.from = read_version(*of, "from");
  span.before = read_version(*of, "before");
  span.not_before = read_version(*of, "not_before");
  of->finish();
  return span;
}

std::vector<int> read_numbers(Reader& reader, std::string_view key) {
  std::vector<int> numbers;
  if (!reader.has(key)) return numbers;
  for (const Value& item : reader.value(key).items) {
    if (item.kind != Value::Kind::kInteger) reader.place_of(key).fail("expected whole numbers");
    numbers.push_back(static_cast<int>(item.integer));
  }
  return numbers;
}

ServerCondition read_condition(Reader reader) {
  ServerCondition when;
  when.inferencemax = reader.choice<bool>("by", {{"inferencemax", true}, {"aiconfigurator", false}});
  when.mode = reader.text("mode", "");
  when.backends = reader.texts("backends");
  when.systems = reader.texts("systems");
  when.models = reader.texts("models");
  when.formats = reader.texts("formats");
  when.other_formats = reader.texts("other_formats_than");
  when.other_precisions = reader.texts("other_precisions_than");
  when.version = read_versions(reader);
  when.tp = read_numbers(reader, "tp");
  if (std::optional<Reader> days = reader.optional_object("measured")) {
    when.measured_from = days->text("from", "");
    when.measured_to = days->text("to", "");
    days->finish();
  }
  when.users = read_counts(reader, "users");
  when.input = read_counts(reader, "input");
  when.output = read_counts(reader, "output");
  when.replicas = read_counts(reader, "replicas");
  reader.finish();
  return when;
}

std::optional<TokenBudget> read_budget(Reader& reader) {
  std::optional<Reader> of = reader.optional_object("token_budget");
  if (!of) return std::nullopt;
  TokenBudget budget;
  budget.tokens = count(*of, "tokens", 0);
  budget.inputs = count(*of, "inputs", 0);
  budget.batches = count(*of, "batches", 0);
  budget.multiple = static_cast<int>(of->integer("multiple", {1, 1 << 20}, 1));
  budget.least = count(*of, "least", 0);
  budget.shared = of->boolean("shared", false);
  of->finish();
  return budget;
}

std::optional<Value> read_object(Reader& reader, std::string_view key) {
  if (!reader.optional_object(key)) return std::nullopt;
  return reader.value(key);
}

ServerRule read_rule(Reader reader) {
  reader.text("source");
  ServerRule rule;
  rule.when = read_condition(reader.object("when"));
  Reader set = reader.object("set");
  reader.finish();
  rule.token_budget = read_budget(set);
  rule.max_batch = count(set, "max_batch", 0);
  rule.users_a_slot = set.number("users_a_slot", {1, 16}, 0);
  rule.users_without = count(set, "users_without", 0);
  rule.memory_share = set.number("memory_share", {0.01, 1}, 0);
  rule.fp8_cache = set.boolean("fp8_cache", false);
  rule.generated_experts = set.boolean("generated_experts", false);
  rule.deep_gemm = set.boolean("deep_gemm", false);
  rule.whole_experts = set.boolean("whole_experts", false);
  rule.fused_shared_experts = set.boolean("fused_shared_experts", false);
  if (set.has("fused_reduction")) rule.fused_reduction = set.boolean("fused_reduction", false);
  rule.quantised_output = set.boolean("quantised_output", false);
  rule.scheduler = read_object(set, "scheduler");
  rule.speculative = read_object(set, "speculative");
  set.finish();
  return rule;
}

}  // namespace

std::vector<ServerRule> read_server_rules(const Document& document) {
  Reader root(document);
  root.texts("notes");
  std::vector<ServerRule> rules;
  for (Reader& rule : root.objects("rules")) rules.push_back(read_rule(std::move(rule)));
  root.finish();
  return rules;
}

const std::vector<ServerRule>& shipped_server_rules() {
  static const std::vector<ServerRule> rules =
      read_server_rules(embedded_document("workloads/validation/servers/server_starts.json"));
  return rules;
}

}  // namespace moebius
