#include "workloads/validation/claims/claim.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>

#include <fmt/format.h>

#include "hw/folder_files.h"

namespace moebius {

namespace {

namespace fs = std::filesystem;

// A file that a claim names, seen from the caller's directory.
std::string beside(const Place& place, const std::string& name) {
  return (fs::path(place.file).parent_path() / name).string();
}

ClaimBound read_bound(Reader bound) {
  constexpr std::array kKinds{std::pair{"at_least", ClaimBound::Kind::kAtLeast},
                              std::pair{"at_most", ClaimBound::Kind::kAtMost},
                              std::pair{"value", ClaimBound::Kind::kValue}};
  std::optional<ClaimBound> read;
  for (const auto& [key, kind] : kKinds) {
    if (!bound.has(key)) continue;
    if (read) bound.place_of(key).fail("expected one of at_least, at_most and value, found two");
    read = ClaimBound{.kind = kind, .value = bound.number(key, {})};
    if (read->value == 0) bound.place_of(key).fail("expected a figure other than 0");
  }
  if (!read) bound.place().fail("expected one of at_least, at_most and value, found none");
  if (read->kind == ClaimBound::Kind::kValue) read->tolerance = bound.number("tolerance", {kAboveZero, 10});
  bound.finish();
  return *read;
}

// One file, or several: the parts of a whole.
std::vector<std::string> read_baselines(Reader& row) {
  if (!row.has("baseline")) return {};
  const Place place = row.place_of("baseline");
  if (row.value("baseline").kind != Value::Kind::kArray) return {beside(place, row.text("baseline"))};
  std::vector<std::string> files;
  for (const std::string& name : row.texts("baseline")) files.push_back(beside(place, name));
  if (files.empty()) place.fail("expected at least one file, found none");
  return files;
}

std::vector<ClaimConfiguration> read_configurations(Reader& top, bool compares) {
  std::vector<ClaimConfiguration> rows;
  for (Reader& row : top.objects("configurations")) {
    ClaimConfiguration configuration{.name = row.text("name"),
                                     .scenario = beside(row.place_of("scenario"), row.text("scenario")),
                                     .baselines = read_baselines(row)};
    if (compares && configuration.baselines.empty())
      row.place().fail("expected key \"baseline\", which the figure asks for, found none");
    row.finish();
    rows.push_back(std::move(configuration));
  }
  if (rows.empty()) top.place_of("configurations").fail("expected at least one, found none");
  return rows;
}

std::vector<ClaimNote> read_notes(Reader& top) {
  std::vector<ClaimNote> notes;
  if (!top.has("also")) return notes;
  for (Reader& row : top.objects("also")) {
    notes.push_back({row.text("name"), ClaimFormula(row.text("figure"), row.place_of("figure"))});
    row.finish();
  }
  return notes;
}

std::vector<ClaimAssumption> read_needs(Reader& top) {
  using Of = ClaimAssumption::Of;
  const std::vector<std::pair<std::string_view, Of>> kSides{
      {"scenario", Of::kScenario}, {"baseline", Of::kBaseline}, {"both", Of::kBoth}};
  std::vector<ClaimAssumption> needs;
  if (!top.has("needs")) return needs;
  for (Reader& row : top.objects("needs")) {
    ClaimAssumption assumption{.says = row.text("assumption"),
                               .of = row.choice<ClaimAssumption::Of>("of", kSides, kSides[0].second),
                               .pointer = row.text("pointer"),
                               .value = to_json(row.value("value")),
                               .from = row.number("from", {}),
                               .to = row.number("to", {}),
                               .step = row.number("step", {0, 1e18}, 0)};
    if (assumption.value.find('#') == std::string::npos)
      row.place_of("value").fail("expected a value with # where the number goes, found none");
    if (assumption.from == assumption.to)
      row.place_of("to").fail("expected another number than in `from`, found the same");
    row.finish();
    needs.push_back(std::move(assumption));
  }
  return needs;
}

}  // namespace

bool ClaimBound::met_by(double ours) const {
  switch (kind) {
    case Kind::kAtLeast:
      return ours >= value;
    case Kind::kAtMost:
      return ours <= value;
    case Kind::kValue:
      return std::abs(ours - value) <= tolerance * std::abs(value);
  }
  return false;
}

bool ClaimBound::better(double a, double b) const {
  switch (kind) {
    case Kind::kAtLeast:
      return a > b;
    case Kind::kAtMost:
      return a < b;
    case Kind::kValue:
      return std::abs(a - value) < std::abs(b - value);
  }
  return false;
}

std::string ClaimBound::text() const {
  switch (kind) {
    case Kind::kAtLeast:
      return fmt::format("at least {:.4g}", value);
    case Kind::kAtMost:
      return fmt::format("at most {:.4g}", value);
    case Kind::kValue:
      return fmt::format("{:.4g} ±{:.3g}%", value, 100 * tolerance);
  }
  return "";
}

bool is_claim(const std::string& path) {
  return fs::path(path).extension() == ".claim";
}

std::vector<Claim> claims_of(const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    if (is_claim(path)) files.push_back(path);
    std::error_code none;  // of one that cannot be looked at: those who read it say so
    if (!fs::is_directory(path, none)) continue;
    for (const fs::path& file : files_below(path, ".claim")) files.push_back(file.string());
  }
  std::sort(files.begin(), files.end());
  std::vector<Claim> claims;
  for (const std::string& file : files) claims.push_back(read_claim(file));
  return claims;
}

Claim read_claim(const std::string& file) {
  const Document document = load_document(file);
  Reader top(document);
  const ClaimFormula figure(top.text("figure"), top.place_of("figure"));
  Claim claim{.file = file,
              .group = fs::absolute(file).parent_path().filename().string(),
              .id = top.text("claim"),
              .says = top.text("says"),
              .mechanism = top.text("mechanism"),
              .source = top.text("source"),
              .figure = figure,
              .published = read_bound(top.object("published")),
              .neutral = {},
              .each = top.boolean("each", false),
              .configurations = read_configurations(top, figure.asks_baseline()),
              .notes = read_notes(top),
              .needs = read_needs(top),
              .known_miss = top.text("known_miss", ""),
              .known_figure = {}};
  if (top.has("neutral")) claim.neutral = top.number("neutral", {});
  if (top.has("known_figure")) claim.known_figure = top.number("known_figure", {});
  if (claim.known_figure && claim.known_miss.empty())
    top.place_of("known_figure").fail("expected a reason in `known_miss`, found none");
  top.finish();
  return claim;
}

}  // namespace moebius
