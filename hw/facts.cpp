#include "hw/facts.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "hw/error.h"
#include "hw/fabric.h"

namespace moebius {
namespace {

const std::vector<std::string> kStatuses{"published",   "measured",    "vendor claim",
                                         "third party", "from memory", "estimate"};
const std::vector<std::string> kFactKeys{"value", "source", "status", "range", "note"};

std::string number_text(double value) {
  return fmt::format("{:.10g}", value);
}

std::string limits_text(const Range& range) {
  const bool low = std::isfinite(range.low), high = std::isfinite(range.high);
  if (low && high) return fmt::format(" from {} to {}", number_text(range.low), number_text(range.high));
  if (low) return fmt::format(" of at least {}", number_text(range.low));
  return "";
}

std::string expected_text(const FactRow& row) {
  switch (row.form) {
    case FactForm::kQuantity:
      return std::string(describe(row.dimension));
    case FactForm::kNumber:
      return "a number" + limits_text(row.range);
    case FactForm::kCount:
      return "an integer" + limits_text(row.range);
    case FactForm::kFlag:
      return "true or false";
    case FactForm::kTiers:
      return "\"auto\" or an integer from 0 to 3";
  }
  return {};
}

std::optional<double> parse(const FactRow& row, const Value& value) {
  using Kind = Value::Kind;
  switch (row.form) {
    case FactForm::kQuantity:
      return value.kind == Kind::kString ? parse_quantity(value.text, row.dimension) : std::nullopt;
    case FactForm::kNumber:
      return value.kind == Kind::kInteger || value.kind == Kind::kNumber ? std::optional(value.number)
                                                                         : std::nullopt;
    case FactForm::kCount:
      return value.kind == Kind::kInteger ? std::optional(value.number) : std::nullopt;
    case FactForm::kFlag:
      return value.kind == Kind::kBoolean ? std::optional(value.boolean ? 1.0 : 0.0) : std::nullopt;
    case FactForm::kTiers:
      if (value.kind == Kind::kString && value.text == "auto") return kAutomaticTiers;
      return value.kind == Kind::kInteger && value.integer >= 0 ? std::optional(value.number) : std::nullopt;
  }
  return std::nullopt;
}

double checked(const FactRow& row, const Value& value, const Place& place) {
  const std::optional<double> number = parse(row, value);
  if (!number) place.fail(fmt::format("expected {}, found {}", expected_text(row), value.excerpt()));
  if (*number < row.range.low || *number > row.range.high) {
    const std::string unit = row.form == FactForm::kQuantity ? " in SI units" : "";
    place.fail(fmt::format("expected {}{}, found {}", expected_text(row),
                           row.form == FactForm::kQuantity ? limits_text(row.range) + unit : "",
                           value.excerpt()));
  }
  return *number;
}

Place below(const Place& place, std::string_view key, int line) {
  return {place.file, fmt::format("{}/{}", place.pointer, key), line};
}

const std::string& text_of(const Value& object, std::string_view key, const Place& place) {
  const Value* value = object.find(key);
  if (!value) place.fail(fmt::format("missing \"{}\": a fact needs a value, a source and a status", key));
  if (value->kind != Value::Kind::kString)
    below(place, key, value->line).fail(fmt::format("expected a string, found {}", value->excerpt()));
  return value->text;
}

void check_fact_keys(const Value& object, const Place& place) {
  for (std::size_t i = 0; i < object.keys.size(); ++i)
    if (std::find(kFactKeys.begin(), kFactKeys.end(), object.keys[i]) == kFactKeys.end())
      below(place, object.keys[i], object.items[i].line)
          .fail(fmt::format("unknown key \"{}\"{}", object.keys[i], suggestion(object.keys[i], kFactKeys)));
}

void read_range(const FactRow& row, const Value& object, const Place& place, Fact& fact) {
  fact.low = fact.high = fact.value;
  const Value* range = object.kind == Value::Kind::kObject ? object.find("range") : nullptr;
  if (!range) return;
  const Place here = below(place, "range", range->line);
  if (range->kind != Value::Kind::kArray || range->items.size() != 2)
    here.fail(fmt::format("expected [low, high], found {}", range->excerpt()));
  fact.low = checked(row, range->items[0], below(here, "0", range->items[0].line));
  fact.high = checked(row, range->items[1], below(here, "1", range->items[1].line));
  if (fact.low > fact.value || fact.high < fact.value)
    here.fail("expected a range that holds the value, low end first");
}

}  // namespace

void Layers::add(const Value& value, Place place, bool from_catalog) {
  layers_.push_back({Reader(value, std::move(place)), from_catalog});
}

// Every layer learns that the key is known; the uppermost that has it holds it, unless it says null.
Layers::Layer* Layers::holder(std::string_view key) {
  Layer* found = nullptr;
  for (Layer& layer : layers_) {
    if (!layer.reader.has(key))
      layer.reader.text(key, "");
    else if (layer.reader.value(key); !found)
      found = &layer;
  }
  return found && found->reader.value(key).kind != Value::Kind::kNull ? found : nullptr;
}

Layers::Layer& Layers::required(std::string_view key, std::string_view expected) {
  if (Layer* layer = holder(key)) return *layer;
  place().fail(fmt::format("missing \"{}\": expected {}", key, expected));
}

bool Layers::has(std::string_view key) const {
  for (const Layer& layer : layers_)
    if (layer.reader.has(key)) return true;
  return false;
}

void Layers::check_source(const Layer& layer, const Fact& fact, const Place& place) const {
  if (std::find(kStatuses.begin(), kStatuses.end(), fact.status) == kStatuses.end())
    below(place, "status", place.line)
        .fail(fmt::format("expected one of {}, found \"{}\"{}", fmt::join(kStatuses, ", "), fact.status,
                          suggestion(fact.status, kStatuses)));
  if (!layer.from_catalog) return;
  std::vector<std::string> keys;
  for (const auto& source : sources_) keys.push_back(source.first);
  if (std::find(keys.begin(), keys.end(), fact.source) == keys.end())
    below(place, "source", place.line)
        .fail(fmt::format("expected a key of \"sources\", found \"{}\"{}", fact.source,
                          suggestion(fact.source, keys)));
}

// The value inside a fact, with the fact's source, status and note; or the plain value that a scenario gives.
const Value& Layers::open(Layer& layer, std::string_view key, Place& place, Fact& fact) const {
  const Value& value = layer.reader.value(key);
  place = layer.reader.place_of(key);
  fact.name = key;
  if (value.kind != Value::Kind::kObject) {
    if (layer.from_catalog)
      place.fail(fmt::format("expected {{\"value\": ..., \"source\": ..., \"status\": ...}}, found {}",
                             value.excerpt()));
    fact.source = "scenario";
    fact.status = "given";
    return value;
  }
  check_fact_keys(value, place);
  fact.source = text_of(value, "source", place);
  fact.status = text_of(value, "status", place);
  check_source(layer, fact, place);
  if (value.find("note")) fact.note = text_of(value, "note", place);
  const Value* inner = value.find("value");
  if (!inner) place.fail("missing \"value\": a fact needs a value, a source and a status");
  place = below(place, "value", inner->line);
  return *inner;
}

Fact Layers::fact(const FactRow& row) {
  if (!row.required && !holder(row.key)) return {};
  Layer& layer = required(row.key, expected_text(row));
  Place place;
  Fact fact;
  const Value& value = open(layer, row.key, place, fact);
  fact.value = checked(row, value, place);
  fact.text = value.kind == Value::Kind::kString ? value.text : to_json(value);
  read_range(row, layer.reader.value(row.key), layer.reader.place_of(row.key), fact);
  return fact;
}

std::string Layers::text(std::string_view key) {
  return required(key, "a string").reader.text(key);
}

std::pair<std::string, Fact> Layers::name(std::string_view key, const std::vector<std::string>& names) {
  Place place;
  Fact fact;
  const std::string expected = fmt::format("one of {}", fmt::join(names, ", "));
  const Value& value = open(required(key, expected), key, place, fact);
  if (value.kind != Value::Kind::kString || std::find(names.begin(), names.end(), value.text) == names.end())
    place.fail(
        fmt::format("expected {}, found {}{}", expected, value.excerpt(), suggestion(value.text, names)));
  fact.text = value.text;
  return {value.text, fact};
}

std::pair<std::vector<std::string>, Fact> Layers::names(std::string_view key) {
  Place place;
  Fact fact;
  std::vector<std::string> texts;
  Layer* layer = holder(key);
  if (!layer) return {};
  const Value& value = open(*layer, key, place, fact);
  if (value.kind != Value::Kind::kArray)
    place.fail(fmt::format("expected a list of names, found {}", value.excerpt()));
  for (const Value& item : value.items) {
    if (item.kind != Value::Kind::kString)
      place.fail(fmt::format("expected a name, found {}", item.excerpt()));
    texts.push_back(item.text);
  }
  fact.text = fmt::format("{}", fmt::join(texts, ", "));
  fact.value = fact.low = fact.high = static_cast<double>(texts.size());
  return {texts, fact};
}

void Layers::ignore(std::string_view key) {
  holder(key);
}

void Layers::finish() const {
  for (const Layer& layer : layers_) layer.reader.finish();
}

}  // namespace moebius
