#include "hw/catalog.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "hw/catalog_entries.h"
#include "hw/error.h"
#include "hw/fabric/uplinks.h"
#include "hw/json_text.h"

namespace moebius {
namespace {

constexpr std::string_view kFolder = "hw/catalog/";

std::string normalised(std::string_view name) {
  std::string result(name);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if (c == '_' || c == ' ') c = '-';
  }
  return result;
}

Place below(const Place& place, std::string_view key, int line) {
  return {place.file, fmt::format("{}/{}", place.pointer, key), line};
}

const Value& object_at(const Value& parent, std::string_view key, const Place& place) {
  const Value* value = parent.find(key);
  if (!value) place.fail(fmt::format("missing \"{}\": expected an object", key));
  if (value->kind != Value::Kind::kObject)
    below(place, key, value->line).fail(fmt::format("expected an object, found {}", value->excerpt()));
  return *value;
}

const std::string& string_in(const Value& value, const Place& place) {
  if (value.kind != Value::Kind::kString)
    place.fail(fmt::format("expected a string, found {}", value.excerpt()));
  return value.text;
}

// The strings of a list such as "aliases"; none when it is absent.
std::vector<std::string> strings_at(const Value& entry, std::string_view key, const Place& place) {
  const Value* list = entry.find(key);
  if (!list) return {};
  const Place here = below(place, key, list->line);
  if (list->kind != Value::Kind::kArray) here.fail(fmt::format("expected a list, found {}", list->excerpt()));
  std::vector<std::string> texts;
  for (const Value& item : list->items) texts.push_back(string_in(item, here));
  return texts;
}

Value name_value(const std::string& name) {
  Value value;
  value.kind = Value::Kind::kString;
  value.text = name;
  return value;
}

}  // namespace

Document embedded_document(std::string_view path) {
  for (const EmbeddedFile& file : embedded_files())
    if (file.path == path) return parse_document(file.text, fmt::format("<{}>", path));
  CHECK(false, std::string(path));
}

Catalog::Catalog(const std::string& data_dir) {
  Shelf* const shelves[] = {&accelerators_, &nodes_, &fabrics_, &storage_};
  for (const EmbeddedFile& file : embedded_files())
    for (Shelf* shelf : shelves)
      if (file.path == fmt::format("{}{}.json", kFolder, shelf->root))
        load(*shelf, parse_document(file.text, fmt::format("<{}>", file.path)));
  if (data_dir.empty()) return;
  const std::filesystem::path folder = data_dir;
  // Others read these two: a folder may hold nothing else.
  bool found =
      std::filesystem::exists(folder / "models.json") || std::filesystem::exists(folder / "profiles");
  for (Shelf* shelf : shelves) {
    const std::filesystem::path path = folder / (shelf->root + ".json");
    if (!std::filesystem::exists(path)) continue;
    load(*shelf, load_document(path.string()));
    found = true;
  }
  if (!found)
    throw input_error(
        fmt::format("{}: expected accelerators.json, nodes.json, fabrics.json, storage.json, models.json or "
                    "profiles/ in this folder, found none",
                    data_dir));
  check_all();
}

void Catalog::load(Shelf& shelf, Document document) {
  documents_.push_back(std::make_unique<Document>(std::move(document)));
  const Document& held = *documents_.back();
  const Value& root = held.root;
  const Place top{held.file, "", root.line};
  if (root.kind != Value::Kind::kObject)
    top.fail(fmt::format("expected an object, found {}", root.excerpt()));
  const std::vector<std::string> known{"sources", "announced", shelf.root};
  for (std::size_t i = 0; i < root.keys.size(); ++i)
    if (std::find(known.begin(), known.end(), root.keys[i]) == known.end())
      below(top, root.keys[i], root.items[i].line)
          .fail(fmt::format("unknown key {}: expected one of {}{}", json_excerpt(root.keys[i]),
                            fmt::join(known, ", "), suggestion(root.keys[i], known)));
  if (root.find("sources")) read_sources(object_at(root, "sources", top), below(top, "sources", root.line));
  if (root.find("announced")) {
    const Value& announced = object_at(root, "announced", top);
    for (std::size_t i = 0; i < announced.keys.size(); ++i)
      shelf.announced[normalised(announced.keys[i])] =
          string_in(announced.items[i], below(top, "announced", announced.items[i].line));
  }
  const Value& entries = object_at(root, shelf.root, top);
  const Place here = below(top, shelf.root, entries.line);
  for (std::size_t i = 0; i < entries.keys.size(); ++i)
    add_entry(shelf, entries.keys[i], entries.items[i], below(here, entries.keys[i], entries.items[i].line));
}

void Catalog::read_sources(const Value& sources, const Place& place) {
  for (std::size_t i = 0; i < sources.keys.size(); ++i)
    sources_.add(place.file, sources.keys[i],
                 string_in(sources.items[i], below(place, sources.keys[i], sources.items[i].line)));
}

// Enters an entry under its id, aliases and labels. A later file may take over a name; one file may not give
// it twice.
void Catalog::add_entry(Shelf& shelf, const std::string& id, const Value& value, Place place) {
  if (value.kind != Value::Kind::kObject)
    place.fail(fmt::format("expected an object, found {}", value.excerpt()));
  if (normalised(id) != id)
    place.fail(fmt::format("expected a lower-case id with hyphens, found {}", json_excerpt(id)));
  const int index = static_cast<int>(shelf.entries.size());
  int beneath = -1;
  for (int i = 0; i < index; ++i)
    if (shelf.entries[i].id == id) beneath = i;
  if (beneath < 0) shelf.ids.push_back(id);
  std::vector<std::string> names = strings_at(value, "aliases", place);
  for (std::string& label : strings_at(value, "labels", place)) names.push_back(std::move(label));
  names.push_back(id);
  for (const std::string& name : names) {
    if (name.empty()) place.fail("expected a name of at least one character, found \"\"");
    const auto [old, fresh] = shelf.names.try_emplace(normalised(name), index);
    const Entry* other = fresh || old->second == index ? nullptr : &shelf.entries[old->second];
    if (other && other->place.file == place.file && other->id != id)
      place.fail(fmt::format("the name \"{}\" already leads to \"{}\"", name, other->id));
    old->second = index;
  }
  for (auto& [name, target] : shelf.names)
    if (target == beneath) target = index;
  shelf.entries.push_back({id, &value, std::move(place), beneath});
}

void Catalog::check_all() const {
  for (const std::string& id : accelerators_.ids) accelerator(id);
  for (const std::string& id : storage_.ids) storage(id);
  for (const std::string& id : nodes_.ids) node(id);
  for (const std::string& id : fabrics_.ids) fabric(id);
}

int Catalog::find(const Shelf& shelf, const Value& name, const Place& place) const {
  const std::string& text = string_in(name, place);
  const std::string key = normalised(text);
  if (const auto found = shelf.names.find(key); found != shelf.names.end()) return found->second;
  const auto fail = [&](const std::string& sentence) {
    if (place.file.empty()) throw input_error(sentence);
    place.fail(sentence);
  };
  if (const auto known = shelf.announced.find(key); known != shelf.announced.end())
    fail(fmt::format("\"{}\" has no published figures: {}; describe it as {{\"base\": NAME, ...changes}}",
                     text, known->second));
  std::vector<std::string> names = shelf.ids;
  for (const auto& entry : shelf.names) names.push_back(entry.first);
  fail(fmt::format("expected the name of {}, found \"{}\"{}", shelf.noun, text, suggestion(text, names)));
  return -1;
}

// The entry, its base, the base of that; an entry of a later file stands on the one of the same id before it.
void Catalog::stack(const Shelf& shelf, int index, Layers& layers) const {
  std::vector<int> seen;
  std::vector<std::string> ids;
  while (index >= 0) {
    const Entry& entry = shelf.entries[index];
    ids.push_back(entry.id);
    if (std::find(seen.begin(), seen.end(), index) != seen.end())
      shelf.entries[seen.front()].place.fail(fmt::format("cyclic base: {}", fmt::join(ids, " -> ")));
    seen.push_back(index);
    layers.add(*entry.value, entry.place, true);
    index = below_in(shelf, index);
  }
  for (const char* key : {"base", "aliases", "labels"}) layers.ignore(key);
}

// What an entry stands on; -1: on nothing.
int Catalog::below_in(const Shelf& shelf, int index) const {
  const Entry& entry = shelf.entries[index];
  const Value* base = entry.value->find("base");
  const int next = base ? find(shelf, *base, below(entry.place, "base", base->line)) : entry.below;
  return next == index && entry.below >= 0 ? entry.below : next;
}

// The other ids that it stands on, after stack() has found no circle.
std::vector<std::string> Catalog::bases(const Shelf& shelf, int index) const {
  std::vector<std::string> ids;
  std::string_view last = shelf.entries[index].id;
  while ((index = below_in(shelf, index)) >= 0) {
    if (shelf.entries[index].id != last) ids.push_back(shelf.entries[index].id);
    last = shelf.entries[index].id;
  }
  return ids;
}

// Of those the ones from which nothing but names and prices differs.
std::vector<std::string> Catalog::but_for_price(const Shelf& shelf, int index) const {
  constexpr std::array<std::string_view, 4> kNames{"base", "aliases", "labels", "price"};
  const auto names_only = [&](const Entry& entry) {
    return std::all_of(entry.value->keys.begin(), entry.value->keys.end(), [&](const std::string& key) {
      return std::find(kNames.begin(), kNames.end(), key) != kNames.end();
    });
  };
  std::vector<std::string> ids;
  while (names_only(shelf.entries[index]) && (index = below_in(shelf, index)) >= 0)
    ids.push_back(shelf.entries[index].id);
  return ids;
}

// Stacks what a scenario says: a name, or an object whose `key` or "base" is the name and whose other keys
// are changes.
int Catalog::open(const Shelf& shelf, const Value& value, const Place& place, std::string_view key,
                  Layers& layers) const {
  const Value* name = &value;
  Place here = place;
  if (value.kind == Value::Kind::kObject) {
    layers.add(value, place, false);
    layers.ignore(key);
    const std::string_view used = value.find(key) ? key : "base";
    name = value.find(used);
    if (!name)
      place.fail(fmt::format("missing \"{}\": expected the name of {} to start from", key, shelf.noun));
    here = below(place, used, name->line);
  } else if (value.kind != Value::Kind::kString) {
    place.fail(fmt::format("expected the name of {} or {{\"{}\": NAME, ...changes}}, found {}", shelf.noun,
                           key, value.excerpt()));
  }
  const int index = find(shelf, *name, here);
  stack(shelf, index, layers);
  return index;
}

std::vector<std::string> Catalog::aliases(const Shelf& shelf, int index) const {
  std::vector<std::string> all;
  for (; index >= 0; index = shelf.entries[index].below)
    for (std::string& alias : strings_at(*shelf.entries[index].value, "aliases", shelf.entries[index].place))
      all.push_back(std::move(alias));
  return all;
}

Accelerator Catalog::accelerator(const Value& value, const Place& place) const {
  Layers layers(sources_);
  const int index = open(accelerators_, value, place, "base", layers);
  Accelerator result = read_accelerator(layers);
  result.id = accelerators_.entries[index].id;
  result.aliases = aliases(accelerators_, index);
  result.bases = bases(accelerators_, index);
  result.same_as = but_for_price(accelerators_, index);
  const auto changes = [&](std::string_view key) {
    return value.kind == Value::Kind::kObject && value.find(key) != nullptr;
  };
  result.peak_clock = changes("clock") ? accelerator(result.id).clock : result.clock;
  result.rated_power = changes("power") ? accelerator(result.id).power : result.power;
  return result;
}

Node Catalog::node(const Value& value, const Place& place) const {
  Layers layers(sources_);
  const int index = open(nodes_, value, place, "base", layers);
  Node result = read_node(layers);
  result.id = nodes_.entries[index].id;
  result.aliases = aliases(nodes_, index);
  for (std::size_t i = 0; i < result.storage.size(); ++i) {
    const Value* stated = value.kind == Value::Kind::kObject ? value.find("storage") : nullptr;
    Place at = place;
    if (stated != nullptr) at = below(place, "storage", stated->line);
    if (stated != nullptr && stated->kind == Value::Kind::kArray)
      at = below(at, std::to_string(i), stated->items[i].line);
    result.storage[i] = storage_.entries[find(storage_, name_value(result.storage[i]), at)].id;
  }
  return result;
}

// Uplinks that a description changes keep the rate that the catalog's fabric gives them, that of a port of a
// NIC where it does not say how many there are: how far the leaf is oversubscribed follows.
void Catalog::count_uplinks(const Value& value, const Place& place, FabricSpec& spec) const {
  const Value* uplinks = value.kind == Value::Kind::kObject ? value.find("leaf_uplinks") : nullptr;
  if (uplinks == nullptr || spec.leaf_uplinks == 0 || spec.leaf_ports == 0) return;
  const FabricSpec stated = fabric(spec.type);
  const double rate = stated.leaf_uplinks > 0
                          ? stated.leaf_ports / (stated.oversubscription * stated.leaf_uplinks)
                          : 1;  // of a port of a NIC
  const double share = spec.leaf_ports / rate;
  if (value.find("oversubscription") == nullptr) {
    spec.oversubscription = share / spec.leaf_uplinks;
    for (Fact& fact : spec.facts)
      if (fact.name == "oversubscription")
        fact = follows_uplinks(fact.name, spec.oversubscription, place.file);
    return;
  }
  const auto expected = std::max(1L, std::lround(share / spec.oversubscription));
  if (spec.leaf_uplinks != expected)
    below(place, "leaf_uplinks", uplinks->line)
        .fail(
            fmt::format("expected {}, to which {} leaf ports of an oversubscription of {:.6g} come, found {}",
                        expected, spec.leaf_ports, spec.oversubscription, spec.leaf_uplinks));
}

FabricSpec Catalog::fabric(const Value& value, const Place& place, ByteRate default_nic) const {
  Layers layers(sources_);
  const int index = open(fabrics_, value, place, "type", layers);
  FabricSpec result = read_fabric(layers);
  result.type = fabrics_.entries[index].id;
  result.aliases = aliases(fabrics_, index);
  if (!result.nic_given) result.nic = default_nic;
  count_uplinks(value, place, result);
  const auto states = [&](std::string_view key) {
    return value.kind == Value::Kind::kObject && value.find(key) != nullptr;
  };
  result.core_by_uplinks = states("spine_uplinks") && !states("core_oversubscription");
  return result;
}

Storage Catalog::storage(const Value& value, const Place& place) const {
  Layers layers(sources_);
  const int index = open(storage_, value, place, "base", layers);
  Storage result = read_storage(layers);
  result.id = storage_.entries[index].id;
  result.aliases = aliases(storage_, index);
  return result;
}

Accelerator Catalog::accelerator(const std::string& name) const {
  return accelerator(name_value(name), {});
}

Node Catalog::node(const std::string& name) const {
  return node(name_value(name), {});
}

FabricSpec Catalog::fabric(const std::string& name) const {
  return fabric(name_value(name), {}, {});
}

Storage Catalog::storage(const std::string& name) const {
  return storage(name_value(name), {});
}

std::string Catalog::source_text(const Fact& fact) const {
  const std::string* text = sources_.find(fact.file, fact.source);
  return text == nullptr ? "" : *text;
}

bool Catalog::has_accelerator(const std::string& name) const {
  return accelerators_.names.count(normalised(name)) > 0;
}

bool Catalog::has_node(const std::string& name) const {
  return nodes_.names.count(normalised(name)) > 0;
}

bool Catalog::has_fabric(const std::string& name) const {
  return fabrics_.names.count(normalised(name)) > 0;
}

bool Catalog::has_storage(const std::string& name) const {
  return storage_.names.count(normalised(name)) > 0;
}

}  // namespace moebius
