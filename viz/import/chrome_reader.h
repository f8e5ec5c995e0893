// Chrome's Trace Event Format, plain or packed by gzip, event by event: the file is never held as a tree.
#pragma once

#include <string>
#include <string_view>

#include "viz/import/foreign_trace.h"

namespace moebius::viz {

// Complete slices (X), pairs (B, E), counters (C) and names (M); other events are counted and left out.
// Untrusted: truncated, foreign or hostile files are an input_error with the place where it is wrong.
ForeignTrace read_chrome_trace(const std::string& path);
ForeignTrace parse_chrome_trace(std::string_view json, const std::string& name);  // plain; `name`: for errors

}  // namespace moebius::viz
