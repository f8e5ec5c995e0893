#include "workloads/training/layers/builder.h"

#include <algorithm>

#include <fmt/format.h>

#include "hw/error.h"
#include "workloads/cost/separate_kernels.h"
#include "workloads/training/layers/tensor_overlap.h"

namespace moebius {

// No parameter is of Role::kNone, so that a layer has one key less than there are roles.
std::uint32_t parameter_key(Role role, int layer, Part part) {
  return (static_cast<std::uint32_t>(layer + 1) * (kNumRoles - 1) + static_cast<std::uint32_t>(role)) * 8 +
         static_cast<std::uint32_t>(part);
}

// Above the keys of matrices: those of 700,000 layers.
constexpr std::uint32_t kBiases = 1u << 28, kAdaptersA = 2u << 28, kAdaptersB = 3u << 28;

std::uint32_t bias_key(Role role, int layer, Part part) {
  return kBiases + parameter_key(role, layer, part);
}

bool is_bias(const Tensor& of_rank) {
  return of_rank.scope == Scope::kRank && of_rank.key >= kBiases && of_rank.key < kAdaptersA;
}

std::uint32_t adapter_key(Role role, int layer, AdapterSide side, Part part) {
  return (side == AdapterSide::kA ? kAdaptersA : kAdaptersB) + parameter_key(role, layer, part);
}

bool is_adapter(const Tensor& of_rank) {
  return of_rank.scope == Scope::kRank && of_rank.key >= kAdaptersA;
}

std::uint32_t microbatch_key(int chunk, TensorId forward_tensor) {
  return static_cast<std::uint32_t>(chunk) << 24 | static_cast<std::uint32_t>(forward_tensor);
}

std::uint32_t left_key(int chunk, TensorId backward_tensor) {
  return microbatch_key(chunk, backward_tensor) | 1u << 23;
}

std::uint32_t handed_key(int stage, Phase phase) {
  return 0xf0000000u | static_cast<std::uint32_t>(phase) << 24 | static_cast<std::uint32_t>(stage);
}

std::uint32_t stage_match(StageMatch match, int rounds) {
  return static_cast<std::uint32_t>(match) + (static_cast<std::uint32_t>(rounds) << 8);
}

FragmentBuilder::FragmentBuilder(std::string name, Phase first_phase, int meetings) : phase(first_phase) {
  fragment_.name = std::move(name);
  fragment_.phase = first_phase;
  next_match_ = static_cast<std::uint32_t>(first_phase) << 20 | static_cast<std::uint32_t>(meetings) << 14;
}

TensorId FragmentBuilder::add(const Tensor& given) {
  Tensor tensor = given;
  if (tensor.dtype != DType::kFp8) tensor.scaling = Scaling::kBlock;  // a gradient, made from its weight
  const bool unsaid = tensor.scaling == Scaling::kBlock;
  if (tensor.dtype == DType::kFp8 && scaling != Scaling::kBlock && unsaid) tensor.scaling = scaling;
  const auto id = static_cast<TensorId>(fragment_.tensors.size());
  if (tensor.scope != Scope::kFragment) {
    const TensorId known = by_key_.find_or_add(std::uint64_t(tensor.scope) << 32 | tensor.key, id);
    if (known != KeyTable::kNone) return known;
  }
  fragment_.tensors.push_back(std::move(tensor));
  last_writer_.push_back(-1);
  return id;
}

TensorId FragmentBuilder::transient(std::int64_t rows, std::int64_t columns, DType dtype, Role role) {
  return add({.dtype = dtype, .role = role, .layer = layer, .rows = rows, .columns = columns});
}

std::int32_t FragmentBuilder::add_route(const RoutePtr& route) {
  const auto [place, added] =
      routes_.try_emplace(route.get(), static_cast<std::int32_t>(fragment_.routes.size()));
  if (added) fragment_.routes.push_back(route);
  return place->second;
}

std::int32_t FragmentBuilder::add_batch(const BatchPtr& batch) {
  for (std::size_t i = 0; i < fragment_.batches.size(); ++i)
    if (fragment_.batches[i] == batch) return static_cast<std::int32_t>(i);
  fragment_.batches.push_back(batch);
  return static_cast<std::int32_t>(fragment_.batches.size()) - 1;
}

void FragmentBuilder::add_named_by_ops(const Fragment& whole) {
  for (const RoutePtr& route : whole.routes) add_route(route);
  for (const BatchPtr& batch : whole.batches) add_batch(batch);
}

void FragmentBuilder::set_dependencies(Op& op, const std::vector<std::int32_t>& after) {
  std::vector<std::int32_t>& all = fragment_.dependencies;
  op.first_dependency = static_cast<std::int32_t>(all.size());
  for (const std::int32_t before : after) {
    if (fragment_.ops[before].lane != op.lane) all.push_back(before);
  }
  for (std::size_t i = op.first_tensor; i < fragment_.operands.size(); ++i) {
    const std::int32_t writer = last_writer_[fragment_.operands[i]];
    if (writer >= 0 && fragment_.ops[writer].lane != op.lane) all.push_back(writer);
  }
  const auto first = all.begin() + op.first_dependency;
  std::sort(first, all.end());
  all.erase(std::unique(first, all.end()), all.end());
  op.num_dependencies = static_cast<std::int32_t>(all.size()) - op.first_dependency;
}

void FragmentBuilder::reserve(const Fragment& like) {
  fragment_.ops.reserve(like.ops.size());
  fragment_.tensors.reserve(like.tensors.size());
  fragment_.operands.reserve(like.operands.size());
  fragment_.dependencies.reserve(like.dependencies.size());
  last_writer_.reserve(like.tensors.size());
}

std::int32_t FragmentBuilder::emit(Op op, const std::vector<TensorId>& inputs,
                                   const std::vector<TensorId>& outputs,
                                   const std::vector<std::int32_t>& after) {
  CHECK(inputs.size() < 256 && outputs.size() < 256,
        fmt::format("{} operands", inputs.size() + outputs.size()));
  op.phase = phase;
  op.layer = layer;
  if (!is_communication(op.kind)) op.units = compute_units;
  op.num_inputs = static_cast<std::uint8_t>(inputs.size());
  op.num_outputs = static_cast<std::uint8_t>(outputs.size());
  op.first_tensor = static_cast<std::int32_t>(fragment_.operands.size());
  fragment_.operands.insert(fragment_.operands.end(), inputs.begin(), inputs.end());
  fragment_.operands.insert(fragment_.operands.end(), outputs.begin(), outputs.end());
  set_dependencies(op, after);
  const auto index = static_cast<std::int32_t>(fragment_.ops.size());
  for (const TensorId id : outputs) last_writer_[id] = index;
  fragment_.ops.push_back(op);
  return index;
}

void FragmentBuilder::cut_for_overlap() {
  if (tensor_chunks > 0) fragment_ = overlap_tensor_parallel(fragment_, tensor_chunks);
  tensor_chunks = 0;
}

FragmentPtr FragmentBuilder::freeze_it() {
  cut_for_overlap();
  fragment_.launch = launch;
  fragment_.one_expert_call = one_expert_call;
  fragment_.pair_bytes = pair_bytes;
  fragment_.transfer = transfer;
  fuse(fragment_, fusions);
  capture(fragment_, captured);
  return freeze(std::move(fragment_));
}

void FragmentBuilder::extend_last(TensorId output) {
  CHECK(!fragment_.ops.empty(), std::string("no op to extend"));
  Op& last = fragment_.ops.back();
  CHECK(last.first_tensor + last.num_inputs + last.num_outputs ==
            static_cast<std::int32_t>(fragment_.operands.size()),
        std::string("operands of the last op are not the last ones"));
  fragment_.operands.push_back(output);
  ++last.num_outputs;
  last.dtype = fragment_.tensors[output].dtype;  // says that there is a quantised copy
  last_writer_[output] = static_cast<std::int32_t>(fragment_.ops.size()) - 1;
}

void FragmentBuilder::extend_last_by_columns(TensorId output) {
  extend_last(output);
  fragment_.ops.back().shape.heads += kWithColumns;
}

}  // namespace moebius
