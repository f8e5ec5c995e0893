// Reading a catalog entry: one fact a line, {"value", "source", "status", "range", "note"}, in the catalogs'
// own files; a plain quantity ("memory": "96 GB") is enough in a scenario. An entry is a stack of layers, the
// uppermost first: the scenario's changes, the entry, its base, the base of that. Each key is taken whole
// from the uppermost layer that has it; null there takes the key away. Every error names the file and line of
// the layer at fault.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hw/accelerator.h"
#include "hw/reader.h"
#include "hw/units.h"

namespace moebius {

enum class FactForm { kQuantity, kNumber, kCount, kFlag, kTiers };

// What a key of an entry looks like.
struct FactRow {
  std::string_view key;
  FactForm form = FactForm::kQuantity;
  Dimension dimension = Dimension::kTime;  // kQuantity
  Range range;                             // of the value in SI units; both ends allowed
  bool required = true;
};

// Source keys that facts may name, with what they stand for: each file has its own.
class Sources {
 public:
  void add(const std::string& file, const std::string& key, const std::string& text);
  // What a key of a file means: as that file says, else as one that is built in does, else as any. Null:
  // unknown.
  const std::string* find(const std::string& file, std::string_view key) const;
  std::vector<std::string> keys() const;

 private:
  struct Row {
    std::string file, key, text;
  };
  std::vector<Row> rows_;
};

class Layers {
 public:
  explicit Layers(const Sources& sources) : sources_(sources) {}

  // Layers are added from the top down. A catalog's layer must give a source and a status with every fact.
  void add(const Value& value, Place place, bool from_catalog);

  Fact fact(const FactRow& row);  // named "" when the key is absent and not required
  Fact name(std::string_view key, const std::vector<std::string>& names);  // its text is one of `names`
  std::pair<Fact, std::vector<std::string>> names(std::string_view key);   // a list of names; may be absent
  std::string text(std::string_view key);  // no fact, a plain string: "vendor"
  void ignore(std::string_view key);       // known, and read elsewhere
  void finish() const;                     // rejects keys that nobody asked for

 private:
  struct Layer {
    Reader reader;
    bool from_catalog;
  };
  // Where a fact's value stands: in the layer itself under the fact's name, or in the fact's object under
  // "value".
  struct Opened {
    Fact fact;
    Reader reader;
    std::string_view key;
  };

  Layer* holder(std::string_view key);  // null when absent
  Layer& required(std::string_view key);
  Opened open(Layer& layer, std::string_view key) const;
  void check_source(const Fact& fact, const Place& place) const;

  const Sources& sources_;
  std::vector<Layer> layers_;
};

// A row of a table that fills a T: reading an entry is walking its table.
template <class T>
struct FactField {
  FactRow row;
  void (*set)(T&, double);
};

template <class T>
void read_facts(Layers& layers, const std::vector<FactField<T>>& table, T& entry) {
  for (const FactField<T>& field : table) {
    Fact fact = layers.fact(field.row);
    if (fact.name.empty()) continue;
    field.set(entry, fact.value);
    entry.facts.push_back(std::move(fact));
  }
}

}  // namespace moebius
