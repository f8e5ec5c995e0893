#include "workloads/scenario/schema.h"

#include <cmath>
#include <cstdint>

#include "workloads/scenario/scenario_parts.h"

namespace moebius {

Value text_value(std::string_view text) {
  Value value;
  value.kind = Value::Kind::kString;
  value.text = text;
  return value;
}

Value number_value(double number) {
  Value value;
  value.number = number;
  const bool whole = std::floor(number) == number && std::abs(number) < 9e15;
  value.kind = whole ? Value::Kind::kInteger : Value::Kind::kNumber;
  if (whole) value.integer = static_cast<std::int64_t>(number);
  return value;
}

Value boolean_value(bool boolean) {
  Value value;
  value.kind = Value::Kind::kBoolean;
  value.boolean = boolean;
  return value;
}

Value array_value(std::vector<Value> items) {
  Value value;
  value.kind = Value::Kind::kArray;
  value.items = std::move(items);
  return value;
}

void set_keyword(Value& object, std::string_view key, Value value) {
  object.kind = Value::Kind::kObject;
  object.keys.emplace_back(key);
  object.items.push_back(std::move(value));
}

DescriptionPtr description_of(std::string_view type, std::string_view help) {
  auto description = std::make_shared<Description>();
  description->keywords.kind = Value::Kind::kObject;
  if (!type.empty()) set_keyword(description->keywords, "type", text_value(type));
  if (!help.empty()) set_keyword(description->keywords, "description", text_value(help));
  return description;
}

namespace {

Value required_keys(const std::vector<std::string>& keys) {
  std::vector<Value> names;
  for (const std::string& key : keys) names.push_back(text_value(key));
  return array_value(std::move(names));
}

enum class Demands : std::uint8_t { kWith, kWithout };

Value described(const Description& description, Demands demands) {
  Value schema = description.keywords;
  if (!description.properties.empty()) {
    Value properties;
    for (const auto& [key, child] : description.properties)
      set_keyword(properties, key, described(*child, demands));
    set_keyword(schema, "properties", std::move(properties));
  }
  if (demands == Demands::kWith && !description.required.empty())
    set_keyword(schema, "required", required_keys(description.required));
  if (description.closed) set_keyword(schema, "additionalProperties", boolean_value(false));
  // Arrays are not merged with those of the file below: their items are whole.
  if (description.items) set_keyword(schema, "items", described(*description.items, Demands::kWith));
  return schema;
}

// The required keys alone, object in object.
Value demands_of(const Description& description) {
  Value demands, properties;
  demands.kind = Value::Kind::kObject;
  for (const auto& [key, child] : description.properties) {
    Value inner = demands_of(*child);
    if (!inner.keys.empty()) set_keyword(properties, key, std::move(inner));
  }
  if (!properties.keys.empty()) set_keyword(demands, "properties", std::move(properties));
  if (!description.required.empty()) set_keyword(demands, "required", required_keys(description.required));
  return demands;
}

// Any required key, "kind" too, may stand in the file that this one extends.
Value schema_of_kind(const Description& description) {
  Value schema = described(description, Demands::kWithout);
  Value extends, whole;
  set_keyword(extends, "required", required_keys({"extends"}));
  set_keyword(whole, "not", std::move(extends));
  set_keyword(schema, "if", std::move(whole));
  set_keyword(schema, "then", demands_of(description));
  return schema;
}

}  // namespace

std::string scenario_schema() {
  Value schema;
  set_keyword(schema, "$schema", text_value("https://json-schema.org/draft/2020-12/schema"));
  set_keyword(schema, "title", text_value("Moebius scenario"));
  set_keyword(
      schema, "description",
      text_value("What to simulate or execute. Quantities that have a unit are strings with the unit."));
  std::vector<Value> kinds;
  for (const auto& row : scenario_kinds()) kinds.push_back(schema_of_kind(*describe_scenario(row.value)));
  // Not "oneOf": a file that leaves its kind to what it extends may suit several.
  set_keyword(schema, "anyOf", array_value(std::move(kinds)));
  return to_json(schema) + "\n";
}

}  // namespace moebius
