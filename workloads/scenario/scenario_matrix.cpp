// The matrix of an all-to-all of unequal parts.
#include <cmath>

#include <fmt/format.h>

#include "hw/units.h"
#include "workloads/scenario/scenario_parts.h"

namespace moebius {

namespace {

constexpr double kMostBytes = 0x1p60;

Place below(const Place& place, std::string_view step, const Value& value) {
  return {place.file, fmt::format("{}/{}", place.pointer, step), value.line};
}

double read_cell(const Value& cell, const Place& place) {
  const std::optional<double> bytes =
      cell.kind == Value::Kind::kString ? parse_quantity(cell.text, Dimension::kBytes) : std::nullopt;
  if (!bytes || *bytes < 0 || *bytes > kMostBytes)
    place.fail(fmt::format("expected bytes such as \"1 MiB\", found {}", cell.excerpt()));
  return *bytes;
}

void require_items(const Value& value, int ranks, const Place& place, std::string_view what) {
  if (value.kind != Value::Kind::kArray)
    place.fail(fmt::format("expected an array of {}, found {}", what, value.kind_name()));
  if (static_cast<int>(value.items.size()) != ranks)
    place.fail(fmt::format("expected {} {}, one for each rank, found {}", ranks, what, value.items.size()));
}

PairBytes read_rows(const Value& rows, int ranks, const Place& place) {
  PairBytes pairs{ranks, {}};
  require_items(rows, ranks, place, "rows");
  for (std::size_t i = 0; i < rows.items.size(); ++i) {
    const Value& row = rows.items[i];
    const Place at = below(place, std::to_string(i), row);
    require_items(row, ranks, at, "quantities");
    for (std::size_t j = 0; j < row.items.size(); ++j)
      pairs.bytes.push_back(read_cell(row.items[j], below(at, std::to_string(j), row.items[j])));
  }
  return pairs;
}

// Every rank sends the same: to receiver j a share that falls as 1 / (j + 1)^exponent.
PairBytes zipf(double exponent, const CollectiveWorkload& work) {
  PairBytes pairs{work.ranks, {}};
  double sum = 0;
  for (int to = 0; to < work.ranks; ++to) sum += std::pow(to + 1, -exponent);
  for (int from = 0; from < work.ranks; ++from) {
    for (int to = 0; to < work.ranks; ++to)
      pairs.bytes.push_back(work.bytes.value * std::pow(to + 1, -exponent) / sum);
  }
  return pairs;
}

void require_something(const PairBytes& pairs, const Place& place) {
  double sent = 0;
  for (int from = 0; from < pairs.ranks; ++from) sent += pairs.sent(from);
  if (sent <= 0) place.fail("no rank sends anything to another");
}

}  // namespace

PairBytesPtr read_matrix(Section& section, const CollectiveWorkload& work) {
  constexpr int kMostRanksOfMatrix = 1024;
  const Value* value = section.value(
      "matrix", false,
      description_of("",
                     "all-to-all of unequal parts: rows (senders) of quantities (to each receiver), or "
                     "{\"zipf\": exponent} of what one rank holds"));
  if (value == nullptr) return nullptr;
  const Place place = section.place_of("matrix");
  if (work.operation != OpKind::kAllToAll)
    place.fail("only an all-to-all has parts of its own for each rank");
  if (work.ranks > kMostRanksOfMatrix)
    place.fail(
        fmt::format("expected at most {} ranks with a matrix, found {}", kMostRanksOfMatrix, work.ranks));
  PairBytes pairs;
  if (value->kind == Value::Kind::kObject) {
    Reader reader(*value, place);
    const double exponent = reader.number("zipf", {.low = 0, .high = 10});
    reader.finish();
    if (work.bytes.value <= 0) place.fail("{\"zipf\": ...} shares out bytes: expected /workload/bytes");
    pairs = zipf(exponent, work);
  } else {
    if (section.given("bytes")) place.fail("rows say how much everyone sends: expected no bytes beside them");
    pairs = read_rows(*value, work.ranks, place);
  }
  require_something(pairs, place);
  return std::make_shared<const PairBytes>(std::move(pairs));
}

}  // namespace moebius
