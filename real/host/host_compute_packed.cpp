// Compute ops of training on packed sequences: a batch without a cache, whose sequences see nothing of each
// other.
#include <algorithm>

#include "hw/error.h"
#include "real/host/host_kernels_attention.h"
#include "real/host/op_context.h"
#include "real/token_stream.h"
#include "workloads/training/packing.h"

namespace moebius {
// Each sequence is a text of its own, numbered by microbatch, replica and its place in the batch; padding is
// token 0.
template <class Real>
void packed_input(OpContext<Real>& c) {
  const GroupRole dealt = c.group(GroupRole::kBatch).ranks.empty() ? GroupRole::kData : GroupRole::kBatch;
  const std::int64_t replicas = c.size_of(dealt), replica = c.index_in(dealt);
  constexpr std::int64_t kMostOfBatch = std::int64_t{1} << 31;
  const std::int64_t first = (c.submission().microbatch_of(c.op()) * replicas + replica) * kMostOfBatch;
  std::vector<Matrix<Real>> streams(c.op().num_outputs, Matrix<Real>(c.shape().m, 1));
  std::int64_t row = 0;
  for (const BatchSequence& sequence : c.batch().sequences) {
    if (sequence.request >= 0) {
      const auto tokens = token_sequence({c.options().seed, c.submission().step, first + sequence.request},
                                         sequence.count + c.op().num_outputs, c.shape().n);
      for (std::size_t shift = 0; shift < streams.size(); ++shift)
        std::copy_n(tokens.begin() + shift, sequence.count, streams[shift].values.begin() + row);
    }
    row += sequence.count;
  }
  for (int i = 0; i < c.op().num_outputs; ++i) c.out(i, std::move(streams[i]));
}

template <class Real>
void attend_back_in_batch(OpContext<Real>& c) {
  const Shape& s = c.shape();
  const Matrix<Real>&d_o = c.in(0), &q = c.in(1), &k = c.in(2), &v = c.in(3), &o = c.in(4), &lse = c.in(5);
  Matrix<Real> dq(q.rows, q.columns), dk(k.rows, k.columns), dv(v.rows, v.columns);
  std::int64_t row = 0;
  for (const BatchSequence& sequence : c.batch().sequences) {
    const auto of = [&](auto& matrix) {
      return matrix.view().subspan(row * matrix.columns, sequence.count * matrix.columns);
    };
    attention_grad<Real>({.queries = sequence.count,
                          .keys = sequence.count,
                          .heads = s.heads,
                          .kv_heads = s.kv_heads,
                          .head_dim = s.head_dim,
                          .v_dim = s.v_dim,
                          .window = s.window,
                          .score_scale = c.options().constants.score_scale},
                         of(d_o), {of(q), of(k), of(v)}, {of(o), of(lse)}, {of(dq), of(dk), of(dv)});
    row += sequence.count;
  }
  c.out(0, std::move(dq));
  c.out(1, std::move(dk));
  c.out(2, std::move(dv));
}

template <class Real>
std::vector<bool> counted_rows(const OpContext<Real>& c) {
  std::vector<bool> counted;
  for (const BatchSequence& sequence : c.batch().sequences) {
    for (std::int32_t position = 0; position < sequence.count; ++position)
      counted.push_back(is_counted(sequence, position, static_cast<int>(c.shape().k)));
  }
  return counted;
}

template void packed_input(OpContext<float>&);
template void packed_input(OpContext<double>&);
template void attend_back_in_batch(OpContext<float>&);
template void attend_back_in_batch(OpContext<double>&);
template std::vector<bool> counted_rows(const OpContext<float>&);
template std::vector<bool> counted_rows(const OpContext<double>&);

}  // namespace moebius
