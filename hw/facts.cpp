#include "hw/facts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>

#include "hw/error.h"
#include "hw/fabric/fabric.h"

namespace moebius {
namespace {

const std::vector<std::pair<std::string_view, std::string_view>> kStatuses{
    {"published", "published"},     {"measured", "measured"},       {"vendor claim", "vendor claim"},
    {"third party", "third party"}, {"from memory", "from memory"}, {"estimate", "estimate"}};

double tiers_in(Reader& reader, std::string_view key) {
  const Value& value = reader.value(key);
  if (value.kind == Value::Kind::kString && value.text == "auto") return kAutomaticTiers;
  if (value.kind == Value::Kind::kInteger && value.integer >= 0 && value.integer <= 3) return value.number;
  reader.place_of(key).fail(
      fmt::format("expected \"auto\" or an integer from 0 to 3, found {}", value.excerpt()));
}

double number_in(const FactRow& row, Reader& reader, std::string_view key) {
  switch (row.form) {
    case FactForm::kQuantity:
      return reader.quantity(key, row.dimension, row.range);
    case FactForm::kNumber:
      return reader.number(key, row.range);
    case FactForm::kCount:
      return static_cast<double>(reader.integer(key, row.range));
    case FactForm::kFlag:
      return reader.boolean(key) ? 1 : 0;
    case FactForm::kTiers:
      return tiers_in(reader, key);
  }
  std::abort();
}

// [low, high] around the value. The reader reads objects: the list is handed to it as one with keys 0 and 1.
void read_range(const FactRow& row, Reader& reader, Fact& fact) {
  fact.low = fact.high = fact.value;
  if (!reader.has("range")) return;
  const Value& range = reader.value("range");
  const Place place = reader.place_of("range");
  if (range.kind != Value::Kind::kArray || range.items.size() != 2)
    place.fail(fmt::format("expected [low, high], found {}", range.excerpt()));
  Value ends = range;
  ends.kind = Value::Kind::kObject;
  ends.keys = {"0", "1"};
  Reader list(ends, place);
  fact.low = number_in(row, list, "0");
  fact.high = number_in(row, list, "1");
  if (fact.low > fact.value || fact.high < fact.value)
    place.fail("expected a range that holds the value, the low end first");
}

}  // namespace

void Sources::add(const std::string& file, const std::string& key, const std::string& text) {
  rows_.push_back({file, key, text});
}

const std::string* Sources::find(const std::string& file, std::string_view key) const {
  const Row* best = nullptr;
  const auto nearness = [&](const Row& row) {
    return row.file == file ? 2 : row.file.starts_with('<') ? 1 : 0;
  };
  for (const Row& row : rows_)
    if (row.key == key && (best == nullptr || nearness(row) > nearness(*best))) best = &row;
  return best == nullptr ? nullptr : &best->text;
}

std::vector<std::string> Sources::keys() const {
  std::vector<std::string> keys;
  for (const Row& row : rows_)
    if (std::find(keys.begin(), keys.end(), row.key) == keys.end()) keys.push_back(row.key);
  return keys;
}

void Layers::add(const Value& value, Place place, bool from_catalog) {
  layers_.push_back({Reader(value, std::move(place)), from_catalog});
}

// Every layer learns that the key is known; the uppermost that has it holds it, unless it says null.
Layers::Layer* Layers::holder(std::string_view key) {
  Layer* found = nullptr;
  for (Layer& layer : layers_) {
    if (!layer.reader.has(key)) {
      layer.reader.text(key, "");
    } else if (layer.reader.value(key); !found) {
      found = &layer;
    }
  }
  return found && found->reader.value(key).kind != Value::Kind::kNull ? found : nullptr;
}

Layers::Layer& Layers::required(std::string_view key) {
  if (Layer* layer = holder(key)) return *layer;
  layers_.front().reader.place().fail(fmt::format("expected key \"{}\", found none", key));
}

void Layers::check_source(const Fact& fact, const Place& place) const {
  if (sources_.find(fact.file, fact.source) != nullptr) return;
  place.fail(fmt::format("expected a key of \"sources\", found \"{}\"{}", fact.source,
                         suggestion(fact.source, sources_.keys())));
}

Layers::Opened Layers::open(Layer& layer, std::string_view key) const {
  const Value& value = layer.reader.value(key);
  if (value.kind != Value::Kind::kObject && !layer.from_catalog) {
    Fact given;
    given.name = key;
    given.source = "scenario";
    given.status = "given";
    return {given, layer.reader, key};
  }
  if (value.kind != Value::Kind::kObject)
    layer.reader.place_of(key).fail(fmt::format(
        "expected {{\"value\": ..., \"source\": ..., \"status\": ...}}, found {}", value.excerpt()));
  Reader object(value, layer.reader.place_of(key));
  object.value("value");
  Fact fact;
  fact.name = key;
  fact.source = object.text("source");
  fact.file = object.place().file;
  if (layer.from_catalog) check_source(fact, object.place_of("source"));
  fact.status = object.choice("status", kStatuses);
  fact.note = object.text("note", "");
  if (object.has("range")) object.value("range");
  object.finish();
  return {fact, object, "value"};
}

Fact Layers::fact(const FactRow& row) {
  if (!row.required && !holder(row.key)) return {};
  auto [fact, reader, key] = open(required(row.key), row.key);
  fact.value = number_in(row, reader, key);
  const Value& value = reader.value(key);
  fact.text = value.kind == Value::Kind::kString ? value.text : to_json(value);
  fact.low = fact.high = fact.value;
  if (key == "value") read_range(row, reader, fact);
  return fact;
}

Fact Layers::name(std::string_view key, const std::vector<std::string>& names) {
  auto [fact, reader, value_key] = open(required(key), key);
  std::vector<std::pair<std::string_view, std::string>> table;
  table.reserve(names.size());
  for (const std::string& name : names) table.emplace_back(name, name);
  fact.text = reader.choice(value_key, table);
  return fact;
}

std::pair<Fact, std::vector<std::string>> Layers::names(std::string_view key) {
  Layer* layer = holder(key);
  if (!layer) return {};
  auto [fact, reader, value_key] = open(*layer, key);
  std::vector<std::string> texts = reader.texts(value_key);
  fact.text = fmt::format("{}", fmt::join(texts, ", "));
  fact.value = fact.low = fact.high = static_cast<double>(texts.size());
  return {fact, texts};
}

std::string Layers::text(std::string_view key) {
  return required(key).reader.text(key);
}

void Layers::ignore(std::string_view key) {
  holder(key);
}

void Layers::finish() const {
  for (const Layer& layer : layers_) layer.reader.finish();
}

}  // namespace moebius
