#include "workloads/scenario/section.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "hw/error.h"
#include "hw/json_text.h"

namespace moebius {

namespace {

const Value& empty_object() {
  static const Value empty = [] {
    Value value;
    value.kind = Value::Kind::kObject;
    return value;
  }();
  return empty;
}

// JSON without its line breaks: texts inside hold none, they are escaped.
std::string one_line(const Value& value) {
  std::string text;
  bool breaking = false;
  for (const char c : to_json(value)) {
    breaking = c == '\n' || (breaking && c == ' ');
    if (!breaking) text += c;
  }
  return text;
}

void set_range(Description& description, Range range) {
  if (std::abs(range.low) < 1e300) set_keyword(description.keywords, "minimum", number_value(range.low));
  if (std::abs(range.high) < 1e300) set_keyword(description.keywords, "maximum", number_value(range.high));
}

}  // namespace

Section::Section(Reader reader, std::vector<Setting>* settings)
    : reader_(std::move(reader)), settings_(settings) {}

Section::Section(DescriptionPtr description) : description_(std::move(description)) {}

void Section::note(std::string_view key, std::string value) {
  settings_->push_back({reader_->place_of(key).pointer, std::move(value), reader_->has(key)});
}

Description& Section::describe(std::string_view key, bool required, DescriptionPtr form) {
  if (required) description_->required.emplace_back(key);
  return *description_->properties.emplace_back(key, std::move(form)).second;
}

std::string Section::text(std::string_view key, std::optional<std::string> otherwise, std::string_view help) {
  if (description_) {
    Description& form = describe(key, !otherwise, description_of("string", help));
    if (otherwise) set_keyword(form.keywords, "default", text_value(*otherwise));
    return otherwise.value_or("");
  }
  std::string value = otherwise ? reader_->text(key, *otherwise) : reader_->text(key);
  note(key, json_string(value));
  return value;
}

bool Section::boolean(std::string_view key, bool otherwise, std::string_view help) {
  if (description_) {
    Description& form = describe(key, false, description_of("boolean", help));
    set_keyword(form.keywords, "default", boolean_value(otherwise));
    return otherwise;
  }
  const bool value = reader_->boolean(key, otherwise);
  note(key, value ? "true" : "false");
  return value;
}

std::int64_t Section::integer(std::string_view key, Range range, std::optional<std::int64_t> otherwise,
                              std::string_view help) {
  if (description_) {
    Description& form = describe(key, !otherwise, description_of("integer", help));
    set_range(form, range);
    if (otherwise) set_keyword(form.keywords, "default", number_value(static_cast<double>(*otherwise)));
    return otherwise.value_or(1);
  }
  const std::int64_t value = reader_->integer(key, range, otherwise);
  note(key, std::to_string(value));
  return value;
}

int Section::whole(std::string_view key, Range range, std::optional<std::int64_t> otherwise,
                   std::string_view help) {
  return static_cast<int>(integer(key, range, otherwise, help));
}

double Section::number(std::string_view key, Range range, std::optional<double> otherwise,
                       std::string_view help) {
  if (description_) {
    Description& form = describe(key, !otherwise, description_of("number", help));
    set_range(form, range);
    if (otherwise) set_keyword(form.keywords, "default", number_value(*otherwise));
    return otherwise.value_or(1);
  }
  const double value = reader_->number(key, range, otherwise);
  note(key, fmt::format("{}", value));
  return value;
}

Bytes Section::bytes(std::string_view key, std::optional<Bytes> otherwise, std::string_view help,
                     double low) {
  if (description_) {
    Description& form = describe(key, !otherwise, description_of("string", help));
    set_keyword(form.keywords, "examples", array_value({text_value("1 MiB"), text_value("80 GB")}));
    if (otherwise) set_keyword(form.keywords, "default", text_value(to_text(*otherwise)));
    return otherwise.value_or(Bytes{1});
  }
  const Bytes value = reader_->bytes(key, otherwise, low);
  note(key, json_string(to_text(value)));
  return value;
}

Time Section::time(std::string_view key, std::optional<Time> otherwise, std::string_view help) {
  if (description_) {
    Description& form = describe(key, !otherwise, description_of("string", help));
    set_keyword(form.keywords, "examples", array_value({text_value("10 s"), text_value("2.8 us")}));
    return otherwise.value_or(Time{});
  }
  const Time value = reader_->time(key, otherwise);
  note(key, value == kForever ? "no limit" : json_string(to_text(value)));
  return value;
}

int Section::one_of(std::string_view key, const std::vector<int>& values, std::optional<int> otherwise,
                    std::string_view help) {
  if (description_) {
    Description& form = describe(key, !otherwise, description_of("integer", help));
    std::vector<Value> allowed;
    for (const int value : values) allowed.push_back(number_value(value));
    set_keyword(form.keywords, "enum", array_value(std::move(allowed)));
    if (otherwise) set_keyword(form.keywords, "default", number_value(*otherwise));
    return otherwise.value_or(values.front());
  }
  const std::int64_t value = reader_->integer(key, {}, otherwise);
  if (std::find(values.begin(), values.end(), value) == values.end()) {
    const std::string expected =
        values.size() == 1 ? std::to_string(values[0]) : fmt::format("one of {}", fmt::join(values, ", "));
    place_of(key).fail(fmt::format("expected {}, found {}", expected, value));
  }
  note(key, std::to_string(value));
  return static_cast<int>(value);
}

void Section::fixed(std::string_view key, bool available, std::string_view reason, std::string_view help) {
  if (description_) {
    Description& form = describe(key, false, description_of("boolean", help));
    set_keyword(form.keywords, "const", boolean_value(available));
    return;
  }
  const bool value = reader_->boolean(key, available);
  if (value != available) place_of(key).fail(std::string(reason));
  note(key, value ? "true" : "false");
}

std::size_t Section::name_index(std::string_view key, const std::vector<NamedRow>& rows,
                                std::optional<std::size_t> otherwise, std::string_view help) {
  if (description_) {
    std::string text(help);
    std::vector<Value> names;
    for (const NamedRow& row : rows) {
      if (!row.help.empty()) text += fmt::format("; {}: {}", row.name, row.help);
      names.push_back(text_value(row.name));
    }
    Description& form = describe(key, !otherwise, description_of("string", text));
    set_keyword(form.keywords, "enum", array_value(std::move(names)));
    if (otherwise) set_keyword(form.keywords, "default", text_value(rows[*otherwise].name));
    return otherwise.value_or(0);
  }
  std::vector<std::pair<std::string_view, std::size_t>> table;
  for (std::size_t i = 0; i < rows.size(); ++i) table.emplace_back(rows[i].name, i);
  const std::size_t index = reader_->choice<std::size_t>(key, table, otherwise);
  note(key, json_string(rows[index].name));
  return index;
}

std::vector<std::size_t> Section::name_indices(std::string_view key, const std::vector<NamedRow>& rows,
                                               std::string_view help) {
  std::vector<std::string> known;
  for (const NamedRow& row : rows) known.emplace_back(row.name);
  if (description_) {
    Description& form = describe(key, false, description_of("array", help));
    form.items = description_of("string", "");
    std::vector<Value> names;
    for (const std::string& name : known) names.push_back(text_value(name));
    set_keyword(form.items->keywords, "enum", array_value(std::move(names)));
    set_keyword(form.keywords, "uniqueItems", boolean_value(true));
    return {};
  }
  std::vector<std::size_t> chosen;
  const std::vector<std::string> found = reader_->texts(key);
  for (const std::string& name : found) {
    const auto at = std::find(known.begin(), known.end(), name);
    const auto index = static_cast<std::size_t>(at - known.begin());
    if (at == known.end()) {
      place_of(key).fail(fmt::format("expected names out of \"{}\", found \"{}\"{}",
                                     fmt::join(known, "\", \""), name, suggestion(name, known)));
    }
    if (std::find(chosen.begin(), chosen.end(), index) != chosen.end()) {
      place_of(key).fail(fmt::format("expected different names, found \"{}\" twice", name));
    }
    chosen.push_back(index);
  }
  note(key, found.empty() ? "[]" : fmt::format("[\"{}\"]", fmt::join(found, "\", \"")));
  return chosen;
}

const Value* Section::value(std::string_view key, bool required, DescriptionPtr form) {
  if (description_) {
    describe(key, required, std::move(form));
    return nullptr;
  }
  if (!required && !reader_->has(key)) {
    reader_->optional_object(key);  // makes the key known to suggestions
    const Value* otherwise = form == nullptr ? nullptr : form->keywords.find("default");
    if (otherwise != nullptr) note(key, one_line(*otherwise));
    return nullptr;
  }
  const Value& value = reader_->value(key);
  note(key, one_line(value));
  return &value;
}

Section Section::object(std::string_view key, bool required, std::string_view help) {
  if (description_) {
    const DescriptionPtr form = description_of("object", help);
    describe(key, required, form);
    return Section(form);
  }
  if (required) return Section(reader_->object(key), settings_);
  if (std::optional<Reader> reader = reader_->optional_object(key))
    return Section(*std::move(reader), settings_);
  return Section(Reader(empty_object(), reader_->place_of(key)), settings_);
}

std::vector<Section> Section::objects(std::string_view key, bool required, std::string_view help) {
  std::vector<Section> sections;
  if (description_) {
    Description& form = describe(key, required, description_of("array", help));
    form.items = description_of("object", "");
    sections.emplace_back(Section(form.items));
    return sections;
  }
  if (!required && !reader_->has(key)) {
    reader_->optional_object(key);  // makes the key known to suggestions
    return sections;
  }
  for (Reader& reader : reader_->objects(key)) sections.emplace_back(Section(std::move(reader), settings_));
  return sections;
}

void Section::can_be_replaced(const std::vector<std::string_view>& keys) {
  if (!description_) return;
  for (const std::string_view key : keys) std::erase(description_->required, key);
}

void Section::allow_only(std::string_view key, bool counts, std::string_view with) const {
  if (!counts && given(key)) place_of(key).fail(fmt::format("\"{}\" counts only with {}", key, with));
}

bool Section::given(std::string_view key) const {
  return reader_ && reader_->has(key);
}

const Value* Section::ahead(std::string_view key) {
  return given(key) ? &reader_->value(key) : nullptr;
}

Place Section::place_of(std::string_view key) const {
  return reader_ ? reader_->place_of(key) : Place{};
}

void Section::finish() {
  if (description_) description_->closed = true;
  if (reader_) reader_->finish();
}

}  // namespace moebius
