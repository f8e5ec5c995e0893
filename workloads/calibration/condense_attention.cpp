// Attention of the kernel database: prefill of whole sequences and decode of one query a sequence. One table
// a stack, pair of formats and window: where a framework chooses among kernels, so does its table.
#include <fmt/format.h>

#include "workloads/calibration/kernel_database.h"

namespace moebius {
namespace {

using Key = ProfileKey;

constexpr const char* kUnknown = "an unknown number format";

// The types of the arithmetic and of the cache, if both are known; BF16 first.
std::optional<std::size_t> formats_of(const std::string& arithmetic, const std::string& cache) {
  if (arithmetic == "bfloat16" && cache == "bfloat16") return 0;
  if (arithmetic == "bfloat16" && cache == "fp8") return 1;
  if (arithmetic == "fp8" && cache == "fp8") return 2;
  return {};
}

void describe(ProfileTable& table, std::size_t formats, double window, bool prefill) {
  table = table_of(prefill ? "attention, prefill" : "attention, decode", {"attention"},
                   formats == 2 ? DType::kFp8 : DType::kBf16,
                   {Key::kHeads, Key::kKvHeads, Key::kHeadDim, Key::kVDim},
                   {Key::kGroups, prefill ? Key::kQueries : Key::kKv});
  if (formats == 1) table.stored = DType::kFp8;
  if (window > 0) table.name += fmt::format(", window {}", window);
  table.where = {{Key::kWindow, window, window}, {Key::kVDim, 0, 256}};
  table.where.push_back(prefill ? ProfileRange{Key::kQueries, 2, 1e9} : ProfileRange{Key::kQueries, 1, 1});
  table.hot = true;
  table.note = prefill ? "causal, no prefix; writes the cache" : "writes the cache";
}

void read_attention(Harvest& harvest, const std::string& system, bool prefill) {
  const char* file = prefill ? "kernels/context_attention.csv.gz" : "kernels/generation_attention.csv.gz";
  if (!harvest.has(file)) return;
  const Csv csv = harvest.open(file, system);
  Drafts drafts;
  for (const CsvRow& row : csv.rows()) {
    const std::string stack = stack_of(csv, row);
    const auto formats = formats_of(csv.text(row, "attn_dtype"), csv.text(row, "kv_dtype"));
    const double length = csv.number(row, prefill ? "seq_len" : "kv_len"), window = csv.number(row, "window");
    if (!formats || (prefill && length < 2)) {
      ++drafts.left_out[stack][formats ? kOneToken : kUnknown];
      continue;
    }
    const std::size_t kind = 2 * *formats + (window > 0 ? 1 : 0);
    TableDraft& draft = drafts.tables[{rank_of(csv.text(row, "backend")), stack, kind}];
    if (draft.rows.empty()) {
      describe(draft.table, *formats, window, prefill);
      draft.table.stack = stack;
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

void read_attention_kernels(Harvest& harvest, const std::string& system) {
  read_attention(harvest, system, true);
  read_attention(harvest, system, false);
}

}  // namespace moebius
