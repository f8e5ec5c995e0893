#include "real/cuda/shared_library.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "hw/error.h"

namespace moebius::cuda {

SharedLibrary::SharedLibrary(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    // CUDA's libraries register kernels when they come, and do not take kindly to going.
    handle_ = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    name_ = name;
    if (handle_ != nullptr) return;
  }
  throw run_error(fmt::format("none of {} can be opened", fmt::join(names, ", ")));
}

SharedLibrary::~SharedLibrary() {
  dlclose(handle_);
}

void* SharedLibrary::address(const char* symbol) const {
  void* found = dlsym(handle_, symbol);
  if (found == nullptr) throw run_error(fmt::format("{} has no {}", name_, symbol));
  return found;
}

}  // namespace moebius::cuda
