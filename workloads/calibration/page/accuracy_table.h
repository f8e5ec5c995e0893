// How far profiles can be trusted: the errors on rows that were kept out of them, as a table for people.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "hw/profile.h"

namespace moebius {

// Markdown: one line for each chip, kernel and number format: the table that is asked first, and the others beside it.
// Says whether the goal is met: GEMM median under 4% and nine in ten rows under 12%, expert layers 8% and 20%, others
// median under 5%. Board power, where it was measured, stands last of its chip, without a goal.
std::string accuracy_summary(const std::vector<Profile>& profiles);

// The same in full: one line a table, in the order of the profiles; parts of the rows kept out follow on lines of their
// own.
std::string accuracy_table(const std::vector<Profile>& profiles);

// The generated sections of a page: puts `text` between the two lines "<!-- NAME -->" and "<!-- /NAME -->" of
// the file, which stay. input_error when it cannot be read or lacks them, run_error when it cannot be written.
void write_section(const std::string& path, std::string_view name, const std::string& text);

// What stands between those lines.
std::string read_section(const std::string& path, std::string_view name);

}  // namespace moebius
