#include "workloads/checkpoint/optimizer_state.h"

#include <cstring>
#include <filesystem>

#include <fmt/format.h>

#include "hw/error.h"
#include "models/weights/safetensors_writer.h"
#include "workloads/training/layers/builder.h"

namespace moebius {
namespace {

std::string part_name(const Tensor& state) {
  for (const Part part : {Part::kMaster, Part::kFirstMoment, Part::kSecondMoment}) {
    const std::uint32_t key = is_bias(state) ? bias_key(state.role, state.layer, part)
                                             : parameter_key(state.role, state.layer, part);
    if (key != state.key) continue;
    return part == Part::kMaster ? "master" : part == Part::kFirstMoment ? "first_moment" : "second_moment";
  }
  CHECK(false, fmt::format("{}, layer {}: not of the optimizer", to_string(state.role), state.layer));
}

std::string name_of(const Tensor& state) {
  return fmt::format("{}{}.{}.{}", to_string(state.role), is_bias(state) ? "_bias" : "", state.layer,
                     part_name(state));
}

bool of_experts(const Tensor& state) {
  return state.role == Role::kExpertGateUp || state.role == Role::kExpertDown;
}

void write_file_of(const std::string& path, const std::vector<const HeldState*>& states) {
  std::vector<StoredTensor> tensors;
  std::map<std::string, std::vector<std::byte>> bytes;
  for (const HeldState* state : states) {
    const std::string name = name_of(state->tensor);
    tensors.push_back(
        {.name = name, .type = StoredType::kF32, .shape = {static_cast<std::int64_t>(state->values.size())}});
    const std::span<const std::byte> all = std::as_bytes(state->values);
    bytes[name].assign(all.begin(), all.end());
  }
  write_safetensors(path, std::move(tensors), bytes);
}

}  // namespace

StateLayout state_layout(const TrainingPlan& plan) {
  return {{plan.tp, plan.pp, plan.ep}, plan.cp, plan.dp, plan.zero};
}

std::int32_t state_writer(const Layout& layout, const TrainingPlan& plan, std::int32_t rank,
                          const Tensor& state) {
  if (plan.zero >= 1) return rank;
  const RankClass& place = layout.classes[layout.class_of_rank[rank]];
  const Group& replicas = place.group(of_experts(state) ? GroupRole::kExpertData : GroupRole::kData);
  return replicas.ranks.empty() ? rank : replicas.ranks.front();
}

std::vector<std::string> write_states(const NewDirectory& directory, int ranks,
                                      std::span<const HeldState> states) {
  std::vector<std::vector<const HeldState*>> by_rank(static_cast<std::size_t>(ranks));
  for (const HeldState& state : states) by_rank[static_cast<std::size_t>(state.rank)].push_back(&state);
  std::vector<std::string> files(by_rank.size());
  for (std::size_t rank = 0; rank < by_rank.size(); ++rank) {
    if (by_rank[rank].empty()) continue;
    files[rank] = fmt::format("optimizer-{:05}.safetensors", rank);
    write_file_of(directory.path(files[rank]), by_rank[rank]);
  }
  return files;
}

OptimizerState::OptimizerState(const std::string& directory, const CheckpointIndex& index,
                               const TrainingPlan& plan)
    : directory_(directory) {
  if (!index.state) {
    throw input_error(fmt::format(
        "{}: expected a checkpoint with the optimizer's state to go on from, found weights alone: leave out "
        "/plan/resume to start from them",
        directory));
  }
  const StateLayout wanted = state_layout(plan);
  if (index.state->layout != wanted) {
    throw input_error(fmt::format("{}: the optimizer's state is that of {}, the plan has {}", directory,
                                  to_text(index.state->layout), to_text(wanted)));
  }
  for (const std::string& file : index.state->files) {
    const std::string path = (std::filesystem::path(directory) / file).string();
    files_.push_back(file.empty() ? nullptr : std::make_unique<SafetensorsFile>(path));
  }
}

std::vector<double> OptimizerState::load(std::int32_t writer, const Tensor& state) const {
  const auto at = static_cast<std::size_t>(writer);
  const SafetensorsFile* file = at < files_.size() ? files_[at].get() : nullptr;
  if (file == nullptr)
    throw input_error(fmt::format("{}: no optimizer state of rank {}", directory_, writer));
  const std::string name = name_of(state);
  const StoredTensor* found = file->find(name);
  const std::vector<std::int64_t> shape{state.rows * state.columns};
  if (found == nullptr || found->type != StoredType::kF32) {
    throw input_error(fmt::format("{}: expected tensor \"{}\" in F32, found {}", file->path(), name,
                                  found == nullptr ? "none" : to_string(found->type)));
  }
  if (found->shape != shape) {
    throw input_error(fmt::format("{}: tensor \"{}\": expected {}, found {}", file->path(), name,
                                  shape_text(shape), shape_text(found->shape)));
  }
  const std::vector<float> values = to_floats(StoredType::kF32, file->bytes(*found));
  return {values.begin(), values.end()};
}

}  // namespace moebius
