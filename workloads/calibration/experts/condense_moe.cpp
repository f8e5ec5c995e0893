// Expert layers of the kernel database (kernels/moe.csv.gz): hundreds of thousands of rows, each the time of
// one rank's routed experts from the router's scores to the sum over a token's experts.
#include <algorithm>
#include <map>

#include "workloads/calibration/experts/expert_rows.h"
#include "workloads/calibration/experts/expert_screen.h"
#include "workloads/calibration/kernel_database.h"

namespace moebius {
namespace {

struct Draft {
  ExpertDraft fit;
  std::map<std::string, std::size_t> places;  // of rows, by what was measured
  std::map<std::string, int> versions, left_out;
  std::vector<RejectedRows> rejected;
  int repeats = 0;
};

using ExpertDrafts = std::map<DraftKey, Draft>;

// SGLang chooses its kernels by shape: TensorRT-LLM's generated ones (FlashInfer) where a model's routing is
// one that they know, Triton's otherwise. Others choose them for shapes that it leaves to Triton, so that rows
// of the former stand in tables of their own, too.
constexpr const char* kGenerated = "+generated";

bool is_generated(const Csv& csv, const CsvRow& row) {
  return csv.text(row, "kernel").find("flashinfer_trtllm") != std::string::npos;
}

// The layer, its share on a rank and the tokens; the loads come last.
std::string question(const Csv& csv, const CsvRow& row) {
  std::string text;
  for (const char* column :
       {"hidden", "inter", "topk", "num_experts", "tp", "ep", "num_tokens", "distribution"})
    text += csv.text(row, column) + ",";
  return text;
}

// Of two kernels for one shape the faster stands: a framework's tuner takes it.
void add_row(Draft& draft, const std::string& question, ExpertRow row) {
  const auto [place, is_new] = draft.places.try_emplace(question, draft.fit.rows.size());
  if (is_new) {
    draft.fit.rows.push_back(std::move(row));
    return;
  }
  ++draft.repeats;
  double& microseconds = draft.fit.rows[place->second].microseconds;
  microseconds = std::min(microseconds, row.microseconds);
}

ExpertDrafts read_drafts(const Csv& csv) {
  ExpertDrafts drafts;
  DrawnRoutings routings;
  for (const CsvRow& row : csv.rows()) {
    const std::string& backend = csv.text(row, "backend");
    const ExpertFormat* format = find_expert_format(csv.text(row, "dtype"));
    const auto place = static_cast<std::size_t>(format == nullptr ? 0 : format - expert_formats().data());
    Draft& draft = drafts[{rank_of(backend), backend, place}];
    std::string reason = format == nullptr ? "an unknown number format" : reason_against(csv, row);
    if (reason.empty()) {
      ExpertRow measured = expert_row(csv, row, *format, routings);
      ++draft.versions[stack_of(csv, row)];
      if (measured.routings) {
        if (is_generated(csv, row))
          add_row(drafts[{rank_of(backend), backend + kGenerated, place}], question(csv, row), measured);
        add_row(draft, question(csv, row), std::move(measured));
        continue;
      }
      reason = "an unknown distribution of loads";
    }
    ++draft.left_out[reason];
  }
  return drafts;
}

// The version of most rows; of shapes that it lacks those of another are of the same kernels.
std::string stack_among(const ExpertDrafts& drafts, const std::string& backend) {
  std::map<std::string, int> versions;
  for (const auto& [key, draft] : drafts)
    if (key.stack == backend)
      for (const auto& [version, rows] : draft.versions) versions[version] += rows;
  return std::max_element(versions.begin(), versions.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; })
      ->first;
}

ProfileTable table_for(const Draft& draft, const ExpertFormat& format, const Accelerator& chip) {
  ProfileTable table;
  table.dtype = format.dtype;
  table.stored = format.stored;
  table.source = "AICONFIGURATOR";
  table.cores = chip.cores;
  table.sustained = true;
  table.note = std::string(format.note) + (*format.note != '\0' ? "; " : "") +
               "of whole expert layers, less the model's passes around the GEMMs";
  for (const auto& [reason, rows] : draft.left_out) table.rejected.push_back({rows, reason});
  if (draft.repeats > 0)
    table.rejected.push_back({draft.repeats, "two kernels for one shape: the faster stands"});
  table.rejected.insert(table.rejected.end(), draft.rejected.begin(), draft.rejected.end());
  return table;
}

// Ranks of large groups, loads rebalanced or not (wideep_moe.csv.gz): tests of the tables of that framework.
// SGLang's are timed with its host's work.
void add_wide_rows(ExpertDrafts& drafts, const Csv& csv) {
  DrawnRoutings routings;
  for (const CsvRow& row : csv.rows()) {
    const ExpertFormat* format = find_expert_format(csv.text(row, "dtype"));
    if (format == nullptr || csv.text(row, "backend") != "trtllm") continue;
    const auto place = static_cast<std::size_t>(format - expert_formats().data());
    const auto draft = drafts.find({rank_of("trtllm"), "trtllm", place});
    if (draft == drafts.end()) continue;
    ExpertRow measured = expert_row(csv, row, *format, routings);
    if (measured.routings) draft->second.fit.rows.push_back(std::move(measured));
  }
}

std::string backend_of(const DraftKey& key) {
  return key.stack.substr(0, key.stack.find('+'));
}

// Where all kernels of a format are generated, one table tells them.
void drop_unmixed(ExpertDrafts& drafts) {
  std::erase_if(drafts, [&](const auto& entry) {
    const auto& [key, draft] = entry;
    if (!key.stack.ends_with(kGenerated)) return false;
    const Draft& all = drafts.at({key.backend, backend_of(key), key.kind});
    return draft.places.size() == all.places.size();
  });
}

}  // namespace

void read_expert_kernels(Harvest& harvest, const std::string& system) {
  if (!harvest.has("kernels/moe.csv.gz")) return;
  ExpertDrafts drafts = read_drafts(harvest.open("kernels/moe.csv.gz", system));
  for (auto& [key, draft] : drafts) {
    draft.rejected = reject_untuned(draft.fit.rows);
    for (RejectedRows& cached : reject_cached(draft.fit.rows, harvest.chip))
      draft.rejected.push_back(std::move(cached));
  }
  if (harvest.has("kernels/wideep_moe.csv.gz"))
    add_wide_rows(drafts, harvest.open("kernels/wideep_moe.csv.gz", system));
  drop_unmixed(drafts);
  std::string last;  // backend whose FP8 table came already
  for (auto& [key, draft] : drafts) {
    if (draft.fit.rows.empty()) continue;
    const ExpertFormat& format = expert_formats()[key.kind];
    const bool plain_fp8 = format.dtype == DType::kFp8 && !format.stored;
    draft.fit.table = table_for(draft, format, harvest.chip);
    const bool generated = key.stack.ends_with(kGenerated);
    draft.fit.table.stack =
        stack_among(drafts, backend_of(key)) +
        (generated ? kGenerated : plain_fp8 && last == key.stack ? format.variant : "");
    if (plain_fp8) last = key.stack;
    for (ProfileTable& table : fit_experts(draft.fit, harvest.chip)) {
      table.when_named = generated;  // once its errors are told: who tells them names no stack
      harvest.profile.tables.push_back(std::move(table));
    }
    draft.fit.rows = {};
  }
  if (!drafts.empty()) add_database_source(harvest);
}

}  // namespace moebius
