// Each function of GLFW that the viewer uses is here a jump through a pointer that load_glfw() fills.
#include "viz/window/glfw_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstddef>

// clang-format off
#define MOEBIUS_GLFW_FUNCTIONS(F) \
  F(glfwCreateStandardCursor) F(glfwCreateWindow) F(glfwDestroyCursor) F(glfwDestroyWindow) \
  F(glfwGetClipboardString) F(glfwGetCursorPos) F(glfwGetError) F(glfwGetFramebufferSize) \
  F(glfwGetInputMode) F(glfwGetJoystickAxes) F(glfwGetJoystickButtons) F(glfwGetMouseButton) \
  F(glfwGetTime) F(glfwGetWindowAttrib) F(glfwGetWindowContentScale) F(glfwGetWindowSize) F(glfwInit) \
  F(glfwMakeContextCurrent) F(glfwPollEvents) F(glfwSetCharCallback) F(glfwSetClipboardString) \
  F(glfwSetCursor) F(glfwSetCursorEnterCallback) F(glfwSetCursorPos) F(glfwSetErrorCallback) \
  F(glfwSetInputMode) F(glfwSetKeyCallback) F(glfwSetMonitorCallback) F(glfwSetMouseButtonCallback) \
  F(glfwSetScrollCallback) F(glfwSetWindowFocusCallback) F(glfwSwapBuffers) F(glfwSwapInterval) \
  F(glfwTerminate) F(glfwWaitEventsTimeout) F(glfwWindowHint) F(glfwWindowShouldClose)
// clang-format on

#define MOEBIUS_DECLARE(name)                                                                               \
  extern "C" {                                                                                              \
  void* moebius_##name = nullptr;                                                                           \
  }                                                                                                         \
  asm(".pushsection .text\n.globl " #name "\n.type " #name ", @function\n" #name ":\n  jmp *moebius_" #name \
      "(%rip)\n.popsection\n");
MOEBIUS_GLFW_FUNCTIONS(MOEBIUS_DECLARE)
#undef MOEBIUS_DECLARE

namespace moebius::viz {
namespace {

struct Function {
  const char* name;
  void** pointer;
};

#define MOEBIUS_ROW(name) {#name, &moebius_##name},
constexpr Function kFunctions[] = {MOEBIUS_GLFW_FUNCTIONS(MOEBIUS_ROW)};
#undef MOEBIUS_ROW

}  // namespace

std::string load_glfw() {
  void* library = dlopen("libglfw.so.3", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return "libglfw.so.3 (package libglfw3) is not there";
  for (const Function& function : kFunctions) {
    *function.pointer = dlsym(library, function.name);
    if (*function.pointer == nullptr) return fmt::format("libglfw.so.3 has no {}", function.name);
  }
  return "";
}

}  // namespace moebius::viz
