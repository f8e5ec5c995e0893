#include "workloads/calibration/attention_law.h"

namespace moebius {
namespace {

// A law knows tiles alone: of how many heads and sequences, each number by which they fill the cores, and not
// how many heads share their keys.
constexpr std::int64_t kHeads[] = {1, 2, 4, 8, 16, 32, 64, 128}, kSequences[] = {1, 2, 4, 8, 16, 64};
constexpr std::int64_t kHeadDims[] = {64, 128, 192, 256};
constexpr std::int64_t kQueries[] = {512, 1024, 2048, 4096, 8192, 16384, 65536};

TableDraft draft_of(const Accelerator& chip, const AttentionLaw& law, bool backward) {
  TableDraft draft;
  const std::string name = (backward ? "attention backward, " : "attention, ") + law.name;
  draft.table = table_of(name.c_str(), {backward ? "attention_grad" : "attention"}, DType::kBf16,
                         {ProfileKey::kHeads, ProfileKey::kHeadDim, ProfileKey::kVDim},
                         {ProfileKey::kGroups, ProfileKey::kQueries});
  draft.table.stack = law.stack;
  draft.table.source = law.source;
  draft.table.cores = chip.cores;
  draft.table.fitted = draft.table.when_named = true;
  draft.table.note = backward ? law.backward : law.forward;
  draft.table.where = {{ProfileKey::kWindow, 0, 0},
                       {ProfileKey::kQueries, static_cast<double>(kQueries[0]), 1e9}};
  for (const std::int64_t heads : kHeads)
    for (const std::int64_t head_dim : kHeadDims)
      for (const std::int64_t sequences : kSequences)
        for (const std::int64_t queries : kQueries) {
          const AttentionSize size{
              backward, true, sequences, queries, static_cast<int>(heads), static_cast<int>(head_dim)};
          const auto h = static_cast<double>(heads), d = static_cast<double>(head_dim);
          draft.rows.push_back({{h, d, d},
                                {static_cast<double>(sequences), static_cast<double>(queries)},
                                law.seconds(chip, size) * 1e6,
                                ""});
        }
  return draft;
}

}  // namespace

void add_attention_law(Harvest& harvest, const AttentionLaw& law) {
  for (const bool backward : {false, true})
    harvest.profile.tables.push_back(lay_rows(draft_of(harvest.chip, law, backward)));
}

}  // namespace moebius
