// Files of folders that users name. What cannot be read is an input_error "PATH: cannot be read: REASON".
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace moebius {

// With that extension (".json"), by name.
std::vector<std::filesystem::path> files_in(const std::filesystem::path& folder, std::string_view extension);

// Also in the folders below it; links to folders are not followed.
std::vector<std::filesystem::path> files_below(const std::filesystem::path& folder,
                                               std::string_view extension);

// False where there is none.
bool stands(const std::filesystem::path& path);

}  // namespace moebius
