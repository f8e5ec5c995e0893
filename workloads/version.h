// Which build this is: written into every report.
#pragma once

namespace moebius {

inline constexpr const char* kVersion = "0.1.0";
const char* build_commit();  // "6eb04be0"; "unknown" where it was not built from a repository
const char* version_text();  // "0.1.0 (6eb04be0)"

}  // namespace moebius
