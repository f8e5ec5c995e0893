// The published tables of measured kernels, file by file: what a row means, and what cannot be taken from it.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <filesystem>
#include <map>
#include <set>

#include "hw/error.h"
#include "hw/json_text.h"
#include "workloads/calibration/fit_table.h"
#include "workloads/calibration/harvest.h"

namespace moebius {
namespace {

using Key = ProfileKey;

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

// Enough to see through their scatter.
bool has_many_rows(const TableDraft& draft) {
  constexpr std::size_t kRows = 200, kRowsOfSite = 10;
  std::set<std::vector<double>> sites;
  for (const MeasuredRow& row : draft.rows) sites.insert(row.site);
  return draft.rows.size() >= kRows && draft.rows.size() >= kRowsOfSite * sites.size();
}

}  // namespace

bool Harvest::is_ours(const std::string& hardware) const {
  const std::string name = lower(hardware);
  return name == chip.id || std::find(chip.aliases.begin(), chip.aliases.end(), name) != chip.aliases.end();
}

void Harvest::add_source(ProfileSource source) {
  const auto same = [&](const ProfileSource& other) { return other.key == source.key; };
  if (std::none_of(profile.sources.begin(), profile.sources.end(), same))
    profile.sources.push_back(std::move(source));
}

void Harvest::add(TableDraft draft) {
  if (draft.rows.empty()) return;
  const bool many = has_many_rows(draft);
  ProfileTable table = many ? fit_table(std::move(draft), chip) : lay_table(std::move(draft), chip);
  if (!table.sites.empty()) profile.tables.push_back(std::move(table));
}

ProfileTable table_of(const char* name, std::vector<std::string> kinds, DType dtype, std::vector<Key> site,
                      std::vector<Key> axes) {
  ProfileTable table;
  table.name = name;
  table.kinds = std::move(kinds);
  table.dtype = dtype;
  table.site_keys = std::move(site);
  for (const Key key : axes) table.axes.push_back({key, {}});
  return table;
}

namespace {

// DeepGEMM's README, three versions of it. Times are derived from the printed TFLOP/s. Dense and grouped in
// one file; of the grouped layouts "contiguous" is that of training and prefill, "masked" that of decode:
// they differ in the row counts.
void read_deepgemm(Harvest& harvest) {
  if (!harvest.has("deepgemm.csv")) return;
  const Csv csv = harvest.open("deepgemm.csv");
  std::map<std::string, std::pair<TableDraft, TableDraft>> versions;  // by date: dense, grouped
  for (const CsvRow& row : csv.rows()) {
    if (!harvest.is_ours(csv.text(row, "hardware"))) continue;
    auto& [dense, grouped] = versions[csv.text(row, "readme_date")];
    const double groups = csv.number(row, "groups"), m = csv.number(row, "m_per_group");
    const double n = csv.number(row, "n"), k = csv.number(row, "k"), us = csv.number(row, "derived_time_us");
    if (csv.text(row, "layout") == "dense") {
      dense.rows.push_back({{n, k}, {m}, us, row.text});
    } else {
      grouped.rows.push_back({{groups, n, k}, {m}, us, row.text});
    }
  }
  for (auto& [date, drafts] : versions) {
    harvest.add_source({"DEEPGEMM",
                        "deepseek-ai/DeepGEMM, README tables of 2025-02-25, 03-25 and 04-09, nvcc 12.8",
                        "MIT", "2025"});
    drafts.first.table =
        table_of("dense GEMM", {"gemm", "gemm_dgrad"}, DType::kFp8, {Key::kN, Key::kK}, {Key::kM});
    drafts.second.table = table_of("grouped GEMM", {"grouped_gemm", "grouped_gemm_dgrad"}, DType::kFp8,
                                   {Key::kGroups, Key::kN, Key::kK}, {Key::kRows});
    for (TableDraft* draft : {&drafts.first, &drafts.second}) {
      draft->table.stack = "deepgemm-" + date;
      draft->table.source = "DEEPGEMM";
      draft->table.cores = harvest.chip.cores;
      draft->table.note = "1x128 and 128x128 block scales, BF16 out; activations already quantised";
      harvest.add(std::move(*draft));
    }
  }
}

constexpr const char* kInferSimStack = "infersim-2025";

void add_infersim_source(Harvest& harvest) {
  harvest.add_source(
      {"INFERSIM", "alibaba/InferSim bench_data, commit f2293da", "not stated in the data", "2025"});
}

void stamp_infersim(const Harvest& harvest, ProfileTable& table) {
  table.stack = kInferSimStack;
  table.source = "INFERSIM";
  table.cores = harvest.chip.cores;
}

void read_infersim_gemm(Harvest& harvest) {
  if (!harvest.has("infersim_gemm.csv")) return;
  const Csv csv = harvest.open("infersim_gemm.csv");
  TableDraft draft;
  draft.table = table_of("dense GEMM", {"gemm", "gemm_dgrad"}, DType::kFp8, {Key::kN, Key::kK}, {Key::kM});
  stamp_infersim(harvest, draft.table);
  draft.table.note = "DeepGEMM kernels; several microseconds of launch in every row";
  for (const CsvRow& row : csv.rows())
    if (harvest.is_ours(csv.text(row, "hardware")))
      draft.rows.push_back({{csv.number(row, "n"), csv.number(row, "k")},
                            {csv.number(row, "m")},
                            csv.number(row, "latency_us"),
                            row.text});
  if (!draft.rows.empty()) add_infersim_source(harvest);
  harvest.add(std::move(draft));
}

// One row of the file is two kernels: gate and up projection together, and down projection, of the experts of
// a rank. `tokens_per_expert` is a rounded mean: below two, many experts have no row at all and the time is
// not that of the shape.
void read_infersim_grouped(Harvest& harvest) {
  if (!harvest.has("infersim_grouped_gemm.csv")) return;
  const Csv csv = harvest.open("infersim_grouped_gemm.csv");
  for (const char* phase : {"prefill", "decode"}) {
    TableDraft draft;
    draft.table = table_of(
        phase == std::string("prefill") ? "grouped GEMM, contiguous rows" : "grouped GEMM, masked rows",
        {"grouped_gemm", "grouped_gemm_dgrad"}, DType::kFp8, {Key::kGroups, Key::kN, Key::kK}, {Key::kRows});
    stamp_infersim(harvest, draft.table);
    draft.table.note = "DeepGEMM kernels, rows drawn at random around the mean";
    int sparse = 0;
    for (const CsvRow& row : csv.rows()) {
      if (!harvest.is_ours(csv.text(row, "hardware")) || csv.text(row, "phase") != phase) continue;
      const double experts = csv.number(row, "num_local_experts"),
                   rows = csv.number(row, "tokens_per_expert");
      const double hidden = csv.number(row, "hidden"), width = csv.number(row, "moe_inter");
      if (rows < 2) {
        sparse += 2;
        continue;
      }
      draft.rows.push_back(
          {{experts, 2 * width, hidden}, {rows}, csv.number(row, "up_us"), row.text + " up"});
      draft.rows.push_back(
          {{experts, hidden, width}, {rows}, csv.number(row, "down_us"), row.text + " down"});
    }
    if (sparse > 0) draft.table.rejected.push_back({sparse, "fewer than two rows an expert: many have none"});
    if (!draft.rows.empty()) add_infersim_source(harvest);
    harvest.add(std::move(draft));
  }
}

// "128-512-64" of MLA: heads, latent (or value) width, rotary width; "32-8-128" of the others: heads, KV
// heads, width.
struct AttentionShape {
  double heads = 0, middle = 0, last = 0;
};

AttentionShape attention_shape(const Csv& csv, const CsvRow& row) {
  const std::string& key = csv.text(row, "shape_key");
  std::array<int, 3> sizes{};
  const char* at = key.data();
  const char* const end = at + key.size();
  bool right = true;
  for (std::size_t i = 0; right && i < sizes.size(); ++i) {
    right = i == 0 || (at != end && *at++ == '-');
    const auto [stop, failure] = std::from_chars(at, end, sizes[i]);
    right = right && failure == std::errc() && sizes[i] > 0;
    at = stop;
  }
  if (!right || at != end)
    throw input_error(fmt::format("{}: expected three sizes such as \"32-8-128\", found {}",
                                  csv.place(row, "shape_key"), json_excerpt(key)));
  return {static_cast<double>(sizes[0]), static_cast<double>(sizes[1]), static_cast<double>(sizes[2])};
}

ProfileTable attention_table(const Harvest& harvest, const char* name, std::vector<Key> axes) {
  ProfileTable table = table_of(name, {"attention"}, DType::kBf16,
                                {Key::kHeads, Key::kKvHeads, Key::kHeadDim, Key::kVDim}, std::move(axes));
  stamp_infersim(harvest, table);
  table.where.push_back({Key::kWindow, 0, 0});
  return table;
}

// Decode: one query a sequence. MLA decodes absorbed: one latent KV head that is key (with its rotary part)
// and value. Its prefill is not: every head has keys of 128 + 64 and values of 128.
void read_infersim_attention(Harvest& harvest) {
  if (!harvest.has("infersim_attention.csv")) return;
  const Csv csv = harvest.open("infersim_attention.csv");
  TableDraft decode, latent, prefill;
  decode.table = attention_table(harvest, "attention, decode", {Key::kGroups, Key::kKv});
  latent.table = attention_table(harvest, "latent attention, decode", {Key::kGroups, Key::kKv});
  prefill.table = attention_table(harvest, "attention, prefill", {Key::kQueries});
  decode.table.where.push_back({Key::kQueries, 1, 1});
  decode.table.where.push_back({Key::kVDim, 0, 256});
  latent.table.where.push_back({Key::kQueries, 1, 1});
  latent.table.where.push_back({Key::kVDim, 257, 1e6});
  prefill.table.where.push_back({Key::kQueries, 64, 1e9});
  int sparse = 0, eight_bit = 0;
  for (const CsvRow& row : csv.rows()) {
    if (!harvest.is_ours(csv.text(row, "hardware"))) continue;
    const std::string& kind = csv.text(row, "kind");
    if (kind == "dsa") {
      ++sparse;
      continue;
    }
    if (csv.text(row, "dtype") == "fp8" || csv.text(row, "kv_dtype") == "fp8") {
      ++eight_bit;
      continue;
    }
    const AttentionShape s = attention_shape(csv, row);
    const double us = csv.number(row, "latency_us");
    if (csv.text(row, "phase") == "prefill") {
      const double width = kind == "mla" ? s.middle + s.last : s.last;
      const double value = kind == "mla" ? s.middle : s.last;
      prefill.rows.push_back({{s.heads, kind == "mla" ? s.heads : s.middle, width, value},
                              {csv.number(row, "q_len")},
                              us,
                              row.text});
      continue;
    }
    const std::vector<double> at = {csv.number(row, "batch"), csv.number(row, "kv_len")};
    if (kind == "mla") {
      latent.rows.push_back({{s.heads, 1, s.middle + s.last, s.middle}, at, us, row.text});
    } else {
      decode.rows.push_back({{s.heads, s.middle, s.last, s.last}, at, us, row.text});
    }
  }
  if (sparse > 0) decode.table.rejected.push_back({sparse, "sparse attention: no op kind computes it"});
  if (eight_bit > 0) decode.table.rejected.push_back({eight_bit, "an FP8 cache: this table is of BF16"});
  if (!decode.rows.empty() || !latent.rows.empty() || !prefill.rows.empty()) add_infersim_source(harvest);
  for (TableDraft* draft : {&prefill, &latent, &decode}) harvest.add(std::move(*draft));
}

}  // namespace

Profile find_kernels(const std::string& directory, const Accelerator& accelerator) {
  Harvest harvest{accelerator, directory, {}};
  harvest.profile.accelerator = accelerator.id;
  harvest.profile.reference = accelerator;
  read_deepgemm(harvest);
  read_infersim_gemm(harvest);
  read_infersim_grouped(harvest);
  read_infersim_attention(harvest);
  read_training_trace(harvest);
  read_kernels(harvest);
  read_primus_turbo(harvest);
  if (!harvest.profile.tables.empty()) {
    read_flashinfer_products(harvest);
    read_flash_attention_2(harvest);
    read_triton_attention(harvest);
  }
  read_power(harvest);
  return harvest.profile;
}

Profile condense(const std::string& directory, const Accelerator& accelerator) {
  Profile profile = find_kernels(directory, accelerator);
  if (profile.tables.empty())
    throw input_error(
        fmt::format("{}: no table of measured kernels has rows of {}", directory, accelerator.id));
  return profile;
}

}  // namespace moebius
