#include "workloads/training/state/away_state.h"

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <vector>

#include "workloads/cost/separate_kernels.h"
#include "workloads/training/layers/stated_waits.h"
#include "workloads/training/state/away_rules.h"
#include "workloads/training/state/sharding.h"
#include "workloads/training/state/shared_scales.h"
#include "workloads/training/state/stretches_of.h"
#include "workloads/training/state/visitor.h"

namespace moebius {
namespace {

// A reduce-scatter into shards and what it reads: the gradients, or copies of them.
struct Sum {
  const Op* op = nullptr;
  std::vector<TensorId> inputs;
};

class Rewrite {
 public:
  Rewrite(const TrainingPlan& plan, const AwayState& away, FragmentBuilder& old)
      : plan_(plan),
        away_(away),
        is_(plan, away),
        summed_(summed_into_shards(old.fragment())),
        fragment_(old.fragment()),
        builder_(fragment_.name, fragment_.phase),
        stretch_(stretches_of(plan, fragment_)),
        stated_(fragment_) {
    builder_.scaling = old.scaling;
    builder_.launch = old.launch;
    builder_.fusions = old.fusions, builder_.captured = old.captured;
    builder_.pair_bytes = old.pair_bytes;
    builder_.reserve(fragment_);
  }

  FragmentPtr run() {
    builder_.add_named_by_ops(fragment_);
    for (std::size_t i = 0; i < fragment_.tensors.size(); ++i) add_tensor(static_cast<TensorId>(i));
    for (const auto& [id, visitor] : std::map(visitors_)) add_homes(id);
    note_uses();
    builder_.begin_matches(free_match());
    int reached = -1;
    for (std::size_t i = 0; i < fragment_.ops.size(); ++i) {
      if (stretch_[i] != reached) {
        leave_parts(reached);
        begin_stretch(reached = stretch_[i], fragment_.ops[i]);
      }
      write(fragment_.ops[i]);
    }
    leave_parts(reached);
    put_back_before(stretch_.back() + 1);
    for (const Tensor& other : is_.others_freed()) builder_.add(other);
    return builder_.freeze_it();
  }

 private:
  // Tensors keep their numbers. Those that visit live in the fragment, or between passes.
  void add_tensor(TensorId id) {
    const Tensor& tensor = fragment_.tensors[id];
    const bool stays = is_.refreshes(tensor);
    const bool visits = !stays && (is_.gathers(tensor) || (is_.offloaded(tensor) && !is_.passes(tensor)));
    if (visits || stays) visitors_[id] = {.here = id};
    if (is_.passes(tensor) && accumulates_whole(plan_, tensor.experts > 0)) {
      Tensor sum = of_step(tensor);
      sum.freed = summed_.count(id) > 0;
      builder_.add(sum);
    } else if (is_.gathers(tensor) && !stands_in_half(tensor, plan_)) {
      builder_.add(is_.gathered_whole(tensor));
    } else {
      builder_.add(visits || is_.passes(tensor) ? of_fragment(tensor) : tensor);
    }
  }

  void add_homes(TensorId id) {
    const Tensor& whole = fragment_.tensors[id];
    Visitor& visitor = visitors_[id];
    if (is_.refreshes(whole)) return add_refreshed(id, visitor);
    const bool gathers = is_.gathers(whole), cast = gathers && stands_in_half(whole, plan_);
    const Tensor travels = cast ? half_of(whole) : whole;
    const WeightsStand found = gathers ? is_.found(whole) : WeightsStand::kCut;
    if (cast) visitor.half = builder_.add(is_.gathered_whole(travels));
    if (gathers && is_.left(whole) == WeightsStand::kPart)
      visitor.part = builder_.add(part_of(travels, plan_));
    visitor.gathered = gathers && found != WeightsStand::kWhole;
    visitor.loaded = is_.offloaded(whole) && found == WeightsStand::kCut;
    if (found == WeightsStand::kPart) {
      Tensor part = part_of(travels, plan_);
      part.freed = visitor.part == kNoTensor;
      visitor.shard = builder_.add(part);
    }
    if (visitor.gathered && plan_.shard_buffers == ShardBuffers::kCopied)
      visitor.buffer = another_like(visitor.arrives());
    if (found != WeightsStand::kCut) return;
    Tensor home = gathers ? shard_of(travels, plan_) : whole;
    if (visitor.loaded) {
      home.on_host = true;
      visitor.home = builder_.add(home);
      home.on_host = false;
      home = of_fragment(home);
    }
    if (!visitor.gathered) return;
    visitor.shard = builder_.add(home);
  }

  // Gathered in place; a copy to a buffer and back counts as one from it.
  void add_refreshed(TensorId id, Visitor& visitor) {
    const Tensor& whole = fragment_.tensors[id];
    visitor.gathered = true;
    if (stands_in_half(whole, plan_)) visitor.half = builder_.add(half_of(whole));
    visitor.shard = visitor.arrives();
    if (plan_.shard_buffers == ShardBuffers::kCopied) visitor.buffer = another_like(visitor.shard);
  }

  static Tensor of_fragment(Tensor tensor) {
    tensor.scope = Scope::kFragment;
    tensor.key = 0;
    tensor.freed = false;
    return tensor;
  }

  TensorId another_like(TensorId id) { return builder_.add(of_fragment(builder_.tensor(id))); }

  void note_uses() {
    std::set<TensorId> touched;
    for (std::size_t i = 0; i < fragment_.ops.size(); ++i) {
      const Op& op = fragment_.ops[i];
      for (int j = 0; j < op.num_inputs + op.num_outputs; ++j) {
        const auto found = visitors_.find(fragment_.operands[op.first_tensor + j]);
        if (found == visitors_.end()) continue;
        Visitor& visitor = found->second;
        const bool written = j >= op.num_inputs;
        if (visitor.first < 0) visitor.first = stretch_[i];
        visitor.last = stretch_[i];
        visitor.forward |= op.kind == OpKind::kGemm || op.kind == OpKind::kGroupedGemm;
        visitor.backward |= op.kind == OpKind::kGemmDgrad || op.kind == OpKind::kGroupedGemmDgrad;
        // What a microbatch writes anew has nothing to bring.
        const bool first_touch = touched.insert(found->first).second;
        if (first_touch && written && fragment_.tensors[found->first].scope == Scope::kMicrobatch)
          visitor.loaded = false;
        if (!written) continue;
        visitor.stored = visitor.home != kNoTensor;
        visitor.last_write = stretch_[i];
      }
    }
    first_used_.resize(stretch_.back() + 1);
    last_written_.resize(stretch_.back() + 1);
    last_used_.resize(stretch_.back() + 1);
    for (const auto& [id, visitor] : visitors_) {
      if (visitor.first >= 0 && visitor.part != kNoTensor) last_used_[visitor.last].push_back(id);
      if (visitor.first >= 0) first_used_[visitor.first].push_back(id);
      if (visitor.stored) last_written_[visitor.last_write].push_back(id);
    }
  }

  std::span<const TensorId> used_first_in(int stretch) const {
    if (stretch >= static_cast<int>(first_used_.size())) return {};
    return first_used_[stretch];
  }

  std::uint32_t free_match() const {
    std::uint32_t next = static_cast<std::uint32_t>(fragment_.phase) << 20;
    for (const Op& op : fragment_.ops) {
      const bool counted = op.match < static_cast<std::uint32_t>(StageMatch::kForward);
      if (is_communication(op.kind) && counted) next = std::max(next, op.match + 1);
    }
    return next;
  }

  void begin_stretch(int stretch, const Op& first) {
    builder_.phase = first.phase;
    builder_.layer = first.layer;
    put_back_before(stretch);
    for (int due = brought_; due <= stretch + plan_.prefetch; ++due) bring(due);
    brought_ = stretch + plan_.prefetch + 1;
    for (const TensorId id : used_first_in(stretch)) {
      const Visitor& visitor = visitors_.at(id);
      if (visitor.buffer != kNoTensor && visitor.in_place()) copy(visitor.arrives(), visitor.buffer);
      if (visitor.buffer != kNoTensor && !visitor.in_place()) copy(visitor.buffer, visitor.arrives());
      if (visitor.half != kNoTensor) quantise(visitor);
    }
  }

  // Each rank casts what it has gathered, by rows for the product of the forward pass, by columns for that of
  // the reverse pass.
  void quantise(const Visitor& visitor) {
    builder_.compute_units = 0;
    const bool both =
        (visitor.forward && visitor.backward) || builder_.tensor(visitor.here).scope == Scope::kRank;
    last_compute_ = quantise_weight(builder_, visitor.half, visitor.here, both ? kBothWays : 0, waits_);
    waits_.clear();
  }

  // A pass of the chip over a whole tensor, or over what the other one takes of it.
  void copy(TensorId from, TensorId to) {
    const Tensor& tensor = builder_.tensor(to);
    const bool wider = builder_.tensor(from).dtype == DType::kBf16 && tensor.dtype != DType::kBf16;
    const Op op{.kind = OpKind::kSplit,
                .dtype = tensor.dtype,
                .role = tensor.role,
                .shape = {.m = tensor.held_rows(), .n = tensor.held_columns(), .k = wider ? 1 : 0}};
    builder_.compute_units = 0;
    last_compute_ = builder_.emit(op, {from}, {to}, waits_);
    waits_.clear();
  }

  std::vector<TensorId> inputs_of(const Op& op) const {
    const auto operands = fragment_.operands.begin() + op.first_tensor;
    return {operands, operands + op.num_inputs};
  }

  // Behind the last op that uses it a weight is cut for the neighbours that keep one copy of it.
  void leave_parts(int stretch) {
    if (stretch < 0) return;
    for (const TensorId id : last_used_[stretch]) copy(visitors_.at(id).arrives(), visitors_.at(id).part);
  }

  // Of gradients, as often as passes go over them before they are summed; the first one casts them.
  std::vector<TensorId> copies_of(const Op& sum, std::vector<TensorId> gradients) {
    const bool cast = builder_.tensor(gradients.front()).dtype == DType::kBf16 && sum.dtype == DType::kFp32;
    int passes = cast ? 1 : 0;
    if (plan_.shard_buffers == ShardBuffers::kCopied) passes = 1;
    if (plan_.shard_buffers == ShardBuffers::kFlat) passes = 2;  // together, then divided
    for (; passes > 0; --passes)
      for (TensorId& gradient : gradients) {
        const TensorId copied = another_like(gradient);
        if (cast) builder_.tensor(copied).dtype = sum.dtype;
        copy(gradient, copied);
        gradient = copied;
      }
    return gradients;
  }

  std::vector<std::int32_t> after_compute() const {
    return last_compute_ < 0 ? std::vector<std::int32_t>() : std::vector{last_compute_};
  }

  void bring(int stretch) {
    std::vector<TensorId> from, to;
    for (const TensorId id : used_first_in(stretch)) {
      const Visitor& visitor = visitors_.at(id);
      if (!visitor.loaded) continue;
      from.push_back(visitor.home);
      to.push_back(visitor.gathered ? visitor.shard : visitor.here);
    }
    each_bucket({.kind = OpKind::kCopyFromHost, .lane = Lane::kHostCopy}, from, to, after_compute());
    for (const bool expert : {false, true})
      for (const bool of_part : {false, true}) gather(stretch, expert, of_part);
  }

  // `of_part`: among the neighbours that hold a copy.
  void gather(int stretch, bool expert, bool of_part) {
    std::vector<TensorId> from, to;
    for (const TensorId id : used_first_in(stretch)) {
      const Visitor& visitor = visitors_.at(id);
      const Tensor& tensor = fragment_.tensors[id];
      const bool so = (is_.found(tensor) == WeightsStand::kPart) == of_part;
      const bool of_group = so && (tensor.experts > 0) == expert;
      if (!visitor.gathered || !of_group) continue;
      from.push_back(visitor.shard);
      to.push_back(visitor.filled());
    }
    each_bucket({.kind = OpKind::kAllGather,
                 .lane = Lane::kDataComm,
                 .role = expert ? Role::kExperts : Role::kDense,
                 .group = of_part ? regather_group(expert) : shard_group(plan_, expert)},
                from, to, after_compute());
  }

  // The payload: of a gather what has been gathered, of a copy what is copied.
  void each_bucket(const Op& like, const std::vector<TensorId>& from, const std::vector<TensorId>& to,
                   const std::vector<std::int32_t>& after) {
    constexpr std::size_t kTensors = 64;
    for (std::size_t first = 0; first < from.size(); first += kTensors) {
      const std::size_t last = std::min(first + kTensors, from.size());
      Op op = like;
      op.dtype = builder_.tensor(to[first]).dtype;
      op.shape.n = 1;
      if (!is_host_copy(op.kind)) op.match = builder_.next_match();
      for (std::size_t i = first; i < last; ++i) {
        op.payload += builder_.tensor(to[i]).bytes();
        op.shape.m += builder_.tensor(from[i]).held_rows() * builder_.tensor(from[i]).held_columns();
      }
      done_ = builder_.emit(op, {from.begin() + first, from.begin() + last},
                            {to.begin() + first, to.begin() + last}, after);
    }
  }

  // What the stretches before `stretch` have left, but for the last `prefetch` of them; all at the end.
  void put_back_before(int stretch) {
    const bool end = stretch > stretch_.back();
    const int until = end ? stretch : stretch - plan_.prefetch;
    for (; left_ < until; ++left_) put_back(left_);
  }

  void put_back(int stretch) {
    const Phase phase = builder_.phase;
    const std::int16_t layer = builder_.layer;
    for (const Sum& sum : sums_[stretch]) {
      builder_.phase = sum.op->phase;
      builder_.layer = sum.op->layer;
      wait_for(replay(*sum.op, sum.op->lane, sum.inputs));
    }
    builder_.phase = phase;
    builder_.layer = layer;
    // What a stretch leaves may go as soon as it is written, beside the stretches that follow. The next
    // microbatch loads the sums of gradients that this one stores: both on one lane.
    for (const bool sums : {false, true}) {
      std::vector<TensorId> from, to;
      for (const TensorId id : last_written_[stretch]) {
        if ((fragment_.tensors[id].memory == MemoryKind::kGradients) != sums) continue;
        from.push_back(visitors_.at(id).here);
        to.push_back(visitors_.at(id).home);
      }
      if (from.empty()) continue;
      each_bucket({.kind = OpKind::kCopyToHost, .lane = sums ? Lane::kHostCopy : Lane::kHostStore}, from, to,
                  {});
      wait_for(done_);
    }
  }

  void wait_for(std::int32_t op) { waits_.push_back(op); }

  void write(const Op& op) {
    builder_.phase = op.phase;
    builder_.layer = op.layer;
    if (writes_shards(op, fragment_)) {
      const std::vector<TensorId> inputs = copies_of(op, inputs_of(op));
      // The update that reads them stands in the same fragment.
      if (fragment_.phase == Phase::kOptimizer) replay(op, op.lane, inputs);
      if (fragment_.phase != Phase::kOptimizer) sums_[stretch_[index_of(op)]].push_back({&op, inputs});
      return;
    }
    // In turn with the other messages of the tensor group: sums into shards, which are put off, would wait
    // behind those of the stretches that follow.
    if (plan_.zero >= 2 && sums_tensor_parts(op)) {
      replay(op, Lane::kTensorComm, inputs_of(op));
      return;
    }
    const bool computes = op.lane == Lane::kCompute;
    const std::int32_t index =
        replay(op, op.lane, inputs_of(op), computes ? waits_ : std::vector<std::int32_t>());
    if (!computes) return;
    waits_.clear();
    last_compute_ = index;
  }

  std::int32_t index_of(const Op& op) const { return static_cast<std::int32_t>(&op - fragment_.ops.data()); }

  // `after`: beside what the op waited for before.
  std::int32_t replay(const Op& old, Lane lane, const std::vector<TensorId>& inputs,
                      const std::vector<std::int32_t>& after = {}) {
    const auto outputs = fragment_.operands.begin() + old.first_tensor + old.num_inputs;
    std::vector<std::int32_t> all = stated_.places(index_of(old));
    all.insert(all.end(), after.begin(), after.end());
    builder_.compute_units = old.units;
    Op op = old;
    op.lane = lane;
    const std::int32_t index = builder_.emit(op, inputs, {outputs, outputs + old.num_outputs}, all);
    stated_.written(index_of(old), index);
    return index;
  }

  const TrainingPlan& plan_;
  const AwayState& away_;
  const AwayRules is_;
  const std::set<TensorId> summed_;
  const Fragment& fragment_;
  FragmentBuilder builder_;
  const std::vector<int> stretch_;
  StatedWaits stated_;
  std::map<TensorId, Visitor> visitors_;
  // Of them, by stretch, ascending; of those that are last used those alone of which a part stays.
  std::vector<std::vector<TensorId>> first_used_, last_written_, last_used_;
  std::map<int, std::vector<Sum>> sums_;  // by stretch: those that have not been written yet
  std::vector<std::int32_t> waits_;       // of the next op that computes
  std::int32_t last_compute_ = -1, done_ = -1;
  int brought_ = 0, left_ = 0;  // stretches
};

}  // namespace

FragmentPtr freeze_with_away_state(const TrainingPlan& plan, const AwayState& away,
                                   FragmentBuilder& builder) {
  const bool refreshed = away.first_of_step && plan.overlap_weights;
  const bool nothing = plan.zero < 2 && !plan.offload.any() && !refreshed;
  if (nothing) return builder.freeze_it();
  if (builder.fragment().ops.empty()) return freeze_without_ops(plan, away, builder);
  builder.cut_for_overlap();
  return Rewrite(plan, away, builder).run();
}

}  // namespace moebius
