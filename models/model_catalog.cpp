// Architectures by name, and the three ways in which a scenario names one.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "hw/catalog.h"
#include "hw/error.h"
#include "hw/folder_files.h"
#include "hw/json_text.h"
#include "models/architecture_reader.h"
#include "models/hf_config.h"
#include "models/model.h"

namespace moebius {
namespace {

std::string lower(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return text;
}

Published read_published(Reader reader, const Published& base) {
  const std::vector<std::pair<std::string_view, CountedTables>> tables = {
      {"all", CountedTables::kAll}, {"head", CountedTables::kHead}, {"none", CountedTables::kNone}};
  Published published;
  published.parameters = reader.number("parameters", {1, 1e18}, base.parameters);
  published.active = reader.number("active", {0, 1e18}, base.active);
  published.active_tables = reader.choice<CountedTables>("active_tables", tables, base.active_tables);
  reader.finish();
  return published;
}

const std::vector<std::pair<std::string_view, std::string_view>> kStatuses{
    {"published", "published"},     {"measured", "measured"}, {"vendor claim", "vendor claim"},
    {"third party", "third party"}, {"derived", "derived"},   {"from memory", "from memory"},
    {"estimate", "estimate"}};

const std::vector<std::pair<std::string_view, Fp8Scales>> kFp8Scales{{"block", Fp8Scales::kBlock},
                                                                     {"tensor", Fp8Scales::kTensor}};

// What a catalog entry says beside the architecture.
void read_origin(Reader& reader, Model& model, const Reader& catalog_sources, bool fresh) {
  for (std::string& alias : reader.texts("aliases")) model.aliases.push_back(std::move(alias));
  if (auto published = reader.optional_object("published"))
    model.published = read_published(*published, model.published);
  if (reader.has("fp8_scales")) model.fp8_scales = reader.choice<Fp8Scales>("fp8_scales", kFp8Scales);
  model.unsupported = reader.text("unsupported", model.unsupported);
  if (fresh || reader.has("status")) model.status = reader.choice("status", kStatuses);
  model.note = reader.text("note", model.note);
  if (!fresh && !reader.has("source")) return;
  const std::string key = reader.text("source");
  Reader sources = catalog_sources;
  if (!sources.has(key))
    reader.place_of("source").fail(
        fmt::format("expected a key of the file's \"sources\", found {}", json_excerpt(key)));
  model.source = sources.text(key);
}

// A path in a file is relative to that file; one from the command line (line 0) to the caller's directory.
std::string beside(const Place& place, const std::string& path) {
  if (place.line == 0) return path;
  return (std::filesystem::path(place.file).parent_path() / path).string();
}

Model imported_model(Reader& reader) {
  const std::string path = reader.text("hf_config");
  if (path.empty()) reader.place_of("hf_config").fail("expected a file, found \"\"");
  const std::string file = beside(reader.place_of("hf_config"), path);
  if (std::error_code error; !std::filesystem::exists(file, error))
    reader.place_of("hf_config").fail(fmt::format("expected a file, found none: {}", file));
  return model_from_hf_config(load_document(file));
}

}  // namespace

ModelCatalog::ModelCatalog(const std::string& data_dir) {
  load(embedded_document("models/catalog/models.json"));
  if (data_dir.empty()) return;
  const std::filesystem::path more = std::filesystem::path(data_dir) / "models.json";
  if (stands(more)) load(load_document(more.string()));
}

void ModelCatalog::load(const Document& document) {
  Reader root(document);
  const std::optional<Reader> sources = root.optional_object("sources");
  Value none;
  none.kind = Value::Kind::kObject;
  const Reader known_sources = sources ? *sources : Reader(none, root.place());
  const Value& entries = root.value("models");
  Reader models = root.object("models");
  root.finish();
  for (const std::string& id : entries.keys) add(id, models.object(id), known_sources);
}

void ModelCatalog::add(const std::string& id, Reader reader, const Reader& sources) {
  int index = index_of(id);
  const bool fresh = index < 0 && !reader.has("base");
  Model model = index >= 0 ? models_[index] : Model{};
  if (reader.has("base")) {
    model = this->model(reader.value("base"), reader.place_of("base"));
    model.aliases.clear();
    model.published = {};
  }
  model = read_architecture(reader, model);
  read_origin(reader, model, sources, fresh);
  reader.finish();
  model.id = index >= 0 ? models_[index].id : id;
  if (index < 0) {
    index = static_cast<int>(models_.size());
    ids_.push_back(id);
    models_.emplace_back();
  }
  name(model.id, index, reader.place());
  for (const std::string& alias : model.aliases) name(alias, index, reader.place());
  models_[index] = std::move(model);
}

void ModelCatalog::name(const std::string& text, int index, const Place& place) {
  if (text.empty()) place.fail("expected a name of at least one character, found \"\"");
  const int present = index_of(text);
  if (present == index) return;
  if (present >= 0)
    place.fail(fmt::format("the name \"{}\" already stands for \"{}\"", text, models_[present].id));
  std::pair<std::string, int> row{lower(text), index};
  names_.insert(std::upper_bound(names_.begin(), names_.end(), row), std::move(row));
}

int ModelCatalog::index_of(const std::string& name) const {
  const std::pair<std::string, int> first{lower(name), 0};
  const auto row = std::lower_bound(names_.begin(), names_.end(), first);
  return row != names_.end() && row->first == first.first ? row->second : -1;
}

std::string ModelCatalog::unknown(const std::string& name) const {
  std::vector<std::string> candidates;
  for (const auto& row : names_) candidates.push_back(row.first);
  return fmt::format(
      "unknown model \"{}\"{}; `moebius list models` names all, and {{\"base\": NAME, ...changes}} describes "
      "another",
      name, suggestion(name, candidates));
}

Model ModelCatalog::model(const std::string& name) const {
  const int index = index_of(name);
  if (index < 0) throw input_error(unknown(name));
  return models_[index];
}

Model ModelCatalog::model(const Value& value, const Place& place) const {
  if (value.kind == Value::Kind::kString) {
    const int index = index_of(value.text);
    if (index < 0) place.fail(unknown(value.text));
    return models_[index];
  }
  const std::string forms = R"(a model name, {"hf_config": PATH, ...changes} or {"base": NAME, ...changes})";
  if (value.kind != Value::Kind::kObject)
    place.fail(fmt::format("expected {}, found {}", forms, value.excerpt()));
  Reader reader(value, place);
  const bool imported = reader.has("hf_config");
  if (imported == reader.has("base"))
    place.fail(fmt::format("expected {}, found an object with {}", forms, imported ? "both" : "neither"));
  const Model base = imported ? imported_model(reader) : model(reader.value("base"), reader.place_of("base"));
  Model changed = read_architecture(reader, base);
  reader.finish();
  if (changed == base) return base;
  changed.id += " (changed)";
  changed.aliases.clear();
  changed.published = {};
  return changed;
}

}  // namespace moebius
