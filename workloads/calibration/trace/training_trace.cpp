#include "workloads/calibration/trace/training_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "hw/error.h"
#include "workloads/cost/roofline.h"

namespace moebius {
namespace {

constexpr int kCores = 112;  // of 132: communication holds 20
constexpr std::int64_t kTokens = 4096;
constexpr int kLayers = 4, kExpertsOfRank = 4;

struct Kernel {
  int line = 0;
  double start = 0, microseconds = 0;
  std::string name;
  double grid_x = 0, grid_y = 0;
};

// Of one phase of a layer, on both compute streams, as they start.
std::vector<Kernel> kernels_of(const Csv& csv, int layer, std::string_view phase) {
  std::vector<Kernel> kernels;
  for (const CsvRow& row : csv.rows()) {
    const std::string& stream = csv.text(row, "stream");
    if (csv.text(row, "launch_phase") != phase || csv.text(row, "phase_instance") != std::to_string(layer) ||
        (stream != "7" && stream != "23"))
      continue;
    Kernel kernel{row.line, csv.number(row, "start_us"), csv.number(row, "dur_us"), csv.text(row, "kernel")};
    std::sscanf(csv.text(row, "grid").c_str(), "%lfx%lf", &kernel.grid_x, &kernel.grid_y);
    kernels.push_back(std::move(kernel));
  }
  std::stable_sort(kernels.begin(), kernels.end(), [](auto& a, auto& b) { return a.start < b.start; });
  // Descriptors of tensor maps are written when an address is new: not in every layer.
  std::erase_if(kernels,
                [](const Kernel& kernel) { return kernel.name.ends_with("fill_tensormaps_kernel"); });
  return kernels;
}

// Copies that the experts got: a block of the copying kernel takes 16, one of the transposing cast 128.
std::int64_t copies_of(const std::vector<Kernel>& kernels) {
  for (const Kernel& kernel : kernels) {
    if (kernel.name.starts_with("expand_to_fused")) return static_cast<std::int64_t>(16 * kernel.grid_x);
    if (kernel.name.starts_with("per_channel_cast") && kernel.grid_y > 32)
      return static_cast<std::int64_t>(128 * kernel.grid_y);
  }
  return 0;
}

Shape shape_of(const TraceStep& step, std::int64_t rows) {
  Shape shape{.m = rows, .n = step.n, .k = step.k};
  if (is_weight_gradient(step.kind)) shape = {.m = step.n, .n = step.k, .k = rows};
  if (step.rows == TraceRows::kCopies && is_grouped(step.kind)) shape.groups = kExpertsOfRank;
  if (step.kind == OpKind::kRotary || step.kind == OpKind::kRotaryGrad) {
    shape.groups = 1;
    shape.heads = step.n == 64 ? 1 : 128;
    shape.head_dim = 64;
  }
  if (step.kind == OpKind::kMlaKeys || step.kind == OpKind::kMlaKeysGrad)
    shape = {.m = rows, .n = step.n, .k = step.k, .heads = 128, .head_dim = 192, .v_dim = 128};
  if (is_attention(step.kind))
    shape = {
        .m = rows, .groups = 1, .heads = 128, .kv_heads = 128, .head_dim = 192, .v_dim = 128, .kv = rows};
  if (step.kind == OpKind::kActivation || step.kind == OpKind::kActivationGrad) shape.k = 2;
  if (step.kind == OpKind::kGate || step.kind == OpKind::kGateGrad) shape.groups = 1;
  return shape;
}

CostQuery query_of(const TraceStep& step, std::int64_t rows) {
  CostQuery query;
  query.kind = step.kind;
  query.shape = shape_of(step, rows);
  query.dtype = step.dtype;
  query.cores = kCores;
  return query;
}

std::string text_of(const CostQuery& query) {
  const Shape& s = query.shape;
  std::string text = fmt::format("{} {} {} x {}", to_string(query.kind), to_string(query.dtype), s.m, s.n);
  if (uses_tensor_cores(query.kind)) text += fmt::format(" x {}", s.k);
  return text;
}

// The ops of one layer, as its kernels come.
class Layer {
 public:
  Layer(const Csv& csv, int layer, std::vector<TraceOp>& ops)
      : csv_(csv), layer_(layer), ops_(ops), first_(ops.size()) {}

  void read(const TracePhase& phase) {
    const std::vector<Kernel> kernels = kernels_of(csv_, layer_, phase.name);
    copies_ = copies_of(kernels);
    end_ = 0;
    std::size_t at = 0;
    for (const TraceStep& step : phase.steps)
      for (int i = 0; i < step.count; ++i) {
        const Kernel& kernel = expect(kernels, at++, phase, step);
        add(phase, step, kernel);
      }
    if (at < kernels.size())
      throw input_error(fmt::format("line {}: {} of layer {}: expected no more kernels, found \"{}\"",
                                    kernels[at].line, phase.name, layer_, kernels[at].name.substr(0, 60)));
  }

 private:
  const Kernel& expect(const std::vector<Kernel>& kernels, std::size_t at, const TracePhase& phase,
                       const TraceStep& step) const {
    if (at < kernels.size() && kernels[at].name.starts_with(step.kernel)) return kernels[at];
    throw input_error(fmt::format(
        "{} of layer {}: expected kernel {} to be \"{}...\", found {}", phase.name, layer_, at + 1,
        step.kernel, at < kernels.size() ? "\"" + kernels[at].name.substr(0, 60) + "\"" : "none"));
  }

  void add(const TracePhase& phase, const TraceStep& step, const Kernel& kernel) {
    TraceOp* op = step.role == TraceRole::kMore ? find(step) : nullptr;
    CHECK(op != nullptr || step.role != TraceRole::kMore, kernel.name);
    if (op == nullptr) {
      ops_.push_back({layer_, phase.name, {}, {}, 0, step.role == TraceRole::kSameBytes});
      op = &ops_.back();
      describe(*op, step);
    }
    // What another kernel covers already counts once.
    const double end = kernel.start + kernel.microseconds;
    op->microseconds += std::max(0.0, end - std::max(kernel.start, end_));
    end_ = std::max(end_, end);
  }

  void describe(TraceOp& op, const TraceStep& step) const {
    if (step.role == TraceRole::kNoOp) {
      op.what = step.what;
      return;
    }
    const std::int64_t rows = step.rows == TraceRows::kCopies ? copies_ : kTokens;
    op.queries.push_back(query_of(step, op.is_stand_in && step.k > 0 ? step.k : rows));
    op.what = text_of(op.queries.front());
    if (op.is_stand_in) op.what += " stands in";
    if (step.role != TraceRole::kRecomputed) return;
    TraceStep activation = step;
    activation.kind = OpKind::kActivation;
    activation.dtype = DType::kBf16;
    op.queries.push_back(query_of(activation, rows));
    op.what += ", activation again";
  }

  TraceOp* find(const TraceStep& step) {
    for (std::size_t i = ops_.size(); i-- > first_;) {
      if (ops_[i].queries.empty() || ops_[i].is_stand_in) continue;
      const CostQuery& query = ops_[i].queries.front();
      const std::int64_t columns = is_weight_gradient(step.kind) ? query.shape.m : query.shape.n;
      if (query.kind == step.kind && query.dtype == step.dtype && columns == step.n) return &ops_[i];
    }
    return nullptr;
  }

  const Csv& csv_;
  int layer_;
  std::vector<TraceOp>& ops_;
  std::size_t first_;
  std::int64_t copies_ = 0;
  double end_ = 0;  // of the phase's kernels so far
};

}  // namespace

std::vector<TraceOp> read_trace_ops(const Csv& kernels) {
  std::vector<TraceOp> ops;
  for (int number = 1; number <= kLayers; ++number) {
    Layer layer(kernels, number, ops);
    for (const TracePhase& phase : trace_phases()) layer.read(phase);
  }
  return ops;
}

}  // namespace moebius
