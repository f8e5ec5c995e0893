#include "workloads/cost/profile_kinds.h"

#include <fmt/format.h>

#include "hw/error.h"
#include "hw/json_text.h"
#include "workloads/cost/measured_table.h"

namespace moebius {
namespace {

std::vector<std::string> names_of_computing() {
  std::vector<std::string> names;
  for (int i = 0; i < kNumOpKinds; ++i)
    if (!is_communication(static_cast<OpKind>(i))) names.emplace_back(to_string(static_cast<OpKind>(i)));
  return names;
}

}  // namespace

OpKind kind_named(const std::string& name, const std::string& table) {
  if (const auto kind = kind_of(name)) return *kind;
  throw input_error(fmt::format("profile table \"{}\": unknown op kind \"{}\"{}", table, name,
                                suggestion(name, names_of_computing())));
}

void require_known_kinds(const std::vector<Profile>& profiles, const std::string& data) {
  if (data.empty()) return;
  for (const Profile& profile : profiles)
    for (std::size_t t = 0; t < profile.tables.size(); ++t)
      for (std::size_t k = 0; k < profile.tables[t].kinds.size(); ++k) {
        const std::string& kind = profile.tables[t].kinds[k];
        if (kind_of(kind)) continue;
        throw input_error(fmt::format("{}: /tables/{}/kinds/{}: unknown op kind {}{}", profile.file, t, k,
                                      json_excerpt(kind), suggestion(kind, names_of_computing())));
      }
}

}  // namespace moebius
