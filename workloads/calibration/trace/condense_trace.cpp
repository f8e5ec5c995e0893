// DeepSeek's published trace of one DeepSeek-V3 training chunk. It is also what the project is tested on, so
// only layers 1 and 2 are taken, and only kinds that have no other source: weight gradients, attention
// backward with the passes before and after it, the router's products and the passes at memory speed. Layers
// 3 and 4, and all other kinds, stay unseen.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "workloads/calibration/harvest.h"
#include "workloads/calibration/trace/training_trace.h"
#include "workloads/cost/table.h"

namespace moebius {
namespace {

using Key = ProfileKey;
using K = OpKind;

constexpr const char* kKernels = "profile_data_train_kernels.csv";
constexpr int kLearntLayers = 2;

struct TraceTable {
  const char* name;
  std::vector<K> kinds;
  DType dtype;
  std::vector<Key> site;
  Key axis;
  std::vector<ProfileRange> where = {};
};

// The kernels of this stack run after each other even where others fuse them; with few rows their number
// decides, which is that of training, not of decoding.
const ProfileRange kTraining{Key::kM, 1024, 1e9};
// Narrower than a wave of tiles: other products of this type are no neighbours.
const ProfileRange kNarrow{Key::kN, 1, 256}, kShort{Key::kK, 1, 256}, kLow{Key::kM, 1, 256};

TraceTable pass(const char* name, K kind, DType dtype) {
  return {name, {kind}, dtype, {Key::kN}, Key::kM, {kTraining}};
}

TraceTable gated(const char* name, K kind, DType dtype) {
  return {name, {kind}, dtype, {Key::kN}, Key::kM, {kTraining, {Key::kK, 2, 2}}};
}

// A chain of 37 short kernels (26 backward), which other numbers of experts and rows lengthen little: it says
// nothing of them.
TraceTable choice(const char* name, K kind) {
  const ProfileRange rows{Key::kM, 1024, 8192}, experts{Key::kN, 128, 512};
  return {name, {kind}, DType::kBf16, {Key::kN, Key::kK}, Key::kM, {rows, experts}};
}

TraceTable latent(const char* name, K kind) {
  return {name,    {kind},     DType::kBf16, {Key::kHeads, Key::kHeadDim, Key::kVDim, Key::kK},
          Key::kM, {kTraining}};
}

const std::vector<TraceTable>& trace_tables() {
  const DType bf16 = DType::kBf16, fp8 = DType::kFp8;
  static const std::vector<TraceTable> tables = {
      {"weight gradients of experts",
       {K::kGroupedGemmWgrad},
       fp8,
       {Key::kGroups, Key::kM, Key::kN},
       Key::kRows},
      {"weight gradients", {K::kGemmWgrad, K::kGroupedGemmWgrad}, fp8, {Key::kM, Key::kN}, Key::kRows},
      {"attention backward with its passes",
       {K::kAttentionGrad},
       bf16,
       {Key::kHeads, Key::kKvHeads, Key::kHeadDim, Key::kVDim},
       Key::kQueries,
       {{Key::kWindow, 0, 0}, {Key::kQueries, 64, 1e9}}},
      {"cast to FP8 by token", {K::kQuantise}, fp8, {Key::kN}, Key::kM},
      {"cast to FP8 by channel, transposed", {K::kTransposeQuantise}, fp8, {Key::kN}, Key::kM},
      {"router, FP32 out", {K::kGemm}, bf16, {Key::kN, Key::kK}, Key::kM, {kTraining, kNarrow}},
      {"router backward", {K::kGemmDgrad}, bf16, {Key::kN, Key::kK}, Key::kM, {kTraining, kShort}},
      {"router weight gradient", {K::kGemmWgrad}, bf16, {Key::kM, Key::kN}, Key::kRows, {kLow}},
      pass("norm", K::kNorm, bf16),
      pass("norm and cast", K::kNorm, fp8),
      pass("norm backward", K::kNormGrad, bf16),
      pass("rotary", K::kRotary, bf16),
      pass("rotary backward", K::kRotaryGrad, bf16),
      gated("SwiGLU with its cast", K::kActivation, fp8),
      gated("SwiGLU backward", K::kActivationGrad, bf16),
      choice("gate", K::kGate),
      choice("gate backward", K::kGateGrad),
      pass("rows to experts", K::kPermute, fp8),
      pass("rows to experts, backward", K::kPermuteGrad, bf16),
      pass("rows from experts", K::kUnpermute, bf16),
      pass("rows from experts, backward", K::kUnpermuteGrad, fp8),
      pass("addition", K::kAdd, bf16),
      pass("split", K::kSplit, bf16),
      pass("concatenation", K::kConcat, bf16),
      latent("latent keys", K::kMlaKeys),
      latent("latent keys, backward", K::kMlaKeysGrad),
  };
  return tables;
}

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

// A norm whose result is cast at once, or after ops beside it, is one op of a schedule.
void join_casts(std::vector<TraceOp>& ops) {
  std::vector<TraceOp> joined;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (ops[i].queries.size() != 1 || ops[i].queries.front().kind != K::kNorm) continue;
    const auto cast =
        std::find_if(ops.begin() + static_cast<std::ptrdiff_t>(i), ops.end(), [&](const TraceOp& op) {
          return op.layer == ops[i].layer && op.phase == ops[i].phase && op.queries.size() == 1 &&
                 op.queries.front().kind == K::kQuantise &&
                 op.queries.front().shape.n == ops[i].queries.front().shape.n;
        });
    if (cast == ops.end()) continue;
    joined.push_back(ops[i]);
    joined.back().queries.front().dtype = DType::kFp8;
    joined.back().microseconds += cast->microseconds;
  }
  ops.insert(ops.end(), joined.begin(), joined.end());
}

// Site and axis of the table, from the op.
std::pair<std::vector<double>, double> place_of(const TraceTable& table, const CostQuery& query) {
  std::vector<double> site;
  for (const Key key : table.site) site.push_back(profile_key(key, query.kind, query.shape));
  return {site, profile_key(table.axis, query.kind, query.shape)};
}

void add_table(Harvest& harvest, const TraceTable& row, const std::vector<TraceOp>& ops) {
  std::map<std::pair<std::vector<double>, double>, std::vector<double>> samples;
  for (const TraceOp& op : ops)
    if (op.queries.size() == 1 && op.queries.front().kind == row.kinds.front() &&
        op.queries.front().dtype == row.dtype)
      samples[place_of(row, op.queries.front())].push_back(op.microseconds);
  std::vector<std::string> kinds;
  for (const K kind : row.kinds) kinds.emplace_back(to_string(kind));
  TableDraft draft{table_of(row.name, kinds, row.dtype, row.site, {row.axis}), {}};
  draft.table.where = row.where;
  draft.table.stack = "deepseek-training-2025-02";
  draft.table.source = "PROFILE-DATA";
  draft.table.cores = 112;
  draft.table.sustained = true;
  draft.table.in_sample = true;
  draft.table.note =
      "means of layers 1 and 2, from kernels of a whole training step; layers 3 and 4 are the test";
  for (const auto& [place, us] : samples)
    draft.rows.push_back({place.first,
                          {place.second},
                          mean(us),
                          fmt::format("{}x{}", fmt::join(place.first, "x"), place.second)});
  harvest.add(std::move(draft));
}

}  // namespace

void read_training_trace(Harvest& harvest) {
  if (!harvest.has(kKernels) || !harvest.is_ours("H800")) return;
  harvest.add_source({"PROFILE-DATA",
                      "deepseek-ai/profile-data train.json, commit 4496024: DeepSeek-V3, 4 MoE layers, EP64",
                      "not stated in the data", "2025-02"});
  std::vector<TraceOp> ops = read_trace_ops(harvest.open(kKernels));
  std::erase_if(ops, [](const TraceOp& op) { return op.layer > kLearntLayers || op.is_stand_in; });
  join_casts(ops);
  for (const TraceTable& table : trace_tables()) add_table(harvest, table, ops);
}

}  // namespace moebius
