// The op kinds that tables of profiles name.
#pragma once

#include <string>
#include <vector>

#include "hw/profile.h"
#include "models/op_kind.h"

namespace moebius {

// input_error with the nearest one when `table` names an op kind that there is not.
OpKind kind_named(const std::string& name, const std::string& table);

// The same of all tables, with the file and where in it; `data`: the directory that profiles were read from
// beside the built-in ones. Empty: none was.
void require_known_kinds(const std::vector<Profile>& profiles, const std::string& data);

}  // namespace moebius
