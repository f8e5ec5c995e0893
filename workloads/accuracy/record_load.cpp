// The form of record.json.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "hw/catalog.h"
#include "hw/number_list.h"
#include "hw/reader.h"
#include "workloads/accuracy/record.h"

namespace moebius {

namespace {

constexpr const char* kForm = "moebius-accuracy-1";
constexpr Range kError{-20, 20};  // of a logarithm: a factor of half a billion
constexpr Range kCount{0, 1e12};

double told_number(const Value& value, const Place& place, Range range) {
  const bool number = value.kind == Value::Kind::kInteger || value.kind == Value::Kind::kNumber;
  if (!number || value.number < range.low || value.number > range.high)
    place.fail(
        fmt::format("expected a number from {} to {}, found {}", range.low, range.high, value.excerpt()));
  return value.number;
}

// "quantiles": "-0.02 0.01 ...", errors alone. One text: every report reads ten thousand of them.
std::vector<AccuracyPoint> read_quantiles(std::string_view text, const Place& place) {
  std::vector<AccuracyPoint> points;
  for (const double error : read_number_list(text, place, kError))
    points.push_back({.name = {}, .error = error});
  if (points.empty()) place.fail("expected at least one number, found none");
  return points;
}

// "points": [[error, parts, "name"], ...]: parts and name may be left out.
std::vector<AccuracyPoint> read_points(const Value& value, const Place& place) {
  if (value.kind != Value::Kind::kArray || value.items.empty())
    place.fail(fmt::format("expected points, found {}", value.excerpt()));
  std::vector<AccuracyPoint> points;
  for (const Value& item : value.items) {
    const bool fits = item.kind == Value::Kind::kArray && !item.items.empty() && item.items.size() <= 3;
    if (!fits) place.fail(fmt::format("expected [error, parts, name], found {}", item.excerpt()));
    AccuracyPoint point;
    point.error = told_number(item.items[0], place, kError);
    if (item.items.size() > 1) point.parts = told_number(item.items[1], place, {0, kError.high});
    if (item.items.size() > 2) point.name = item.items[2].text;
    points.push_back(point);
  }
  return points;
}

AccuracySource read_source(Reader reader) {
  AccuracySource source;
  source.of = reader.choice("class", accuracy_classes());
  source.figure = reader.text("figure");
  source.name = reader.text("source");
  source.link = reader.text("link", "");
  source.calibration = reader.boolean("calibration", false);
  source.chips = reader.texts("chips");
  source.devices = reader.integer("devices", kCount, 0);
  source.rows = reader.integer("rows", {1, kCount.high});
  source.worst = reader.number("worst", {0, 1e6}, 0.0);
  source.points = reader.has("quantiles")
                      ? read_quantiles(reader.text("quantiles"), reader.place_of("quantiles"))
                      : read_points(reader.value("points"), reader.place_of("points"));
  reader.finish();
  return source;
}

using Json = nlohmann::ordered_json;

// Six decimals: the same text on every machine that gets the same figures.
double rounded(double value) {
  return std::round(value * 1e6) / 1e6;
}

Json point_json(const AccuracyPoint& point) {
  Json json = Json::array({rounded(point.error)});
  if (point.parts > 0 || !point.name.empty()) json.push_back(rounded(point.parts));
  if (!point.name.empty()) json.push_back(point.name);
  return json;
}

std::string quantiles_text(const std::vector<AccuracyPoint>& points) {
  std::string text;
  for (const AccuracyPoint& point : points)
    text += fmt::format("{}{}", text.empty() ? "" : " ", rounded(point.error));
  return text;
}

std::string source_text(const AccuracySource& source) {
  Json json = {{"class", to_string(source.of)}, {"figure", source.figure}, {"source", source.name}};
  if (!source.link.empty()) json["link"] = source.link;
  if (source.calibration) json["calibration"] = true;
  if (!source.chips.empty()) json["chips"] = source.chips;
  if (source.devices > 0) json["devices"] = source.devices;
  json["rows"] = source.rows;
  if (source.worst > 0) json["worst"] = rounded(source.worst);
  const bool errors_alone = std::ranges::all_of(
      source.points, [](const AccuracyPoint& point) { return point.parts == 0 && point.name.empty(); });
  if (errors_alone) {
    json["quantiles"] = quantiles_text(source.points);
  } else {
    for (const AccuracyPoint& point : source.points) json["points"].push_back(point_json(point));
  }
  return json.dump();
}

}  // namespace

AccuracyRecord read_record(const Document& document) {
  Reader root(document);
  const std::string form = root.text("format");
  if (form != kForm) root.place_of("format").fail(fmt::format("expected \"{}\", found \"{}\"", kForm, form));
  AccuracyRecord record{root.text("date"), root.text("commit"), {}};
  for (Reader& row : root.objects("sources")) record.sources.push_back(read_source(std::move(row)));
  root.finish();
  return record;
}

const AccuracyRecord& shipped_record() {
  static const AccuracyRecord record = read_record(embedded_document("workloads/accuracy/record.json"));
  return record;
}

std::string record_text(const AccuracyRecord& record) {
  std::string text = fmt::format("{{\"format\": \"{}\", \"date\": {}, \"commit\": {},\n \"sources\": [\n",
                                 kForm, Json(record.date).dump(), Json(record.commit).dump());
  for (const AccuracySource& source : record.sources)
    text += "  " + source_text(source) + (&source == &record.sources.back() ? "\n" : ",\n");
  return text + " ]}\n";
}

}  // namespace moebius
