#include "workloads/serving/carried/cache_moves.h"

#include <algorithm>
#include <array>
#include <memory>

#include "workloads/serving/cache_tensor.h"
#include "workloads/serving/token_ends.h"

namespace moebius {
namespace {

BatchPtr tokens_on(const ServingShape& shape, std::int32_t tokens, std::vector<std::int32_t> pages,
                   std::int32_t state = 0) {
  pages.resize(pages_for(tokens, shape.job.plan.block_tokens));
  Batch batch{shape.job.plan.block_tokens, {{0, tokens, 0, tokens, std::move(pages), state}}};
  return std::make_shared<const Batch>(std::move(batch));
}

// Writes what moves rows between caches.
class CacheWriter {
 public:
  CacheWriter(const ServingShape& shape, std::string name)
      : shape_(shape), builder_(std::move(name), Phase::kForward) {}

  int layers() const { return shape_.job.model.layers; }
  FragmentBuilder& builder() { return builder_; }
  FragmentPtr freeze() { return builder_.freeze_it(); }

  // What a layer keeps of a sequence: keys by the token, or of a delta network two rows by the sequence.
  bool keeps_states(int layer) const { return shape_.job.model.is_delta_layer(layer); }
  std::array<TensorId, 2> states(int layer) {
    const Model& model = shape_.job.model;
    const int tp = shape_.job.plan.tp;
    builder_.layer = static_cast<std::int16_t>(layer);
    return {builder_.add(state_tensor(model, tp, shape_.states, layer)),
            builder_.add(convolved_tensor(model, tp, shape_.states, layer))};
  }
  TensorId row_of(TensorId states) {
    const Tensor& tensor = builder_.tensor(states);
    return builder_.transient(1, tensor.columns, tensor.dtype, tensor.role);
  }
  // Between a row of states and one of its own.
  void move_row(TensorId from, TensorId to, const BatchPtr& sequence, bool out) {
    const TensorId states = out ? from : to;
    builder_.emit({.kind = OpKind::kCacheAppend,
                   .role = builder_.tensor(states).role,
                   .batch = builder_.add_batch(sequence),
                   .shape = {.m = 1, .n = builder_.tensor(states).columns, .k = out ? 1 : 0, .heads = 1}},
                  {from}, {to});
  }

  TensorId cache(int layer) {
    builder_.layer = static_cast<std::int16_t>(layer);
    return builder_.add(cache_tensor(shape_.job.model, of_rows(shape_.cache_rows), layer));
  }
  TensorId host_cache(int layer, std::int32_t pages) {
    const std::int64_t rows = std::int64_t{pages} * shape_.job.plan.block_tokens;
    return builder_.add(host_cache_tensor(shape_.job.model, of_rows(rows), layer));
  }

  TensorId read(TensorId cache, const BatchPtr& batch, bool on_host = false) {
    const TensorId rows = transient(cache, batch, on_host);
    builder_.emit({.kind = OpKind::kCacheAppend,
                   .lane = on_host ? Lane::kLoader : Lane::kCompute,
                   .role = Role::kCache,
                   .batch = builder_.add_batch(batch),
                   .shape = {.m = batch->rows(), .n = builder_.tensor(cache).columns, .k = 1}},
                  {cache}, {rows});
    return rows;
  }
  void append(TensorId rows, TensorId cache, const BatchPtr& batch) {
    builder_.emit({.kind = OpKind::kCacheAppend,
                   .lane = builder_.tensor(cache).on_host ? Lane::kLoader : Lane::kCompute,
                   .role = Role::kCache,
                   .batch = builder_.add_batch(batch),
                   .shape = {.m = batch->rows(), .n = builder_.tensor(cache).columns}},
                  {rows}, {cache});
  }
  TensorId transient(TensorId cache, const BatchPtr& batch, bool on_host = false) {
    const TensorId rows =
        builder_.transient(batch->rows(), builder_.tensor(cache).columns, shape_.job.plan.kv, Role::kCache);
    builder_.tensor(rows).on_host = on_host;
    return rows;
  }

  // Between the device and its host.
  void copy(TensorId from, TensorId to) {
    const bool out = builder_.tensor(to).on_host;
    const Tensor& tensor = builder_.tensor(from);
    builder_.emit({.kind = out ? OpKind::kCopyToHost : OpKind::kCopyFromHost,
                   .dtype = tensor.dtype,
                   .lane = out ? Lane::kHostStore : Lane::kHostCopy,
                   .role = Role::kCache,
                   .shape = {.m = tensor.rows * tensor.columns},
                   .payload = tensor.bytes()},
                  {from}, {to});
  }

  Op message(OpKind kind, TensorId x, int peer) {
    const Tensor& tensor = builder_.tensor(x);
    return {.kind = kind,
            .dtype = tensor.dtype,
            .lane = kind == OpKind::kSend ? Lane::kSendForward : Lane::kRecvForward,
            .role = tensor.role,
            .group = GroupRole::kWorld,
            .match = builder_.next_match(),
            .shape = {.m = tensor.rows, .n = tensor.columns, .groups = peer + 1},
            .payload = tensor.bytes()};
  }

 private:
  CacheShape of_rows(std::int64_t rows) const { return {shape_.job.plan.tp, shape_.job.plan.kv, rows}; }

  const ServingShape& shape_;
  FragmentBuilder builder_;
};

// The token that follows `past` tokens of the request: it is read where it is the next input, and comes in
// where it is the last result.
BatchPtr token_of(const CacheMove& move, std::int32_t past, std::int32_t count) {
  Batch batch{move.shape.job.plan.block_tokens, {{move.request, move.prompt, past, count, move.pages}}};
  std::vector<std::int32_t>& pages = batch.sequences.front().pages;
  const auto needed = static_cast<std::size_t>(pages_for(past + count, batch.page_tokens));
  // The page of a token that has no keys yet: any, it is not touched.
  while (pages.size() < needed) pages.push_back(*std::max_element(pages.begin(), pages.end()) + 1);
  return std::make_shared<const Batch>(std::move(batch));
}

TensorId read_token(CacheWriter& writer, const CacheMove& move) {
  FragmentBuilder& builder = writer.builder();
  builder.layer = -1;
  const TensorId token = builder.transient(1, 1, DType::kInt32, Role::kTokens);
  builder.emit({.kind = OpKind::kInput,
                .role = Role::kTokens,
                .batch = builder.add_batch(token_of(move, move.prompt, 1)),
                .shape = {.m = 1, .n = move.shape.job.model.vocabulary, .groups = 1}},
               {builder.add(generated_tensor(move.shape.job))}, {token});
  return token;
}

// As the best of one shard, whose logit no one asks for.
void write_token(CacheWriter& writer, const CacheMove& move, TensorId token) {
  FragmentBuilder& builder = writer.builder();
  const TensorId best = builder.transient(1, 2, DType::kFp32, Role::kTokens);
  builder.emit({.kind = OpKind::kConcat, .role = Role::kTokens, .shape = {.m = 1, .n = 2}}, {token, token},
               {best});
  builder.emit({.kind = OpKind::kNextToken,
                .role = Role::kTokens,
                .batch = builder.add_batch(token_of(move, 0, move.prompt)),
                .shape = {.m = 1, .n = move.shape.job.workload.output.high, .groups = 1}},
               {best}, {builder.add(generated_tensor(move.shape.job))});
}

void send_states(CacheWriter& writer, const CacheMove& move, const BatchPtr& sequence, int layer) {
  for (const TensorId states : writer.states(layer)) {
    const TensorId row = writer.row_of(states);
    writer.move_row(states, row, sequence, true);
    writer.builder().emit(writer.message(OpKind::kSend, row, move.peer), {row}, {});
  }
}

void receive_states(CacheWriter& writer, const CacheMove& move, const BatchPtr& sequence, int layer) {
  for (const TensorId states : writer.states(layer)) {
    const TensorId row = writer.row_of(states);
    writer.builder().emit(writer.message(OpKind::kRecv, row, move.peer), {}, {row});
    writer.move_row(row, states, sequence, false);
  }
}

}  // namespace

FragmentPtr lower_cache_send(const CacheMove& move) {
  CacheWriter writer(move.shape, "cache send");
  const BatchPtr tokens = tokens_on(move.shape, move.prompt, move.pages, move.state);
  for (int layer = 0; layer < writer.layers(); ++layer) {
    if (writer.keeps_states(layer)) {
      send_states(writer, move, tokens, layer);
      continue;
    }
    const TensorId rows = writer.read(writer.cache(layer), tokens);
    writer.builder().emit(writer.message(OpKind::kSend, rows, move.peer), {rows}, {});
  }
  const TensorId token = read_token(writer, move);
  writer.builder().emit(writer.message(OpKind::kSend, token, move.peer), {token}, {});
  return writer.freeze();
}

FragmentPtr lower_cache_receive(const CacheMove& move) {
  CacheWriter writer(move.shape, "cache receive");
  const BatchPtr tokens = tokens_on(move.shape, move.prompt, move.pages, move.state);
  for (int layer = 0; layer < writer.layers(); ++layer) {
    if (writer.keeps_states(layer)) {
      receive_states(writer, move, tokens, layer);
      continue;
    }
    const TensorId cache = writer.cache(layer);
    const TensorId rows = writer.transient(cache, tokens);
    writer.builder().emit(writer.message(OpKind::kRecv, rows, move.peer), {}, {rows});
    writer.append(rows, cache, tokens);
  }
  writer.builder().layer = -1;
  const TensorId token = writer.builder().transient(1, 1, DType::kInt32, Role::kTokens);
  writer.builder().emit(writer.message(OpKind::kRecv, token, move.peer), {}, {token});
  write_token(writer, move, token);
  return writer.freeze();
}

FragmentPtr lower_swaps(const ServingShape& shape, std::int32_t host_pages,
                        const std::vector<kv::SwappedKeys>& swapped) {
  CacheWriter writer(shape, "swap");
  for (const kv::SwappedKeys& keys : swapped) {
    const BatchPtr device = tokens_on(shape, keys.tokens, keys.device);
    const BatchPtr host = tokens_on(shape, keys.tokens, keys.host);
    for (int layer = 0; layer < writer.layers(); ++layer) {
      const TensorId cache = writer.cache(layer), waiting = writer.host_cache(layer, host_pages);
      const TensorId from = keys.out ? writer.read(cache, device) : writer.read(waiting, host, true);
      const TensorId to = writer.transient(cache, device, keys.out);
      writer.copy(from, to);
      keys.out ? writer.append(to, waiting, host) : writer.append(to, cache, device);
    }
  }
  return writer.freeze();
}

}  // namespace moebius
