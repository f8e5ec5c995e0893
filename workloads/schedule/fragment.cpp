#include "workloads/schedule/fragment.h"

#include <utility>

#include "hw/error.h"
#include "workloads/schedule/hash.h"

namespace moebius {

namespace {

void add(Hash& hash, const Shape& s) {
  hash.add(s.m).add(s.n).add(s.k).add(s.groups).add(s.heads).add(s.kv_heads).add(s.head_dim).add(s.v_dim);
  hash.add(s.kv).add(s.window);
}

// Kinds by name, so that a new one leaves the hashes of all schedules without it.
void add(Hash& hash, const Op& op) {
  hash.add(to_string(op.kind))
      .add(op.dtype)
      .add(op.lane)
      .add(op.phase)
      .add(op.role)
      .add(op.group)
      .add(op.algorithm);
  hash.add(op.num_inputs).add(op.num_outputs).add(op.layer).add(op.units).add(op.route).add(op.match);
  hash.add(op.first_dependency).add(op.num_dependencies).add(op.first_tensor);
  hash.add(static_cast<double>(op.scale)).add(op.payload.value);
  add(hash, op.shape);
  if (op.batch >= 0) hash.add(op.batch);
  if (op.queue > 0) hash.add(op.queue);
  if (op.second) hash.add(op.second);
  if (op.fused) hash.add(op.fused);
}

void add(Hash& hash, const Tensor& t) {
  hash.add(t.scope).add(t.memory).add(t.dtype).add(t.role).add(t.layer).add(t.key).add(t.rows).add(t.columns);
  hash.add(t.first_expert).add(t.experts).add(t.first_row).add(t.first_column).add(t.init);
  if (t.scaling != Scaling::kBlock) hash.add(t.scaling);
  if (t.on_host) hash.add(std::string_view("host"));
  if (t.shards > 0) hash.add(t.shards).add(t.cut);
  if (t.second || t.kept) hash.add(t.second).add(t.kept);
  if (t.freed) hash.add(std::string_view("freed"));
  if (t.slots) {
    for (const std::int32_t expert : *t.slots) hash.add(expert);
  }
}

// A route is a function of its specification.
void add(Hash& hash, const RouteSpec& r) {
  hash.add(r.seed).add(r.step).add(r.microbatch).add(r.layer);
  hash.add(r.popularity.kind).add(r.popularity.exponent).add(r.popularity.per_microbatch);
  hash.add(r.ranks)
      .add(r.ranks_per_node)
      .add(r.experts)
      .add(r.active)
      .add(r.groups)
      .add(r.active_groups)
      .add(r.tokens);
  if (!r.weights.empty()) {
    for (const double weight : r.weights.list()) hash.add(weight);
  }
  if (r.capacity > 0) hash.add(r.capacity);
  if (r.capacity_groups > 1 || r.filled) hash.add("buffers").add(r.capacity_groups).add(r.filled);
  if (r.always > 0) hash.add("always").add(r.always).add(r.always_at_home);
  if (r.gathered > 1) hash.add("gathered").add(r.gathered);
  if (r.without_experts > 0) hash.add("without experts").add(r.without_experts).add(r.holders_per_node);
  for (const TokenRun& run : r.runs.list()) {
    hash.add(run.source).add(run.request).add(run.first).add(run.count);
    if (run.popularity > 0) hash.add(run.popularity);
  }
  for (const ExpertWeights& weights : r.popularities)
    for (const double weight : weights.list()) hash.add(weight);
  if (!r.placed) return;
  for (const std::int32_t expert : r.placed->expert_of_slot) hash.add(expert);
  for (const double share : r.placed->shares) hash.add(share);
}

void add(Hash& hash, const Batch& batch) {
  hash.add(batch.page_tokens).add(batch.sequences.size());
  if (batch.cut_keys > 0) hash.add(batch.cut_keys);
  for (const BatchSequence& s : batch.sequences) {
    hash.add(s.request).add(s.prompt).add(s.past).add(s.count).add(s.pages.size());
    for (const std::int32_t page : s.pages) hash.add(page);
  }
}

void add(Hash& hash, const ExpertTransfer& transfer) {
  for (const ExpertTransfer::Layer& layer : transfer.layers) {
    hash.add(layer.number).add(layer.arrivals.size()).add(layer.placings.size());
    for (const ExpertTransfer::Arrival& a : layer.arrivals) hash.add(a.to).add(a.from).add(a.slot);
    for (const ExpertTransfer::Placing& p : layer.placings) hash.add(p.to).add(p.arrival).add(p.slot);
  }
}

std::uint64_t content_hash(const Fragment& fragment) {
  Hash hash;
  hash.add(std::string_view(fragment.name)).add(fragment.phase);
  if (fragment.launch != LaunchMode::kHidden) hash.add(fragment.launch);
  if (fragment.one_expert_call) hash.add(fragment.one_expert_call);
  for (const Captured& op : fragment.captured) hash.add(op.first).add(op.prepared);
  hash.add(fragment.ops.size());
  for (const Op& op : fragment.ops) add(hash, op);
  hash.add(fragment.tensors.size());
  for (const Tensor& tensor : fragment.tensors) add(hash, tensor);
  hash.add(fragment.operands.size());
  for (const std::int32_t operand : fragment.operands) hash.add(operand);
  hash.add(fragment.dependencies.size());
  for (const std::int32_t dependency : fragment.dependencies) hash.add(dependency);
  hash.add(fragment.routes.size());
  for (const RoutePtr& route : fragment.routes) add(hash, route->spec());
  for (const BatchPtr& batch : fragment.batches) add(hash, *batch);
  if (fragment.pair_bytes) {
    for (const double bytes : fragment.pair_bytes->bytes) hash.add(bytes);
  }
  if (fragment.transfer) add(hash, *fragment.transfer);
  return hash.value();
}

}  // namespace

std::string_view to_string(LaunchMode mode) {
  switch (mode) {
    case LaunchMode::kHidden:
      return "hidden";
    case LaunchMode::kKernel:
      return "kernel";
    case LaunchMode::kEager:
      return "eager";
    case LaunchMode::kGraph:
      return "graph";
  }
  return "?";
}

std::string_view to_string(Scaling scaling) {
  switch (scaling) {
    case Scaling::kBlock:
      return "block";
    case Scaling::kTensor:
      return "tensor";
    case Scaling::kMicro:
      return "micro";
    case Scaling::kHistory:
      return "history";
  }
  return "unknown";
}

std::string_view to_string(MemoryKind kind) {
  switch (kind) {
    case MemoryKind::kWeights:
      return "weights";
    case MemoryKind::kGradients:
      return "gradients";
    case MemoryKind::kOptimizer:
      return "optimizer";
    case MemoryKind::kActivations:
      return "activations";
    case MemoryKind::kCache:
      return "cache";
    case MemoryKind::kTransient:
      return "transient";
  }
  return "unknown";
}

std::string_view to_string(Scope scope) {
  switch (scope) {
    case Scope::kFragment:
      return "fragment";
    case Scope::kMicrobatch:
      return "microbatch";
    case Scope::kRank:
      return "rank";
    case Scope::kStep:
      return "step";
  }
  return "unknown";
}

std::vector<std::int32_t> released(const Fragment& fragment) {
  std::vector<bool> read(fragment.tensors.size(), false), written(fragment.tensors.size(), false);
  for (const Op& op : fragment.ops) {
    const bool reverse = op.phase == Phase::kBackward || op.phase == Phase::kWeight;
    for (int i = 0; i < op.num_inputs; ++i) {
      const std::int32_t tensor = fragment.input(op, i);
      if (reverse || fragment.tensors[tensor].role == Role::kInput) read[tensor] = true;
    }
    for (int i = 0; i < op.num_outputs; ++i) written[fragment.output(op, i)] = true;
  }
  std::vector<std::int32_t> ended;
  for (std::size_t t = 0; t < fragment.tensors.size(); ++t) {
    const Tensor& tensor = fragment.tensors[t];
    if (tensor.scope == Scope::kMicrobatch && read[t] && !written[t] && !tensor.kept)
      ended.push_back(static_cast<std::int32_t>(t));
  }
  return ended;
}

bool reads_from(const Fragment& fragment, const Op& reader, const Op& writer) {
  for (int i = 0; i < reader.num_inputs; ++i) {
    for (int j = 0; j < writer.num_outputs; ++j) {
      if (fragment.input(reader, i) == fragment.output(writer, j)) return true;
    }
  }
  return false;
}

const Op* reduction_read(const Fragment& fragment, const Op& op) {
  for (int i = 0; i < op.num_dependencies; ++i) {
    const Op& before = fragment.ops[fragment.dependencies[op.first_dependency + i]];
    if (before.kind == OpKind::kAllReduce && reads_from(fragment, op, before)) return &before;
  }
  return nullptr;
}

void link_graphs(std::vector<Captured>& ops) {
  std::vector<std::int32_t> last(ops.size(), -1);  // of the graph that begins there
  for (std::size_t i = 0; i < ops.size(); ++i) {
    ops[i].next = -1;
    if (ops[i].first < 0) continue;
    std::int32_t& before = last[ops[i].first];
    if (before >= 0) ops[before].next = static_cast<std::int32_t>(i);
    before = static_cast<std::int32_t>(i);
  }
}

FragmentPtr freeze(Fragment fragment) {
  const std::string fault = find_fault(fragment);
  CHECK(fault.empty(), fragment.name + ": " + fault);
  fragment.hash = content_hash(fragment);
  return std::make_shared<const Fragment>(std::move(fragment));
}

}  // namespace moebius
