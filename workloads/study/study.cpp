#include "workloads/study/study.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <set>

#include <fmt/format.h>

#include "hw/error.h"
#include "hw/reader.h"
#include "workloads/option_checks.h"
#include "workloads/scenario/extended_document.h"

namespace moebius {

// Outside of strings line ends are layout only.
std::string one_line(const Value& value) {
  std::string text;
  const std::string laid_out = to_json(value);
  for (std::size_t i = 0; i < laid_out.size(); ++i) {
    if (laid_out[i] != '\n') {
      text += laid_out[i];
      continue;
    }
    while (i + 1 < laid_out.size() && laid_out[i + 1] == ' ') ++i;
    if (text.ends_with(',')) text += ' ';
  }
  return text;
}

namespace {

// Pointers of the study: each may be varied in one place only, and none beside what holds it, since the last
// of the two to be set would decide.
class Pointers {
 public:
  void take(const std::string& pointer, const Place& place) {
    check(pointer, place);
    taken_.insert(pointer);
  }
  void check(const std::string& pointer, const Place& place) const {
    if (!pointer.starts_with('/'))
      place.fail(fmt::format("expected a JSON pointer such as \"/plan/pp/degree\", found \"{}\"", pointer));
    if (pointer == "/seed") place.fail("expected seeds under /seeds, which set it for each point");
    if (taken_.contains(pointer)) place.fail(fmt::format("\"{}\" is varied already", pointer));
    for (std::size_t cut = pointer.rfind('/'); cut > 0; cut = pointer.rfind('/', cut - 1)) {
      const std::string holder = pointer.substr(0, cut);
      if (taken_.contains(holder))
        place.fail(fmt::format("\"{}\", which holds \"{}\", is varied already", holder, pointer));
    }
    const auto held = taken_.lower_bound(pointer + "/");
    if (held != taken_.end() && held->starts_with(pointer + "/"))
      place.fail(fmt::format("\"{}\", which \"{}\" holds, is varied already", *held, pointer));
  }
  void add(const Pointers& others) { taken_.insert(others.taken_.begin(), others.taken_.end()); }

 private:
  std::set<std::string> taken_;
};

// RFC 6901: a slash inside a key is ~1, a tilde ~0.
Place inside(const Place& place, const std::string& step, int line) {
  std::string escaped;
  for (const char letter : step) {
    if (letter == '~')
      escaped += "~0";
    else if (letter == '/')
      escaped += "~1";
    else
      escaped += letter;
  }
  return {place.file, place.pointer + "/" + escaped, line};
}

// What was found instead of something that holds at least one.
std::string found_in(const Value& value, Value::Kind expected) {
  return value.kind == expected ? "an empty one" : value.excerpt();
}

const Value& array_of(const Value& value, const Place& place, const char* of) {
  if (value.kind != Value::Kind::kArray || value.items.empty())
    place.fail(fmt::format("expected an array of {}, found {}", of, found_in(value, Value::Kind::kArray)));
  return value;
}

const Value& object_of(const Value& value, const Place& place, const char* of) {
  if (value.kind != Value::Kind::kObject || value.items.empty())
    place.fail(fmt::format("expected an object of {}, found {}", of, found_in(value, Value::Kind::kObject)));
  return value;
}

void read_axes(Reader& top, Pointers& pointers, Study& study) {
  if (!top.has("vary")) return;
  const Place place = top.place_of("vary");
  const Value& axes = object_of(top.value("vary"), place, "JSON pointers with the values to try");
  for (std::size_t i = 0; i < axes.items.size(); ++i) {
    const Value& values = axes.items[i];
    const Place at = inside(place, axes.keys[i], values.line);
    pointers.take(axes.keys[i], at);
    StudyAxis axis{axes.keys[i], {}};
    for (const Value& value : array_of(values, at, "values to try").items)
      axis.values.push_back(one_line(value));
    study.axes.push_back(std::move(axis));
  }
}

void read_cases(Reader& top, Pointers& pointers, Study& study) {
  if (!top.has("cases")) {
    study.cases.emplace_back();
    return;
  }
  const Place place = top.place_of("cases");
  Pointers in_cases;
  const Value& cases = array_of(top.value("cases"), place, "objects of JSON pointers with a value each");
  for (std::size_t i = 0; i < cases.items.size(); ++i) {
    const Place at = inside(place, std::to_string(i), cases.items[i].line);
    const Value& given = object_of(cases.items[i], at, "JSON pointers with a value each");
    std::vector<Assignment>& changes = study.cases.emplace_back();
    Pointers in_case;  // another case may change them too
    for (std::size_t j = 0; j < given.items.size(); ++j) {
      const Place key = inside(at, given.keys[j], at.line);
      pointers.check(given.keys[j], key);
      in_case.take(given.keys[j], key);
      changes.push_back({given.keys[j], one_line(given.items[j])});
    }
    in_cases.add(in_case);
  }
  pointers.add(in_cases);
}

struct NumberWithUnit {
  double number = 0;
  std::string unit;
};

// "380 GB/s", 0.7
NumberWithUnit number_of(const Value& value, const Place& place) {
  if (value.kind == Value::Kind::kInteger || value.kind == Value::Kind::kNumber) return {value.number, ""};
  NumberWithUnit read;
  const char *first = value.text.data(), *last = first + value.text.size();
  const auto [end, error] = std::from_chars(first, last, read.number);
  if (value.kind != Value::Kind::kString || error != std::errc{})
    place.fail(
        fmt::format("expected a number or a quantity such as \"400 Gb/s\", found {}", value.excerpt()));
  read.unit.assign(end, last);
  return read;
}

void read_uncertain(Reader& top, Pointers& pointers, Study& study) {
  study.samples = top.integer("samples", {1, static_cast<double>(kMostStudyPoints)}, 1);
  if (!top.has("uncertain")) {
    if (study.samples > 1) top.place_of("samples").fail("expected 1: nothing is `uncertain`");
    return;
  }
  const Place place = top.place_of("uncertain");
  const Value& all = object_of(top.value("uncertain"), place, "JSON pointers with a low and a high value");
  for (std::size_t i = 0; i < all.items.size(); ++i) {
    const Place at = inside(place, all.keys[i], all.items[i].line);
    pointers.take(all.keys[i], at);
    Reader range(object_of(all.items[i], at, "a low and a high value"), at);
    const NumberWithUnit low = number_of(range.value("low"), range.place_of("low")),
                         high = number_of(range.value("high"), range.place_of("high"));
    const bool whole = range.boolean("whole", false);
    range.finish();
    if (low.unit != high.unit || !(low.number < high.number))
      at.fail(fmt::format("expected a low value below a high one in the same unit, found {} and {}",
                          all.items[i].find("low")->excerpt(), all.items[i].find("high")->excerpt()));
    if (whole && (low.number != std::floor(low.number) || high.number != std::floor(high.number)))
      at.fail(fmt::format("expected whole numbers to draw whole ones between, found {} and {}",
                          all.items[i].find("low")->excerpt(), all.items[i].find("high")->excerpt()));
    study.uncertain.push_back({all.keys[i], low.number, high.number, low.unit, whole});
  }
  if (study.samples == 1)
    top.place_of("samples").fail("expected at least 2 draws of what is `uncertain`, found 1");
}

void read_seeds(Reader& top, Study& study) {
  if (top.has("seeds")) {
    const Place place = top.place_of("seeds");
    for (const Value& seed : array_of(top.value("seeds"), place, "whole numbers").items) {
      if (seed.kind != Value::Kind::kInteger || seed.integer < 0 || seed.integer > kLargestSeed)
        place.fail(fmt::format("expected whole numbers from 0 to 2^53, found {}", seed.excerpt()));
      study.seeds.push_back(static_cast<std::uint64_t>(seed.integer));
    }
    if (std::set(study.seeds.begin(), study.seeds.end()).size() != study.seeds.size())
      place.fail("expected different seeds");
    return;
  }
  const Value* own = study.base.root.kind == Value::Kind::kObject ? study.base.root.find("seed") : nullptr;
  const bool given = own != nullptr && own->kind == Value::Kind::kInteger && own->integer >= 0;
  study.seeds = {given ? static_cast<std::uint64_t>(own->integer) : 1};
}

// Before any is read, so that the nearest name is found among all.
void check_keys(const Document& document, const Place& top) {
  static const std::vector<std::string> known{"$schema", "moebius", "kind",    "name",      "base",   "vary",
                                              "cases",   "seeds",   "columns", "uncertain", "samples"};
  const Value& root = document.root;
  for (std::size_t i = 0; i < root.keys.size(); ++i) {
    const std::string& key = root.keys[i];
    if (std::find(known.begin(), known.end(), key) == known.end())
      inside(top, key, root.items[i].line)
          .fail(fmt::format("unknown key \"{}\"{}", key, suggestion(key, known)));
  }
}

// More than that is refused before it is counted out.
void check_size(const Study& study, const Place& place) {
  double points = static_cast<double>(study.cases.size()) * static_cast<double>(study.seeds.size()) *
                  static_cast<double>(study.samples);
  for (const StudyAxis& axis : study.axes) points *= static_cast<double>(axis.values.size());
  if (points > static_cast<double>(kMostStudyPoints))
    place.fail(fmt::format("expected at most {} points, found {:.0f}", kMostStudyPoints, points));
}

}  // namespace

std::string plain(const std::string& json) {
  if (json.size() < 2 || json.front() != '"') return json;
  const std::string inside = json.substr(1, json.size() - 2);
  double number = 0;
  const auto [end, error] = std::from_chars(inside.data(), inside.data() + inside.size(), number);
  const bool is_number = error == std::errc{} && end == inside.data() + inside.size();
  return is_number || inside == "true" || inside == "false" || inside == "null" ? json : inside;
}

std::int64_t Study::points() const {
  auto count = static_cast<std::int64_t>(cases.size() * seeds.size()) * samples;
  for (const StudyAxis& axis : axes) count *= static_cast<std::int64_t>(axis.values.size());
  return count;
}

std::vector<StudyAxis> read_varied(Reader& top) {
  Pointers pointers;
  Study study;
  read_axes(top, pointers, study);
  return study.axes;
}

Study load_study(const std::string& path) {
  const Document document = load_document(path);
  Reader top(document);
  Study study;
  study.file = path;
  top.text("$schema", "");
  top.integer("moebius", {1, 1});
  top.choice<bool>("kind", {{"study", true}});
  check_keys(document, top.place());
  study.name = top.text("name");
  const std::string base = (std::filesystem::path(path).parent_path() / top.text("base")).string();
  std::error_code none;
  if (!std::filesystem::exists(base, none))
    top.place_of("base").fail(fmt::format("expected a scenario file, found none at {}", base));
  study.base = load_scenario(base);
  Pointers pointers;
  read_axes(top, pointers, study);
  read_cases(top, pointers, study);
  read_uncertain(top, pointers, study);
  read_seeds(top, study);
  study.columns = top.texts("columns");
  study.columns_at = top.place_of("columns");
  if (study.columns.empty())
    top.place_of("columns").fail("expected dotted paths into the report, such as \"step_time_s\"");
  top.finish();
  check_size(study, top.place());
  return study;
}

}  // namespace moebius
