// Latent attention of the kernel database: its core in prefill and decode, and the products that absorb the
// projections of keys and values into queries and results.
#include "workloads/calibration/kernel_database.h"
#include "workloads/calibration/latent_attention.h"

namespace moebius {
namespace {

using Key = ProfileKey;

constexpr double kMost = 1e9;
constexpr const char* kFewRows = "under 512 rows of a head: kernels change from one size to the next";
constexpr double kFullTiles = 512;  // rows of a head
constexpr double kShort = 256;      // between the reductions of both absorbing products: their geometric mean

// Every head with keys and values of its own (as loaded from the latent rows and multiplied out), or all
// heads over the latent rows. Both have sites of one width: `where` tells them apart from each other and from
// other attention.
void describe(ProfileTable& table, bool absorbed, bool prefill) {
  const Shape heads = latent_heads(1, absorbed);
  table = table_of(prefill ? (absorbed ? "latent attention, prefill absorbed" : "latent attention, prefill")
                           : "latent attention, decode",
                   {"attention"}, DType::kBf16, {Key::kHeads, Key::kKvHeads},
                   {Key::kGroups, prefill ? Key::kQueries : Key::kKv});
  const double width = heads.head_dim, value = heads.v_dim;
  table.where = {{Key::kWindow, 0, 0}, {Key::kHeadDim, width, width}, {Key::kVDim, value, value}};
  table.where.push_back(prefill ? ProfileRange{Key::kQueries, 2, kMost} : ProfileRange{Key::kQueries, 1, 1});
  table.hot = true;
  table.note = prefill ? "causal, no prefix; writes the cache" : "rotates the queries, writes the cache";
}

void read_latent(Harvest& harvest, const std::string& system, bool prefill) {
  const char* file = prefill ? "kernels/mla_context.csv.gz" : "kernels/mla_generation.csv.gz";
  if (!harvest.has(file)) return;
  const Csv csv = harvest.open(file, system);
  Drafts drafts;
  for (const CsvRow& row : csv.rows()) {
    const std::string stack = stack_of(csv, row);
    const double length = csv.number(row, prefill ? "seq_len" : "kv_len");
    if (prefill && length < 2) {
      ++drafts.left_out[stack][kOneToken];
      continue;
    }
    const bool small_cache = csv.text(row, "kv_dtype") == "fp8";
    const bool absorbed = runs_absorbed(csv, row, harvest.chip, prefill);
    TableDraft& draft = drafts.tables[{rank_of(csv.text(row, "backend")), stack, small_cache ? 1U : 0U}];
    if (draft.rows.empty()) {
      describe(draft.table, absorbed, prefill);
      draft.table.stack = stack;
      if (small_cache) draft.table.stored = DType::kFp8;
    }
    const Shape heads = latent_heads(static_cast<std::int32_t>(csv.number(row, "num_heads")), absorbed);
    draft.rows.push_back({{static_cast<double>(heads.heads), static_cast<double>(heads.kv_heads)},
                          {csv.number(row, "batch"), length},
                          csv.number(row, "latency_us"),
                          row.text});
  }
  drafts.add_to(harvest);
}

// x[heads, tokens, 128] W[heads, 512, 128] before the attention, x[heads, tokens, 512] W[heads, 128, 512]
// after it: a product a head. What those in 16 bits say of a short and of a long reduction over many rows is
// true of other products by heads, too, such as those of attention in kernels of its own.
void read_absorption(Harvest& harvest, const std::string& system) {
  constexpr const char* kFile = "kernels/mla_bmm.csv.gz";
  if (!harvest.has(kFile)) return;
  const Csv csv = harvest.open(kFile, system);
  Drafts drafts;
  for (const CsvRow& row : csv.rows()) {
    const std::string stack = stack_of(csv, row);
    const bool before = csv.text(row, "op") == "mla_gen_pre", eight = csv.text(row, "dtype") == "fp8";
    const std::size_t kind = (before ? 0U : 1U) + (eight ? 2U : 0U);
    if (!eight && csv.number(row, "num_tokens") < kFullTiles) {
      ++drafts.left_out[stack][kFewRows];
      continue;
    }
    const double n = before ? kLatent : kNope, k = before ? kNope : kLatent;
    TableDraft& draft = drafts.tables[{rank_of(csv.text(row, "backend")), stack, kind}];
    if (draft.rows.empty()) {
      draft.table =
          table_of(before ? "absorption of keys" : "absorption of values", {"grouped_gemm"},
                   eight ? DType::kFp8 : DType::kBf16, {Key::kGroups, Key::kN, Key::kK}, {Key::kRows});
      draft.table.where = {{Key::kHeads, 1, kMost}, {Key::kN, n, n}, {Key::kK, k, k}};
      if (!eight)
        draft.table.where = {
            {Key::kHeads, 1, kMost},
            {Key::kRows, kFullTiles, kMost},
            before ? ProfileRange{Key::kK, 1, kShort} : ProfileRange{Key::kK, kShort + 1, kMost}};
      draft.table.stack = stack;
      draft.table.note = "a batched GEMM of one product a head";
    }
    draft.rows.push_back({{csv.number(row, "num_heads"), n, k},
                          {csv.number(row, "num_tokens")},
                          csv.number(row, "latency_us"),
                          row.text});
  }
  drafts.add_to(harvest);
}

}  // namespace

void read_latent_kernels(Harvest& harvest, const std::string& system) {
  read_latent(harvest, system, true);
  read_latent(harvest, system, false);
  read_absorption(harvest, system);
}

}  // namespace moebius
