#include "workloads/validation/servers/server_row.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "hw/error.h"
#include "workloads/validation/servers/sha256.h"

namespace moebius {
namespace {

constexpr std::array kNeeded{"system", "backend",     "model_path", "mode",    "isl",
                             "osl",    "concurrency", "tp_size",    "ttft_ms", "tpot_ms"};
// Results and remarks; all other columns say what was measured.
constexpr std::array kNotOfKey{"ttft_ms", "tpot_ms", "measured", "dump"};

class RowReader {
 public:
  RowReader(const Csv& table, const CsvRow& row, const std::string& path)
      : table_(table), row_(row), path_(path) {}

  std::string text(const std::string& column) const {
    return table_.has(column) ? table_.text(row_, column) : "";
  }
  int count(const std::string& column) const {
    if (text(column).empty()) return 0;
    const double value = table_.number(row_, column);
    if (value < 0 || value > 1e7 || value != std::floor(value)) fail(column, "a whole number");
    return static_cast<int>(value);
  }
  double seconds(const std::string& column) const {
    const double value = table_.number(row_, column);
    if (value <= 0) fail(column, "a time above zero");
    return value / 1e3;
  }
  ServerDegrees degrees(const std::string& prefix) const {
    return {.workers = prefix.empty() ? 1 : count(prefix + "num_workers"),
            .batch = count(prefix + "batch_size"),
            .tp = count(prefix + "tp_size"),
            .pp = count(prefix + "pp_size"),
            .dp = count(prefix + "attention_dp_size"),
            .moe_tp = count(prefix + "moe_tp_size"),
            .moe_ep = count(prefix + "moe_ep_size")};
  }

 private:
  [[noreturn]] void fail(const std::string& column, const char* expected) const {
    throw input_error(
        fmt::format("{}:{}: {}: expected {}, found {}", path_, row_.line, column, expected, text(column)));
  }

  const Csv& table_;
  const CsvRow& row_;
  const std::string& path_;
};

std::string key_of(const Csv& table, const CsvRow& row) {
  std::string key;
  for (const std::string& column : table.columns()) {
    if (std::find(kNotOfKey.begin(), kNotOfKey.end(), column) != kNotOfKey.end()) continue;
    key += (key.empty() ? "" : ",") + table.text(row, column);
  }
  return key;
}

ServerRow row_of(const Csv& table, const CsvRow& line, const std::string& path) {
  const RowReader in(table, line, path);
  ServerRow row;
  row.line = line.line;
  row.key = key_of(table, line);
  row.system = in.text("system"), row.backend = in.text("backend"), row.version = in.text("backend_version");
  row.model = in.text("model_path"), row.precision = in.text("precision"), row.mode = in.text("mode");
  row.gemm = in.text("gemm_quant_mode"), row.moe = in.text("moe_quant_mode"), row.dump = in.text("dump");
  row.measured = in.text("measured");
  row.input = in.count("isl"), row.output = in.count("osl"), row.users = in.count("concurrency");
  row.both = in.degrees(""), row.prefill = in.degrees("prefill_"), row.decode = in.degrees("decode_");
  row.ttft = in.seconds("ttft_ms"), row.tpot = in.seconds("tpot_ms");
  row.for_fit = sha256_modulo(row.key, 10) == 0;
  return row;
}

}  // namespace

bool is_server_table(const Csv& table) {
  return std::all_of(kNeeded.begin(), kNeeded.end(), [&](const char* column) { return table.has(column); });
}

std::vector<ServerRow> server_rows(const Csv& table, const std::string& path) {
  std::vector<ServerRow> rows;
  rows.reserve(table.rows().size());
  for (const CsvRow& line : table.rows()) rows.push_back(row_of(table, line, path));
  return rows;
}

}  // namespace moebius
