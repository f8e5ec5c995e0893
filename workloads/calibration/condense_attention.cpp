// Attention of the kernel database: prefill of whole sequences and decode of one query a sequence.
#include <fmt/format.h>

#include "workloads/calibration/kernel_database.h"

namespace moebius {
namespace {

using Key = ProfileKey;

constexpr const char* kEightBitCache = "an FP8 cache under BF16 arithmetic: no op has two types";
constexpr const char* kOneToken = "prefill of one token: that is decode, which has its own table";

// One table a stack, type and window: where a framework chooses among kernels, so does its table.
void read_attention(Harvest& harvest, const std::string& system, bool prefill) {
  const char* file = prefill ? "kernels/context_attention.csv.gz" : "kernels/generation_attention.csv.gz";
  if (!harvest.has(file)) return;
  const Csv csv = harvest.open(file, system);
  Drafts drafts;
  for (const CsvRow& row : csv.rows()) {
    const std::string stack = stack_of(csv, row);
    const std::size_t format = format_of(csv, row, "attn_dtype");
    if (csv.text(row, "kv_dtype") != csv.text(row, "attn_dtype") || format == kernel_formats().size()) {
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
                             kernel_formats()[format].dtype.value_or(DType::kBf16),
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

void read_attention_kernels(Harvest& harvest, const std::string& system) {
  read_attention(harvest, system, true);
  read_attention(harvest, system, false);
}

}  // namespace moebius
