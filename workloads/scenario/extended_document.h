// A scenario file that says only what differs from another one: {"extends": "other.json", changes}.
#pragma once

#include <string>

#include "hw/document.h"

namespace moebius {

// The scenario in `path`, with what it extends (a path relative to the directory of the file that says so)
// laid under it: objects key by key, everything else replaced as a whole. What the other file expects is not
// expected of this one. Every value keeps the file and line that it comes from. input_error for a file that
// extends itself, in however many steps, and for more than 8 files.
Document load_scenario(const std::string& path);

// What a file expects is expected of its own plan: of another one nothing is.
void forget_expected(Document& document);

}  // namespace moebius
