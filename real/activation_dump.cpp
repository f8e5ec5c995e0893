#include "real/activation_dump.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "hw/error.h"
#include "models/weights/safetensors_writer.h"
#include "real/host/context_rows.h"

namespace moebius {
namespace {

bool is_residual_add(const Op& op) {
  return op.kind == OpKind::kAdd && op.role == Role::kResidual;
}

// The first or last residual addition of the op's layer: attention's, and the MLP's.
enum class Addition { kAttention, kMlp, kNeither };

Addition addition_of(const Fragment& fragment, const Op& op) {
  const Op* first = nullptr;
  const Op* last = nullptr;
  for (const Op& other : fragment.ops) {
    if (!is_residual_add(other) || other.layer != op.layer) continue;
    if (first == nullptr) first = &other;
    last = &other;
  }
  return &op == first ? Addition::kAttention : &op == last ? Addition::kMlp : Addition::kNeither;
}

std::vector<std::byte> as_integers(const std::vector<float>& values) {
  std::vector<std::int64_t> integers(values.begin(), values.end());
  std::vector<std::byte> bytes(integers.size() * sizeof(std::int64_t));
  if (!bytes.empty()) std::memcpy(bytes.data(), integers.data(), bytes.size());
  return bytes;
}

}  // namespace

ActivationDump::ActivationDump(const Model& model, const TrainingPlan& plan, const TrainingWorkload& workload,
                               const Layout& layout)
    : model_(model), plan_(plan), workload_(workload), layout_(layout) {}

const Group& ActivationDump::group(std::int32_t rank, GroupRole role) const {
  return layout_.classes[layout_.class_of_rank[rank]].group(role);
}

// The group that shares out the batch counts context-parallel members fastest.
bool ActivationDump::of_first_replica(std::int32_t rank) const {
  return group(rank, batch_role(layout_.classes[layout_.class_of_rank[rank]])).my_index < plan_.cp;
}

void ActivationDump::observe(const ComputedOp& computed) {
  const Submission& submission = computed.submission;
  const Op& op = computed.op;
  const bool first = submission.step == workload_.first_step && submission.microbatch == 0 &&
                     submission.fragment->phase == Phase::kForward;
  if (!first || !of_first_replica(computed.rank)) return;
  const bool module_layer = op.layer >= model_.layers;  // of a multi-token-prediction module
  const std::int32_t output = op.num_outputs > 0 ? submission.fragment->output(op, 0) : -1;
  if (op.kind == OpKind::kInput) keep(computed, output, kTokenIds);
  if (is_residual_add(op)) observe_residual(computed);
  if (op.kind == OpKind::kNorm && op.role == Role::kFinalNorm)
    keep(computed, output,
         module_layer ? fmt::format("model.layers.{}.shared_head.norm", op.layer) : "model.norm");
  if (op.kind == OpKind::kGemm && op.role == Role::kHead)
    keep(computed, output,
         module_layer ? fmt::format("model.layers.{}.shared_head.head", op.layer) : "lm_head", true);
}

void ActivationDump::observe_residual(const ComputedOp& computed) {
  const Fragment& fragment = *computed.submission.fragment;
  const Op& op = computed.op;
  const std::string layer = fmt::format("model.layers.{}", op.layer);
  if (model_.is_parallel()) return observe_parallel(computed, layer);
  switch (addition_of(fragment, op)) {
    case Addition::kAttention:
      if (op.layer == 0) keep(computed, fragment.input(op, 0), "model.embed_tokens");
      keep(computed, fragment.input(op, 1), layer + ".self_attn");
      return;
    case Addition::kMlp:
      keep(computed, fragment.input(op, 1), layer + ".mlp");
      keep(computed, fragment.output(op, 0), layer);
      return;
    case Addition::kNeither:
      return;
  }
}

// The first addition is that of attention and MLP to each other. Tensor-parallel ranks add up their parts of
// both before any sum over ranks: neither is whole anywhere.
void ActivationDump::observe_parallel(const ComputedOp& computed, const std::string& layer) {
  const Fragment& fragment = *computed.submission.fragment;
  const Op& op = computed.op;
  const bool are_whole = plan_.tp == 1 || plan_.mixed_tp();
  if (addition_of(fragment, op) == Addition::kAttention && are_whole) {
    keep(computed, fragment.input(op, 0), layer + ".self_attn");
    keep(computed, fragment.input(op, 1), layer + ".mlp");
  }
  if (addition_of(fragment, op) != Addition::kMlp) return;
  if (op.layer == 0) keep(computed, fragment.input(op, 0), "model.embed_tokens");
  keep(computed, fragment.output(op, 0), layer);
}

// Rows between blocks are cut over the tensor group by sequence parallelism; columns of logits are cut by it.
// What is not cut, every member has, and the first one gives.
void ActivationDump::keep(const ComputedOp& computed, std::int32_t id, const std::string& name,
                          bool cut_columns) {
  const Tensor& tensor = computed.submission.fragment->tensors[id];
  const std::int64_t member = group(computed.rank, GroupRole::kTensor).my_index;
  const std::int64_t whole_rows = workload_.micro_batch * rows_of_sequence();
  const bool cut_rows = tensor.rows < whole_rows;
  if (member > 0 && !cut_columns && !cut_rows) return;
  Share share{.whole_columns = tensor.columns};
  if (cut_rows) share.first_row = member * tensor.rows;
  if (cut_columns) {
    share.first_column = member * tensor.columns;
    share.whole_columns = tensor.columns * plan_.tp;
  }
  place(name, tensor, share, computed.read(id), group(computed.rank, GroupRole::kContext).my_index);
}

// Context-parallel ranks have, of each sequence, one part after the other, or two chunks of a ring.
void ActivationDump::place(const std::string& name, const Tensor& tensor, const Share& share,
                           const std::vector<float>& values, std::int64_t context) {
  const ContextRows held{plan_.cp, context, rows_of_sequence(), plan_.zigzag()};
  const std::scoped_lock lock(mutex_);
  Entry& entry = entries_[name];
  entry.columns = share.whole_columns;
  entry.dtype = tensor.dtype;
  entry.values.resize(
      static_cast<std::size_t>(workload_.micro_batch * workload_.sequence_length * entry.columns));
  for (std::int64_t row = 0; row < tensor.rows; ++row) {
    const std::int64_t local = share.first_row + row;
    const std::int64_t sequence = local / held.rows,
                       token = sequence * workload_.sequence_length + held.position_of(local % held.rows);
    std::copy_n(values.begin() + row * tensor.columns, tensor.columns,
                entry.values.begin() + token * entry.columns + share.first_column);
  }
}

void ActivationDump::write(const std::string& path) const {
  std::vector<StoredTensor> tensors;
  std::map<std::string, std::vector<std::byte>> bytes;
  for (const auto& [name, entry] : entries_) {
    StoredTensor tensor{.name = name, .shape = {workload_.micro_batch, workload_.sequence_length}};
    if (name == kTokenIds) {
      tensor.type = StoredType::kI64;
      bytes[name] = as_integers(entry.values);
    } else {
      tensor.type = entry.dtype == DType::kBf16 ? StoredType::kBf16 : StoredType::kF32;
      tensor.shape.push_back(entry.columns);
      bytes[name] = from_floats(tensor.type, entry.values);
    }
    tensors.push_back(std::move(tensor));
  }
  write_safetensors(path, std::move(tensors), bytes,
                    {{"model", model_.id}, {kPrecisionKey, std::string(to_string(plan_.gemm))}});
}

}  // namespace moebius
