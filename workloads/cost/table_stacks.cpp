// Which tables of the profiles are asked, by the software stacks that are wanted.
#include <fmt/format.h>

#include <algorithm>

#include "hw/error.h"
#include "workloads/cost/stack_choice.h"
#include "workloads/cost/table.h"
#include "workloads/cost/windowed_attention.h"

namespace moebius {
namespace {

bool quantises(const ProfileTable& table) {
  const auto is_pass = [](const std::string& kind) {
    return kind == to_string(OpKind::kQuantise) || kind == to_string(OpKind::kTransposeQuantise);
  };
  return std::all_of(table.kinds.begin(), table.kinds.end(), is_pass);
}

// "a" of "a+b".
bool is_base_of(std::string_view stack, std::string_view variant) {
  return variant.size() > stack.size() && variant[stack.size()] == '+' && variant.starts_with(stack);
}

}  // namespace

MeasuredTables::MeasuredTables(const std::vector<Profile>& profiles, std::string_view stacks) {
  const StackChoice choice = stack_choice(stacks);
  for (const Profile& profile : profiles) {
    if (find_architecture(profile.reference.architecture) == nullptr)
      throw input_error(fmt::format("profile of {}: unknown architecture \"{}\"", profile.accelerator,
                                    profile.reference.architecture));
    references_.push_back(std::make_unique<AnalyticModel>(profile.reference));
    for (const ProfileTable& table : profile.tables) {
      if (std::find(stacks_.begin(), stacks_.end(), table.stack) == stacks_.end())
        stacks_.push_back(table.stack);
      const std::string_view wanted = choice.of(table);
      if (wanted.empty() ? !table.when_named : table.stack == wanted)
        tables_.emplace_back(table, *references_.back());
      if (quantises(table)) quantise_.emplace_back(table, *references_.back());
    }
  }
  own_ = tables_.size();
  // Of a variant that exists: what it does not change.
  for (std::size_t i = 0; i < profiles.size() && !tables_.empty(); ++i)
    for (const ProfileTable& table : profiles[i].tables)
      if (is_base_of(table.stack, choice.of(table))) tables_.emplace_back(table, *references_[i]);
  windows_ = windows_of(tables_);
  for (std::size_t i = 0; i < tables_.size(); ++i)
    for (const OpKind kind : tables_[i].kinds())
      by_kind_[static_cast<std::size_t>(kind)].push_back(static_cast<int>(i));
  for (const std::string& named : choice.named())
    if (std::find(stacks_.begin(), stacks_.end(), named) == stacks_.end())
      throw input_error(fmt::format("no profile has a stack \"{}\"{}", named, suggestion(named, stacks_)));
}

MeasuredTables::~MeasuredTables() = default;
MeasuredTables::MeasuredTables(MeasuredTables&&) noexcept = default;

}  // namespace moebius
