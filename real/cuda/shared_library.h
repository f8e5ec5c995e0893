// Libraries that are opened at run time, so that the binary starts where they are not.
#pragma once

#include <string>
#include <vector>

namespace moebius::cuda {

class SharedLibrary {
 public:
  // The first of `names` (sonames or paths) that can be opened. run_error that lists the names when none can.
  explicit SharedLibrary(const std::vector<std::string>& names);
  ~SharedLibrary();
  SharedLibrary(const SharedLibrary&) = delete;

  const std::string& name() const { return name_; }
  // A function of the library, as `pointer`. run_error when it has none of that name.
  template <class Function>
  void find(const char* symbol, Function*& pointer) const {
    pointer = reinterpret_cast<Function*>(address(symbol));
  }

 private:
  void* address(const char* symbol) const;

  std::string name_;
  void* handle_ = nullptr;
};

}  // namespace moebius::cuda
