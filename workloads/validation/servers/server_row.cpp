#include "workloads/validation/servers/server_row.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "hw/trimmed.h"
#include "workloads/validation/servers/sha256.h"

namespace moebius {
namespace {

constexpr std::array kNeeded{"system", "backend",     "model_path", "mode",    "isl",
                             "osl",    "concurrency", "tp_size",    "ttft_ms", "tpot_ms"};
// What was measured, in the order of the published table: a key does not depend on that of a file. Of the
// pools, columns have a word before them.
constexpr std::array kOfKey{
    "system", "backend", "backend_version", "model_path",      "precision",     "mode",
    "isl",    "osl",     "concurrency",     "gemm_quant_mode", "moe_quant_mode"};
constexpr std::array kOfServer{"batch_size",        "tp_size",     "pp_size",
                               "attention_dp_size", "moe_tp_size", "moe_ep_size"};
constexpr std::array kOfPool{"batch_size",        "num_workers", "tp_size",    "pp_size",
                             "attention_dp_size", "moe_tp_size", "moe_ep_size"};

constexpr double kMostDegree = 1024, kMostUsers = 1 << 16, kMostTokens = 1e7;

class RowReader {
 public:
  RowReader(const Csv& table, const CsvRow& row, std::string& fault)
      : table_(table), row_(row), fault_(fault) {}

  std::string text(const std::string& column) const {
    if (!table_.has(column)) return "";
    return std::string(trimmed(table_.text(row_, column), " \t"));
  }
  int count(const std::string& column, double most = kMostDegree) const {
    const std::string field = text(column);
    if (field.empty()) return 0;
    const std::optional<double> value = number(field);
    if (value && *value >= 0 && *value <= most && *value == std::floor(*value))
      return static_cast<int>(*value);
    fail(fmt::format("{} is no whole number up to {}", column, most));
    return 0;
  }
  double seconds(const std::string& column) const {
    const std::optional<double> value = number(text(column));
    if (value && *value > 0) return *value / 1e3;
    fail(fmt::format("{} is no time above zero", column));
    return 0;
  }
  ServerDegrees degrees(const std::string& prefix) const {
    return {.workers = prefix.empty() ? 1 : count(prefix + "num_workers"),
            .batch = count(prefix + "batch_size", kMostUsers),
            .tp = count(prefix + "tp_size"),
            .pp = count(prefix + "pp_size"),
            .dp = count(prefix + "attention_dp_size"),
            .moe_tp = count(prefix + "moe_tp_size"),
            .moe_ep = count(prefix + "moe_ep_size")};
  }

 private:
  static std::optional<double> number(const std::string& field) {
    double value = 0;
    const auto [end, failure] = std::from_chars(field.data(), field.data() + field.size(), value);
    const bool whole = failure == std::errc{} && end == field.data() + field.size();
    return whole && std::isfinite(value) ? std::optional(value) : std::nullopt;
  }
  void fail(const std::string& fault) const {
    if (fault_.empty()) fault_ = fault;
  }

  const Csv& table_;
  const CsvRow& row_;
  std::string& fault_;
};

std::string key_of(const Csv& table, const CsvRow& row) {
  std::string key;
  const auto add = [&](const std::string& column) {
    if (table.has(column)) key += (key.empty() ? "" : ",") + table.text(row, column);
  };
  for (const char* column : kOfKey) add(column);
  for (const char* column : kOfServer) add(column);
  for (const std::string pool : {"prefill_", "decode_"})
    for (const char* column : kOfPool) add(pool + column);
  return key;
}

ServerRow row_of(const Csv& table, const CsvRow& line) {
  ServerRow row;
  const RowReader in(table, line, row.unreadable);
  row.line = line.line;
  row.key = key_of(table, line);
  row.system = in.text("system"), row.backend = in.text("backend"), row.version = in.text("backend_version");
  row.model = in.text("model_path"), row.precision = in.text("precision"), row.mode = in.text("mode");
  row.gemm = in.text("gemm_quant_mode"), row.moe = in.text("moe_quant_mode"), row.dump = in.text("dump");
  row.measured = in.text("measured");
  row.input = in.count("isl", kMostTokens), row.output = in.count("osl", kMostTokens);
  row.users = in.count("concurrency", kMostUsers);
  row.both = in.degrees(""), row.prefill = in.degrees("prefill_"), row.decode = in.degrees("decode_");
  row.ttft = in.seconds("ttft_ms"), row.tpot = in.seconds("tpot_ms");
  row.for_fit = sha256_modulo(row.key, 10) == 0;
  return row;
}

}  // namespace

bool is_server_table(const Csv& table) {
  return std::all_of(kNeeded.begin(), kNeeded.end(), [&](const char* column) { return table.has(column); });
}

std::vector<std::string> missing_server_columns(const Csv& table) {
  std::vector<std::string> missing;
  for (const char* column : kNeeded)
    if (!table.has(column)) missing.emplace_back(column);
  return 2 * missing.size() < kNeeded.size() ? missing : std::vector<std::string>{};
}

std::vector<ServerRow> server_rows(const Csv& table) {
  std::vector<ServerRow> rows;
  rows.reserve(table.rows().size());
  for (const CsvRow& line : table.rows()) rows.push_back(row_of(table, line));
  return rows;
}

}  // namespace moebius
