// DeepSeek's published trace of one DeepSeek-V3 training chunk. It is also what the project is tested on, so
// only layers 1 and 2 are taken, and only kinds that have no other source: weight gradients, attention
// backward with the passes before and after it, and the passes that quantise. Layers 3 and 4, and all other
// kinds, stay unseen.
#include <fmt/format.h>

#include <map>

#include "hw/error.h"
#include "workloads/calibration/harvest.h"

namespace moebius {
namespace {

using Key = ProfileKey;
using Samples =
    std::map<std::vector<double>, std::vector<double>>;  // shape -> microseconds of each occurrence

constexpr const char* kOps = "profile_data_train_ops.csv";
constexpr const char* kKernels = "profile_data_train_kernels.csv";
constexpr int kCores = 112;  // of 132: communication holds 20

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

bool is_learnt_layer(const std::string& layer) {
  return layer == "1" || layer == "2";
}

void stamp(ProfileTable& table) {
  table.stack = "deepseek-training-2025-02";
  table.source = "PROFILE-DATA";
  table.cores = kCores;
  table.sustained = true;
  table.in_sample = true;
  table.note = "means of layers 1 and 2, from kernels of a whole training step; layers 3 and 4 are the test";
}

void add_samples(Harvest& harvest, ProfileTable table, std::size_t site_keys, const Samples& samples) {
  TableDraft draft{std::move(table), {}};
  stamp(draft.table);
  for (const auto& [shape, us] : samples) {
    const auto middle = shape.begin() + static_cast<std::ptrdiff_t>(site_keys);
    draft.rows.push_back(
        {{shape.begin(), middle}, {middle, shape.end()}, mean(us), fmt::format("{}", fmt::join(shape, "x"))});
  }
  harvest.add(std::move(draft));
}

void read_ops(Harvest& harvest) {
  const Csv csv = harvest.open(kOps);
  Samples gradients;                       // m, n, k
  std::map<std::string, double> backward;  // by layer: the three kernels together
  for (const CsvRow& row : csv.rows()) {
    const std::string& layer = csv.text(row, "layer_instance");
    const std::string& op = csv.text(row, "operator_inferred");
    if (!is_learnt_layer(layer)) continue;
    if (op.find("wgrad") != std::string::npos) {
      gradients[{csv.number(row, "m_or_tokens"), csv.number(row, "n"), csv.number(row, "k")}].push_back(
          csv.number(row, "dur_us"));
    } else if (op.starts_with("FlashAttnBwd") || op.starts_with("flash attention bwd")) {
      backward[layer] += csv.number(row, "dur_us");
    }
  }
  Samples attention;
  for (const auto& [layer, us] : backward) attention[{128, 128, 192, 128, 4096}].push_back(us);
  add_samples(harvest,
              table_of("weight gradients", {"gemm_wgrad", "grouped_gemm_wgrad"}, DType::kFp8,
                       {Key::kM, Key::kN}, {Key::kRows}),
              2, gradients);
  ProfileTable table = table_of("attention backward with its passes", {"attention_grad"}, DType::kBf16,
                                {Key::kHeads, Key::kKvHeads, Key::kHeadDim, Key::kVDim}, {Key::kQueries});
  table.where = {{Key::kWindow, 0, 0}, {Key::kQueries, 64, 1e9}};
  add_samples(harvest, std::move(table), 4, attention);
}

// Columns of the n-th cast by token in a phase of a DeepSeek-V3 layer. The grid of that kernel says the rows
// alone; the order of the operands follows from the model: x, x, q's and kv's latent, attention's output, the
// experts' input ...
double cast_columns(const std::string& phase, std::size_t occurrence) {
  static const std::map<std::string, std::vector<double>> columns = {
      {"attn(F)", {7168, 7168, 1536, 512, 16384, 7168}},
      {"mlp(B)", {7168, 4096, 4096}},
      {"mlp(F)", {4096, 4096}},
      {"attn(B)", {7168, 1536, 512, 24576, 32768, 576, 1536}}};
  const auto found = columns.find(phase);
  return found == columns.end() || occurrence >= found->second.size() ? 0 : found->second[occurrence];
}

// "56x254x1" of the transposing cast: blocks of 128 columns, blocks of 128 rows.
void read_casts(Harvest& harvest) {
  const Csv csv = harvest.open(kKernels);
  Samples by_token, by_channel;                 // n, m
  std::map<std::string, std::size_t> occurred;  // casts by token in a phase of a layer
  for (const CsvRow& row : csv.rows()) {
    const std::string& layer = csv.text(row, "phase_instance");
    const std::string& kernel = csv.text(row, "kernel");
    if (!is_learnt_layer(layer) || csv.text(row, "stream") != "7") continue;
    double x = 0, y = 0;
    const bool grid = std::sscanf(csv.text(row, "grid").c_str(), "%lfx%lf", &x, &y) == 2;
    if (kernel == "per_channel_cast_and_transpose" && grid) {
      by_channel[{x * 128, y * 128}].push_back(csv.number(row, "dur_us"));
    } else if (kernel == "per_token_cast_to_fp8_with_channels" && grid) {
      const std::string& phase = csv.text(row, "launch_phase");
      const double columns = cast_columns(phase, occurred[phase + layer]++);
      if (columns > 0) by_token[{columns, x}].push_back(csv.number(row, "dur_us"));
    }
  }
  add_samples(harvest, table_of("cast to FP8 by token", {"quantise"}, DType::kFp8, {Key::kN}, {Key::kM}), 1,
              by_token);
  add_samples(harvest,
              table_of("cast to FP8 by channel, transposed", {"transpose_quantise"}, DType::kFp8, {Key::kN},
                       {Key::kM}),
              1, by_channel);
}

}  // namespace

void read_training_trace(Harvest& harvest) {
  if (!harvest.has(kOps) || !harvest.is_ours("H800")) return;
  harvest.add_source({"PROFILE-DATA",
                      "deepseek-ai/profile-data train.json, commit 4496024: DeepSeek-V3, 4 MoE layers, EP64",
                      "not stated in the data", "2025-02"});
  read_ops(harvest);
  if (harvest.has(kKernels)) read_casts(harvest);
}

}  // namespace moebius
