#include "workloads/measured_stacks.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "hw/error.h"
#include "hw/profile.h"
#include "workloads/cost/measured_table.h"
#include "workloads/cost/profile_kinds.h"
#include "workloads/cost/stack_choice.h"

namespace moebius {
namespace {

std::vector<std::string> compute_kinds() {
  std::vector<std::string> names;
  for (int kind = 0; kind < kNumOpKinds; ++kind)
    if (!is_communication(static_cast<OpKind>(kind)))
      names.emplace_back(to_string(static_cast<OpKind>(kind)));
  return names;
}

StackChoice choice_of(const Scenario& scenario) {
  try {
    return stack_choice(scenario.kernels);
  } catch (const Error& error) {
    scenario.kernels_at.fail(error.what());
  }
}

void check_names(const StackChoice& choice, const Place& place) {
  for (const StackChoice::Exception& other : choice.exceptions) {
    if (!kind_of(other.kind))
      place.fail(fmt::format("expected a kind of op, found \"{}\"{}", other.kind,
                             suggestion(other.kind, compute_kinds())));
    if (!parse_dtype(other.dtype))
      place.fail(fmt::format("expected a number format, as \"bf16\" or \"fp8\", found \"{}\"", other.dtype));
  }
}

}  // namespace

void check_stacks(const Scenario& scenario, const std::string& data) {
  if (scenario.kernels.empty() || !scenario.cluster) return;
  const StackChoice choice = choice_of(scenario);
  check_names(choice, scenario.kernels_at);
  std::set<std::string> chips, known;
  for (const Pool& pool : scenario.cluster->pools)
    if (chips.insert(pool.accelerator.id).second)
      for (const Profile& profile : find_profiles(pool.accelerator, data))
        for (const ProfileTable& table : profile.tables) known.insert(table.stack);
  const std::vector<std::string> stacks(known.begin(), known.end());
  for (const std::string& named : choice.named())
    if (!known.contains(named))
      scenario.kernels_at.fail(fmt::format(
          "expected software whose kernels are measured on {} ({}), found \"{}\"{}", fmt::join(chips, ", "),
          stacks.empty() ? "none is" : fmt::format("{}", fmt::join(stacks, ", ")), named,
          suggestion(named, stacks)));
}

std::vector<Profile> profiles_for(const Scenario& scenario, const Accelerator& chip,
                                  const std::string& data) {
  std::vector<Profile> profiles = find_profiles(chip, data);
  require_known_kinds(profiles, data);
  if (!scenario.kernels.empty()) return profiles;
  for (Profile& profile : profiles) {
    auto first = profile.tables.begin();
    for (const std::string_view stack : scenario.stacks)
      if (!stack.empty())
        first = std::stable_partition(first, profile.tables.end(), [stack](const ProfileTable& table) {
          return std::string_view(table.stack).starts_with(stack);
        });
  }
  return profiles;
}

}  // namespace moebius
