#include "workloads/validation/measured_rows.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "hw/error.h"
#include "hw/json_text.h"
#include "workloads/calibration/csv.h"
#include "workloads/validation/measured_mapping.h"

namespace moebius {

namespace {

struct Row {
  std::string place;                         // "TABLE:LINE"
  std::map<std::string, std::string> cells;  // column -> text; empty: not told

  [[noreturn]] void fail(const std::string& column, std::string_view expected,
                         const std::string& found) const {
    throw input_error(
        fmt::format("{}: {}: expected {}, found {}", place, column, expected, json_excerpt(found)));
  }
};

std::vector<Row> rows_of_csv(const std::string& path) {
  const Csv csv(path);
  std::vector<Row> rows;
  for (const CsvRow& line : csv.rows()) {
    Row& row = rows.emplace_back(Row{fmt::format("{}:{}", path, line.line), {}});
    for (const std::string& column : csv.columns()) row.cells[column] = csv.text(line, column);
  }
  return rows;
}

std::string cell_text(const Value& value) {
  if (value.kind == Value::Kind::kNull) return "";
  if (value.kind == Value::Kind::kString) return value.text;
  return to_json(value);
}

std::vector<Row> rows_of_json(const std::string& path) {
  const Document document = load_document(path);
  std::vector<Row> rows;
  for (std::size_t i = 0; i < document.root.items.size(); ++i) {
    const Value& item = document.root.items[i];
    const Reader checked(item, {path, fmt::format("/{}", i), item.line});  // it is an object
    Row& row = rows.emplace_back(Row{fmt::format("{}:{}", path, item.line), {}});
    for (std::size_t k = 0; k < item.keys.size(); ++k) row.cells[item.keys[k]] = cell_text(item.items[k]);
  }
  return rows;
}

std::optional<double> number_of(const std::string& text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return std::isfinite(number) ? std::optional(number) : std::nullopt;
}

const std::string& cell(const Row& row, const std::string& column, const Place& place) {
  const auto found = row.cells.find(column);
  if (found != row.cells.end()) return found->second;
  std::vector<std::string> columns;
  for (const auto& [name, text] : row.cells) columns.push_back(name);
  place.fail(
      fmt::format("expected a column of the table, found \"{}\"{}", column, suggestion(column, columns)));
}

// Columns and numbers from left to right; a single one is its text as it stands. Empty where a cell is.
std::string value_of(const std::string& formula, const Row& row, const Place& place) {
  std::istringstream stream(formula);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  if (words.size() % 2 == 0)
    place.fail(fmt::format("expected columns and numbers with * or / between them, found \"{}\"", formula));
  double result = 1;
  for (std::size_t i = 0; i < words.size(); i += 2) {
    const std::string text = number_of(words[i]) ? words[i] : cell(row, words[i], place);
    if (text.empty() || words.size() == 1) return text;
    const std::string sign = i == 0 ? "*" : words[i - 1];
    if (sign != "*" && sign != "/") place.fail(fmt::format("expected * or /, found \"{}\"", sign));
    const std::optional<double> factor = number_of(text);
    if (!factor) row.fail(words[i], "a number", text);
    result = sign == "*" ? result * *factor : result / *factor;
  }
  return fmt::format("{}", result);
}

void choose(const MappedWords& choice, const Row& row, Document& scenario) {
  const std::string& found = cell(row, choice.column, choice.place);
  std::vector<std::string> known;
  for (const auto& [word, sets] : choice.words) {
    known.push_back(word);
    if (word != found) continue;
    for (const auto& [pointer, value] : sets) set_at_pointer(scenario, pointer, value);
    return;
  }
  row.fail(choice.column, fmt::format("\"{}\"", fmt::join(known, "\", \"")), found);
}

// That was just set; "-" was appended.
Value& value_at(const std::string& pointer, Value& root) {
  Value* at = &root;
  for (std::string rest = pointer; !rest.empty();) {
    const std::size_t end = std::min(rest.find('/', 1), rest.size());
    std::string token = rest.substr(1, end - 1);
    rest.erase(0, end);
    if (at->kind == Value::Kind::kArray) {
      at = token == "-" ? &at->items.back() : &at->items[std::stoul(token)];
      continue;
    }
    for (std::size_t tilde = 0; (tilde = token.find('~', tilde)) != std::string::npos; ++tilde)
      token.replace(tilde, 2, token[tilde + 1] == '0' ? "~" : "/");
    at = &at->items[std::find(at->keys.begin(), at->keys.end(), token) - at->keys.begin()];
  }
  return *at;
}

// What is wrong with a cell is told of the table, not of the mapping.
void come_from(const std::string& cell, Value& value) {
  value.origin = std::make_shared<const std::string>(cell);
}

// A row that does not tell the figure expects nothing of it.
void expect(const MappedFigure& figure, const Row& row, bool judged, Document& scenario) {
  const std::string value = value_of(figure.formula, row, figure.place);
  if (value.empty()) return;
  const double number = number_of(value).value_or(0);
  if (number <= 0) row.fail(figure.formula, "a figure above 0", value);
  std::string text =
      fmt::format(R"({{"metric": {}, "value": {}, "tolerance": {}, "source": {})", json_string(figure.metric),
                  number, judged ? figure.tolerance : 0, json_string(figure.source));
  if (judged && !figure.known_miss.empty()) text += ", \"known_miss\": " + json_string(figure.known_miss);
  set_at_pointer(scenario, "/expect/-", text + "}");
}

ValidationCase case_of(const MeasuredMapping& mapping, const Row& row, std::size_t number) {
  std::vector<std::string> name;
  for (const std::string& column : mapping.row_name)
    name.push_back(cell(row, column, {mapping.file, "/row", 1}));
  const std::string joined = fmt::format("{}", fmt::join(name, " "));
  const bool fitted = std::find(mapping.fitted.begin(), mapping.fitted.end(), joined) != mapping.fitted.end();
  Document scenario{fmt::format("{} (row {})", mapping.file, number), mapping.scenario};
  set_at_pointer(scenario, "/expect", "[]");
  for (const MappedWords& choice : mapping.choose) choose(choice, row, scenario);
  for (const MappedValue& to : mapping.set) {
    const std::string value = value_of(to.formula, row, to.place);
    if (value.empty()) continue;
    set_at_pointer(scenario, to.pointer, value);
    come_from(fmt::format("{}: {}", row.place, to.formula), value_at(to.pointer, scenario.root));
  }
  for (const MappedFigure& figure : mapping.expect) expect(figure, row, !fitted, scenario);
  // Cells of a table are of any bytes; names are printed, and kept as JSON.
  return {mapping.name + (fitted ? " (fitted)" : ""), shown_characters(joined), std::move(scenario), fitted};
}

void require_fitted_rows(const MeasuredMapping& mapping, const std::vector<ValidationCase>& cases) {
  std::vector<std::string> names;
  for (const ValidationCase& given : cases) names.push_back(given.name);
  for (std::size_t i = 0; i < mapping.fitted.size(); ++i) {
    if (std::find(names.begin(), names.end(), mapping.fitted[i]) != names.end()) continue;
    const Place place{mapping.file, fmt::format("/fitted/{}", i), 1};
    place.fail(fmt::format("expected the name of a row, found \"{}\"{}", mapping.fitted[i],
                           suggestion(mapping.fitted[i], names)));
  }
}

}  // namespace

std::vector<ValidationCase> measured_cases(const std::string& table, const std::string& mapping_file) {
  const MeasuredMapping mapping = read_mapping(mapping_file);
  const std::vector<Row> rows =
      std::filesystem::path(table).extension() == ".json" ? rows_of_json(table) : rows_of_csv(table);
  if (rows.empty())
    throw input_error(fmt::format("{}: expected rows of measured figures, found none", table));
  std::vector<ValidationCase> cases;
  for (std::size_t i = 0; i < rows.size(); ++i) cases.push_back(case_of(mapping, rows[i], i + 1));
  require_fitted_rows(mapping, cases);
  return cases;
}

}  // namespace moebius
