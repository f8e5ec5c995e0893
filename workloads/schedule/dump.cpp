// The text form of a schedule. Numbers that have their ordinary value (no layer, no key, scale 1) are left
// out.
#include <iterator>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "workloads/schedule/fragment.h"

namespace moebius {

namespace {

class Line {
 public:
  template <class... Args>
  void put(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
  }
  template <class T>
  void field_unless(const T& ordinary, std::string_view name, const T& value) {
    if (value != ordinary) put(" {}={}", name, value);
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

void put_shape(Line& line, const Shape& s) {
  line.field_unless<std::int64_t>(0, "m", s.m);
  line.field_unless<std::int64_t>(0, "n", s.n);
  line.field_unless<std::int64_t>(0, "k", s.k);
  line.field_unless(0, "groups", s.groups);
  line.field_unless(0, "heads", s.heads);
  line.field_unless(0, "kv_heads", s.kv_heads);
  line.field_unless(0, "head_dim", s.head_dim);
  line.field_unless(0, "v_dim", s.v_dim);
  line.field_unless<std::int64_t>(0, "kv", s.kv);
  line.field_unless(0, "window", s.window);
}

void put_route(Line& line, std::size_t index, const RouteSpec& r) {
  line.put("route {} seed={} step={} microbatch={} layer={}", index, r.seed, r.step, r.microbatch, r.layer);
  switch (r.popularity.kind) {
    case PopularityKind::kBalanced:
      line.put(" balanced");
      break;
    case PopularityKind::kZipf:
      line.put(" zipf exponent={}", r.popularity.exponent);
      break;
    case PopularityKind::kDirichlet:
      line.put(" dirichlet concentration={}", r.popularity.concentration);
      break;
    case PopularityKind::kRecorded:
      line.put(" recorded");
      break;
  }
  if (r.popularity.per_microbatch) line.put(" per_microbatch");
  line.put(" ranks={} ranks_per_node={} experts={} active={} groups={} active_groups={} tokens={}", r.ranks,
           r.ranks_per_node, r.experts, r.active, r.groups, r.active_groups, r.tokens);
  if (r.capacity > 0) line.put(" capacity={}", r.capacity);
  if (r.capacity_groups > 1) line.put(" capacity_groups={}", r.capacity_groups);
  if (r.filled) line.put(" filled");
  if (r.always > 0) line.put(" always={}{}", r.always, r.always_at_home ? " at_home" : "");
  if (r.gathered > 1) line.put(" gathered={}", r.gathered);
  if (r.without_experts > 0)
    line.put(" without_experts={} holders_per_node={}", r.without_experts, r.holders_per_node);
  if (!r.weights.empty()) {
    line.put(" weights=");
    for (std::size_t i = 0; i < r.weights.list().size(); ++i)
      line.put("{}{}", i > 0 ? "," : "", r.weights.list()[i]);
  }
  for (const TokenRun& run : r.runs.list()) {
    line.put(" {}:{}[{}..{})", run.source, run.request, run.first, run.first + run.count);
    if (run.popularity > 0) line.put("~{}", run.popularity);
  }
  for (const ExpertWeights& weights : r.popularities)
    line.put(" popularity={}", fmt::join(weights.list(), ","));
  if (r.placed)
    line.put(" slots={} shares={}", fmt::join(r.placed->expert_of_slot, ","),
             fmt::join(r.placed->shares, ","));
  line.put("\n");
}

// A sequence: its request, the positions of its tokens, the pages that hold it.
void put_batch(Line& line, std::size_t index, const Batch& batch) {
  line.put("batch {} page_tokens={}\n", index, batch.page_tokens);
  for (const BatchSequence& s : batch.sequences)
    line.put("  request={} prompt={} positions={}..{} pages={}\n", s.request, s.prompt, s.past,
             s.past + s.count - 1, fmt::join(s.pages, ","));
}

void put_pair_bytes(Line& line, const PairBytes& pairs) {
  for (int from = 0; from < pairs.ranks; ++from) {
    line.put("sends {}", from);
    for (int to = 0; to < pairs.ranks; ++to) line.put("{}{}", to == 0 ? " " : ",", pairs.at(from, to));
    line.put("\n");
  }
}

// What comes to a rank, rank.slot of the sender; into which of its slots it goes, by place in that list.
void put_transfer(Line& line, const ExpertTransfer& transfer) {
  for (const ExpertTransfer::Layer& layer : transfer.layers) {
    line.put("moves layer={} comes=", layer.number);
    for (const ExpertTransfer::Arrival& a : layer.arrivals) line.put("{}:{}.{},", a.to, a.from, a.slot);
    line.put(" placed=");
    for (const ExpertTransfer::Placing& p : layer.placings) line.put("{}:{}.{},", p.to, p.arrival, p.slot);
    line.put("\n");
  }
}

void put_tensor(Line& line, std::size_t index, const Tensor& t) {
  line.put("tensor {}#{} {} {} {} {}x{}", to_string(t.role), index, to_string(t.scope), to_string(t.memory),
           to_string(t.dtype), t.rows, t.columns);
  line.field_unless<int>(-1, "layer", t.layer);
  if (t.scope != Scope::kFragment) line.put(" key={}", t.key);
  if (t.experts > 0) line.put(" experts={} from={}", t.experts, t.first_expert);
  line.field_unless<std::int64_t>(0, "first_row", t.first_row);
  line.field_unless<std::int64_t>(0, "first_column", t.first_column);
  line.field_unless(0.0, "init", t.init);
  if (t.scaling != Scaling::kBlock) line.put(" scaling={}", to_string(t.scaling));
  if (t.on_host) line.put(" on_host");
  if (t.shards > 0) line.put(" shards={} of={}", t.shards, to_string(t.cut));
  if (t.second) line.put(" second");
  if (t.kept) line.put(" kept");
  if (t.freed) line.put(" freed");
  if (t.slots) line.put(" slots={}", fmt::join(*t.slots, ","));
  line.put("\n");
}

// "in=q_a#3,q_b#4": operands by name, the number being the tensor's.
void put_operands(Line& line, const Fragment& fragment, std::string_view name, std::int32_t first,
                  int count) {
  for (int i = 0; i < count; ++i) {
    const std::int32_t tensor = fragment.operands[first + i];
    if (i == 0) line.put(" {}=", name);
    line.put("{}{}#{}", i == 0 ? "" : ",", to_string(fragment.tensors[tensor].role), tensor);
  }
}

void put_communication(Line& line, const Op& op) {
  line.put(" group={} match={} payload={}", to_string(op.group), op.match, op.payload.value);
  if (op.algorithm != Algorithm::kAuto) line.put(" algorithm={}", to_string(op.algorithm));
  if (op.queue > 0) line.put(" queue={}", op.queue);
}

void put_op(Line& line, const Fragment& fragment, std::size_t index) {
  const Op& op = fragment.ops[index];
  line.put("op {} {} {} lane={} phase={} role={}", index, to_string(op.kind), to_string(op.dtype),
           to_string(op.lane), to_string(op.phase), to_string(op.role));
  line.field_unless<int>(-1, "layer", op.layer);
  put_shape(line, op.shape);
  line.field_unless<int>(0, "units", op.units);
  line.field_unless(1.0f, "scale", op.scale);
  if (op.second) line.put(" second");
  line.field_unless(-1, "route", op.route);
  line.field_unless(-1, "batch", op.batch);
  if (op.fused) line.put(" fused");
  if (fragment.graph_of(index) >= 0) line.put(" graph={}", fragment.graph_of(index));
  if (!fragment.captured.empty() && fragment.captured[index].prepared) line.put(" prepared");
  if (is_communication(op.kind)) put_communication(line, op);
  put_operands(line, fragment, "in", op.first_tensor, op.num_inputs);
  put_operands(line, fragment, "out", op.first_tensor + op.num_inputs, op.num_outputs);
  for (int i = 0; i < op.num_dependencies; ++i) {
    line.put("{}{}", i == 0 ? " after=" : ",", fragment.dependencies[op.first_dependency + i]);
  }
  line.put("\n");
}

}  // namespace

std::string dump(const Fragment& fragment) {
  Line line;
  line.put("fragment \"{}\" phase={} hash={:016x}", fragment.name, to_string(fragment.phase), fragment.hash);
  if (fragment.launch != LaunchMode::kHidden) line.put(" launch={}", to_string(fragment.launch));
  if (fragment.one_expert_call) line.put(" one_expert_call");
  line.put("\n");
  for (std::size_t i = 0; i < fragment.routes.size(); ++i) put_route(line, i, fragment.routes[i]->spec());
  for (std::size_t i = 0; i < fragment.batches.size(); ++i) put_batch(line, i, *fragment.batches[i]);
  if (fragment.pair_bytes) put_pair_bytes(line, *fragment.pair_bytes);
  if (fragment.transfer) put_transfer(line, *fragment.transfer);
  for (std::size_t i = 0; i < fragment.tensors.size(); ++i) put_tensor(line, i, fragment.tensors[i]);
  for (std::size_t i = 0; i < fragment.ops.size(); ++i) put_op(line, fragment, i);
  return line.take();
}

std::string dump(const Submission& submission) {
  Line line;
  line.put("submit {} \"{}\" hash={:016x} class={} step={} microbatch={}", submission.sequence,
           submission.fragment->name, submission.fragment->hash, submission.rank_class, submission.step,
           submission.microbatch);
  if (submission.second_microbatch >= 0) line.put(" second_microbatch={}", submission.second_microbatch);
  if (submission.batch_part >= 0) line.put(" batch_part={}", submission.batch_part);
  for (std::size_t i = 0; i < submission.after.size(); ++i) {
    line.put("{}{}", i == 0 ? " after=" : ",", submission.after[i]);
  }
  for (std::size_t i = 0; i < submission.follows.size(); ++i) {
    const Follow& follow = submission.follows[i];
    line.put("{}{}:{}.{}", i == 0 ? " follows=" : ",", follow.op, follow.sequence, follow.before);
  }
  line.put("\n");
  return line.take();
}

}  // namespace moebius
