#include "workloads/cost/architecture.h"

#include <algorithm>

#include "hw/catalog.h"
#include "hw/reader.h"

namespace moebius {
namespace {

constexpr double kPicojoule = 1e-12;

TileShapes read_tiles(Reader reader) {
  constexpr Range kSizes{4, 1024};
  TileShapes tiles{.least_m = reader.number("least_m", kSizes),
                   .most_m = reader.number("most_m", kSizes),
                   .least_n = reader.number("least_n", kSizes),
                   .most_n = reader.number("most_n", kSizes),
                   .cuts_k = reader.boolean("cuts_k")};
  tiles.most_experts_m = reader.number("most_experts_m", {tiles.least_m, tiles.most_m}, tiles.most_m);
  tiles.experts_m = reader.number("experts_m", {tiles.least_m, tiles.most_experts_m}, tiles.most_experts_m);
  tiles.most_scaled_n = reader.number("most_scaled_n", {tiles.least_n, tiles.most_n}, 0.0);
  if (tiles.least_m > tiles.most_m || tiles.least_n > tiles.most_n)
    reader.place().fail("expected least_m <= most_m and least_n <= most_n");
  reader.finish();
  return tiles;
}

void read_structure(Reader reader, Architecture& row) {
  row.clock = reader.quantity("clock", Dimension::kFrequency, {kAboveZero});
  row.operand_memory = reader.quantity("operand_memory", Dimension::kBytes, {kAboveZero});
  row.row_step = reader.number("row_step", {0, 4096}, 0.0);
  row.multicast = reader.number("multicast", {1, 16});
  row.l2_rate = reader.number("l2_rate", {kAboveZero});
  row.serial = reader.boolean("serial", false);
  row.exponentials = reader.number("exponentials", {row.serial ? kAboveZero : 0});
  row.scaling_lanes = reader.number("scaling_lanes", {0, 4096});
  row.core_stream = reader.number("core_stream", {kAboveZero});
  row.decoded = reader.number("decoded", {0, 4096}, 0.0);
  row.attention_back = reader.number("attention_back", {kAboveZero, 1}, Architecture{}.attention_back);
  row.promoted_sums = reader.number("promoted_sums", {1, 4}, 1.0);
  row.micro_scales = reader.boolean("micro_scales", false);
  row.asynchronous = reader.boolean("asynchronous");
  for (std::size_t width = 0; width < kOperandWidthNames.size(); ++width)
    row.tiles[width] = read_tiles(reader.object(kOperandWidthNames[width]));
  reader.finish();
}

void read_constants(Reader reader, Architecture& row) {
  row.memory_latency = reader.quantity("memory_latency", Dimension::kTime, {kAboveZero});
  row.step_cycles = reader.number("step_cycles", {0});
  row.energy = reader.number("energy", {kAboveZero}) * kPicojoule;
  row.attention = reader.number("attention", {kAboveZero, 1});
  row.attention_latency = reader.number("attention_latency", {0});
  reader.finish();
}

void read_errors(Reader reader, Architecture& row) {
  const auto error = [&](const char* key) {
    return static_cast<float>(reader.number(key, {kAboveZero, 10}));
  };
  row.error_gemm = error("gemm");
  row.error_attention = error("attention");
  row.error_experts = error("experts");
  row.error_stream = error("stream");
  reader.finish();
}

Architecture read_row(const std::string& name, Reader reader) {
  Architecture row;
  row.name = name;
  row.estimated = reader.choice<bool>("constants_are", {{"fitted", false}, {"estimates", true}});
  row.source = reader.text("source");
  row.generation = reader.has("generation") ? reader.text("generation") : name;
  read_structure(reader.object("structure"), row);
  read_constants(reader.object("constants"), row);
  read_errors(reader.object("errors"), row);
  reader.finish();
  return row;
}

}  // namespace

OperandWidth operand_width(DType dtype) {
  switch (dtype) {
    case DType::kFp32:
    case DType::kTf32:
    case DType::kInt32:
    case DType::kBf16:
    case DType::kFp16:
      return OperandWidth::k16Bit;
    case DType::kFp8:
    case DType::kInt8:
      return OperandWidth::k8Bit;
    case DType::kFp4:
    case DType::kInt4:
      return OperandWidth::k4Bit;
  }
  return OperandWidth::k16Bit;
}

std::vector<Architecture> read_architectures(const Document& document) {
  Reader root(document);
  const Value& rows = root.value("architectures");
  Reader reader = root.object("architectures");
  root.texts("notes");
  root.finish();
  std::vector<Architecture> read;
  for (const std::string& name : rows.keys) read.push_back(read_row(name, reader.object(name)));
  return read;
}

const std::vector<Architecture>& shipped_architectures() {
  static const std::vector<Architecture> rows =
      read_architectures(embedded_document("hw/catalog/architectures.json"));
  return rows;
}

const Architecture* find_architecture(std::string_view name) {
  const std::vector<Architecture>& rows = shipped_architectures();
  const auto row = std::find_if(rows.begin(), rows.end(), [&](const auto& a) { return a.name == name; });
  return row == rows.end() ? nullptr : &*row;
}

}  // namespace moebius
