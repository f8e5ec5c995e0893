// Files compressed by gzip, as published tables of measurements come.
#pragma once

#include <cstddef>
#include <string>

namespace moebius {

inline constexpr std::size_t kMostTableBytes = std::size_t{256} << 20;  // packed or not

// The unpacked content. input_error for a file that cannot be read, is not gzip, is cut or damaged, or
// unpacks to over 256 MiB.
std::string read_gzip(const std::string& path);

}  // namespace moebius
