#include "workloads/validation/measured_mapping.h"

namespace moebius {

namespace {

std::vector<MappedValue> read_set(const Value& object, const Place& place) {
  std::vector<MappedValue> set;
  Reader reader(object, place);
  for (const std::string& pointer : object.keys)
    set.push_back({pointer, reader.text(pointer), reader.place_of(pointer)});
  return set;
}

MappedWords read_words(const std::string& column, const Value& object, const Place& place) {
  MappedWords words{.column = column, .words = {}, .place = place};
  Reader by_word(object, place);
  for (const std::string& word : object.keys) {
    const Value& sets = by_word.value(word);
    const Reader checked(sets, by_word.place_of(word));  // it is an object
    MappedWords::Sets all;
    for (std::size_t i = 0; i < sets.keys.size(); ++i) all.emplace_back(sets.keys[i], to_json(sets.items[i]));
    words.words.emplace_back(word, std::move(all));
  }
  return words;
}

std::vector<MappedWords> read_choices(const Value& object, const Place& place) {
  std::vector<MappedWords> choices;
  Reader columns(object, place);
  for (const std::string& column : object.keys)
    choices.push_back(read_words(column, columns.value(column), columns.place_of(column)));
  return choices;
}

std::vector<MappedFigure> read_figures(Reader& top) {
  std::vector<MappedFigure> figures;
  for (Reader& row : top.objects("expect")) {
    MappedFigure figure{.metric = row.text("metric"),
                        .formula = row.text("value"),
                        .source = row.text("source"),
                        .known_miss = row.text("known_miss", ""),
                        .tolerance = row.number("tolerance", {0, 10}, 0),
                        .place = row.place()};
    row.finish();
    figures.push_back(std::move(figure));
  }
  if (figures.empty()) top.place_of("expect").fail("expected at least one figure, found none");
  return figures;
}

}  // namespace

MeasuredMapping read_mapping(const std::string& file) {
  const Document document = load_document(file);
  Reader top(document);
  MeasuredMapping mapping;
  mapping.file = file;
  mapping.name = top.text("name");
  mapping.row_name = top.texts("row");
  mapping.scenario = top.value("scenario");
  if (mapping.scenario.kind != Value::Kind::kObject)
    top.place_of("scenario").fail("expected an object, found " + mapping.scenario.excerpt());
  mapping.set = read_set(top.value("set"), top.place_of("set"));
  if (top.has("fitted")) mapping.fitted = top.texts("fitted");
  if (top.has("choose")) mapping.choose = read_choices(top.value("choose"), top.place_of("choose"));
  mapping.expect = read_figures(top);
  top.finish();
  return mapping;
}

}  // namespace moebius
