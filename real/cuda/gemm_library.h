// Matrix products by cuBLASLt, opened at run time.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "real/cuda/fp8_gemm.h"
#include "real/cuda/kernels.h"

namespace moebius::cuda {

class GemmLibrary {
 public:
  virtual ~GemmLibrary() = default;
  // Gives the product to the stream, with `workspace` (workspace_bytes()) for itself until it is done. False,
  // and nothing given, when the library has no kernel for these formats and this shape. Any thread.
  virtual bool multiply(Stream stream, const Gemm& product, void* workspace) = 0;
  // Whether the library has a kernel for a product of this shape and these forms of scales, whatever its
  // addresses, which are at 16 bytes. Any thread.
  virtual bool takes(const Fp8Product& shape) = 0;
  // Such a product. Any thread.
  virtual void multiply(Stream stream, const Fp8Product& product, void* workspace) = 0;
  virtual std::size_t workspace_bytes() const = 0;
  virtual std::string description() const = 0;  // "cuBLASLt 13.1.0"
};

// Null, with the reason, when the library is not there.
std::unique_ptr<GemmLibrary> open_gemm_library(std::string& reason);

}  // namespace moebius::cuda
