#include "workloads/cost/profile_kinds.h"

#include <filesystem>

#include <fmt/format.h>

#include "hw/error.h"
#include "workloads/cost/measured_table.h"

namespace moebius {

OpKind kind_named(const std::string& name, const std::string& table) {
  if (const auto kind = kind_of(name)) return *kind;
  std::vector<std::string> names;
  for (int i = 0; i < kNumOpKinds; ++i)
    if (!is_communication(static_cast<OpKind>(i))) names.emplace_back(to_string(static_cast<OpKind>(i)));
  throw input_error(
      fmt::format("profile table \"{}\": unknown op kind \"{}\"{}", table, name, suggestion(name, names)));
}

void require_known_kinds(const std::vector<Profile>& profiles, const std::string& data) {
  if (data.empty()) return;
  try {
    for (const Profile& profile : profiles)
      for (const ProfileTable& table : profile.tables)
        for (const std::string& kind : table.kinds) kind_named(kind, table.name);
  } catch (const Error& error) {
    throw input_error(
        fmt::format("{}: {}", (std::filesystem::path(data) / "profiles").string(), error.what()));
  }
}

}  // namespace moebius
