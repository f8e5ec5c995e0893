// Files that a scenario names. Their paths are relative to the file in which they stand, those of a command
// line to where it is given; a scenario that is written elsewhere has to name them from there.
#pragma once

#include <string>

#include "hw/reader.h"

namespace moebius {

// From here, of a path that stands at `place`.
std::string named_path(const Place& place, const std::string& path);

// The document as it has to be where it is written into this directory.
Document written_into(Document document, const std::string& directory);

// What the files say that a scenario reads, in hexadecimal digits, wherever they lie; of what is no file,
// where it is. Empty where it names none.
std::string named_files_mark(const Document& scenario);

}  // namespace moebius
