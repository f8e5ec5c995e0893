// Files compressed by gzip, as published tables of measurements come.
#pragma once

#include <string>

namespace moebius {

// The unpacked content. input_error for a file that cannot be read, is not gzip, is cut or damaged, or
// unpacks to over 256 MiB.
std::string read_gzip(const std::string& path);

}  // namespace moebius
