// GLFW, opened at run time: the binary names none of its libraries. Its functions are reached through jump
// stubs of the same names, so that Dear ImGui's back end, an archive, links against them unchanged.
#pragma once

#include <string>

namespace moebius::viz {

// Before the first call of any of its functions. Empty when it worked, else what is missing.
std::string load_glfw();

}  // namespace moebius::viz
