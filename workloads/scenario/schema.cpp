#include "workloads/scenario/schema.h"

#include <cmath>

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

Value schema_of(const Description& description) {
  Value schema = description.keywords;
  if (!description.properties.empty()) {
    Value properties;
    for (const auto& [key, child] : description.properties) set_keyword(properties, key, schema_of(*child));
    set_keyword(schema, "properties", std::move(properties));
  }
  if (!description.required.empty()) {
    std::vector<Value> required;
    for (const std::string& key : description.required) required.push_back(text_value(key));
    set_keyword(schema, "required", array_value(std::move(required)));
  }
  if (description.closed) set_keyword(schema, "additionalProperties", boolean_value(false));
  if (description.items) set_keyword(schema, "items", schema_of(*description.items));
  return schema;
}

std::string scenario_schema() {
  Value schema;
  set_keyword(schema, "$schema", text_value("https://json-schema.org/draft/2020-12/schema"));
  set_keyword(schema, "title", text_value("Moebius scenario"));
  set_keyword(
      schema, "description",
      text_value("What to simulate or execute. Quantities that have a unit are strings with the unit."));
  std::vector<Value> kinds;
  for (const auto& row : scenario_kinds()) kinds.push_back(schema_of(*describe_scenario(row.value)));
  set_keyword(schema, "oneOf", array_value(std::move(kinds)));
  return to_json(schema) + "\n";
}

}  // namespace moebius
