#include "workloads/calibration/exchanges/exchange_rows.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "workloads/calibration/csv.h"

namespace moebius {
namespace {

constexpr double kMicro = 1e-6, kGiga = 1e9;
constexpr double kNicLine = 50e9;            // all machines of these tables have 400 Gb/s for each chip
constexpr double kNetworkLatency = 3.25e-6;  // one switch: 2.8 us within a leaf, 3.7 between leaves
constexpr int kHidden = 7168, kActive = 8, kExperts = 256;  // DeepSeek-V3, where a table does not say
constexpr double kScaleBlock = 128, kScaleBytes = 4;

struct ExchangeShape {
  double tokens = 0;
  int hidden = kHidden, active = kActive, experts = kExperts;
  int ranks = 8, per_node = 8, nodes_per_token = 0, held = 0;
  int dies = 1;
  bool to_experts = false;  // of high throughput, too
};

constexpr double kAscendRowHeader = 44;  // INT8: a scale in 32 bytes, where the row is from in 12

// Dispatch in FP8 with a scale for every 128 values and, in the low-latency kernel, 16 bytes of its own;
// combine in BF16.
double row_bytes(const ExchangeShape& shape, const ExchangeQuestion& question) {
  if (question.combine) return 2.0 * shape.hidden;
  if (shape.dies > 1) return shape.hidden + kAscendRowHeader;
  const double row = shape.hidden * (1 + kScaleBytes / kScaleBlock);
  return row + (question.family == ExchangeFamily::kLowLatency ? 16 : 8 * shape.active);
}

ExchangeRow row_of(const char* table, const Accelerator& chip, ExchangeQuestion question,
                   const ExchangeShape& shape) {
  ExchangeRow row;
  row.table = table;
  row.chip = chip.id;
  row.architecture = chip.architecture;
  row.question = question;
  row.ranks = shape.ranks;
  const int nodes = std::max(1, shape.ranks / shape.per_node);
  row.question.between_nodes = nodes > 1;
  row.load = even_load({.tokens = shape.tokens,
                        .active = shape.active,
                        .experts = shape.experts,
                        .ranks = shape.ranks,
                        .nodes = nodes,
                        .nodes_per_token = shape.nodes_per_token,
                        .dies = shape.dies},
                       shape.to_experts || question.family == ExchangeFamily::kLowLatency);
  row.load.row_bytes = row_bytes(shape, question);
  row.machine = {chip.cores, chip.general_cores, shape.held, chip.link_rate.value,
                 0,          kNicLine,           0,          kNetworkLatency};
  return row;
}

ExchangeShape database_shape(const Csv& csv, const CsvRow& line, const Accelerator& chip) {
  const auto whole = [&](const char* column) { return csv.whole(line, column, 1); };
  ExchangeShape shape{csv.number(line, "num_tokens"), whole("hidden"), whole("topk"), whole("num_experts")};
  shape.per_node = chip.id == "gb300-nvl72" ? 4 : 8;  // a tray of four
  shape.ranks = shape.per_node * whole("node_num");
  return shape;
}

void read_throughput(const std::string& path, const Catalog& catalog, std::vector<ExchangeRow>& rows) {
  const Csv csv(path);
  for (const CsvRow& line : csv.rows()) {
    const Accelerator chip = catalog.accelerator(csv.text(line, "system"));
    for (const bool combine : {false, true}) {
      const std::string op = combine ? "combine" : "dispatch";
      ExchangeShape shape = database_shape(csv, line, chip);
      shape.held = static_cast<int>(csv.number(line, op + "_sms"));
      rows.push_back(row_of("deepep_normal", chip, {ExchangeFamily::kThroughput, combine}, shape));
      rows.back().seconds =
          (csv.number(line, op + "_transmit_us") + csv.number(line, op + "_notify_us")) * kMicro;
    }
  }
}

void read_low_latency(const std::string& path, const Catalog& catalog, std::vector<ExchangeRow>& rows) {
  const Csv csv(path);
  for (const CsvRow& line : csv.rows()) {
    const Accelerator chip = catalog.accelerator(csv.text(line, "system"));
    for (const bool combine : {false, true}) {
      rows.push_back(
          row_of("deepep_ll", chip, {ExchangeFamily::kLowLatency, combine}, database_shape(csv, line, chip)));
      rows.back().seconds = csv.number(line, combine ? "combine_us" : "dispatch_us") * kMicro;
    }
  }
}

// Rows that the publisher divides by the time.
double published_rows(const ExchangeRow& row, const ExchangeShape& shape) {
  const double own = shape.per_node, nodes = row.load.nodes;
  return nodes == 1 ? row.load.inside * own / (own - 1) : row.load.across * nodes / (nodes - 1);
}

void read_published(const std::string& path, const Catalog& catalog, std::vector<ExchangeRow>& rows) {
  const Csv csv(path);
  const Accelerator chip = catalog.accelerator("h800-sxm");
  for (const CsvRow& line : csv.rows()) {
    const bool low_latency = csv.text(line, "kernel") == "low_latency";
    if (csv.text(line, "readme_version") != (low_latency ? "2025-06-05" : "2025-04-22")) continue;
    const ExchangeQuestion question{low_latency ? ExchangeFamily::kLowLatency : ExchangeFamily::kThroughput,
                                    csv.text(line, "op") == "combine"};
    ExchangeShape shape{csv.number(line, "tokens_per_rank")};
    shape.ranks = csv.whole(line, "ep", 1);
    shape.nodes_per_token = 4;
    rows.push_back(row_of("deepep", chip, question, shape));
    ExchangeRow& row = rows.back();
    row.seconds = low_latency ? csv.number(line, "latency_us") * kMicro
                              : published_rows(row, shape) * row.load.row_bytes /
                                    (csv.number(line, "bandwidth_gb_s") * kGiga);
  }
}

ExchangeShape super_node_shape(double tokens, double ranks) {
  ExchangeShape shape{tokens};
  shape.ranks = shape.per_node = static_cast<int>(ranks);
  shape.dies = kAscendDies;
  shape.to_experts = true;
  return shape;
}

void read_ascend(const std::string& path, const Catalog& catalog, std::vector<ExchangeRow>& rows) {
  const Csv csv(path);
  const Accelerator chip = catalog.accelerator("ascend-910c");
  for (const CsvRow& line : csv.rows()) {
    const bool low_latency = csv.text(line, "kernel") == "low_latency";
    const ExchangeQuestion question{low_latency ? ExchangeFamily::kLowLatency : ExchangeFamily::kThroughput,
                                    csv.text(line, "op") == "combine"};
    const ExchangeShape shape = super_node_shape(csv.number(line, "tokens_per_rank"), csv.number(line, "ep"));
    rows.push_back(row_of("deepep_ascend", chip, question, shape));
    ExchangeRow& row = rows.back();
    row.seconds = low_latency
                      ? csv.number(line, "latency_us") * kMicro
                      : row.load.copies * 2 * shape.hidden / (csv.number(line, "bandwidth_gb_s") * kGiga);
  }
}

// Of "{ep: 8, ...": the first number.
double ranks_in(const std::string& config) {
  const std::size_t digits = config.find_first_of("0123456789");
  return digits == std::string::npos ? 1 : std::clamp(std::atof(config.c_str() + digits), 1.0, 4096.0);
}

void read_cloudmatrix(const std::string& path, const Catalog& catalog, std::vector<ExchangeRow>& rows) {
  const Csv csv(path);
  const Accelerator chip = catalog.accelerator("ascend-910c");
  for (const CsvRow& line : csv.rows()) {
    const std::string& metric = csv.text(line, "metric");
    if (metric != "dispatch_latency" && metric != "combine_latency") continue;
    const double ranks = ranks_in(csv.text(line, "config"));
    rows.push_back(row_of("cloudmatrix384", chip, {ExchangeFamily::kLowLatency, metric == "combine_latency"},
                          super_node_shape(128, ranks)));
    rows.back().seconds = csv.number(line, "value") * kMicro;
  }
}

}  // namespace

std::vector<ExchangeRow> read_exchange_rows(const std::string& directory, const Catalog& catalog) {
  struct Table {
    const char* path;
    void (*read)(const std::string&, const Catalog&, std::vector<ExchangeRow>&);
  };
  constexpr Table kTables[] = {{"kernels/deepep_normal.csv.gz", read_throughput},
                               {"kernels/deepep_ll.csv.gz", read_low_latency},
                               {"deepep.csv", read_published},
                               {"deepep_ascend.csv", read_ascend},
                               {"cloudmatrix384.csv", read_cloudmatrix}};
  std::vector<ExchangeRow> rows;
  for (const Table& table : kTables) {
    const std::string path = directory + "/" + table.path;
    if (std::filesystem::exists(path)) table.read(path, catalog, rows);
  }
  return rows;
}

}  // namespace moebius
