#include "hw/profile_device.h"

#include <fmt/format.h>

#include "hw/json_text.h"
#include "hw/profile_table.h"

namespace moebius {
namespace {

constexpr std::size_t kMostTransfers = 64, kMostSizes = 256, kMostInterferences = 256;
constexpr Range kSeconds{0, 1e6}, kSize{kAboveZero, 1e15}, kRate{0, 1e18}, kSpread{0, 1e6};

void require_at_most(Reader& reader, const char* key, std::size_t found, std::size_t most) {
  if (found > most)
    reader.place_of(key).fail(fmt::format("expected at most {} elements, found {}", most, found));
}

// An array of numbers; as long as `length` where that is not 0.
std::vector<double> read_numbers(Reader& reader, const char* key, Range range, std::size_t length) {
  const Value& value = reader.value(key);
  const Place place = reader.place_of(key);
  if (value.kind != Value::Kind::kArray)
    place.fail(fmt::format("expected an array, found {}", value.kind_name()));
  require_at_most(reader, key, value.items.size(), kMostSizes);
  if (value.items.empty() || (length > 0 && value.items.size() != length))
    place.fail(fmt::format("expected {} numbers, found {}", length > 0 ? std::to_string(length) : "some",
                           value.items.size()));
  std::vector<double> numbers;
  for (const Value& item : value.items) {
    const bool is_number = item.kind == Value::Kind::kNumber || item.kind == Value::Kind::kInteger;
    if (!is_number || !(item.number >= range.low && item.number <= range.high))
      Place{place.file, fmt::format("{}/{}", place.pointer, numbers.size()), item.line}.fail(
          fmt::format("expected a number from {} to {}, found {}", range.low, range.high, item.excerpt()));
    numbers.push_back(item.number);
  }
  return numbers;
}

TransferCurve read_transfer(Reader reader) {
  TransferCurve curve;
  curve.name = short_text(reader, "name");
  curve.latency = reader.number("latency", kSeconds);
  curve.rate = reader.number("rate", {kAboveZero, kRate.high});
  curve.fit_error = reader.number("fit_error", kSpread);
  curve.bytes = read_numbers(reader, "bytes", kSize, 0);
  for (std::size_t i = 1; i < curve.bytes.size(); ++i)
    if (curve.bytes[i] <= curve.bytes[i - 1])
      reader.place_of("bytes").fail(
          fmt::format("expected ascending sizes, found {} after {}", curve.bytes[i], curve.bytes[i - 1]));
  curve.seconds = read_numbers(reader, "seconds", {kAboveZero, kSeconds.high}, curve.bytes.size());
  curve.spread = read_numbers(reader, "spread", kSpread, curve.bytes.size());
  reader.finish();
  return curve;
}

Interference read_interference(Reader reader) {
  Interference found;
  found.kernel = short_text(reader, "kernel");
  found.beside = short_text(reader, "beside");
  found.cores = static_cast<int>(reader.integer("cores", {0, 1e6}));
  found.alone = reader.number("alone", {kAboveZero, kSeconds.high});
  found.together = reader.number("together", {kAboveZero, kSeconds.high});
  found.neighbour_alone = reader.number("neighbour_alone", kRate);
  found.neighbour_together = reader.number("neighbour_together", kRate);
  reader.finish();
  return found;
}

std::string transfer_json(const TransferCurve& curve) {
  return fmt::format(
      "{{\"name\": {}, \"latency\": {}, \"rate\": {}, \"fit_error\": {}, \"bytes\": [{}], \"seconds\": [{}], "
      "\"spread\": [{}]}}",
      json_string(curve.name), curve.latency, curve.rate, curve.fit_error, fmt::join(curve.bytes, ", "),
      fmt::join(curve.seconds, ", "), fmt::join(curve.spread, ", "));
}

std::string interference_json(const Interference& found) {
  return fmt::format(
      "{{\"kernel\": {}, \"beside\": {}, \"cores\": {}, \"alone\": {}, \"together\": {}, "
      "\"neighbour_alone\": {}, \"neighbour_together\": {}}}",
      json_string(found.kernel), json_string(found.beside), found.cores, found.alone, found.together,
      found.neighbour_alone, found.neighbour_together);
}

template <class T, class Text>
std::string list_json(const std::vector<T>& items, const std::string& indent, const Text& text) {
  const std::string line = indent.empty() ? "" : "\n" + indent + "  ";
  std::string list = "[";
  for (const T& item : items) list += (&item == items.data() ? "" : ", ") + line + text(item);
  return list + "]";
}

}  // namespace

DeviceFigures read_device_figures(Reader reader) {
  DeviceFigures figures;
  figures.name = short_text(reader, "name");
  figures.driver = short_text(reader, "driver");
  figures.date = short_text(reader, "date");
  figures.clocks = short_text(reader, "clocks");
  figures.launch = reader.number("launch", kSeconds);
  figures.launch_latency = reader.number("launch_latency", kSeconds);
  std::vector<Reader> transfers = reader.objects("transfers");
  require_at_most(reader, "transfers", transfers.size(), kMostTransfers);
  for (Reader& transfer : transfers) {
    TransferCurve curve = read_transfer(transfer);
    if (figures.transfer(curve.name) != nullptr)
      transfer.place_of("name").fail(
          fmt::format("expected every transfer once, found {} again", json_excerpt(curve.name)));
    figures.transfers.push_back(std::move(curve));
  }
  std::vector<Reader> interference = reader.objects("interference");
  require_at_most(reader, "interference", interference.size(), kMostInterferences);
  for (Reader& one : interference) figures.interference.push_back(read_interference(std::move(one)));
  if (reader.has("left_out")) figures.left_out = short_text(reader, "left_out");
  reader.finish();
  return figures;
}

std::string to_json(const DeviceFigures& figures, const std::string& indent) {
  const std::string line = indent.empty() ? " " : "\n" + indent;
  return fmt::format(
      "{{\"name\": {}, \"driver\": {}, \"date\": {}, \"clocks\": {},{}\"launch\": {}, \"launch_latency\": {},"
      "{}\"transfers\": {},{}\"interference\": {}{}}}",
      json_string(figures.name), json_string(figures.driver), json_string(figures.date),
      json_string(figures.clocks), line, figures.launch, figures.launch_latency, line,
      list_json(figures.transfers, indent, transfer_json), line,
      list_json(figures.interference, indent, interference_json),
      figures.left_out.empty() ? ""
                               : fmt::format(",{}\"left_out\": {}", line, json_string(figures.left_out)));
}

}  // namespace moebius
