// The directory that a run leaves behind: report.json, report.txt, timeline.mtl.
#pragma once

#include <string>
#include <string_view>

#include "workloads/schedule/timeline.h"

namespace moebius {

// Writes a file by a temporary name beside it and a rename: readers never see half of it. Errors are
// run_error.
void write_file(const std::string& path, std::string_view text);

struct RunTexts {
  std::string_view json, text;
};

// Creates `directory` (and its parents) and writes the three files.
void write_run(const std::string& directory, const RunTexts& texts, const Timeline& timeline);

// The timeline of a run, given as its directory or as the file itself; input_error when there is none.
std::string timeline_path(const std::string& run);

}  // namespace moebius
