// What `show ACCELERATOR --kernel KIND` is asked: a kernel whose sizes are given but one, and that one is
// swept.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "hw/accelerator.h"
#include "hw/dtype.h"
#include "models/op_kind.h"

namespace moebius {

// As the command line gives it; what is not given is empty.
struct KernelRequest {
  std::string kind;    // "gemm"
  std::string dtype;   // of the operands; empty: the kind's first one
  std::string stored;  // of the weights or the cache, where it is another; empty: as `dtype`
  std::optional<std::int64_t> m, n, k, groups, heads, kv_heads, head_dim, v_dim, kv;
  std::optional<std::int64_t> cores;  // that the kernel holds; empty: all of the chip
};

// The sizes by name, for the command line: --n is {"n", ...}.
struct KernelOption {
  std::string_view name, help;
  std::optional<std::int64_t> KernelRequest::*value;
  std::int64_t most = 0;
};
std::span<const KernelOption> kernel_options();

std::vector<std::string> kernel_kind_names();    // "gemm", "gemm-dgrad", ...
std::vector<std::string> kernel_dtype_names();   // of the operands of some kind
std::vector<std::string> kernel_stored_names();  // of weights or caches

// A request that has been checked against its kind and chip.
struct KernelSweep {
  OpKind op = OpKind::kGemm;
  DType dtype = DType::kBf16;
  std::optional<DType> stored = {};
  int cores = 0;
  std::string_view name, help;  // "gemm", what it computes
  std::string sizes;            // what is fixed: "n 7168, k 2048, bf16 (default), all 132 cores (default)"
  std::string_view axis;        // what is swept: "m"
  std::int64_t first = 1, last = 16384, factor = 2;
  std::int64_t grain = 1;                    // in which a new wave is looked for: one row an expert
  std::function<Shape(std::int64_t)> shape;  // at one point of the axis
};

// input_error for an unknown kind, an option that the kind needs and did not get or does not take, and sizes
// out of range. With `kind` empty no other field may be given; that is checked by require_no_kernel.
KernelSweep kernel_sweep(const KernelRequest& request, const Accelerator& chip);
void require_no_kernel(const KernelRequest& request);

}  // namespace moebius
