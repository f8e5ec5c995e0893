#include "workloads/serving/token_ends.h"

#include <algorithm>
#include <cmath>

#include "workloads/serving/cut_prompts.h"

namespace moebius {
namespace {

class Ends {
 public:
  Ends(LayerWriter& writer, const ServingJob& job, std::int32_t batch)
      : writer_(writer), job_(job), index_(batch), batch_(*writer.builder().fragment().batches[batch]) {}

  TensorId write_entry() {
    const TensorId tokens = builder().transient(rows(), 1, DType::kInt32, Role::kInput);
    writer_.emit(
        {.kind = OpKind::kInput,
         .role = Role::kInput,
         .batch = index_,
         .shape = {.m = rows(), .n = model().vocabulary, .groups = static_cast<std::int32_t>(sequences())}},
        {generated()}, {tokens});
    const TensorId x = builder().transient(rows(), model().hidden, DType::kBf16, Role::kEmbedding);
    writer_.emit({.kind = OpKind::kEmbedding,
                  .role = Role::kEmbedding,
                  .shape = {.m = rows(), .n = local_vocabulary(), .k = model().hidden}},
                 {tokens, embedding_weight()}, {x});
    return writer_.leave_tensor_parallel(x);
  }

  void write_exit(TensorId x) {
    if (writer_.plan().sequence_parallel) x = writer_.enter_tensor_parallel(x);
    const TensorId normed = writer_.norm(last_rows(x), Role::kFinalNorm);
    const std::int64_t m = sampled(), n = local_vocabulary();
    const int tp = writer_.plan().tp;
    const bool gathers = tp > 1 && job_.plan.sampling == Sampling::kGathered;
    TensorId logits = builder().transient(m, n, gathers ? DType::kBf16 : DType::kFp32, Role::kHead);
    writer_.emit({.kind = OpKind::kGemm, .role = Role::kHead, .shape = {.m = m, .n = n, .k = model().hidden}},
                 {normed, head_weight()}, {logits});
    if (job_.plan.sampling == Sampling::kHost) return write_copy_of(logits);
    if (gathers)
      logits = writer_.collective(OpKind::kAllGather, GroupRole::kTensor, Lane::kTensorComm, logits, m * tp);
    const std::int64_t seen = gathers ? m * tp : m;
    TensorId best = builder().transient(seen, 2, DType::kFp32, Role::kTokens);
    writer_.emit({.kind = OpKind::kGreedySample,
                  .role = Role::kTokens,
                  .shape = {.m = seen, .n = n, .groups = gathers ? tp : 0}},
                 {logits}, {best});
    if (tp > 1 && !gathers)
      best = writer_.collective(OpKind::kAllGather, GroupRole::kTensor, Lane::kTensorComm, best, m * tp);
    writer_.emit({.kind = OpKind::kNextToken,
                  .role = Role::kTokens,
                  .batch = index_,
                  .shape = {.m = m, .n = job_.workload.output.high, .groups = tp}},
                 {best}, {generated()});
  }

 private:
  const Model& model() const { return writer_.model(); }
  FragmentBuilder& builder() { return writer_.builder(); }
  std::int64_t rows() const { return batch_.rows(); }
  std::int64_t sequences() const { return static_cast<std::int64_t>(batch_.sequences.size()); }
  // Rows that logits are needed of: the last of a prompt, all of a decoding sequence.
  std::int64_t sampled() const {
    std::int64_t rows = 0;
    for (const BatchSequence& s : batch_.sequences) rows += s.count <= 1 + job_.plan.drafts ? s.count : 1;
    return rows;
  }
  std::int64_t local_vocabulary() const { return model().vocabulary / writer_.plan().tp; }

  TensorId generated() { return builder().add(generated_tensor(job_)); }

  // A matrix over the vocabulary, cut by rows over the tensor group.
  TensorId vocabulary_weight(Role role, double init) {
    return builder().add({.scope = Scope::kRank,
                          .memory = MemoryKind::kWeights,
                          .role = role,
                          .layer = -1,
                          .key = parameter_key(role, -1, Part::kWeight),
                          .rows = local_vocabulary(),
                          .columns = model().hidden,
                          .first_row = writer_.shard().tensor * local_vocabulary(),
                          .init = init});
  }
  TensorId embedding_weight() { return vocabulary_weight(Role::kEmbedding, 1); }
  TensorId head_weight() {
    if (model().tied_embeddings) return embedding_weight();
    return vocabulary_weight(Role::kHead, 1 / std::sqrt(static_cast<double>(model().hidden)));
  }

  TensorId last_rows(TensorId x) {
    if (job_.plan.decodes(batch_)) return x;
    const TensorId last = builder().transient(sampled(), model().hidden, DType::kBf16, Role::kHead);
    writer_.emit(
        {.kind = OpKind::kLastRows,
         .role = Role::kHead,
         .batch = index_,
         .shape = {.m = rows(), .n = model().hidden, .groups = static_cast<std::int32_t>(sampled())}},
        {x}, {last});
    return last;
  }

  // Each rank its part of the vocabulary. The ids that come back are a few bytes.
  void write_copy_of(TensorId logits) {
    Tensor copy = builder().fragment().tensors[logits];
    copy.on_host = true;
    const std::int64_t elements = copy.rows * copy.columns;
    writer_.emit({.kind = OpKind::kCopyToHost,
                  .dtype = copy.dtype,
                  .lane = Lane::kHostCopy,
                  .role = Role::kTokens,
                  .shape = {.m = elements},
                  .payload = copy.bytes()},
                 {logits}, {builder().add(copy)});
  }

  LayerWriter& writer_;
  const ServingJob& job_;
  std::int32_t index_;
  const Batch& batch_;
};

}  // namespace

TensorId write_handed_on(LayerWriter& writer, const ServingPlan& plan, std::int64_t rows) {
  FragmentBuilder& builder = writer.builder();
  const std::int64_t hidden = writer.model().hidden, sent = rows * rows_handed_on(plan);
  const bool of_rows = writer.plan().sequence_parallel;
  const std::int64_t part = plan.tp == 1 ? rows : rows_of_part(of_rows ? rows : sent, plan.tp);
  const TensorId own = builder.add({.scope = Scope::kMicrobatch,  // written by who handed it on
                                    .dtype = DType::kBf16,
                                    .role = Role::kInput,
                                    .rows = part,
                                    .columns = hidden});
  if (plan.tp == 1 || of_rows) return own;
  const TensorId whole = builder.transient(rows, hidden, DType::kBf16, Role::kEmbedding);
  writer.emit({.kind = OpKind::kAllGather,
               .dtype = DType::kBf16,
               .lane = Lane::kTensorComm,
               .role = Role::kInput,
               .group = GroupRole::kTensor,
               .match = builder.next_match(),
               .shape = {.m = part, .n = hidden},
               .payload = {static_cast<double>(part * plan.tp * hidden) * element_bytes(DType::kBf16)}},
              {own}, {whole});
  return whole;
}

TensorId write_entry(LayerWriter& writer, const ServingJob& job, std::int32_t batch) {
  return Ends(writer, job, batch).write_entry();
}

void write_exit(LayerWriter& writer, const ServingJob& job, std::int32_t batch, TensorId x) {
  Ends(writer, job, batch).write_exit(x);
}

Tensor generated_tensor(const ServingJob& job) {
  return {.scope = Scope::kRank,
          .memory = MemoryKind::kCache,
          .dtype = DType::kInt32,
          .role = Role::kTokens,
          .layer = -1,
          .key = generated_key(),
          .rows = job.workload.requests,
          .columns = job.workload.output.high};
}

std::uint32_t generated_key() {
  return parameter_key(Role::kTokens, -1, Part::kWeight);
}

}  // namespace moebius
