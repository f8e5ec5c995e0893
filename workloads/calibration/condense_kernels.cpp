// NVIDIA AIConfigurator's database of kernels, as it stands in kernels/*.csv.gz beside the other tables: tens
// of thousands of rows a chip and table, from graph replays of serving frameworks' kernels. Its README says
// how they were measured and which rows are odd; what is left out here is counted with the reason.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "workloads/calibration/fit_table.h"
#include "workloads/calibration/harvest.h"

namespace moebius {
namespace {

using Key = ProfileKey;

constexpr std::array kSystems = {"a100_sxm", "h100_sxm", "h200_sxm", "b200_sxm",           "b300_sxm",
                                 "gb300",    "l40s",     "b60",      "rtx_pro_6000_server"};
// Ours first: its GEMMs scatter half as much as the others'.
constexpr std::array kBackends = {"trtllm", "sglang", "vllm"};

// The system of the database that is this chip, if any.
std::optional<std::string> system_of(const Harvest& harvest) {
  for (const char* system : kSystems) {
    std::string name = system;
    std::replace(name.begin(), name.end(), '_', '-');
    if (harvest.is_ours(name)) return system;
  }
  return {};
}

std::size_t rank_of(const std::string& backend) {
  return static_cast<std::size_t>(std::find(kBackends.begin(), kBackends.end(), backend) - kBackends.begin());
}

// A numeric format of the database: how ops name it, and how it differs from other formats of that name.
struct Format {
  const char* name;
  std::optional<DType> dtype;
  const char* variant;  // of the stack, when the stack has a better table of that type
  const char* note;
};

// GEMMs of half a millisecond and more draw the board's limit: power tables of the same database.
constexpr double kPowerLimitedFrom = 500;

constexpr const char* kWeightOnly = "integer weights under BF16 activations: no op has two types";
constexpr const char* kEightBitCache = "an FP8 cache under BF16 arithmetic: no op has two types";
constexpr const char* kOneToken = "prefill of one token: that is decode, which has its own table";

// Best first.
const std::vector<Format> kFormats = {
    {"bfloat16", DType::kBf16, "", "weights not in the cache, activations hot"},
    {"fp8_block", DType::kFp8, "",
     "1x128 and 128x128 block scales, BF16 out; includes the quantisation of the activations"},
    {"fp8", DType::kFp8, "+fp8-rowwise",
     "scales per tensor or per token; includes the quantisation of the activations"},
    {"nvfp4", DType::kFp4, "", "scales per 16 elements; includes the quantisation of the activations"},
    {"sq", DType::kInt8, "", "SmoothQuant"},
    {"int8_wo", {}, "", kWeightOnly},
    {"int4_wo", {}, "", kWeightOnly},
};

std::size_t format_of(const Csv& csv, const CsvRow& row, const char* column) {
  const std::string& name = csv.text(row, column);
  const auto found =
      std::find_if(kFormats.begin(), kFormats.end(), [&](const auto& f) { return f.name == name; });
  return static_cast<std::size_t>(found - kFormats.begin());
}

// Drafts of one file in the order in which a look-up shall ask them: by backend, then as `kind` counts.
struct DraftKey {
  std::size_t backend = 0;
  std::string stack;
  std::size_t kind = 0;
  auto operator<=>(const DraftKey&) const = default;
};

struct Drafts {
  std::map<DraftKey, TableDraft> tables;
  std::map<std::string, std::map<std::string, int>> left_out;  // by stack and reason

  void add_to(Harvest& harvest) {
    for (auto& [key, draft] : tables) {
      for (const auto& [reason, rows] : left_out[key.stack]) draft.table.rejected.push_back({rows, reason});
      left_out[key.stack].clear();  // told once, in the first table of the stack
      draft.table.source = "AICONFIGURATOR";
      draft.table.cores = harvest.chip.cores;
      harvest.profile.tables.push_back(fit_table(std::move(draft), harvest.chip));
    }
    if (!tables.empty())
      harvest.add_source({"AICONFIGURATOR",
                          "ai-dynamo/aiconfigurator, systems/data, commit 095f58a; CUDA graph replays",
                          "Apache-2.0", "2026-08-21"});
  }
};

std::string stack_of(const Csv& csv, const CsvRow& row) {
  return csv.text(row, "backend") + "-" + csv.text(row, "version");
}

void read_gemm(Harvest& harvest, const std::string& system) {
  if (!harvest.has("kernels/gemm.csv.gz")) return;
  const Csv csv = harvest.open("kernels/gemm.csv.gz", system);
  Drafts drafts;
  for (const CsvRow& row : csv.rows()) {
    const std::string stack = stack_of(csv, row);
    const std::size_t format = format_of(csv, row, "dtype");
    if (format == kFormats.size() || !kFormats[format].dtype) {
      ++drafts
            .left_out[stack][format == kFormats.size() ? "an unknown number format" : kFormats[format].note];
      continue;
    }
    TableDraft& draft = drafts.tables[{rank_of(csv.text(row, "backend")), stack, format}];
    if (draft.rows.empty()) {
      draft.table = table_of("dense GEMM", {"gemm", "gemm_dgrad"}, *kFormats[format].dtype,
                             {Key::kN, Key::kK}, {Key::kM});
      draft.table.note = kFormats[format].note;
      draft.table.limited_from = kPowerLimitedFrom;
    }
    draft.rows.push_back({{csv.number(row, "n"), csv.number(row, "k")},
                          {csv.number(row, "m")},
                          csv.number(row, "latency_us"),
                          row.text});
  }
  std::string last;  // stack whose FP8 table came already
  for (auto& [key, draft] : drafts.tables) {
    const bool second = draft.table.dtype == DType::kFp8 && last == key.stack;
    draft.table.stack = key.stack + (second ? kFormats[key.kind].variant : "");
    if (draft.table.dtype == DType::kFp8) last = key.stack;
  }
  drafts.add_to(harvest);
}

// One table a stack, type and window: where a framework chooses among kernels, so does its table.
void read_attention(Harvest& harvest, const std::string& system, bool prefill) {
  const char* file = prefill ? "kernels/context_attention.csv.gz" : "kernels/generation_attention.csv.gz";
  if (!harvest.has(file)) return;
  const Csv csv = harvest.open(file, system);
  Drafts drafts;
  for (const CsvRow& row : csv.rows()) {
    const std::string stack = stack_of(csv, row);
    const std::size_t format = format_of(csv, row, "attn_dtype");
    if (csv.text(row, "kv_dtype") != csv.text(row, "attn_dtype") || format == kFormats.size()) {
      ++drafts.left_out[stack][kEightBitCache];
      continue;
    }
    const double length = csv.number(row, prefill ? "seq_len" : "kv_len"), window = csv.number(row, "window");
    if (prefill && length < 2) {
      ++drafts.left_out[stack][kOneToken];
      continue;
    }
    TableDraft& draft =
        drafts.tables[{rank_of(csv.text(row, "backend")), stack, 2 * format + (window > 0 ? 1 : 0)}];
    if (draft.rows.empty()) {
      draft.table = table_of(prefill ? "attention, prefill" : "attention, decode", {"attention"},
                             kFormats[format].dtype.value_or(DType::kBf16),
                             {Key::kHeads, Key::kKvHeads, Key::kHeadDim, Key::kVDim},
                             {Key::kGroups, prefill ? Key::kQueries : Key::kKv});
      if (window > 0) draft.table.name += fmt::format(", window {}", window);
      draft.table.stack = stack;
      draft.table.where = {{Key::kWindow, window, window}, {Key::kVDim, 0, 256}};
      draft.table.where.push_back(prefill ? ProfileRange{Key::kQueries, 2, 1e9}
                                          : ProfileRange{Key::kQueries, 1, 1});
      draft.table.note =
          prefill ? "causal, no prefix; writes the cache" : "the cache is in L2 when it fits there";
    }
    const double width = csv.number(row, "head_dim");
    draft.rows.push_back({{csv.number(row, "num_heads"), csv.number(row, "num_kv_heads"), width, width},
                          {csv.number(row, "batch"), length},
                          csv.number(row, "latency_us"),
                          row.text});
  }
  drafts.add_to(harvest);
}

}  // namespace

void read_kernels(Harvest& harvest) {
  const std::optional<std::string> system = system_of(harvest);
  if (!system) return;
  read_gemm(harvest, *system);
  read_attention(harvest, *system, true);
  read_attention(harvest, *system, false);
}

}  // namespace moebius
